// A task's known constraints, in closed form: K rows k_i(q, x) <= 0 with their Jacobians. The analytic ATACOM baselines
// use them, and they can be joined to the learned constraint (common/safety/README.md 3). Implementations are
// immutable, hence re-entrant and shared by any number of threads; Evaluate allocates nothing.
#ifndef DATACOM_COMMON_SAFETY_KNOWN_CONSTRAINTS_H_
#define DATACOM_COMMON_SAFETY_KNOWN_CONSTRAINTS_H_

#include <string>
#include <vector>

namespace datacom {

// Where Evaluate writes; the caller owns the arrays. Any pointer may be null: that part is skipped.
struct KnownConstraintsOut {
  double* k = nullptr;    // [K], > 0 is a violation
  double* J_q = nullptr;  // [K, q] row-major
  double* J_x = nullptr;  // [K, x] row-major
};

class KnownConstraints {
 public:
  virtual ~KnownConstraints() = default;
  virtual int count() const = 0;  // K
  // [K] gain of each row's derivative in the forward-invariant (viability) form k + gain * k_dot; 0 = the row as it is.
  // Only a row that the action affects through the velocity may have a gain: in a state q = [positions, velocities] it
  // depends on the positions alone, and not on x.
  virtual const std::vector<double>& viability_gains() const = 0;
  virtual const std::vector<std::string>& names() const = 0;   // [K], each once
  virtual const std::vector<std::string>& groups() const = 0;  // [K] group of each row; no group is named like a row
  // q and x as the task's ControlAffine gives them.
  virtual void Evaluate(const double* q, const double* x, const KnownConstraintsOut& out) const = 0;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_KNOWN_CONSTRAINTS_H_
