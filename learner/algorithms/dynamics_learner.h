// Learns an ensemble of dynamics from a memory of a member's rows (docs/algorithms.md 19.1). The base of
// SafeLOOP, which adds a soft actor-critic (safe_loop.cc).
//
// An update appends its rows to the memory. TrainModel trains the ensemble on all of them, until it stops improving on
// rows that are held out.
#ifndef DATACOM_LEARNER_ALGORITHMS_DYNAMICS_LEARNER_H_
#define DATACOM_LEARNER_ALGORITHMS_DYNAMICS_LEARNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/dynamics_kernels.h"
#include "learner/algorithms/on_policy_kernels.h"
#include "learner/algorithms/population.h"

namespace datacom::learner {

// All rows of each member that an algorithm has been given, in host memory: for algorithms that learn from what they
// keep instead of from drawn batches. Once `capacity` rows are held, a new row replaces the oldest.
//
// Not thread-safe. Allocates in the constructor only.
class RowMemory {
 public:
  RowMemory(const AlgorithmConfig& config, int capacity);

  // The rows of one update, of all members.
  void Append(const Batch& batch);

  // The rows of a member that do not end an episode, oldest first; *rows has room for `capacity`.
  void Continuing(int member, std::vector<int>* rows) const;
  const float* observation(int member, int row) const { return Row(member, row); }
  const float* action(int member, int row) const { return Row(member, row) + obs_; }
  float reward(int member, int row) const { return Row(member, row)[obs_ + actions_]; }
  const float* next_observation(int member, int row) const { return Row(member, row) + obs_ + actions_ + 1; }

  // For a State: the rows of the members one after another. The size depends only on the capacity.
  std::string Save() const;
  void Load(const std::string& bytes, uint64_t appended);  // `appended`: rows of each member so far

 private:
  const float* Row(int member, int row) const {
    return rows_.data() + (static_cast<size_t>(member) * capacity_ + row) * width_;
  }

  const int members_, first_, obs_, actions_, per_update_, capacity_, width_;
  uint64_t appended_ = 0;    // rows of each member
  std::vector<float> rows_;  // [members, capacity, width]: s, a, r, s', whether it is the last of an episode
};

class DynamicsLearner : public Population {
 protected:
  explicit DynamicsLearner(const AlgorithmConfig& config);

  void DeclareEnsemble();     // before Build
  void MakeModelWorkspace();  // after Build
  void TrainModel();
  uint64_t SeedOf(int m) const { return config_.members[first_member() + m].seed; }  // m: a member of the block

  const int batch_;
  RowMemory memory_;
  uint64_t updates_ = 0;
  std::vector<std::vector<int>> continuing_;  // [block]: rows of the memory that do not end an episode; the owner's
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
    DoubleView loss, error;               // [block, 1, 1]; error: a row of errors_
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
  DoubleView errors_;                  // [block, nets, 1]: squared, summed over the rows held out
  std::vector<double> host_errors_;
  std::vector<Net> nets_;
  int64_t model_first_ = 0, model_end_ = 0, input_mean_ = 0, input_std_ = 0;
  std::vector<DoubleView> decay_;  // half the weight decay of each layer, [block, 1, 1]
  DoubleView training_;            // [block, 1, 1] 1 for a member that takes the current minibatch
  std::vector<Progress> progress_;
  std::vector<double> training_values_;
  std::vector<float> host_mean_, host_std_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_DYNAMICS_LEARNER_H_
// SPDX-License-Identifier: Apache-2.0
