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

#include "learner/algorithms/delta.h"
#include "learner/algorithms/feasibility.h"
#include "learner/algorithms/joined_map_kernels.h"
#include "learner/algorithms/safe_map_kernels.h"
#include "learner/algorithms/soft_actor_critic.h"

namespace datacom::learner {

class Datacom : public SoftActorCritic {
 public:
  explicit Datacom(const AlgorithmConfig& config);
  void ApplyEpisode(int member, int length, const float* z, const float* costs) override;
  Stats GetStats() const override;
  ActingParameters GetActingParameters(int member) const override;
  State Save() const override;
  void Load(const State& state) override;
  std::vector<float> ReadArray(int member, const std::string& name) const override;
  void WriteArray(int member, const std::string& name, const std::vector<float>& values) override;

 protected:
  Datacom(const AlgorithmConfig& config, std::unique_ptr<Feasibility> feasibility);
  // Adds the arrays and scalars from which the acting rule evaluates the constraint.
  virtual void AddConstraint(int member, ActingParameters* out) const;
  void LoadBatch(const Batch& batch) override;
  void EvaluateState() override;
  void PolicyGradients() override;
  void ValueGradients() override;

 private:
  struct Dynamics {
    DoubleView f, G, x_dot, known;  // [block, rows, ...]; known is empty if nothing is joined
    Dynamics Rows(int first, int count) const;
  };
  void LoadDynamics(const ControlAffineBatch& batch, const Dynamics& to);
  SafeMapInput MapInput(const Dynamics& dynamics, const DoubleView& k, const DoubleView& J) const;
  void JoinMaps();
  void MapNow();
  void MapNext();
  void MapNowGradient();
  bool joins() const { return !config_.known.empty(); }
  void UploadDelta(int member);

  SafeMapKernels* const safe_map_kernels_;
  JoinedMapKernels* const joined_map_kernels_;
  std::unique_ptr<Feasibility> feasibility_;
  Delta delta_;
  Optimizer constraint_optimizer_;
  Statistic constraint_loss_, constraint_mean_;
  DoubleView gain_, slack_beta_, delta_value_;  // [M, 1, 1]
  Dynamics dynamics_;                           // 2B rows: s', then s, as in feasibility_
  DoubleView map_;                              // [block, 2B, ...]: the joined map at these states
  DoubleView record_;
  FloatView d_u_;
  std::vector<double> risk_;  // of one episode; reused
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_DATACOM_H_
// SPDX-License-Identifier: Apache-2.0
