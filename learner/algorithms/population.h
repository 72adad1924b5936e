// What every algorithm shares: M members' parameters and Adam moments in flat blocks [M, size], gradients, targets,
// scalars a member, statistics, and saving and loading all of it. An algorithm declares its nets, calls Build, and then
// works on blocks of members: Load copies a block's part of the batch, Compute issues the kernel calls of the update.
// Not thread-safe; owns its Kernels and through it all arrays.
//
// A member is frozen for good by the first update in which one of its losses or gradients is not finite, and that
// update leaves no trace in it: parameters, moments, step counts and targets are bit for bit those from before;
// statistics alone may have counted what was finite. To keep this an algorithm computes and checks (Guard, Watch)
// everything it can before its first Step. What a later part needs already stepped (a critic's target needs the new
// actor) is copied by Keep before and put back by PutBack once everything is checked; all else is stepped after that.
//
// Copying costs 2 % of an update, so a member that is calm is spared: no entry of what the later part reads (NameInput)
// is beyond +-1e6 in this update, and none of what it computed (NameResult) was in the last one; the first update after
// construction, Load or WriteArray is never calm. The one case left is a calm member whose float32 numbers leap from
// below 1e6 to beyond 3e38 within one update: it is frozen as well, but what was stepped early stays stepped.
#ifndef DATACOM_LEARNER_ALGORITHMS_POPULATION_H_
#define DATACOM_LEARNER_ALGORITHMS_POPULATION_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "learner/algorithms/action_box.h"
#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/critic_kernels.h"
#include "learner/nn/kernels.h"

namespace datacom::learner {

// Sum (or smallest value) and count of a statistic, and the value of the current update; all members [M] or the
// block's.
struct Statistic {
  DoubleView sum;    // [M, 1, 2]
  DoubleView value;  // [block, 1, 1]
};

// Which of Stats' gradient norms an optimiser's counts in.
enum class NetGroup { kActor, kCritic, kConstraint, kNone };

// A range of every member's block with its own step count and learning rates.
struct Optimizer {
  std::string name;
  int64_t first = 0, size = 0;
  DoubleView learning_rate, steps;  // [M, 1, 1]
  NetGroup group = NetGroup::kNone;
  Statistic gradient_norm;
};

// A copy of what the Steps of some optimisers change, of the current block.
struct KeptRange {
  int64_t first = 0, size = 0;
  FloatView parameters, first_moment, second_moment;  // [block, 1, size]
  struct Steps {
    DoubleView all, kept;  // [M, 1, 1], [block, 1, 1]
  };
  std::vector<Steps> steps;
};

class Population : public Algorithm {
 public:
  void Update(const Batch& batch) override;
  Stats GetStats() const override;
  void ResetStats() override;
  State Save() const override;
  void Load(const State& state) override;

  // Tests' access (algorithm.h); derived classes add names of their own.
  virtual std::vector<float> ReadArray(int member, const std::string& name) const;
  virtual void WriteArray(int member, const std::string& name, const std::vector<float>& values);

 protected:
  explicit Population(const AlgorithmConfig& config);

  virtual void LoadBatch(const Batch& batch) = 0;  // the block's rows of the batch into the workspace
  virtual void Compute() = 0;                      // the update of the block
  // Which of its sequences of kernel calls Compute will issue (Kernels::Run), where there is more than one.
  virtual int Plan() const { return 0; }
  // Loads and computes every block in turn; one `plan` always issues the same kernel calls (Kernels::Run).
  void RunBlocks(const Batch& batch, int plan, const std::function<void()>& compute);

  // ---- building, in this order: nets into layout_, MirrorTargets, Build, optimizers and scalars.
  void MirrorTargets(int64_t first, int64_t size);  // this range of the block has target copies
  void Build();                                     // allocates and initialises
  Optimizer NewOptimizer(const std::string& name, NetGroup group, int64_t first, int64_t size,
                         double MemberHyper::*learning_rate);
  KeptRange NewKeptRange(const std::vector<Optimizer>& optimizers);
  DoubleView NewScalar(double MemberHyper::*value);
  DoubleView NewScalar() { return kernels_->NewDoubles(members_, 1, 1); }
  Statistic NewStatistic();
  ActionBox NewActionBox();
  void Register(const std::string& name, const DoubleView& view) { saved_[name] = view; }  // part of Save

  // ---- the current block of members; cheap views.
  FloatView Block(const FloatView& all) const { return all.Members(first_, count_); }
  DoubleView Block(const DoubleView& all) const { return all.Members(first_, count_); }
  int first_member() const { return first_; }
  FloatView ParametersOf(int member) const { return parameters_.Members(member, 1); }
  FloatView parameters() const { return Block(parameters_); }
  const FloatView& gradients() const { return gradients_; }
  FloatView targets() const { return Block(targets_); }
  // Where the block starts in a batch array with per_member values a member.
  template <class T>
  const T* BlockOf(const std::vector<T>& values, int64_t per_member) const {
    return values.data() + first_ * per_member;
  }
  // The checks come before the first Step that is not kept: of a loss, and of an optimiser's whole gradient. A member
  // in which one fails is inactive from then on.
  void GuardAndRecord(const Statistic& loss);
  void Watch(const Optimizer& optimizer);
  void Keep(const KeptRange& range);
  void PutBack(const KeptRange& range);  // in members that have become inactive since Keep
  // Once, with views of the workspace: what decides whether a member is calm.
  void NameInput(const FloatView& view) { inputs_.push_back(view); }
  void NameInput(const DoubleView& view) { double_inputs_.push_back(view); }
  void NameResult(const FloatView& view) { results_.push_back(view); }
  void Step(const Optimizer& optimizer);
  void PolyakTargets();
  void RecordCritics(const FloatView& q0, const FloatView& q1);
  void Record(const Statistic& statistic, double sign = 1);
  std::vector<double> Means(const Statistic& statistic) const;
  std::vector<double> Smallest(const Statistic& statistic) const;
  std::vector<double> Values(const DoubleView& view) const;  // [M] on the host
  double MemberValue(const DoubleView& view, int member) const;

  void AddActingNet(const std::string& prefix, int member, ActingParameters* out) const;

  const AlgorithmConfig config_;
  const int members_;
  std::unique_ptr<Kernels> kernels_;
  CriticKernels* const critic_kernels_;
  int block_ = 0;  // members a workspace holds
  ParameterLayout layout_;
  DoubleView active_;  // [M, 1, 1], 0 once diverged
  Statistic policy_loss_, critic_loss_;

 private:
  void Initialise();
  std::string Signature() const;
  struct Place {
    FloatView block;  // one member's
    int64_t offset = 0, size = 0;
  };
  // Throws std::invalid_argument naming the array, also for a gradient of a member whose block is not the last.
  Place Find(int member, const std::string& name) const;

  FloatView parameters_, first_moment_, second_moment_, targets_;  // [M, 1, size]
  FloatView gradients_;  // [block, 1, size]: of the block updated last, so that it stays in cache
  int64_t target_first_ = 0, target_size_ = 0;
  Statistic q_mean_, q_min_, q_gap_;
  std::vector<Optimizer> optimizers_;
  DoubleView calm_, calm_now_, ones_;  // [M, 1, 1] after the last update; [block, 1, 1] in this one
  std::vector<FloatView> inputs_, results_;
  std::vector<DoubleView> double_inputs_;
  std::map<std::string, DoubleView> saved_;
  int first_ = 0, count_ = 0;
  std::function<void()> compute_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_POPULATION_H_
