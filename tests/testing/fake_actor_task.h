// A small task and acting rule: the action pushes a point on a line, and distance ends the episode. A short example of
// the Task contract; neither is thread-safe.
#ifndef DATACOM_TESTS_TESTING_FAKE_ACTOR_TASK_H_
#define DATACOM_TESTS_TESTING_FAKE_ACTOR_TASK_H_

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/tasks/task.h"

namespace datacom::testing {

// Starts at a random position in [-0.2, 0.2) and drifts right. Absorbing beyond +1, invalid (like a simulator's
// warning) beyond -1, horizon 40: all three happen within a few hundred steps of random actions.
class FakeTask : public Task {
 public:
  explicit FakeTask(int horizon = 40) {
    spec_.name = "fake";
    spec_.obs_dim = 2;
    spec_.action_dim = 1;
    spec_.action_low = {-1};
    spec_.action_high = {1};
    spec_.horizon = horizon;
    spec_.control_dt = 0.1;
  }
  const TaskSpec& spec() const override { return spec_; }
  void Reset(RandomStream* stream, double* observation) override {
    position_ = stream->Uniform(-0.2, 0.2);
    velocity_ = 0;
    Observe(observation);
  }
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override {
    if (!init.empty()) return absl::InvalidArgumentError("the fake task has no start values");
    Reset(stream, observation);
    return absl::OkStatus();
  }
  StepResult Step(const double* action, double* observation) override {
    velocity_ = 0.9 * velocity_ + 0.1 * (action[0] + 0.02);
    position_ += velocity_ / 3;
    Observe(observation);
    StepResult result;
    result.reward = -position_ / 3;
    result.cost = Cost();
    result.absorbing = position_ > 1;
    result.valid = position_ > -1;
    return result;
  }
  double Cost() const override { return std::abs(position_) - 0.3; }
  bool Success() const override { return position_ > 1; }
  void ScalePhysics(const PhysicsScale& /*scale*/) override {}
  const Simulation* simulation() const override { return nullptr; }

 private:
  void Observe(double* observation) const {
    observation[0] = position_;
    observation[1] = velocity_;
  }
  TaskSpec spec_;
  double position_ = 0, velocity_ = 0;
};

// action = tanh(w . observation + 3 noise) with w = array "w" [2].
class FakeRule : public ActingRule {
 public:
  static absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, int max_batch) {
    auto rule = std::make_unique<FakeRule>();
    const absl::Status status = rule->Load(snapshot);
    if (!status.ok()) return status;
    return rule;
  }
  absl::Status Load(const Snapshot& snapshot) override {
    const NamedArray* array = snapshot.Find("w");
    if (array == nullptr || array->values.size() != 2) return absl::InvalidArgumentError("array w must have shape [2]");
    weights_[0] = array->values[0];
    weights_[1] = array->values[1];
    return absl::OkStatus();
  }
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics&) override {
    for (int i = 0; i < batch; ++i) {
      const float* const o = inputs.observations + 2 * i;
      actions[i] = std::tanh(weights_[0] * o[0] + weights_[1] * o[1] + 3 * inputs.noise[i]);
    }
  }
  int noise_dim() const override { return 1; }

 private:
  float weights_[2] = {0, 0};
};

// k of the steps in the order in which they are played.
class JudgingRule : public FakeRule {
 public:
  explicit JudgingRule(std::deque<double> k) : k_(std::move(k)) {}
  bool has_constraint() const override { return true; }
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override {
    FakeRule::Act(batch, inputs, actions, diagnostics);
    diagnostics.constraint[0] = k_.front();
    k_.pop_front();
  }

 private:
  std::deque<double> k_;
};

// Like FakeRule with a filter after the policy: executes minus half the action minus a tenth of the previous cost.
class FilteringRule : public FakeRule {
 public:
  static absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, int max_batch) {
    auto rule = std::make_unique<FilteringRule>();
    rule->executed_.resize(max_batch);
    rule->costs_.resize(max_batch);
    const absl::Status status = rule->Load(snapshot);
    if (!status.ok()) return status;
    return rule;
  }
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override {
    FakeRule::Act(batch, inputs, actions, diagnostics);
    std::copy_n(inputs.previous_costs, batch, costs_.begin());
    for (int i = 0; i < batch; ++i) executed_[i] = Filtered(actions[i], costs_[i]);
    if (diagnostics.intervention == nullptr) return;
    for (int i = 0; i < batch; ++i) diagnostics.intervention[i] = std::abs(executed_[i] - actions[i]);
  }
  const float* executed() const override { return executed_.data(); }
  static std::vector<Column> Columns() { return {ExecutedActionColumn(1), {"prev_cost"}}; }
  std::vector<const float*> columns() const override { return {executed_.data(), costs_.data()}; }
  static float Filtered(float action, float previous_cost) { return -action / 2 - previous_cost / 10; }

 private:
  std::vector<float> executed_, costs_;
};

// Like FakeRule with a memory m of two numbers: adds m_0 / 2 to the action a; then m_1 = m_0 and m_0 = 0.9 m_0 + a.
class RememberingRule : public FakeRule {
 public:
  static absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, int max_batch) {
    auto rule = std::make_unique<RememberingRule>();
    rule->memory_.resize(2 * max_batch);
    const absl::Status status = rule->Load(snapshot);
    if (!status.ok()) return status;
    return rule;
  }
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override {
    FakeRule::Act(batch, inputs, actions, diagnostics);
    for (int i = 0; i < batch; ++i) {
      float* const memory = inputs.memory + 2 * i;
      actions[i] += memory[0] / 2;
      memory[1] = memory[0];
      memory[0] = 0.9f * memory[0] + actions[i];
    }
    std::copy_n(inputs.memory, 2 * batch, memory_.begin());
  }
  int memory_dim() const override { return 2; }
  static std::vector<Column> Columns() { return {{kMemory, ColumnType::kFloat32, 2, false}}; }
  std::vector<const float*> columns() const override { return {memory_.data()}; }

 private:
  std::vector<float> memory_;
};

// Takes the demonstration of a row that has one, and kOwn elsewhere.
class DemonstratedRule : public FakeRule {
 public:
  static constexpr float kOwn = 0.5;
  static absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& /*snapshot*/, int /*max_batch*/) {
    return std::make_unique<DemonstratedRule>();
  }
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics&) override {
    for (int i = 0; i < batch; ++i) {
      const float* const given = inputs.proposals;
      actions[i] = given == nullptr || std::isnan(given[i]) ? kOwn : given[i];
    }
  }
};

inline std::shared_ptr<const Snapshot> FakeSnapshot(uint32_t member, uint64_t update, uint32_t incarnation = 1) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->member = member;
  snapshot->member_seed = 100 + member;
  snapshot->version = {incarnation, update};
  snapshot->task = "fake";
  snapshot->acting_rule = "fake";
  snapshot->arrays = {{"w", {2}, {-0.5f + 0.001f * static_cast<float>(update), 0.25f}}};
  return snapshot;
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_FAKE_ACTOR_TASK_H_
// SPDX-License-Identifier: Apache-2.0
