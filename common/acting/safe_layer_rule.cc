// Acting rule safe_layer (SafeLayerTD3, docs/algorithms.md 12): a deterministic policy with exploration
// noise, also in evaluation, projected after the policy by a linear model of the next cost.
//   stored: a = clip(tanh(actor(s)) half + centre + exploration_noise * noise, low, high), the action's box, float32
//   predicted: e = c + <g, a> with g = safety_model(s) and c the cost of the previous step, 0 after a reset
//   executed: a where e < projection_threshold, else a - (e - projection_threshold) g / (<g, g> + 1e-8), in float64,
//     rounded to float32 and not clipped, because the environment limits it
// Columns executed_action and prev_cost, which is c.
#include <algorithm>
#include <cmath>
#include <vector>

#include "common/acting/register_rule.h"
#include "common/acting/rule_parts.h"
#include "common/safety/cost_projection.h"

namespace datacom {
namespace {

// Not thread-safe; owns nets and workspace; Load and Act neither allocate nor block.
class SafeLayerRule : public ExecutingRule {
 public:
  SafeLayerRule(const Snapshot& snapshot, const SnapshotForm& form, const TaskModel& task, int max_batch)
      : actor_(snapshot, form.Net("actor"), max_batch),
        model_(snapshot, form.Net("safety_model"), max_batch),
        seen_(task.spec, max_batch),
        low_(task.spec.action_low.begin(), task.spec.action_low.end()),
        high_(task.spec.action_high.begin(), task.spec.action_high.end()),
        slopes_(max_batch * task.spec.action_dim),
        slope_(task.spec.action_dim),
        filter_(task.spec.action_dim) {}

  // Leaves diagnostics.constraint and cvar unchanged: the model predicts only the next step.
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override {
    const float* const seen = seen_.Of(batch, inputs.observations);
    actor_.Forward(batch, seen, actions);
    model_.Forward(batch, seen, slopes_.data());
    const int n = actor_.outputs();
    const float std = exploration_noise_;
    for (int r = 0; r < batch; ++r) {
      float* const row = actions + r * n;
      for (int i = 0; i < n; ++i) {
        const float half = (high_[i] - low_[i]) / 2, centre = (high_[i] + low_[i]) / 2;
        row[i] = std::clamp(std::tanh(row[i]) * half + centre + std * inputs.noise[r * n + i], low_[i], high_[i]);
      }
    }
    TakeProposals(inputs, batch, n, actions);
    std::copy_n(inputs.previous_costs, batch, column(kPreviousCost));
    for (int r = 0; r < batch; ++r) {
      float* const row = actions + r * n;
      std::copy_n(slopes_.data() + r * n, n, slope_.data());
      const double cost = inputs.previous_costs[r];
      filter_.ApplyShield(uses_shield(), r, row, diagnostics, column(kExecuted) + r * n,
                          [&](const double* action, double* projected) {
                            ProjectToCostThreshold(n, slope_.data(), cost, projection_threshold_, action, projected);
                          });
    }
  }

  int noise_dim() const override { return actor_.outputs(); }
  bool reads_model() const override { return false; }
  bool has_shield() const override { return true; }

 protected:
  void Set(const Snapshot& snapshot) override {
    actor_.Set(snapshot);
    model_.Set(snapshot);
    exploration_noise_ = static_cast<float>(ScalarOf(snapshot, "exploration_noise"));
    projection_threshold_ = ScalarOf(snapshot, "projection_threshold");
  }

 private:
  enum { kPreviousCost = kNextColumn };  // a column
  Mlp actor_, model_;
  float exploration_noise_ = 0;
  double projection_threshold_ = 0;
  SeenPart seen_;
  std::vector<float> low_, high_;  // [n]
  std::vector<float> slopes_;      // [max_batch, n]
  std::vector<double> slope_;      // one row: [n]
  RowFilter filter_;
};

SnapshotForm Form(const SnapshotDims& dims, const Snapshot& /*like*/) {
  SnapshotForm form;
  for (const char* net : {"actor", "safety_model"}) form.nets.push_back({net, dims.observation, dims.action});
  form.scalars = {{"exploration_noise", /*example=*/0.5}, {"projection_threshold", /*example=*/1e-6}};
  return form;
}

std::vector<Column> Columns(uint32_t action_dim) { return {ExecutedActionColumn(action_dim), {"prev_cost"}}; }

const RegisterActingRule kRegistered("safe_layer", {&Form, &NewRule<SafeLayerRule>, &Columns});

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
