// A task's known constraints: K rows k_i <= 0, or k_i = 0, with their Jacobians. The analytic ATACOM baselines use
// them, and they can be joined to the learned constraint (docs/safe_map.md 3). The rows are closed forms of the
// constraint state [q, x], or they are read from the observation, where the simulator wrote them. Implementations are
// immutable, hence re-entrant and shared by any number of threads; Evaluate allocates nothing.
#ifndef DATACOM_COMMON_SAFETY_KNOWN_CONSTRAINTS_H_
#define DATACOM_COMMON_SAFETY_KNOWN_CONSTRAINTS_H_

#include <string>
#include <utility>
#include <vector>

namespace datacom {

struct KnownConstraintsState {
  const double* q = nullptr;  // [q] and [x] as the task's ControlAffine gives them; null for an empty part
  const double* x = nullptr;  // [x]
  // [obs]. A closed form may take values from it as constants, such as the velocity of a braking distance, and must
  // give finite numbers without it.
  const double* observation = nullptr;
};

// Where Evaluate writes; the caller owns the arrays. Any pointer may be null: that part is skipped.
struct KnownConstraintsOut {
  double* k = nullptr;    // [K], > 0 is a violation, and of equations each value but 0
  double* J_q = nullptr;  // [K, q] row-major
  double* J_x = nullptr;  // [K, x] row-major
  // Only for rows that are read from the observation (KnownConstraints::observed). The rate of such a row is
  // k_dot = J_q q_dot + J_x x_dot + rate. A row without a gain has 0 in the three others.
  double* rate = nullptr;              // [K] rate of k by what is neither in q nor in x
  double* J_v = nullptr;               // [K, q] gradient of k_dot by the velocities in q; 0 for positions
  double* own_acceleration = nullptr;  // [K] rate of k_dot by the motion of q's positions, at constant velocities
  double* acceleration = nullptr;      // [K] rate of k_dot by what is neither in q nor in x, at constant velocities
};

class KnownConstraints {
 public:
  virtual ~KnownConstraints() = default;
  int count() const { return static_cast<int>(names_.size()); }  // K
  // Whether the rows are read from the observation, together with how they move. Closed forms give k and its Jacobians
  // anywhere, and their users derive the motion.
  virtual bool observed() const { return false; }
  // Whether row i is an equation, k_i = 0.
  bool equality(int row) const { return equalities_[row]; }
  // Whether the numbers of this row come from the simulator, so that no closed form gives them.
  virtual bool simulated(int row) const { return false; }
  // [K] gain of each row's derivative in the forward-invariant (viability) form k + gain * k_dot; 0 = the row as it is.
  // Only a row that the action affects through the velocity may have a gain: in a state q = [positions, velocities] it
  // depends only on the positions, not on x.
  const std::vector<double>& viability_gains() const { return viability_gains_; }
  const std::vector<std::string>& names() const { return names_; }  // [K], each once
  // [K] group of each row; no group is named like a row.
  const std::vector<std::string>& groups() const { return groups_; }
  virtual void Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const = 0;

 protected:
  // Appends a row. For constructors.
  void Add(std::string group, std::string name, double viability_gain, bool equality = false) {
    groups_.push_back(std::move(group));
    names_.push_back(std::move(name));
    viability_gains_.push_back(viability_gain);
    equalities_.push_back(equality);
  }

 private:
  std::vector<double> viability_gains_;
  std::vector<std::string> names_, groups_;
  std::vector<bool> equalities_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_KNOWN_CONSTRAINTS_H_
// SPDX-License-Identifier: Apache-2.0
