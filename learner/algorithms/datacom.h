// D-ATACOM (docs/algorithms.md 6): soft actor-critic on tangent actions u. The map W(s, u) of a learned
// feasibility constraint with a learned threshold delta turns u into the executed action a. Critics see a; their
// gradient reaches the actor only through da/du. The constraint is the CVaR of a Gaussian here and a quantile in
// IQN-ATACOM (iqn_datacom.cc). Known constraints of the task may be joined to it (docs/safe_map.md 3.1); the
// batch holds them.
#ifndef DATACOM_LEARNER_ALGORITHMS_DATACOM_H_
#define DATACOM_LEARNER_ALGORITHMS_DATACOM_H_

#include <memory>
#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/cost_kernels.h"
#include "learner/algorithms/critic_ensemble.h"
#include "learner/algorithms/delta.h"
#include "learner/algorithms/multiplier.h"
#include "learner/algorithms/safe_map_kernels.h"
#include "learner/algorithms/soft_actor_critic.h"
#include "learner/nn/kernels.h"

namespace datacom::learner {

// The learned feasibility constraint of D-ATACOM. At a constraint state z it gives one value of the discounted future
// violation. The constraint is k = value - delta, with delta the threshold; k has a Jacobian for z and is fitted to its
// own targets. A derived class decides what the value is (the CVaR of a Gaussian, a quantile) and which nets compute
// it.
//
// Works on arrays of the algorithm's block. Derived classes evaluate all rows of an update in one pass: z holds s', s
// and the failure rows. k and J are computed at s' and s, the loss at s and the failure rows.
class Feasibility {
 public:
  virtual ~Feasibility() = default;
  virtual void Declare(const AlgorithmConfig& config, ParameterLayout* layout) = 0;
  int64_t first() const { return first_; }
  int64_t size() const { return size_; }
  // Derived classes call this first and then make the workspace of their nets.
  virtual void MakeWorkspace(const AlgorithmConfig& config, int block, Kernels* kernels);
  // Copies the block's rows; the block starts at this member of the batch.
  virtual void LoadBatch(const Batch& batch, int batch_member);

  // Constraint k and Jacobian J at s' and s, with the current online nets.
  virtual void Evaluate(const FloatView& parameters, const DoubleView& delta) = 0;
  // Both: [block, 2B, ...], s' before s.
  const DoubleView& k() const { return k_; }
  const DoubleView& J() const { return J_; }
  DoubleView k_now() const { return k_.Rows(batch_, batch_); }  // [block, B, 1]: at s
  // After Evaluate, before the nets change: loss [block, 1, 1] and parameter gradients.
  virtual void LossGradient(const FloatView& parameters, const FloatView& targets, const FloatView& gradients,
                            const DoubleView& loss) = 0;

  // Adds the arrays and scalars from which the acting rule evaluates a member's constraint.
  virtual void Publish(const v1::Hyper& hyper, const HostParameters& parameters, ActingParameters* out) const = 0;
  // The values of a block's members at states of theirs: states[m] is [rows, q + x], values[m] becomes [rows]. The
  // block begins at this member of the population. Transfers between host and device: two for as many rows of each
  // member as an episode has.
  void Risk(const FloatView& parameters, int first_member, const std::vector<float>* states,
            std::vector<double>* values);

 protected:
  // Fills k with the values of the block from member_ on at 2B rows z, with delta = 0. Overwrites J_.
  virtual void EvaluateRisk(const FloatView& parameters, const FloatView& z, const DoubleView& k) = 0;

  int64_t first_ = 0, size_ = 0;
  int batch_ = 0, failures_ = 0, z_dim_ = 0;
  int slice_first_ = 0;
  int member_ = 0;  // first of the block
  double discount_ = 0;
  Kernels* kernels_ = nullptr;
  FloatView z_;                                     // [block, B + B + F, q + x]: s', s, failure rows
  FloatView next_z_;                                // [block, B + F, q + x]: s', next of failure rows
  FloatView cost_, absorbing_, row_weight_, ones_;  // the first three of s and the failure rows, as in GaussianTarget
  DoubleView no_delta_;
  DoubleView k_, J_;

 private:
  FloatView risk_z_;                // [block, rows, q + x]: the states of an episode, in whole passes of 2B rows
  DoubleView risk_k_;               // [block, rows, 1]: their values
  std::vector<float> host_z_;       // of risk_z_
  std::vector<double> host_k_;      // of risk_k_
  std::vector<float> host_weight_;  // [block, B + F]
};

class Datacom : public SoftActorCritic {
 public:
  explicit Datacom(const AlgorithmConfig& config);
  void ApplyEpisodes(const std::vector<EpisodeCosts>& episodes) override;
  Stats GetStats() const override;

 protected:
  Datacom(const AlgorithmConfig& config, std::unique_ptr<Feasibility> feasibility);
  void Publish(int member, const HostParameters& parameters, ActingParameters* out) const override;
  void LoadBatch(const Batch& batch) override;
  void EvaluateState() override;
  void PolicyGradients() override;
  void EvaluateStored() override;
  void ValueGradients() override;

 private:
  friend class ArrayAccess;  // of tests
  struct Dynamics {
    DoubleView f, G, x_dot, known;  // [block, rows, ...]; known is empty if nothing is joined
    Dynamics Rows(int first, int count) const;
  };
  void LoadDynamics(const ControlAffineBatch& batch, const Dynamics& to);
  void MapStates();
  void AddPricedCost();  // adds the gradient of the weighed cost to action_gradient()
  // Writes the executed action of a sample and corrects its log_pi, with the map of the sample's states.
  void MapAction(const DoubleView& map, const ActionSample& sample, const FloatView& action) {
    map_kernels_->Action(map, sample.u, {action, sample.log_pi, record_});
  }
  DoubleView MapNext() const { return map_.Rows(0, batch_); }
  DoubleView MapNow() const { return map_.Rows(batch_, batch_); }
  bool joins() const { return !config_.known.empty(); }
  void UploadThresholds();
  DoubleView DeltaValue() const { return Block(thresholds_).Rows(0, 1); }
  DoubleView MultiplierValue() const { return Block(thresholds_).Rows(1, 1); }

  MapKernels* const map_kernels_;
  std::unique_ptr<Feasibility> feasibility_;
  Delta delta_;
  Optimizer constraint_optimizer_;
  Statistic constraint_loss_, constraint_mean_, infeasible_share_;
  DoubleView gain_, slack_beta_;  // [M, 1, 1]
  DoubleView thresholds_;         // [M, 2, 1]: delta, multiplier
  Dynamics dynamics_;             // 2B rows: s', then s, as in feasibility_
  DoubleView map_;                // [block, 2B, ...]: the map at these states
  DoubleView record_;             // [block, B, 1] of the last MapAction
  FloatView d_u_;
  // The price of the cost (docs/algorithms.md 6.1). Unless a member of the population has a multiplier, there is none.
  const bool priced_;
  Multiplier multiplier_;
  CostKernels* cost_kernels_ = nullptr;
  CriticEnsemble cost_critic_;
  Optimizer cost_optimizer_;
  FloatView cost_, cost_y_, d_cost_;  // [block, B, 1], [block, B, 1], [block, B, action]
  DoubleView one_, cost_loss_;        // [block, 1, 1]
  // Of the episodes of a call, [M]: their states and the values there, one episode after another; reused.
  std::vector<std::vector<float>> episode_states_;
  std::vector<std::vector<double>> episode_values_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_DATACOM_H_
// SPDX-License-Identifier: Apache-2.0
