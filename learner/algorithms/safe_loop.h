// SafeLOOP's learner (learner/algorithms/README.md 19): an ensemble of dynamics and a soft actor-critic, by which the
// acting rule plans.
//
// One Update takes a few new rows of every member into a memory of the algorithm's own. In some updates the ensemble is
// trained on all of that memory, until it stops improving on rows that are held out, or the actor and the critics make
// a number of steps on batches drawn from it, or both. In the others nothing is computed.
//
// A member with a loss or gradient that is not finite is frozen, and its whole update is undone, except that the rows
// stay in the memory.
#ifndef DATACOM_LEARNER_ALGORITHMS_SAFE_LOOP_H_
#define DATACOM_LEARNER_ALGORITHMS_SAFE_LOOP_H_

#include <functional>
#include <string>
#include <vector>

#include "learner/algorithms/critic_ensemble.h"
#include "learner/algorithms/dynamics_kernels.h"
#include "learner/algorithms/on_policy_kernels.h"
#include "learner/algorithms/population.h"
#include "learner/algorithms/row_memory.h"
#include "learner/algorithms/sac_kernels.h"

namespace datacom::learner {

class SafeLoop : public Population {
 public:
  explicit SafeLoop(const AlgorithmConfig& config);

  void Update(const Batch& batch) override;
  Stats GetStats() const override;
  ActingParameters GetActingParameters(int member) const override;
  State Save() const override;
  void Load(const State& state) override;

 protected:
  void LoadBatch(const Batch& /*batch*/) override {}  // the memory has it
  void Compute() override {}
  void RunBlock(int plan, const std::function<void()>& compute) override;

 private:
  // One net of the ensemble and its minibatch.
  struct Net {
    MlpLayout mlp;
    FloatView x, target, weight;  // [block, B, in], [block, B, d], [block, B, 1]
    MlpTape tape;
    FloatView d_out;                      // [block, B, 2 d]
    DoubleView loss, error;               // [block, 1, 1]; error: squared, summed over the rows held out
    std::vector<std::vector<int>> order;  // of the training rows, per member of the block
    std::vector<float> host_x, host_target, host_weight;
  };
  // What decides when a member's ensemble has been trained enough.
  struct Progress {
    std::vector<int> rows;  // indices into the memory: those held out, then those to train on
    int held_out = 0;
    std::vector<double> best;  // of each net
    int passes_since = 0;      // the last improvement
    bool done = false;
    int training() const { return static_cast<int>(rows.size()) - held_out; }
  };
  enum { kKeep, kPolicy, kModel, kError, kFinish };  // plans

  void DeclareNets();
  void MakePolicyWorkspace();
  void MakeModelWorkspace();
  bool Due(uint32_t period) const { return rows_ % period == 0; }
  bool PolicyDue() const { return rows_ >= config_.planning.random_rows() && Due(config_.planning.policy_period()); }
  uint64_t SeedOf(int m) const { return config_.members[first_member() + m].seed; }  // of a member of the block

  // The policy's part.
  void PolicySteps();
  void DrawPolicyBatch(int step);
  void PolicyStep();
  void Sample(const FloatView& observation, const FloatView& noise, const ActionSample& out);
  void CriticPart();
  void ActorPart();
  FloatView Observation() const { return input_.rows.Rows(0, batch_).Cols(0, config_.obs_dim); }

  // The ensemble's part.
  void TrainModel();
  void DivideRows(int m);
  void Standardise(int m);
  bool TrainingPass(int pass);
  void LoadMinibatch(int first);
  void ModelStep();
  void HeldOutErrors();
  void ErrorStep();
  void Judge(int m);
  void FillRow(Net* net, int m, int r, int row, float weight);
  void Upload(const Net& net);

  const int batch_, width_;  // width_: outputs of a Gaussian, 1 + obs
  SacKernels* const sac_kernels_;
  OnPolicyKernels* const row_kernels_;
  DynamicsKernels* const dynamics_kernels_;
  RowMemory memory_;
  uint64_t updates_ = 0;
  uint64_t policy_steps_ = 0;  // due so far, for the temperature; a member without rows to draw from makes none
  uint64_t rows_ = 0;          // of each member, as of this update
  std::vector<std::vector<int>> continuing_;  // [block]: rows of the memory
  std::vector<double> active_values_;         // [block]

  CriticEnsemble critics_;
  CriticInput input_;
  MlpLayout actor_;
  int64_t actor_first_ = 0, actor_end_ = 0;
  Optimizer actor_optimizer_, critic_optimizer_;
  Statistic entropy_;
  DoubleView mean_log_pi_, return_floor_;
  ActionBox box_;
  MlpTape actor_tape_;
  ActionSample now_, next_;
  FloatView noise_, no_noise_, y_, d_action_, d_policy_, log_alpha_;
  std::vector<float> host_observation_, host_action_, host_reward_, host_next_, host_noise_, host_log_alpha_;

  std::vector<Net> nets_;
  int64_t model_first_ = 0, model_end_ = 0, input_mean_ = 0, input_std_ = 0;
  Optimizer model_optimizer_;
  Statistic model_loss_;
  std::vector<DoubleView> decay_;  // half the weight decay of each layer, [block, 1, 1]
  DoubleView training_;            // [block, 1, 1] 1 for a member that takes the current minibatch
  std::vector<Progress> progress_;
  std::vector<double> training_values_;
  std::vector<float> host_mean_, host_std_;

  UndoRange undo_;
  FloatView kept_targets_;
  std::function<void()> keep_, policy_, model_, error_, finish_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SAFE_LOOP_H_
