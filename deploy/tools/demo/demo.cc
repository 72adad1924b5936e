#include "deploy/tools/demo/demo.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/acting/acting_rule.h"
#include "common/base/random.h"
#include "common/base/spawn.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/nn/snapshot.h"
#include "common/records/evaluation_means.h"
#include "common/records/message_json.h"
#include "common/tasks/checked_step.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/tools/maps/feasibility_map.h"
#include "deploy/tools/policies/run_policies.h"
#include "deploy/tools/render/scene_json.h"
#include "deploy/tools/render/scene_view.h"
#include "nlohmann/json.hpp"

namespace datacom::tools {

// The page and its parts, from the files of deploy/tools/page (embed.cmake).
extern const char kDemoPage[], kDemoScript[], kDemoStyle[], kDrawScript[];

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

// From this step on.
struct ShieldChange {
  int step = 0;
  bool shield = true;
  double delta = 0;  // ignored by agents without a learned constraint
};

// An agent of the demo: a shipped policy in its task. It plays whole episodes, in which the shield may be switched and
// delta moved at any step.
//
// An episode is a pure function of (agent, seed, changes); agents of one task start from the same state for the same
// seed. Not thread-safe; owns its simulation. Play and Map block while they compute, for some tenths of a second.
class Agent {
 public:
  // The last policy of a folder; `what` as for RunFolderOf. label: what the page calls it.
  static absl::StatusOr<std::unique_ptr<Agent>> Open(const std::string& what, const std::string& label) {
    ASSIGN_OR_RETURN(const std::string folder, RunFolderOf(what));
    ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadRunExperiment(folder, {}));
    ASSIGN_OR_RETURN(std::vector<MemberPolicy> policies, ReadPolicies(folder, "last"));
    ASSIGN_OR_RETURN(const MemberPolicy* const policy, FindMember(policies, std::nullopt));
    RETURN_IF_ERROR(policy->snapshot.CheckFinite());
    std::unique_ptr<Agent> agent(new Agent);
    agent->label_ = label;
    agent->source_ = what;
    agent->snapshot_ = policy->snapshot;
    ASSIGN_OR_RETURN(agent->model_, MakeTaskModel(experiment.task(), experiment.task_options()));
    ASSIGN_OR_RETURN(agent->task_, MakeTask(experiment.task(), experiment.task_options()));
    ASSIGN_OR_RETURN(agent->rule_, MakeActingRule(agent->snapshot_, agent->model_, /*max_batch=*/1));
    const Simulation* const simulation = agent->task_->simulation();
    if (simulation == nullptr) return absl::InvalidArgumentError(what + ": its task has nothing to draw");
    ASSIGN_OR_RETURN(agent->view_, SceneView::Make(simulation->model(), "", kWidth, kHeight));
    const auto delta = agent->snapshot_.scalars.find("delta");
    if (delta != agent->snapshot_.scalars.end()) agent->delta_ = delta->second;
    return agent;
  }

  // {"label", "source", "shield": whether it has one, "delta": its own or null, "horizon", "period": seconds of a step,
  //  "absorbing", "scene": what scene_json.h says of the start of an episode}
  absl::StatusOr<json> About() {
    RandomStream stream(StreamKey("demo.episode", {0}));
    std::vector<double> observation(model_.spec.obs_dim);
    task_->Reset(&stream, observation.data());
    RETURN_IF_ERROR(view_->Update(*task_->simulation()));
    return json{{"label", label_},
                {"source", source_},
                {"shield", rule_->has_shield()},
                {"delta", rule_->has_constraint() ? json(delta_) : json(nullptr)},
                {"horizon", model_.spec.horizon},
                {"period", model_.spec.control_dt},
                {"absorbing", model_.spec.absorbing},
                {"scene", SceneOf(view_.get())}};
  }

  // {"every": steps from one frame to the next, "frames": [{"pose", "cost": the largest raw cost since the frame
  // before,
  //  "violating": steps so far, "sum": cost so far, "k": or null, "moved": the largest |a - u| since, "point": on the
  //  first slice of the task, or null}], "steps", "acts": steps in which the shield moves the action by more than
  //  kShieldActs, whether it is used or not, "success", "end": "horizon", "task" or "invalid"}
  absl::StatusOr<json> Play(uint64_t seed, const std::vector<ShieldChange>& changes) {
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
      FillNormal(StreamKey("demo.noise", {seed, static_cast<uint64_t>(step)}), decision.noise.data(),
                 rule_->noise_dim());
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

  // {"title", "x_label", "y_label", "x_low", "x_high", "y_low", "y_high", "resolution", "cvar": [n * n or null]} over
  // the first slice of the task. INVALID_ARGUMENT for a policy without a learned constraint.
  absl::StatusOr<json> Map(int resolution) const {
    const ObservationSlice& slice = model_.slices.front();
    ASSIGN_OR_RETURN(const MapPanel panel, MakeMapPanel(snapshot_, 0, model_, slice, resolution));
    json cvar = json::array();
    for (const double constraint : panel.constraint) cvar.push_back(OrNull(constraint + panel.delta));
    return json{{"title", slice.title},   {"x_label", slice.x_label}, {"y_label", slice.y_label},
                {"x_low", slice.x_low},   {"x_high", slice.x_high},   {"y_low", slice.y_low},
                {"y_high", slice.y_high}, {"resolution", resolution}, {"cvar", std::move(cvar)}};
  }

  bool has_constraint() const { return rule_->has_constraint(); }

 private:
  Agent() = default;  // Open fills it

  absl::Status Apply(const ShieldChange& change) {
    if (rule_->has_shield()) rule_->UseShield(change.shield);
    if (!rule_->has_constraint()) return absl::OkStatus();
    snapshot_.scalars["delta"] = change.delta;
    return rule_->Load(snapshot_);
  }

  std::string label_, source_;
  Snapshot snapshot_;  // with the delta of the last change
  TaskModel model_;
  double delta_ = 0;  // the policy's own
  std::unique_ptr<Task> task_;
  std::unique_ptr<ActingRule> rule_;
  std::unique_ptr<SceneView> view_;
};

struct Player {
  const char *label, *source;
};
// What the page offers. The first two agents of a scene are shown side by side; a single one without its shield and
// with it.
struct Scene {
  const char *name, *title;
  std::vector<Player> players;
};
const std::vector<Scene>& Scenes() {
  static const auto* const kScenes = new std::vector<Scene>{
      {"air_hockey",
       "Air hockey: score without leaving the table, and without exceeding the joints' limits",
       {{"SAC", "shipped:air_hockey/sac"},
        {"D-ATACOM, learned from violations", "shipped:air_hockey/datacom"},
        {"D-ATACOM, told its limits", "shipped:air_hockey/limits_known"}}},
      {"cartpole",
       "CartPole: bring the tip of the pole to the goal; it must never fall below the horizontal",
       {{"SAC", "shipped:cartpole/sac"}, {"D-ATACOM, from scratch", "shipped:cartpole/from_scratch"}}},
      {"navigation",
       "Navigation: drive to the target, past a robot that waves its arm",
       {{"D-ATACOM, told its limits", "shipped:navigation/limits_known"}}},
      {"air_hockey_7dof",
       "Air hockey with seven joints: the mallet stays on the table",
       {{"D-ATACOM, told its limits", "shipped:air_hockey_7dof/limits_known"}}},
  };
  return *kScenes;
}

constexpr int kMapResolution = 60;
constexpr size_t kMostChanges = 64;

// The parameters of a target: "a=b&c=d" after the path.
std::map<std::string, std::string> ParametersOf(const std::string& target) {
  std::map<std::string, std::string> parameters;
  const size_t question = target.find('?');
  if (question == std::string::npos) return parameters;
  for (const absl::string_view part : absl::StrSplit(target.substr(question + 1), '&')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    parameters[pair.first] = pair.second;
  }
  return parameters;
}

// A whole number from 0 to below `bound`.
std::optional<uint64_t> NumberOf(const std::string& text, uint64_t bound) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number >= bound) return std::nullopt;
  return number;
}

// "step:on:delta,step:off:delta"; in ascending steps.
std::optional<std::vector<ShieldChange>> ChangesOf(const std::string& text) {
  std::vector<ShieldChange> changes;
  if (text.empty()) return changes;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<std::string> words = absl::StrSplit(part, ':');
    ShieldChange change;
    if (words.size() != 3 || !absl::SimpleAtoi(words[0], &change.step) || !absl::SimpleAtod(words[2], &change.delta) ||
        (words[1] != "on" && words[1] != "off") || !std::isfinite(change.delta) ||
        (!changes.empty() && change.step < changes.back().step) || changes.size() == kMostChanges) {
      return std::nullopt;
    }
    change.shield = words[1] == "on";
    changes.push_back(change);
  }
  return changes;
}

json SceneList() {
  json list = json::array();
  for (const Scene& scene : Scenes()) {
    json agents = json::array();
    for (const Player& player : scene.players) agents.push_back({{"label", player.label}, {"source", player.source}});
    list.push_back({{"name", scene.name}, {"title", scene.title}, {"agents", std::move(agents)}});
  }
  return list;
}

HttpServer::Answer Json(const absl::StatusOr<json>& content) {
  return {"application/json", JsonText(content.ok() ? *content : json{{"error", content.status().message()}})};
}

// Lets the desktop open an address. A failure is none of ours: the address is printed.
void OpenBrowser(const std::string& address) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
  Spawn spawn;
  posix_spawnattr_setflags(&spawn.attributes, POSIX_SPAWN_SETSID);  // Ctrl-C is not for the browser
  pid_t child = 0;
  spawn.Start({"xdg-open", address}, &child);
}

}  // namespace

struct DemoSite::Agents {
  // The agent of the parameters; null if there is none.
  absl::StatusOr<Agent*> Of(const std::map<std::string, std::string>& parameters) {
    const auto part = [&](const char* name, size_t bound) {
      const auto at = parameters.find(name);
      return at == parameters.end() ? std::nullopt : NumberOf(at->second, bound);
    };
    const std::optional<uint64_t> scene = part("scene", Scenes().size());
    const std::optional<uint64_t> number = scene ? part("agent", Scenes()[*scene].players.size()) : std::nullopt;
    if (!number) return nullptr;
    std::unique_ptr<Agent>& agent = opened[{*scene, *number}];
    if (agent == nullptr) {
      const Player& player = Scenes()[*scene].players[*number];
      ASSIGN_OR_RETURN(agent, Agent::Open(player.source, player.label));
    }
    return agent.get();
  }

  std::map<std::pair<uint64_t, uint64_t>, std::unique_ptr<Agent>> opened;
};

DemoSite::DemoSite() : agents_(std::make_unique<Agents>()) {}
DemoSite::~DemoSite() = default;

std::optional<HttpServer::Answer> DemoSite::Get(const std::string& target) {
  const std::string path = target.substr(0, target.find('?'));
  if (path == "/") return HttpServer::Answer{"text/html; charset=utf-8", kDemoPage};
  if (path == "/demo.js") return HttpServer::Answer{"text/javascript; charset=utf-8", kDemoScript};
  if (path == "/draw.js") return HttpServer::Answer{"text/javascript; charset=utf-8", kDrawScript};
  if (path == "/demo.css") return HttpServer::Answer{"text/css; charset=utf-8", kDemoStyle};
  if (path == "/scenes") return Json(SceneList());
  if (path != "/agent" && path != "/episode" && path != "/map") return std::nullopt;
  std::map<std::string, std::string> parameters = ParametersOf(target);
  const absl::StatusOr<Agent*> agent = agents_->Of(parameters);
  if (!agent.ok()) return Json(agent.status());
  if (*agent == nullptr) return std::nullopt;
  if (path == "/agent") return Json((*agent)->About());
  if (path == "/map") return Json((*agent)->has_constraint() ? (*agent)->Map(kMapResolution) : json(nullptr));
  const std::optional<uint64_t> seed = NumberOf(parameters["seed"], uint64_t{1} << 32);
  const std::optional<std::vector<ShieldChange>> changes = ChangesOf(parameters["changes"]);
  if (!seed || !changes) return std::nullopt;
  return Json((*agent)->Play(*seed, *changes));
}

absl::Status RunDemoCommand(const DemoCommand& command, std::ostream* out) {
  DemoSite site;
  HttpServer::Options options =
      HttpServer::ForThisMachine(absl::StrCat("127.0.0.1:", command.port),
                                 "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
                                 "data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  options.page = [] { return std::string(kDemoPage); };
  options.others = [&site](const std::string& target) { return site.Get(target); };
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server, HttpServer::Start(options));
  Stop::InstallSignalHandlers();  // before the address is printed: a script may stop the demo at once
  const std::string address = absl::StrCat("http://", server->address(), "/");
  *out << "demo: " << address << " shows the shipped policies until Ctrl-C" << std::endl;
  if (command.browser) OpenBrowser(address);
  while (!Stop::Process().WaitFor(std::chrono::hours(1))) {
  }
  return absl::OkStatus();
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
