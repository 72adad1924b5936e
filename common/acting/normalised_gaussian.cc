// Acting rule normalised_gaussian (PPOLag, RCPO; docs/algorithms.md 18): an unbounded Gaussian over
// normalised observations, whose standard deviation does not depend on the state.
//   x = clamp((s - observation.mean) / observation.std, -observation_limit, observation_limit)
//   stored: u = mean(x) + exp(actor.log_std) * noise, float32, and its log-density
//   executed: u * (high - low) / 2 + (high + low) / 2, float32, not clipped, because the environment limits it
// Columns executed_action and log_prob.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/acting/register_rule.h"
#include "common/acting/rule_parts.h"

namespace datacom {
namespace {

constexpr char kMean[] = "observation.mean", kStd[] = "observation.std", kLogStd[] = "actor.log_std";
constexpr char kLimit[] = "observation_limit";

// Not thread-safe; owns net and workspace; Load and Act neither allocate nor block.
class NormalisedGaussian : public ExecutingRule {
 public:
  NormalisedGaussian(const Snapshot& snapshot, const SnapshotForm& form, const TaskModel& model, int max_batch)
      : mean_(snapshot, form.Net("actor.mean"), max_batch),
        seen_(model.spec, max_batch),
        scale_(model.spec),
        std_(model.spec.action_dim),
        inputs_(max_batch * mean_.inputs()) {}

  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override {
    const int obs = mean_.inputs(), n = mean_.outputs();
    const float* const seen = seen_.Of(batch, inputs.observations);
    for (int r = 0; r < batch; ++r) {
      for (int i = 0; i < obs; ++i) {
        const float value = (seen[r * obs + i] - observation_mean_[i]) / observation_std_[i];
        inputs_[r * obs + i] = std::clamp(value, -limit_, limit_);
      }
    }
    mean_.Forward(batch, inputs_.data(), actions);
    constexpr double kHalfLogTwoPi = 0.91893853320467274178;
    for (int r = 0; r < batch; ++r) {
      double log_prob = 0;
      for (int i = 0; i < n; ++i) {
        const int at = r * n + i;
        actions[at] += std_[i] * inputs.noise[at];
        column(kExecuted)[at] = scale_.Scale(i, actions[at]);
        log_prob -= 0.5 * inputs.noise[at] * inputs.noise[at] + log_std_[i] + kHalfLogTwoPi;
      }
      column(kNextColumn)[r] = static_cast<float>(log_prob);
      if (diagnostics.intervention != nullptr) diagnostics.intervention[r] = 0;
    }
  }

  int noise_dim() const override { return mean_.outputs(); }
  bool reads_model() const override { return false; }

 protected:
  void Set(const Snapshot& snapshot) override {
    mean_.Set(snapshot);
    limit_ = static_cast<float>(ScalarOf(snapshot, kLimit));
    observation_mean_ = snapshot.Find(kMean)->values;
    observation_std_ = snapshot.Find(kStd)->values;
    log_std_ = snapshot.Find(kLogStd)->values;
    for (size_t i = 0; i < std_.size(); ++i) std_[i] = std::exp(log_std_[i]);
  }

 private:
  Mlp mean_;
  SeenPart seen_;
  ActionScale scale_;
  float limit_ = 0;
  std::vector<float> observation_mean_, observation_std_;  // [obs]
  std::vector<float> log_std_, std_;                       // [action]
  std::vector<float> inputs_;                              // [max_batch, obs]
};

SnapshotForm Form(const SnapshotDims& dims, const Snapshot& /*like*/) {
  SnapshotForm form;
  form.nets.push_back({"actor.mean", dims.observation, dims.action, Mlp::Hidden::kTanh});
  form.vectors = {{kLogStd, dims.action}, {kMean, dims.observation}, {kStd, dims.observation, /*positive=*/true}};
  // Above 0 as a float32.
  form.scalars = {{kLimit, /*example=*/5, /*above=*/std::numeric_limits<float>::denorm_min() / 2.0}};
  return form;
}

std::vector<Column> Columns(uint32_t action_dim) { return {ExecutedActionColumn(action_dim), {kLogProb}}; }

const RegisterActingRule kRegistered("normalised_gaussian", {&Form, &NewRule<NormalisedGaussian>, &Columns});

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
