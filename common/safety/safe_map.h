// The safe map W(s, u): tangent action u of the policy -> environment action a that keeps constraints k(s) <= 0 and
// equations k(s) = 0 (docs/safe_map.md 2). Closed forms, float64, no factorisation library.
//
// Two forms of input:
//   SafeMapTerms    a task's control-affine model and the constraint's gradient; the map forms J_G, the truncated drift
//                   and the residual (steps 3 to 5 of docs/safe_map.md 2.1);
//   SafeMapReduced  J_G and drift already formed, for constraints that supply their own rows.
// Rows of both kinds join in one map: Set with `joined`.
// Of the K rows the last SafeMapDims::equalities are equations. They have no slack, and their drift is not truncated.
// Set() computes the state-dependent part; then Apply() may be called for any number of tangent actions.
//
// Degenerate cases, all finite:
//   J_G = 0        the action cannot influence the constraint: B_top = I, offset 0, a = clip(u),
//                  log_det = n log(1 + e).
//   k >= 0         with |J_G| >> slack slope: B_top tends to the projector orthogonal to J_G, the offset to
//                  -J_G^+ r, log_det to rank * log(e); the learner clamps it at the target entropy.
//   far inside     slack slopes saturate at 1e5 - 1: the constraint is almost ignored.
//   a_raw = 0      scale is 1.
//   an equation whose J_G is 0 or depends on those of earlier equations has no effect.
// NaN or infinite inputs give a NaN or infinite action, which the simulator rejects, and have no other effect.
// Expects |J_G| / slope below 1e150.
//
// Not thread-safe: owns its workspace, allocated when it is made; Set and Apply neither allocate nor block.
#ifndef DATACOM_COMMON_SAFETY_SAFE_MAP_H_
#define DATACOM_COMMON_SAFETY_SAFE_MAP_H_

#include <vector>

namespace datacom {

inline constexpr int kMaxSafeMapActions = 8;
inline constexpr double kMinSlack = 1e-5;
inline constexpr double kLogDetRegularisation = static_cast<double>(1e-4f);  // the reference adds float32(1e-4)

// Slack mu = max(-k, 1e-5), and its slope alpha(mu) = min(exp(beta mu) - 1, 1e5 - 1) > 0.
double SafeMapSlack(double k);
double SafeMapSlackSlope(double slack, double beta);

// Sweeps of cyclic Jacobi over n columns. It converges quadratically: at 1e10 condition, three columns settle in 5
// sweeps, eight in 8.
inline int SafeMapSweeps(int n) { return n <= 3 ? 6 : 10; }

struct SafeMapGains {
  double lambda = 50;  // contraction towards the constraint manifold (atacom_gain)
  double beta = 1;     // shape of the slack
};

// Row-major arrays; the caller keeps them alive during Set.
struct SafeMapTerms {
  const double* k = nullptr;      // [K]
  const double* J_k = nullptr;    // [K, q]   dk/dq
  const double* J_x = nullptr;    // [K, x]   dk/dx; may be null when x = 0
  const double* f = nullptr;      // [q]
  const double* G = nullptr;      // [q, n]
  const double* x_dot = nullptr;  // [x]; may be null when x = 0
};

struct SafeMapReduced {
  const double* k = nullptr;    // [K]
  const double* J_G = nullptr;  // [K, n]
  // [K], added to lambda (k + mu): J_x x_dot + max(J_k f, 0); of equations to lambda k: J_x x_dot + J_k f
  const double* drift = nullptr;
};

// A row of SafeMapReduced as one record: k, drift, J_G [n].
inline constexpr int JoinedRowSize(int action) { return action + 2; }

// Dimensions of SafeMapTerms.
struct SafeMapDims {
  int constraints = 1;  // K >= 1
  int action = 1;       // n, 1 .. kMaxSafeMapActions
  int q = 0;
  int x = 0;
  int equalities = 0;  // how many of the K are equations
  friend bool operator==(const SafeMapDims& a, const SafeMapDims& b) {
    return a.constraints == b.constraints && a.action == b.action && a.q == b.q && a.x == b.x &&
           a.equalities == b.equalities;
  }
};

// J_G = J_k G [K, n] and drift = J_x x_dot + max(J_k f, 0) [K], without the max for equations, K = dims.constraints.
// Pure.
void ReduceTerms(const SafeMapDims& dims, const SafeMapTerms& terms, double* J_G, double* drift);

// action [n] = fixed + scale * (basis clip(u) + offset) with the largest scale in [0, 1] that keeps it in [-1, 1];
// returns scale. `fixed` [n] is what equations leave no choice about; where it exceeds the box itself, it is shrunk
// into it. Without equations it is 0, or null.
double ApplySafeMap(int n, const double* basis, const double* offset, const double* fixed, const double* u,
                    double* action);

class SafeMap {
 public:
  explicit SafeMap(const SafeMapDims& dims);

  void Set(const SafeMapTerms& terms, const SafeMapGains& gains);
  // One constraint from terms, then K - 1 records joined [K - 1, n + 2]; all rows have equal priority.
  void Set(const SafeMapTerms& terms, const double* joined, const SafeMapGains& gains);
  // K records [K, n + 2].
  void Set(const double* records, const SafeMapGains& gains) { SetRecords(0, records, gains); }
  // One inequality uses the form of docs/safe_map.md 2.4, more the singular values of A^-1 J_G (2.3 there), both
  // in the tangent space of the equations (2.7 there).
  void Set(const SafeMapReduced& reduced, const SafeMapGains& gains);
  // The singular-value form for every number of inequalities, so that the two forms can be compared. Without equations.
  void SetBySingularValues(const SafeMapReduced& reduced, const SafeMapGains& gains);

  // ApplySafeMap with this state's basis and offset.
  // d action / d u = scale * B_top * diag(1 where |u_i| <= 1), with scale as a constant.
  double Apply(const double* u, double* action) const;
  // Like Apply, without rescaling (for the analytic baselines, whose actions the environment limits).
  void ApplyUnscaled(const double* u, double* action) const;

  // B_top [n, n] row-major, symmetric, eigenvalues in (0, 1], and 0 across the equations
  const double* basis() const { return basis_; }
  const double* offset() const { return offset_; }  // [n], -(J_u^+ r)_top without `fixed`, along the equations
  const double* fixed() const { return fixed_; }    // [n], the smallest solution of the equations; 0 without any
  // log det(B_top + e I) in the tangent space of the equations, before any clamp.
  double log_det() const { return log_det_; }
  const SafeMapDims& dims() const { return dims_; }

 private:
  int inequalities() const { return dims_.constraints - dims_.equalities; }
  void SetRecords(int first, const double* records, const SafeMapGains& gains);
  void SetInequalities(const SafeMapReduced& reduced, const SafeMapGains& gains);
  int SolveEquations(const SafeMapReduced& reduced, double lambda);
  void SetInTangentSpace(const SafeMapReduced& reduced, const SafeMapGains& gains);
  void SetSingle(double k, const double* J_G, double drift, const SafeMapGains& gains);
  void Triangularise();
  void OrthogonaliseRows();

  SafeMapDims dims_;
  double basis_[kMaxSafeMapActions * kMaxSafeMapActions];
  double offset_[kMaxSafeMapActions];
  double fixed_[kMaxSafeMapActions] = {};
  double normals_[kMaxSafeMapActions * kMaxSafeMapActions] = {};  // [m, n]: orthonormal, across the equations
  double log_det_ = 0;
  std::vector<double> reduced_;                                // [K, n] J_G, then [K] drift, [K] k
  std::vector<double> projected_;                              // [K - m, n] J_G, then [K - m] drift; empty if m = 0
  std::vector<double> columns_;                                // [n, K]: columns of A^-1 J_G
  std::vector<double> residual_;                               // [K]: A^-1 r, rotated along
  double rows_[kMaxSafeMapActions * kMaxSafeMapActions] = {};  // [min(K, n), n]
};

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_SAFE_MAP_H_
// SPDX-License-Identifier: Apache-2.0
