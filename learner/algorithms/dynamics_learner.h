// Learns an ensemble of dynamics from a memory of a member's rows (docs/algorithms.md 19.1). The base of
// SafeLOOP, which adds a soft actor-critic (safe_loop.cc).
//
// An update appends its rows to the memory. TrainModel trains the ensemble on all of them, until it stops improving on
// rows that are held out.
#ifndef DATACOM_LEARNER_ALGORITHMS_DYNAMICS_LEARNER_H_
#define DATACOM_LEARNER_ALGORITHMS_DYNAMICS_LEARNER_H_

#include <functional>
#include <string>
#include <vector>

#include "learner/algorithms/dynamics_kernels.h"
#include "learner/algorithms/on_policy_kernels.h"
#include "learner/algorithms/population.h"
#include "learner/algorithms/row_memory.h"

namespace datacom::learner {

class DynamicsLearner : public Population {
 public:
  State Save() const override;
  void Load(const State& state) override;

 protected:
  explicit DynamicsLearner(const AlgorithmConfig& config);

  void DeclareEnsemble();     // before Build
  void MakeModelWorkspace();  // after Build
  void FindContinuing();      // finds the block's rows that do not end an episode
  void TrainModel();
  uint64_t SeedOf(int m) const { return config_.members[first_member() + m].seed; }  // m: a member of the block

  const int batch_;
  RowMemory memory_;
  uint64_t updates_ = 0;
  std::vector<std::vector<int>> continuing_;  // [block]: rows of the memory
  Optimizer model_optimizer_;
  Statistic model_loss_;
  enum { kModel, kError, kOwn };  // plans of Kernels::Run; an algorithm numbers its own from kOwn on

 private:
  // One net of the ensemble and its minibatch.
  struct Net {
    MlpLayout mlp;
    FloatView x, target, weight;  // [block, B, in], [block, B, d], [block, B, 1]
    MlpTape tape;
    FloatView d_out;                      // [block, B, 2 d]
    DoubleView loss, error;               // [block, 1, 1]; error: squared, summed over the rows held out
    std::vector<std::vector<int>> order;  // order of the training rows, per member of the block
    std::vector<float> host_x, host_target, host_weight;
  };
  // Decides when a member's ensemble has been trained enough.
  struct Progress {
    std::vector<int> rows;  // indices into the memory: those held out, then those to train on
    int held_out = 0;
    std::vector<double> best;  // smallest error, per net
    int passes_without_improvement = 0;
    bool done = false;
    int training() const { return static_cast<int>(rows.size()) - held_out; }
  };

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

  const int width_;  // outputs of a Gaussian, 1 + obs
  OnPolicyKernels* const row_kernels_;
  ObservationKernels* const observation_kernels_;
  DynamicsKernels* const dynamics_kernels_;
  std::vector<double> active_values_;  // [block]
  std::vector<Net> nets_;
  int64_t model_first_ = 0, model_end_ = 0, input_mean_ = 0, input_std_ = 0;
  std::vector<DoubleView> decay_;  // half the weight decay of each layer, [block, 1, 1]
  DoubleView training_;            // [block, 1, 1] 1 for a member that takes the current minibatch
  std::vector<Progress> progress_;
  std::vector<double> training_values_;
  std::vector<float> host_mean_, host_std_;

  std::function<void()> model_, error_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_DYNAMICS_LEARNER_H_
// SPDX-License-Identifier: Apache-2.0
