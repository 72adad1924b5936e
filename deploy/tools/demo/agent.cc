#include "deploy/tools/demo/agent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "common/base/random.h"
#include "common/base/status.h"
#include "common/records/evaluation_means.h"
#include "common/tasks/checked_step.h"
#include "common/tasks/mujoco.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/tools/maps/feasibility_map.h"
#include "deploy/tools/policies/run_policies.h"
#include "deploy/tools/render/scene_json.h"

namespace datacom::tools {
namespace {

using nlohmann::json;

constexpr double kFramesPerSecond = 30;
constexpr int kWidth = 960, kHeight = 540;  // of the view; only their ratio matters

double Short(double value) { return std::round(value * 1e4) / 1e4; }
json OrNull(double value) { return std::isfinite(value) ? json(Short(value)) : json(nullptr); }

// Where an observation lies on the first slice of its task, for a task whose slice is no part of its room: the angle of
// the pole, clockwise from upright, and its speed.
json PointOf(const TaskModel& model, const std::vector<double>& observation) {
  if (model.spec.name != "cartpole") return nullptr;
  return {Short(std::atan2(observation[1], observation[2])), Short(observation[4])};
}

// What happened since the last frame, and since the start.
struct Tally {
  double cost = 0, moved = 0, constraint = std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  int violating = 0;

  void Add(double raw_cost) {
    cost = std::max(cost, raw_cost);
    sum += std::max(raw_cost, 0.0);
    violating += raw_cost > 0 ? 1 : 0;
  }
};

// A frame of the page; the tally goes on from it.
json Frame(json pose, json point, Tally* tally) {
  json frame = {{"pose", std::move(pose)},  {"cost", Short(tally->cost)},     {"violating", tally->violating},
                {"sum", Short(tally->sum)}, {"k", OrNull(tally->constraint)}, {"moved", Short(tally->moved)},
                {"point", std::move(point)}};
  tally->cost = tally->moved = 0;
  return frame;
}

// The arrays of one decision.
struct Decision {
  Decision(const ActingRule& rule, const TaskSpec& spec)
      : observation(spec.obs_dim), noise(rule.noise_dim()), memory(rule.memory_dim()), action(spec.action_dim) {}
  std::vector<float> observation, noise, memory, action;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Open(const std::string& what, const std::string& label) {
  ASSIGN_OR_RETURN(const std::string folder, RunFolderOf(what));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadRunExperiment(folder, {}));
  ASSIGN_OR_RETURN(std::vector<MemberPolicy> policies, ReadPolicies(folder, "last"));
  ASSIGN_OR_RETURN(const MemberPolicy* const policy, FindMember(policies, std::nullopt));
  RETURN_IF_ERROR(policy->snapshot.CheckFinite());
  ASSIGN_OR_RETURN(TaskModel model, MakeTaskModel(experiment.task(), experiment.task_options()));
  std::unique_ptr<Agent> agent(new Agent(label, what, policy->snapshot, std::move(model)));
  ASSIGN_OR_RETURN(agent->task_, MakeTask(experiment.task(), experiment.task_options()));
  ASSIGN_OR_RETURN(agent->rule_, MakeActingRule(agent->snapshot_, agent->model_, /*max_batch=*/1));
  const Simulation* const simulation = agent->task_->simulation();
  if (simulation == nullptr) return absl::InvalidArgumentError(what + ": its task has nothing to draw");
  ASSIGN_OR_RETURN(agent->view_, SceneView::Make(simulation->model(), "", kWidth, kHeight));
  const auto delta = agent->snapshot_.scalars.find("delta");
  if (delta != agent->snapshot_.scalars.end()) agent->delta_ = delta->second;
  return agent;
}

json Agent::About() const {
  return {{"label", label_},
          {"source", source_},
          {"shield", rule_->has_shield()},
          {"delta", rule_->has_constraint() ? json(delta_) : json(nullptr)},
          {"horizon", model_.spec.horizon},
          {"period", model_.spec.control_dt},
          {"absorbing", model_.spec.absorbing}};
}

absl::StatusOr<json> Agent::Scene() {
  RandomStream stream(StreamKey("demo.episode", {0}));
  std::vector<double> observation(model_.spec.obs_dim);
  task_->Reset(&stream, observation.data());
  RETURN_IF_ERROR(view_->Update(*task_->simulation()));
  return SceneOf(view_.get());
}

absl::Status Agent::Apply(const ShieldChange& change) {
  if (rule_->has_shield()) rule_->UseShield(change.shield);
  if (!rule_->has_constraint()) return absl::OkStatus();
  snapshot_.scalars["delta"] = change.delta;
  return rule_->Load(snapshot_);
}

absl::StatusOr<json> Agent::Play(uint64_t seed, const std::vector<ShieldChange>& changes) {
  const TaskSpec& spec = model_.spec;
  std::vector<double> observation(spec.obs_dim), wide(spec.action_dim);
  Decision decision(*rule_, spec);
  RandomStream stream(StreamKey("demo.episode", {seed}));
  task_->Reset(&stream, observation.data());
  RETURN_IF_ERROR(Apply({0, true, delta_}));
  const int every = std::max(1, static_cast<int>(std::lround(1 / kFramesPerSecond / spec.control_dt)));
  json frames = json::array();
  Tally tally;
  auto next = changes.begin();
  float previous_cost = 0;
  std::string end = "horizon";
  int step = 0, acts = 0;
  for (bool last = false; !last; ++step) {
    while (next != changes.end() && next->step <= step) RETURN_IF_ERROR(Apply(*next++));
    std::transform(observation.begin(), observation.end(), decision.observation.begin(),
                   [](double value) { return static_cast<float>(value); });
    FillNormal(StreamKey("demo.noise", {seed, static_cast<uint64_t>(step)}), decision.noise.data(), rule_->noise_dim());
    double moved = 0, unused = 0, by_shield = 0;
    rule_->Act(1, {decision.observation.data(), decision.noise.data(), &previous_cost, decision.memory.data()},
               decision.action.data(), {&tally.constraint, &unused, &moved, &by_shield});
    tally.moved = std::max(tally.moved, moved);
    acts += by_shield > kShieldActs ? 1 : 0;
    const float* const executed = rule_->executed() != nullptr ? rule_->executed() : decision.action.data();
    if (step % every == 0) {
      RETURN_IF_ERROR(view_->Update(*task_->simulation()));
      frames.push_back(Frame(PoseOf(view_.get()), PointOf(model_, observation), &tally));
    }
    std::copy_n(executed, wide.size(), wide.begin());
    const StepResult reached = CheckedStep(task_.get(), wide.data(), observation.data());
    if (reached.valid) tally.Add(reached.cost);
    previous_cost = static_cast<float>(reached.cost);
    if (!reached.valid) end = "invalid";
    if (reached.valid && reached.ends()) end = "task";
    last = !reached.valid || reached.ends() || step + 1 == spec.horizon;
  }
  RETURN_IF_ERROR(view_->Update(*task_->simulation()));
  frames.push_back(Frame(PoseOf(view_.get()), PointOf(model_, observation), &tally));
  return json{{"every", every}, {"frames", std::move(frames)}, {"steps", step},
              {"acts", acts},   {"success", task_->Success()}, {"end", end}};
}

absl::StatusOr<json> Agent::Map(int resolution) const {
  const ObservationSlice& slice = model_.slices.front();
  ASSIGN_OR_RETURN(const MapPanel panel, MakeMapPanel(snapshot_, 0, model_, slice, resolution));
  json cvar = json::array();
  for (const double constraint : panel.constraint) cvar.push_back(OrNull(constraint + panel.delta));
  return json{{"title", slice.title},   {"x_label", slice.x_label}, {"y_label", slice.y_label},
              {"x_low", slice.x_low},   {"x_high", slice.x_high},   {"y_low", slice.y_low},
              {"y_high", slice.y_high}, {"resolution", resolution}, {"cvar", std::move(cvar)}};
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
