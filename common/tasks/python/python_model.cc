#include "common/tasks/python/python_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/name.h"
#include "common/base/status.h"
#include "common/tasks/register_task.h"

namespace datacom::python {
namespace {

constexpr uint32_t kMostSteps = 1000000;
constexpr uint32_t kMostNumbers = 65536, kMostParts = 4096;  // of an observation; of an action, q, x, costs

int ModelNumbers(const v1::PythonTask& task) {
  return static_cast<int>(2 * task.q() + 2 * task.x() + task.q() * task.action_low_size());
}

// All that a terminal may get to see.
std::vector<std::string> PrintedTexts(const v1::PythonTask& task) {
  const v1::PythonIdentity& identity = task.identity();
  std::vector<std::string> texts = {task.without_horizon(),       task.without_control_dt(), task.without_model(),
                                    identity.observation_space(), identity.action_space(),   identity.interpreter()};
  for (const auto* list : {&task.observation_name(), &task.action_name(), &task.fact(), &identity.version()}) {
    texts.insert(texts.end(), list->begin(), list->end());
  }
  for (const v1::PythonFile& file : identity.file()) texts.insert(texts.end(), {file.name(), file.sha256()});
  return texts;
}

// The facts arrive in files and messages: they must fit together before anything is computed from them.
absl::Status Check(const v1::PythonTask& task) {
  const auto wrong = [&](const char* field, const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("task ", task.name(), ": python_task.", field, ": ", why));
  };
  if (task.environment().empty()) return wrong("environment", "must be set");
  if (task.observation() == 0 || task.observation() > kMostNumbers) {
    return wrong("observation", absl::StrCat(task.observation(), " is not 1 to ", kMostNumbers));
  }
  const int actions = task.action_low_size();
  if (actions == 0 || actions > static_cast<int>(kMostParts) || task.action_high_size() != actions) {
    return wrong("action_low", "needs as many numbers as action_high, and at least one");
  }
  for (int i = 0; i < actions; ++i) {
    const double low = task.action_low(i), high = task.action_high(i);
    if (!(low < high) || !std::isfinite(low) || !std::isfinite(high)) {
      return wrong("action_low", absl::StrCat("action ", i, " has the bounds ", low, " and ", high));
    }
  }
  const auto names = [](int count, int numbers) { return count == 0 || count == numbers; };
  if (!names(task.observation_name_size(), static_cast<int>(task.observation()))) {
    return wrong("observation_name", "needs one name for each number, or none");
  }
  if (!names(task.action_name_size(), actions)) return wrong("action_name", "needs one name for each number, or none");
  if (task.q() > kMostParts || task.x() > kMostParts || ModelNumbers(task) > static_cast<int>(kMostNumbers)) {
    return wrong("q", "the control-affine model is too large");
  }
  if (task.cost_size() == 1 || task.cost_size() > static_cast<int>(kMostParts)) {
    return wrong("cost", "has one name; a single cost has none");
  }
  std::set<std::string> costs;
  for (const std::string& cost : task.cost()) {
    const std::string shown = absl::StrCat("\"", absl::Utf8SafeCHexEscape(cost), "\"");
    if (!IsIdentifier(cost))
      return wrong("cost", absl::StrCat(shown, ": letters, digits and _ only, not first a digit"));
    if (!costs.insert(cost).second) return wrong("cost", absl::StrCat(shown, " stands twice"));
  }
  for (const std::string& text : PrintedTexts(task)) {
    if (std::any_of(text.begin(), text.end(), absl::ascii_iscntrl)) {
      return wrong("observation_name, action_name, identity, fact",
                   absl::StrCat("\"", absl::Utf8SafeCHexEscape(text), "\" has a control character"));
    }
  }
  if (task.horizon() > kMostSteps) return wrong("horizon", absl::StrCat(task.horizon(), " is above ", kMostSteps));
  if (task.has_control_dt() && !(task.control_dt() > 0)) return wrong("control_dt", "must be above 0");
  return absl::OkStatus();
}

absl::Status CheckOptions(const v1::TaskOptions& options, const v1::PythonTask& task) {
  RETURN_IF_ERROR(RejectOtherOptions(task.name(), options, {"python_task", "control_dt"}));
  const v1::Randomisation& ranges = options.randomisation();
  if (ranges.has_mass() || ranges.has_damping() || ranges.has_friction()) {
    return absl::InvalidArgumentError(
        absl::StrCat("task_options.randomisation: ", task.name(),
                     " is a Python environment, which draws mass, damping and friction itself; action_delay and "
                     "observation_noise can be set"));
  }
  const auto unstated = [&task](const char* what, const std::string& why, const char* setting, const char* attribute) {
    return absl::InvalidArgumentError(absl::StrCat("task ", task.name(), ": the environment states no ", what,
                                                   why.empty() ? "" : absl::StrCat(" (", why, ")"), "; set ", setting,
                                                   ", or give the environment ", attribute));
  };
  if (task.horizon() == 0 && !options.has_horizon()) {
    return unstated("time limit", task.without_horizon(), "the steps of an episode with --set task_options.horizon=N",
                    "max_episode_steps");
  }
  if (!task.has_control_dt() && !options.has_control_dt()) {
    return unstated("control period", task.without_control_dt(),
                    "the seconds of a step with --set task_options.control_dt=S", "control_dt");
  }
  return absl::OkStatus();
}

std::vector<std::string> Names(const google::protobuf::RepeatedPtrField<std::string>& given, const char* kind,
                               int count) {
  std::vector<std::string> names(given.begin(), given.end());
  for (int i = static_cast<int>(names.size()); i < count; ++i) names.push_back(absl::StrCat(kind, " ", i));
  return names;
}

// Actions are -1 to 1 for everything outside the environment; the name says what that means.
std::vector<std::string> ActionNames(const v1::PythonTask& task) {
  std::vector<std::string> names = Names(task.action_name(), "action", task.action_low_size());
  for (int i = 0; i < task.action_low_size(); ++i) {
    if (task.action_low(i) == -1 && task.action_high(i) == 1) continue;
    absl::StrAppend(&names[i], ", -1 to 1 for ", task.action_low(i), " to ", task.action_high(i));
  }
  return names;
}

void AppendModelNames(const v1::PythonTask& task, std::vector<std::string>* names) {
  const auto numbers = [names](const char* of, int count) {
    for (int i = 0; i < count; ++i) names->push_back(absl::StrCat(of, "[", i, "]"));
  };
  const int q = static_cast<int>(task.q()), x = static_cast<int>(task.x());
  numbers("q", q), numbers("x", x), numbers("x_dot", x), numbers("f", q);
  for (int i = 0; i < q; ++i) numbers(absl::StrCat("G[", i, "]").c_str(), task.action_low_size());
  for (const std::string& cost : task.cost()) names->push_back(absl::StrCat("cost ", cost));
}

}  // namespace

absl::Status CheckNamed(const std::string& environment) {
  const char* const variable = std::getenv(kNamedEnvironments);
  const std::vector<std::string> named = absl::StrSplit(variable == nullptr ? "" : variable, ',', absl::SkipEmpty());
  if (std::find(named.begin(), named.end(), environment) != named.end()) return absl::OkStatus();
  const std::string name = absl::Utf8SafeCHexEscape(environment);
  return absl::InvalidArgumentError(absl::StrCat("the task is the Python environment ", name, ", ",
                                                 named.empty() ? "whose code runs only when the command names it"
                                                               : absl::StrCat("but the command names ", variable),
                                                 "; if you trust it, add --python ", name, " to the command, or set ",
                                                 kNamedEnvironments));
}

PythonDynamics::PythonDynamics(const v1::PythonTask& task)
    : dims_{.action = task.action_low_size(), .q = static_cast<int>(task.q()), .x = static_cast<int>(task.x())},
      at_(static_cast<int>(task.observation())) {
  dims_.obs = at_ + ModelNumbers(task) + task.cost_size();
}

void PythonDynamics::Evaluate(const double* obs, const ControlAffineOut& out) const {
  const double* from = obs + at_;
  const auto take = [&from](int count, double* to) {
    if (to != nullptr) std::copy_n(from, count, to);
    from += count;
  };
  take(dims_.q, out.q);
  take(dims_.x, out.x);
  take(dims_.x, out.x_dot);
  take(dims_.q, out.f);
  take(dims_.q * dims_.action, out.G);
}

int MostEnvironments(const v1::PythonTask& task) {
  constexpr size_t kMost = 4096, kMostBytes = size_t{1} << 30;
  const size_t numbers = kSlotHead + task.action_low_size() + static_cast<size_t>(PythonDynamics(task).dims().obs);
  return static_cast<int>(std::min(kMost, kMostBytes / (sizeof(double) * numbers)));
}

absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options) {
  const v1::PythonTask& task = options.GetExtension(v1::python_task);
  RETURN_IF_ERROR(Check(task));
  RETURN_IF_ERROR(CheckOptions(options, task));
  TaskModel model;
  TaskSpec& spec = model.spec;
  spec.name = task.name();
  spec.summary = absl::StrCat("The Python environment ", task.environment(), ".");
  spec.model_dim = ModelNumbers(task) + task.cost_size();
  spec.obs_dim = static_cast<int>(task.observation()) + spec.model_dim;
  spec.cost_names.assign(task.cost().begin(), task.cost().end());
  spec.costs_at = spec.obs_dim - task.cost_size();
  spec.observation_names = Names(task.observation_name(), "observation", static_cast<int>(task.observation()));
  AppendModelNames(task, &spec.observation_names);
  spec.action_dim = task.action_low_size();
  spec.action_names = ActionNames(task);
  spec.action_low.assign(spec.action_dim, -1.0);
  spec.action_high.assign(spec.action_dim, 1.0);
  spec.horizon = static_cast<int>(options.has_horizon() ? options.horizon() : task.horizon());
  spec.control_dt = options.has_control_dt() ? options.control_dt() : task.control_dt();
  spec.absorbing = "the environment's end";
  model.dynamics = std::make_shared<PythonDynamics>(task);
  model.without_map = task.without_model();
  return model;
}

}  // namespace datacom::python
// SPDX-License-Identifier: Apache-2.0
