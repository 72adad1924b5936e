// The state that all algorithms share: parameters and Adam moments of M members in flat blocks [M, size], gradients,
// targets, scalars per member, statistics, undoing steps, and saving and loading all of these. An algorithm declares
// its nets, calls Build, and then works on blocks of members (EachBlock; block_update.h for the common way). Not
// thread-safe. Owns its Kernels and through it all arrays.
//
// The first update in which a loss or gradient of a member is not finite freezes this member for good and leaves no
// trace in it: parameters, moments, step counts and targets keep the bits from before the update. Only statistics may
// have counted what was finite. For this an algorithm computes and checks everything it can before its first Step
// (CheckAndRecordLoss, CheckGradient; block_update.h). Some nets must be stepped earlier, because a later part reads
// them: a critic's target reads the new actor. SaveForUndo copies such nets before their step, and UndoWhereInactive
// restores them after all checks. Everything else is stepped last.
#ifndef DATACOM_LEARNER_ALGORITHMS_POPULATION_H_
#define DATACOM_LEARNER_ALGORITHMS_POPULATION_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/critic_kernels.h"
#include "learner/algorithms/observation_kernels.h"
#include "learner/nn/kernels.h"

namespace datacom::learner {

// A number that updates compute: its sum (or smallest value) with a count, and its value in the current update.
struct Statistic {
  int row = 0;       // of the population's sums and values
  DoubleView sum;    // [M, 1, 2]
  DoubleView value;  // [block, 1, 1]
  bool smallest = false;
};

// A range of each member's block, with its own step count and learning rates.
struct Optimizer {
  int row = 0;  // of the population's rates and steps
  int64_t first = 0, size = 0;
  DoubleView learning_rate;     // [M, 1, 1]: its row
  int gradient_norm_field = 0;  // the norm to which it contributes, a field of v1::MemberEpoch; 0: none
  Statistic gradient_norm;
};

// A copy of what the Steps of some optimisers change in the current block.
struct UndoRange {
  int64_t first = 0;
  FloatView state;               // [block, 3, size]: parameters and moments from column `first` on
  DoubleView steps, kept_steps;  // [M, optimisers, 1], [block, optimisers, 1]
};

// Throws std::invalid_argument, which names the entry, unless `state` has the signature, entries and sizes of
// `expected`.
void CheckState(const State& expected, const State& state);

// value(member.hyper) of every member, or the hyper-parameter that `value` reads.
template <class T, class F>
std::vector<T> HyperValues(const AlgorithmConfig& config, const F& value) {
  std::vector<T> values;
  for (const MemberConfig& member : config.members) values.push_back(static_cast<T>(std::invoke(value, member.hyper)));
  return values;
}

// Such a number per member, [M, 1, 1].
template <class F>
DoubleView NewScalar(const AlgorithmConfig& config, Kernels* kernels, const F& value) {
  const DoubleView view = kernels->NewDoubles(static_cast<int>(config.members.size()), 1, 1);
  kernels->Upload(HyperValues<double>(config, value).data(), view);
  return view;
}

// The same for arithmetic in float32: the number is rounded once here, not in every update.
template <class F>
FloatView NewFloatScalar(const AlgorithmConfig& config, Kernels* kernels, const F& value) {
  const FloatView view = kernels->NewFloats(static_cast<int>(config.members.size()), 1, 1);
  kernels->Upload(HyperValues<float>(config, value).data(), view);
  return view;
}

// The parameters of one member from column `first` of its block on, in memory of the host.
class HostParameters {
 public:
  HostParameters(const ParameterLayout& layout, const float* parameters, int64_t first)
      : layout_(layout), parameters_(parameters), first_(first) {}
  std::vector<float> Read(const std::string& name) const;  // throws std::invalid_argument if it is not there
  // Adds the arrays whose names begin with `prefix` and a dot.
  void AddNet(const std::string& prefix, ActingParameters* out) const;

 private:
  std::vector<float> Values(const ParameterArray& array) const;
  const ParameterLayout& layout_;
  const float* parameters_;
  int64_t first_;
};

class Population : public Algorithm {
 public:
  Stats GetStats() const override;
  std::vector<ActingParameters> GetActingParameters() const override;
  void ResetStats() override;
  State Save() const override;
  void Load(const State& state) override;
  std::vector<std::string> shared_entries() const override;

 protected:
  explicit Population(const AlgorithmConfig& config);

  // Calls body() for each block of members in turn, which is then the current block of the views below.
  template <class Body>
  void EachBlock(const Body& body) {
    for (first_ = 0; first_ < members_; first_ += block_) {
      count_ = block_;
      body();
    }
  }

  // ---- building, in this order: nets in layout_, MirrorTargets, Build, then optimisers and scalars.
  void MirrorTargets() { target_size_ = layout_.size(); }  // the nets so far have targets, at the same offsets
  void Build();                                            // allocates and initialises
  // gradient_norm_field: a field of v1::MemberEpoch, 0 for none. Optimisers that are made one after another can step
  // together.
  Optimizer NewOptimizer(const std::string& name, int gradient_norm_field, int64_t first, int64_t size,
                         double (v1::Hyper::*learning_rate)() const);
  UndoRange NewUndoRange(const std::vector<Optimizer>& optimizers);  // and of what lies between them
  template <class F>
  DoubleView NewScalar(const F& value) {
    return learner::NewScalar(config_, kernels_.get(), value);
  }
  // A statistic of the table (proto/datacom/v1/member_epoch.proto), by the field's number: its fold decides what is
  // kept, GetStats shows it, and it is saved and loaded. sign: the factor with which its values are added.
  Statistic NewStatistic(int field, double sign = 1);
  // GetStats shows value(parameters [first, first + size) of a member, as doubles) in the field.
  using ShownValue = double (*)(const double* parameters, int size);
  void ShowParameters(int field, int64_t first, int size, ShownValue value);
  ActionBox NewActionBox();
  // What is saved and loaded, in the order of these calls. `save` gives the members' bytes one after another, in equal
  // parts, unless the entry is shared; `load` gets as many.
  void Register(const std::string& name, std::function<std::string()> save,
                std::function<void(const std::string&)> load, bool shared = false);
  template <class T>
  void Register(const std::string& name, const View<T>& view) {
    Register(
        name, [this, view] { return BytesOf(view); },
        [this, view](const std::string& bytes) { kernels_->Upload(reinterpret_cast<const T*>(bytes.data()), view); });
  }
  void RegisterStatistics(const ObservationStatistics& statistics);
  void RegisterShared(const std::string& name, uint64_t* value);  // of the whole population

  // ---- the current block of members, as views.
  template <class Views>  // a FloatView, a DoubleView or a struct of them
  Views Block(const Views& all) const {
    return all.Members(first_, count_);
  }
  int first_member() const { return first_; }
  FloatView ParametersOf(int member) const { return parameters_.Members(member, 1); }
  FloatView parameters() const { return Block(parameters_); }
  const FloatView& gradients() const { return gradients_; }
  FloatView targets() const { return Block(targets_); }
  // Start of the block in an array of the batch with `per_member` values per member.
  template <class T>
  const T* BlockOf(const std::vector<T>& values, int64_t per_member) const {
    return values.data() + batch_member() * per_member;
  }
  int batch_member() const { return config_.slice_first + first_; }  // the block's first member in the batch
  // Checks of a loss and of an optimiser's whole gradient. They come before the first Step that cannot be undone. A
  // member that fails one is inactive from then on.
  void CheckAndRecordLoss(const Statistic& loss);
  void CheckGradient(const Optimizer& optimizer);
  // How a value is checked and counted: at once, for active members. A BlockUpdate does both for many values together.
  virtual void Check(const Statistic& statistic);
  virtual void Record(const Statistic& statistic);
  void RecordWhere(const Statistic& statistic, const DoubleView& taking);  // only for members where `taking` is 1
  void SaveForUndo(const UndoRange& range);
  void UndoWhereInactive(const UndoRange& range);  // only of members that became inactive since SaveForUndo
  void Step(const Optimizer& optimizer);
  void Step(const std::vector<Optimizer>& optimizers);              // in as few kernel calls as their rows allow
  void Step(const Optimizer& optimizer, const DoubleView& taking);  // only for the block's members where `taking` is 1
  void PolyakTargets();
  void RecordCritics(const FloatView& q, const DoubleView& scale);  // values / scale; q: [block, nets, rows]
  // ---- statistics together: their values are the rows of one array.
  static constexpr int kMostStatistics = 32;
  const DoubleView& values() const { return values_; }           // [block, kMostStatistics, 1]
  StatisticRows RowsOf(int row, int count, int smallest) const;  // of adjacent ones
  std::vector<double> Values(const DoubleView& view) const;      // [M] on the host
  // What a member's acting rule needs: arrays of `parameters`, which has those from acting_first_ on, and scalars.
  virtual void Publish(int member, const HostParameters& parameters, ActingParameters* out) const = 0;

  const AlgorithmConfig config_;
  const int members_;
  std::unique_ptr<Kernels> kernels_;
  CriticKernels* const critic_kernels_;
  int block_ = 0;  // number of members in a workspace
  ParameterLayout layout_;
  int64_t acting_first_ = 0;  // no parameter before it acts; set before Build
  DoubleView active_;         // [M, 1, 1], 0 once diverged
  Statistic policy_loss_, critic_loss_;

 private:
  friend class ArrayAccess;  // of tests
  void Initialise();
  void Adam(int row, int count, const DoubleView& taking);  // of `count` optimisers
  Statistic NewSum(bool shown, double sign);
  void StartAtInfinity(const Statistic& smallest);
  void Show(int field, Statistic* statistic);
  std::string Signature() const;
  template <class T>
  std::string BytesOf(const View<T>& view) const {
    std::string bytes(sizeof(T) * view.members * view.rows * view.cols, '\0');
    kernels_->Download(view, reinterpret_cast<T*>(bytes.data()));
    return bytes;
  }

  // What Adam changes, in one array, so that one kernel call copies a range of all of it; and its rows, [M, 1, size].
  FloatView state_;  // [M, 3, size]
  FloatView parameters_, first_moment_, second_moment_;
  FloatView targets_;                  // [M, 1, size]
  DoubleView learning_rates_, steps_;  // [M, kMostOptimizers, 1], a row for each optimiser
  std::vector<ColumnRange> ranges_;    // of the optimisers
  DoubleView decay_;                   // [M, 1, 1] of AdamRanges; empty if no member's rates decay
  FloatView gradients_;                // [block, 1, size], reused by all blocks, so that it stays in cache
  int64_t target_size_ = 0;
  Statistic q_mean_, q_min_, q_gap_;
  // A row for each statistic: first those that are shown, so that what an update counts is adjacent; last the others.
  DoubleView values_, signs_, sums_;  // of StatisticRows, for all members
  int shown_rows_ = 0, first_other_row_ = kMostStatistics;
  // What GetStats gives.
  struct ShownParameters {
    EpochStatistic statistic;
    FloatView parameters;  // [M, 1, size]
    ShownValue value;
  };
  std::vector<std::pair<EpochStatistic, Statistic>> shown_;
  std::vector<ShownParameters> shown_parameters_;
  struct SavedEntry {
    std::string name;
    std::function<std::string()> save;
    std::function<void(const std::string&)> load;
    bool shared = false;
  };
  std::vector<SavedEntry> saved_;
  int first_ = 0, count_ = 0;  // members of the current block
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_POPULATION_H_
// SPDX-License-Identifier: Apache-2.0
