// A task's control-affine model: the motion of the constraint state, q_dot = f(q) + G(q) u, and the uncontrollable
// state x with its velocity x_dot (docs/safe_map.md 1). Pure functions of the observation. Implementations are
// immutable, hence re-entrant and shared by any number of threads; Evaluate allocates nothing.
#ifndef DATACOM_COMMON_SAFETY_CONTROL_AFFINE_H_
#define DATACOM_COMMON_SAFETY_CONTROL_AFFINE_H_

namespace datacom {

struct ControlAffineDims {
  int obs = 0;     // observation
  int action = 0;  // n, columns of G
  int q = 0;       // controllable constraint state
  int x = 0;       // uncontrollable constraint state
};

// Where Evaluate writes; the caller owns the arrays. Any pointer may be null: that part is skipped.
struct ControlAffineOut {
  double* q = nullptr;      // [q]
  double* x = nullptr;      // [x]
  double* x_dot = nullptr;  // [x]
  double* f = nullptr;      // [q]
  double* G = nullptr;      // [q, action] row-major
};

class ControlAffine {
 public:
  virtual ~ControlAffine() = default;
  virtual ControlAffineDims dims() const = 0;
  // obs: [obs] float64 (the float32 observation, widened).
  virtual void Evaluate(const double* obs, const ControlAffineOut& out) const = 0;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_CONTROL_AFFINE_H_
// SPDX-License-Identifier: Apache-2.0
