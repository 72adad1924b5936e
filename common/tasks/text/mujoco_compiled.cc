#include "common/tasks/text/mujoco_compiled.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/name.h"
#include "common/base/status.h"
#include "common/config/rules.h"
#include "common/tasks/task.h"
#include "common/tasks/text/model_copies.h"
#include "common/tasks/text/mujoco_names.h"
#include "common/tasks/text/observed.h"
#include "common/tasks/text/row_model.h"
#include "common/tasks/text/task_file.h"

namespace datacom::text {
namespace {

constexpr char kTime[] = "time", kBefore[] = "before.";

// The names of a repeated field differ.
template <typename Entries>
absl::Status CheckNames(const Entries& entries, const char* list) {
  std::set<std::string> names;
  for (int i = 0; i < entries.size(); ++i) {
    if (!names.insert(entries[i].name()).second) return Wrong(absl::StrCat(list, "[", i, "].name"), "is used twice");
  }
  return absl::OkStatus();
}

absl::Status CheckDefinition(const v1::TaskDefinition& definition) {
  RETURN_IF_ERROR(CheckRules(definition));
  const std::string& name = definition.name();
  if (!IsIdentifier(name) || std::any_of(name.begin(), name.end(), [](char c) { return absl::ascii_isupper(c); })) {
    return Wrong("name",
                 absl::StrCat("\"", name, "\" has other characters than a-z, 0-9 and _, or begins with a digit"));
  }
  for (const std::string& taken : TaskNames()) {
    if (name == taken) return Wrong("name", absl::StrCat("\"", name, "\" is a task of the register"));
  }
  if (definition.observation().empty()) return Wrong("observation", "at least one signal is needed");
  if (definition.cost().empty()) return Wrong("cost", "at least one cost is needed");
  RETURN_IF_ERROR(CheckNames(definition.log(), "log"));
  RETURN_IF_ERROR(CheckNames(definition.known(), "known"));
  RETURN_IF_ERROR(CheckNames(definition.cost(), "cost"));
  for (int i = 0; i < definition.cost_size(); ++i) {
    if (definition.cost(i).has_budget() != definition.cost(0).has_budget()) {
      return Wrong(absl::StrCat("cost[", i, "].budget"), "either all costs have a budget or none has");
    }
  }
  return absl::OkStatus();
}

absl::Status AddNames(CompiledTask* task) {
  const auto add = [task](const std::string& name, double value) {
    task->names.push_back(name);
    task->initial.push_back(value);
  };
  for (const Signals* signals : {&task->observation, &task->extra}) {
    for (const std::string& name : signals->names()) add(name, 0);
  }
  for (const Actuation::Channel& channel : task->actuation->channels()) add("action." + channel.name, 0);
  const size_t known_before = task->names.size();
  add(kTime, 0);
  for (const v1::Command& command : task->definition.command()) {
    add(CommandKey(command), (command.low() + command.high()) / 2);
  }
  for (const v1::Constant& constant : task->definition.constant()) add(constant.name(), constant.value());
  for (size_t i = 0; i < known_before; ++i) add(absl::StrCat(kBefore, task->names[i]), 0);
  std::set<std::string> seen;
  for (const std::string& name : task->names) {
    if (name == "pi" || !seen.insert(name).second) {
      return Wrong("observation",
                   absl::StrCat("the name ", name,
                                " is used twice among signals, commands and constants; set `name` of one signal"));
    }
  }
  return absl::OkStatus();
}

absl::Status FillDrives(const CompiledTask& task, v1::ResolvedTask* resolved) {
  const Actuation& actuation = *task.actuation;
  resolved->set_first_order(actuation.first_order());
  if (!actuation.without_map().empty()) resolved->set_without_map(actuation.without_map());
  if (!actuation.first_order() && !actuation.closed_form()) return absl::OkStatus();
  const std::vector<int>& dofs = task.joints.dofs;
  for (const v1::ConstraintJoint::Kind kind : task.joints.kinds) {
    if (kind == v1::ConstraintJoint::BALL || kind == v1::ConstraintJoint::FREE) {
      return Wrong("constraint_state.joint", "velocity, position and acceleration control need slide and hinge joints");
    }
  }
  for (const Actuation::Channel& channel : actuation.channels()) {
    const auto found = std::find(dofs.begin(), dofs.end(), channel.dof);
    if (found == dofs.end()) {
      return Wrong("constraint_state.joint", absl::StrCat("the joint of actuator ", channel.name, " is missing"));
    }
    if (!actuation.closed_form()) continue;
    const bool position = channel.mode == Actuation::Mode::kPosition;
    const double scale = channel.gear * (position ? actuation.period() : 1);
    const double gain = task.definition.constraint_state().actuator_gain();
    v1::DirectDrive* drive = resolved->add_drive();
    drive->set_dof(static_cast<uint32_t>(found - dofs.begin()));
    drive->set_drift(channel.centre / scale);
    drive->set_gain(gain * channel.half / scale);
    if (position) drive->set_from_position(-1 / actuation.period());
  }
  return absl::OkStatus();
}

// q and x of the start without randomness.
absl::Status FillStart(const CompiledTask& task, const RowLayout& layout, v1::ResolvedTask* resolved) {
  ASSIGN_OR_RETURN(const MujocoData data, MakeMujocoData(*task.model));
  ASSIGN_OR_RETURN(MujocoData own, MakeMujocoData(*task.unconstrained));
  Terms terms(task.unconstrained, std::move(own), task.joints, *task.actuation, task.definition.constraint_state());
  std::vector<double> state(layout.q + layout.x);
  absl::Status kept;
  RETURN_IF_ERROR(GuardMujoco([&] { kept = task.start->CheckKeeps(*task.model, data.get()); }));
  RETURN_IF_ERROR(kept);
  RETURN_IF_ERROR(GuardMujoco([&] {
    mj_resetData(task.model.get(), data.get());
    task.start->Apply(*task.model, nullptr, data.get());
    mj_step1(task.model.get(), data.get());
    terms.WriteState(*task.model, *data, state.data());
    task.uncontrolled.Read(*task.model, *data, state.data() + layout.q);
  }));
  for (const double value : state) resolved->add_start_state(value);
  return absl::OkStatus();
}

// "*" looks as if it were all, but an element without a name has nothing that a glob could match.
absl::Status CheckGlob(const mjModel& model, mjtObj type, const std::string& glob, const std::string& field) {
  if (type == mjOBJ_UNKNOWN || glob.empty() || !MatchesGlob(glob, "")) return absl::OkStatus();
  if (mj_name2id(&model, type, glob.c_str()) >= 0) return absl::OkStatus();
  const std::vector<std::string> names = NamesOf(model, type);
  const auto nameless = std::count(names.begin(), names.end(), "");
  if (nameless == 0) return absl::OkStatus();
  return Wrong(field, absl::StrCat("\"", glob, "\" would leave out ", nameless, " without a name of the model's ",
                                   names.size(), " (", mju_type2Str(type),
                                   "); name them in the model, or write \"?*\" for those that have a name"));
}

// The globs that are set in a part of the definition, which is called `at`: "control.".
absl::Status CheckGlobs(const google::protobuf::Message& message, const mjModel& model, const std::string& at) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& fields = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  fields.ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    const bool many = field->is_repeated();
    for (int i = 0; i < (many ? fields.FieldSize(message, field) : 1); ++i) {
      const std::string name = absl::StrCat(at, field->name(), many ? absl::StrCat("[", i, "]") : "");
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const auto& part = many ? fields.GetRepeatedMessage(message, field, i) : fields.GetMessage(message, field);
        RETURN_IF_ERROR(CheckGlobs(part, model, name + "."));
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        const std::string glob = many ? fields.GetRepeatedString(message, field, i) : fields.GetString(message, field);
        RETURN_IF_ERROR(CheckGlob(model, ElementType(*field), glob, name));
      }
    }
  }
  return absl::OkStatus();
}

// An equality can keep a hinge without limits only at an angle that q has: from -pi to pi.
absl::Status CheckAngles(const CompiledTask& task) {
  for (int i = 0; i < task.definition.known_size(); ++i) {
    const v1::KnownConstraint& known = task.definition.known(i);
    if (!known.equality() || std::abs(known.value()) <= M_PI) continue;
    for (size_t j = 0; j < task.joints.joints.size(); ++j) {
      const int joint = task.joints.joints[j];
      if (task.joints.kinds[j] != v1::ConstraintJoint::WRAPPED) continue;
      if (!Matches(*task.model, mjOBJ_JOINT, known.joint_position(), joint)) continue;
      return Wrong(
          absl::StrCat("known[", i, "].value"),
          absl::StrCat(known.value(), " is never reached: the angle in q of joint ",
                       PlainName(*task.model, mjOBJ_JOINT, joint), ", which has no limits, is from -pi to pi"));
    }
  }
  return absl::OkStatus();
}

// Elsewhere the number of an actuator is also the number of its control; with MuJoCo 4 they may differ.
absl::Status CheckControls([[maybe_unused]] const mjModel& model) {
#if mjVERSION_HEADER >= 4000000
  for (int id = 0; id < model.nactuator; ++id) {
    const int count = model.actuator_ctrlnum[id];
    if (count == 1) continue;
    return Wrong("model", absl::StrCat("actuator ", PlainName(model, mjOBJ_ACTUATOR, id), " has ", count,
                                       " controls; a task needs actuators with one"));
  }
#endif
  return absl::OkStatus();
}

// As MuJoCo finds the files of a task. MuJoCo 2 knows them by their names without folder and case.
bool IsSameFile(const std::string& kept, const std::string& path) {
#if mjVERSION_HEADER >= 4000000
  return kept == path;
#else
  const auto name = [](const std::string& file) { return std::filesystem::path(file).filename().string(); };
  return absl::EqualsIgnoreCase(name(kept), name(path));
#endif
}

}  // namespace

absl::StatusOr<MujocoModel> CompileFiles(const v1::TextTask& task) {
  if (task.file().empty()) return Wrong("model", "no file");
  ASSIGN_OR_RETURN(std::vector<std::string> contents, ContentsOf(task));
  std::vector<std::pair<std::string, std::string>> files;
  for (int i = 0; i < task.file_size(); ++i) files.emplace_back(task.file(i).name(), std::move(contents[i]));
  RETURN_IF_ERROR(CheckCopies(files.front().first, [&files](const std::string& path) -> const std::string* {
    const auto found =
        std::find_if(files.begin(), files.end(), [&](const auto& file) { return IsSameFile(file.first, path); });
    return found == files.end() ? nullptr : &found->second;
  }));
  absl::StatusOr<MujocoModel> model = CompileMujocoFiles(files);
  if (!model.ok()) return Wrong("model", absl::StrCat(task.file(0).name(), ": ", model.status().message()));
  RETURN_IF_ERROR(CheckControls(**model));
  return model;
}

absl::StatusOr<std::shared_ptr<const CompiledTask>> CompiledTask::Shared(const v1::TextTask& task) {
  static Mutex mutex;
  static auto* const known = new std::map<std::string, std::weak_ptr<const CompiledTask>>;
  const std::string key = task.SerializeAsString();
  const MutexLock lock(&mutex);
  std::weak_ptr<const CompiledTask>& slot = (*known)[key];
  if (std::shared_ptr<const CompiledTask> compiled = slot.lock()) return compiled;
  ASSIGN_OR_RETURN(std::shared_ptr<const CompiledTask> compiled, Make(task));
  slot = compiled;
  return compiled;
}

absl::StatusOr<std::shared_ptr<const CompiledTask>> CompiledTask::Make(const v1::TextTask& task) {
  RETURN_IF_ERROR(CheckDefinition(task.definition()));
  auto made = std::make_shared<CompiledTask>();
  made->definition = task.definition();
  ASSIGN_OR_RETURN(made->model, CompileFiles(task));
  const mjModel& model = *made->model;
  made->unconstrained = WithoutConstraints(model);
  ASSIGN_OR_RETURN(made->actuation, Actuation::Make(model, task.definition().control()));
  ASSIGN_OR_RETURN(made->start, StartRules::Make(model, task.definition().start()));
  ASSIGN_OR_RETURN(made->observation, Signals::Make(model, task.definition().observation(), "observation"));
  ASSIGN_OR_RETURN(made->extra, Signals::Make(model, task.definition().extra(), "extra"));
  const v1::ConstraintState& state = task.definition().constraint_state();
  ASSIGN_OR_RETURN(made->uncontrolled, Signals::Make(model, state.uncontrolled(), "constraint_state.uncontrolled"));
  made->external_forces =
      made->observation.external_forces() || made->extra.external_forces() || made->uncontrolled.external_forces();
  if (made->external_forces && !made->actuation->keeps_forces()) {
    return Wrong("control.refresh", "the quantity external_force needs \"all\" or \"nothing\"");
  }
  ASSIGN_OR_RETURN(made->joints, StateJoints::Make(model, state));
  ASSIGN_OR_RETURN(made->known,
                   KnownOfTask::Make(model, task.definition(), made->joints, made->actuation->first_order()));
  if (made->actuation->finite_difference() && !state.passive_forces()) {
    return Wrong("constraint_state.passive_forces", "finite differences have all forces; leave it out");
  }
  RETURN_IF_ERROR(Motions::Make(model, task.definition()).status());
  RETURN_IF_ERROR(Pushes::Make(model, task.definition(), made->actuation->period()).status());
  RETURN_IF_ERROR(ElementFactors::Make(model, task.definition()).status());
  RETURN_IF_ERROR(AddNames(made.get()));
  return std::shared_ptr<const CompiledTask>(std::move(made));
}

absl::StatusOr<Objective> Objective::Make(const CompiledTask& task, double* values) {
  const v1::TaskDefinition& definition = task.definition;
  const auto compile = [&](const std::string& field, const std::string& text) -> absl::StatusOr<Expression> {
    absl::StatusOr<Expression> made = Expression::Compile(text, task.names, values);
    if (!made.ok()) return Annotate(made.status(), field);
    return made;
  };
  ASSIGN_OR_RETURN(Expression reward, compile("reward", definition.reward()));
  Objective made{std::move(reward), std::nullopt, {}, {}, {}, {}, {}, {}};
  if (definition.has_reward_range()) made.reward_range = definition.reward_range();
  for (int i = 0; i < definition.cost_size(); ++i) {
    ASSIGN_OR_RETURN(Expression cost, compile(absl::StrCat("cost[", i, "].value"), definition.cost(i).value()));
    made.costs.push_back(std::move(cost));
    made.weights.push_back(definition.cost(i).has_budget() ? 1 / definition.cost(i).budget() : 1);
  }
  for (int i = 0; i < definition.log_size(); ++i) {
    ASSIGN_OR_RETURN(Expression log, compile(absl::StrCat("log[", i, "].value"), definition.log(i).value()));
    made.logs.push_back(std::move(log));
  }
  if (definition.has_absorbing()) {
    ASSIGN_OR_RETURN(made.absorbing, compile("absorbing", definition.absorbing()));
  }
  if (definition.has_truncated()) {
    ASSIGN_OR_RETURN(made.truncated, compile("truncated", definition.truncated()));
  }
  if (definition.has_success()) {
    ASSIGN_OR_RETURN(made.success, compile("success", definition.success()));
  }
  return made;
}

double Objective::Reward() const {
  const double value = reward.Value();
  return reward_range ? std::clamp(value, reward_range->low(), reward_range->high()) : value;
}

absl::Status Resolve(v1::TextTask* task) {
  task->clear_resolved();
  ASSIGN_OR_RETURN(const std::shared_ptr<const CompiledTask> compiled, CompiledTask::Make(*task));
  RETURN_IF_ERROR(CheckGlobs(task->definition(), *compiled->model, ""));
  RETURN_IF_ERROR(CheckAngles(*compiled));
  // A map finds the first slice of a name.
  RETURN_IF_ERROR(CheckNames(task->definition().slice(), "slice"));
  if (task->definition().control().actuator().empty()) {  // all
    RETURN_IF_ERROR(CheckGlob(*compiled->model, mjOBJ_ACTUATOR, "*", "control.actuator"));
  }
  std::vector<double> values = compiled->initial;
  RETURN_IF_ERROR(Objective::Make(*compiled, values.data()).status());
  v1::ResolvedTask* resolved = task->mutable_resolved();
  ASSIGN_OR_RETURN(const Observed observed, Observed::Make(compiled->definition, compiled->observation.begins(),
                                                           compiled->names, values.data()));
  for (const std::string& name : observed.names()) resolved->add_observation(name);
  for (const std::string& name : compiled->joints.PositionNames(*compiled->model)) resolved->add_state(name);
  if (!compiled->actuation->first_order()) {
    for (std::string name : compiled->joints.VelocityNames(*compiled->model)) {
      const auto& known = resolved->state();  // a joint may be called as the velocity of another one
      while (std::find(known.begin(), known.end(), name) != known.end()) name += "_";
      resolved->add_state(name);
    }
  }
  for (const std::string& name : compiled->uncontrolled.names()) {
    const auto& controlled = resolved->state();
    if (std::find(controlled.begin(), controlled.end(), name) != controlled.end()) {
      return Wrong("constraint_state.uncontrolled", absl::StrCat("the number ", name, " is part of q, or there twice"));
    }
    resolved->add_state(name);
  }
  for (const Actuation::Channel& channel : compiled->actuation->channels()) resolved->add_action(channel.name);
  resolved->set_control_dt(compiled->actuation->period());
  for (const v1::ConstraintJoint::Kind kind : compiled->joints.kinds) resolved->add_joint()->set_kind(kind);
  resolved->set_uncontrolled(static_cast<uint32_t>(compiled->uncontrolled.size()));
  for (const auto& [name, address] : compiled->start->keys()) resolved->add_start_key(name);
  for (const v1::Command& command : compiled->definition.command()) resolved->add_start_key(CommandKey(command));
  RETURN_IF_ERROR(FillDrives(*compiled, resolved));
  for (const v1::KnownRow& row : compiled->known.rows) *resolved->add_known() = row;
  RETURN_IF_ERROR(FillStart(*compiled, RowLayout::Of(*task), resolved));
  v1::TaskOptions options;
  *options.MutableExtension(v1::text_task) = *task;
  return MakeModel(options).status();  // checks the slices
}

absl::StatusOr<v1::TextTask> LoadTask(const std::string& path) {
  ASSIGN_OR_RETURN(v1::TextTask task, ReadTaskFile(path));
  if (const absl::Status status = Resolve(&task); !status.ok()) return AtLine(path, status);
  return task;
}

absl::Status LoadTaskOf(const std::string& folder, std::string* task, v1::TaskOptions* options) {
  namespace fs = std::filesystem;
  if (!IsTaskFile(*task)) return absl::OkStatus();
  std::error_code error;
  const fs::path in_folder = fs::path(folder) / *task;
  const bool here = fs::is_regular_file(*task, error) || !fs::is_regular_file(in_folder, error);
  ASSIGN_OR_RETURN(v1::TextTask loaded, LoadTask(here ? *task : in_folder.string()));
  *task = loaded.definition().name();
  *options->MutableExtension(v1::text_task) = std::move(loaded);
  return absl::OkStatus();
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
