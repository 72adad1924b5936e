// The base of PPOLag and RCPO (docs/algorithms.md 18): a Gaussian policy whose standard deviation does not
// depend on the state, a value net for the reward and one for the cost, normalised observations, and a multiplier that
// weighs the cost.
//
// One Update is one epoch of rows (Batch): the multiplier steps, the advantages are estimated, and the algorithm learns
// in passes over the rows (Learn). The observations' statistics take in the epoch's rows at its end, so all rows of an
// epoch are acted and learned with the same normalisation, which the snapshot carries.
//
// A member with a loss or gradient that is not finite in any minibatch is frozen, and its whole epoch is undone: all
// nets, moments, statistics of observations and the multiplier keep the bits from before the update. For this they are
// copied at the start of every update, which is little compared with an epoch's work. (Costs of episodes are kept as
// they come.)
#ifndef DATACOM_LEARNER_ALGORITHMS_ON_POLICY_H_
#define DATACOM_LEARNER_ALGORITHMS_ON_POLICY_H_

#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/observation_normaliser.h"
#include "learner/algorithms/on_policy_kernels.h"
#include "learner/algorithms/population.h"
#include "learner/algorithms/scalar_adam.h"

namespace datacom::learner {

// The Lagrange multiplier of PPOLag and RCPO for every member (docs/algorithms.md 18.4): one step of Adam per
// update on the mean cost of the newest episodes, then raised to 0 if negative. Host memory, float64; not thread-safe.
class CostMultiplier {
 public:
  static constexpr int kWindow = 50;       // newest finished episodes
  static constexpr double kStart = 0.001;  // first value

  explicit CostMultiplier(const AlgorithmConfig& config);
  double value(int member) const { return members_[member].multiplier.value; }
  void set_value(int member, double value) { members_[member].multiplier.value = value; }
  // costs: [length] of a finished episode, raw. Their positive parts add up to the episode's cost.
  void AddEpisode(int member, int length, const float* costs);
  // Returns the value after the next step, and changes nothing that Save shows before Keep takes the step. A member
  // without a finished episode keeps its value.
  double Propose(int member);
  void Keep(int member) { members_[member].multiplier = proposed_[member]; }
  std::string Save() const;             // exact bytes
  void Load(const std::string& bytes);  // must have the size that Save gives

 private:
  struct Member {
    ScalarAdam multiplier;
    double episodes = 0;  // so far
    double costs[kWindow] = {};
  };
  std::vector<Member> members_;
  std::vector<ScalarAdam> proposed_;
  std::vector<double> limits_, rates_;
};

class OnPolicy : public Population {
 public:
  // The log-density of each row's action under the policy that acted.
  static std::vector<RuleColumn> Columns(const AlgorithmConfig& /*config*/) { return {{"log_prob"}}; }
  void Update(const Batch& batch) override;
  void ApplyEpisodes(const std::vector<EpisodeCosts>& episodes) override;
  Stats GetStats() const override;

 protected:
  // keep_activations: chunk i's hidden units of the acting policy's mean stay in tape(i) through the update.
  OnPolicy(const AlgorithmConfig& config, bool keep_activations);
  void Publish(int member, const HostParameters& parameters, ActingParameters* out) const override;

  // Standardised reward advantages, centred cost advantages, and both targets.
  virtual void EstimateAdvantages();

  // The algorithm's part, in any number of Runs; not called if all members of the block are frozen.
  virtual void Learn() = 0;
  // One pass over the rows: Minibatch for all minibatches, in an order of the pass's own.
  void Pass(int pass);
  virtual void Minibatch(const FloatView& rows) { CriticSteps(rows); }  // inside of a Run
  void CriticSteps(const FloatView& rows);
  // Whether a member of the block is active. During Learn a member that stopped early is inactive until its end.
  bool Learning();
  enum { kPrepare, kMinibatch, kRest, kFinish, kOwn };  // plans; algorithms have kOwn

  // Columns of rows_ and of a minibatch.
  FloatView ObservationOf(const FloatView& rows) const { return rows.Cols(0, config_.obs_dim); }
  ActedRows ActedOf(const FloatView& rows) const;
  FloatView TargetOf(const FloatView& rows) const { return rows.Cols(first_target_, 1); }
  FloatView CostTargetOf(const FloatView& rows) const { return rows.Cols(first_target_ + 1, 1); }
  FloatView LogStd(const FloatView& block) const { return block.Cols(static_cast<int>(log_std_), config_.action_dim); }

  // The rows of the epoch in chunks that stay in cache.
  int chunks() const { return static_cast<int>(tapes_.size()); }
  FloatView ChunkOf(const FloatView& rows, int chunk) const;
  const MlpTape& tape(int chunk) const { return tapes_[chunk]; }  // of the acting policy's mean

  const int rows_per_epoch_, batch_;
  OnPolicyKernels* const on_policy_kernels_;
  MlpLayout mean_;
  int64_t log_std_ = 0, actor_end_ = 0;  // the actor is the start of a member's block
  Optimizer actor_optimizer_;
  FloatView rows_;                               // [block, N, columns]
  FloatView acting_mean_;                        // [block, N, action], from the policy that acted
  FloatView acting_log_std_;                     // [block, 1, action]
  FloatView reward_advantage_, cost_advantage_;  // [block, N, 1]
  FloatView d_mean_;                             // [block, rows of a chunk or minibatch, action]
  MlpTape chunk_tape_;                           // for the mean net on the rows of a chunk
  DoubleView stopped_;                           // [block, 1, 1]
  DoubleView clip_;                              // [M, 1, 1] longest gradient

 private:
  friend class ArrayAccess;  // of tests
  // A value net and what its fit needs.
  struct Critic {
    MlpLayout net;
    int64_t first = 0, size = 0;
    Optimizer optimizer;
    Statistic* loss = nullptr;
  };
  void LoadBatch(const Batch& batch);
  void UpdateBlock(const Batch& batch);
  void Prepare();  // runs before Learn
  Critic NewCritic(const std::string& name);
  void MakeWorkspace(bool keep_activations);
  void MakeTapes(bool keep_activations);
  void Normalise(const FloatView& raw, const FloatView& out);
  void EvaluateRows();
  void CriticStep(const Critic& critic, const FloatView& rows, const FloatView& target);
  void Finish();

  Critic critic_, cost_critic_;
  CostMultiplier multiplier_;
  uint64_t updates_ = 0;  // updates made so far
  int first_target_ = 0;
  UndoRange undo_;
  Statistic cost_loss_, mean_cost_value_;
  ObservationNormaliser normaliser_;
  FloatView raw_, raw_next_, next_;                 // [block, N, obs]; next_: [block, rows of a chunk, obs]
  FloatView reward_, cost_, absorbing_, path_end_;  // [block, N, 1]
  FloatView value_, next_value_, cost_value_, next_cost_value_;  // [block, N, 1]
  FloatView minibatch_, d_value_;
  MlpTape critic_tape_;
  std::vector<MlpTape> tapes_;
  DoubleView index_;                             // [block, B, 1]
  DoubleView price_;                             // [block, 1, 1]
  DoubleView unit_, gae_lambda_, critic_decay_;  // [M, 1, 1]
  std::vector<double> actor_rates_, rates_, index_values_, active_values_, prices_;
  std::vector<std::vector<int>> order_;  // per member of the block
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_ON_POLICY_H_
// SPDX-License-Identifier: Apache-2.0
