#include "deploy/cli/train_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/acting/acting_rule.h"
#include "common/base/files.h"
#include "common/base/machine.h"
#include "common/base/plugins.h"
#include "common/base/shell_word.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/config/task_files.h"
#include "common/records/checkpoint.h"
#include "common/records/dataset.h"
#include "common/records/ledger.h"
#include "common/safety/risk.h"
#include "common/tasks/python/identity.h"
#include "common/tasks/python/python_model.h"
#include "common/tasks/task.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/plugin.pb.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task.pb.h"
#include "deploy/cli/load_task.h"
#include "google/protobuf/text_format.h"

namespace datacom::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1 << 20;
// Upper limits for the resident memory of the processes, measured on Debian 12 with 1 to 500 members
// (tests/deploy/cli/train_plan_test.cc has the measurements).
constexpr uint64_t kReplayMemory = 50 * kMiB, kReplayMember = kMiB / 16;
constexpr uint64_t kActorMemory = 36 * kMiB, kEnvironmentMemory = kMiB;
constexpr uint64_t kPolicyCopies = 6;  // in an actor: the messages, the decoded arrays, the acting rule
constexpr uint64_t kLearnerMemory = 72 * kMiB, kLibTorchMemory = 650 * kMiB, kLearnerMember = kMiB / 4;
constexpr uint64_t kStateCopies = 8;   // in the learner: in use, in a checkpoint and its message, in policies
constexpr uint64_t kBatchCopies = 16;  // draws on their way, decoded batches, workspaces

absl::Status ApplyOptions(const TrainOptions& options, v1::Experiment* experiment) {
  if (!options.seeds.empty()) {
    absl::StatusOr<std::vector<uint64_t>> seeds = ParseSeeds(options.seeds);
    if (!seeds.ok()) return Annotate(seeds.status(), "--seeds");
    RETURN_IF_ERROR(SetSeeds(*seeds, experiment));
  }
  // After the seeds, so that an override can name a member that they made.
  for (const std::string& assignment : options.overrides) RETURN_IF_ERROR(ApplyOverride(assignment, experiment));
  if (options.steps > 0) experiment->mutable_run()->set_env_steps(options.steps);
  if (options.lockstep) experiment->mutable_run()->set_lockstep(true);
  if (!options.device.empty()) experiment->mutable_learner()->set_device(options.device);
  if (!experiment->pretrain().dataset().empty()) {  // absolute: a resume may start in another working directory
    std::string* dataset = experiment->mutable_pretrain()->mutable_dataset();
    *dataset = AbsolutePath(*dataset);
  }
  return absl::OkStatus();
}

// Whether a file is a task file, given where an experiment is expected.
bool IsTask(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  v1::TaskDefinition task;
  return text.ok() && ParseTextproto(*text, path, &task).ok() && task.has_model();
}

}  // namespace

std::string ResumeCommand(const std::string& run_dir, const v1::Experiment& experiment) {
  const std::string environment = experiment.task_options().GetExtension(v1::python_task).environment();
  return absl::StrCat("datacom train --run-dir ", ShellWord(run_dir), " --resume",
                      environment.empty() ? "" : " --python ", environment.empty() ? "" : ShellWord(environment),
                      PluginOptions());
}

std::string PluginOptions() {
  const char* const files = std::getenv(kPluginsVariable);
  std::string options;
  for (const absl::string_view file : absl::StrSplit(files == nullptr ? "" : files, ':', absl::SkipEmpty())) {
    absl::StrAppend(&options, " --plugin ", ShellWord(AbsolutePath(std::string(file))));
  }
  return options;
}

void NamePlugins(v1::Experiment* experiment) {
  for (const std::string& name : LoadedPlugins()) {
    auto* const names = experiment->mutable_task_options()->MutableRepeatedExtension(v1::plugin);
    if (std::find(names->begin(), names->end(), name) == names->end()) *names->Add() = name;
  }
}

absl::StatusOr<v1::Experiment> NamedExperiment(const TrainOptions& options) {
  if (NamesTask(options)) return ExperimentOf(options);
  absl::StatusOr<v1::Experiment> experiment = LoadExperiment(options.experiment, ExperimentFolder());
  if (!experiment.ok()) {
    if (FileExists(options.experiment + "/experiment.textproto")) {
      return absl::InvalidArgumentError(absl::StrCat(options.experiment,
                                                     " is a run folder; resume the run with: datacom train --run-dir ",
                                                     ShellWord(options.experiment), " --resume"));
    }
    for (const char* within : {"", "/task.textproto"}) {
      const std::string task = options.experiment + within;
      if (!IsTask(task)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(task, " is a task; name an algorithm too, e.g. ", task, " --algorithm datacom"));
    }
    return absl::InvalidArgumentError(experiment.status().message());
  }
  ASSIGN_OR_RETURN(const std::string file, FindTextproto("experiment", options.experiment, ExperimentFolder()));
  const std::string without_model = experiment->has_pretrain() ? "" : WithoutModel(experiment->algorithm(), options);
  RETURN_IF_ERROR(LoadTask(file, &*experiment, without_model));
  RETURN_IF_ERROR(CheckTaskFiles(fs::path(file).parent_path().string(), experiment->task_options()));
  return experiment;
}

namespace {

// Checks that the dataset exists and belongs to this task before anything starts. The learner checks its content.
absl::Status CheckPretrain(const v1::Experiment& resolved) {
  if (!resolved.has_pretrain()) return absl::OkStatus();
  const std::string& folder = resolved.pretrain().dataset();
  ASSIGN_OR_RETURN(const v1::DatasetManifest manifest, ReadManifest(folder));
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(resolved.task(), resolved.task_options()));
  ASSIGN_OR_RETURN(const RowSchema schema,
                   ActingRuleSchema(FindAlgorithm(resolved.algorithm())->acting_rule, model.spec));
  constexpr char kOption[] = "pretrain.dataset";
  RETURN_IF_ERROR(Annotate(CheckDataset(folder, manifest, resolved.task(), schema), kOption));
  RETURN_IF_ERROR(Annotate(CheckDatasetOptions(folder, manifest, resolved.task_options()), kOption));
  const v1::PythonTask& recorded = manifest.experiment().task_options().GetExtension(v1::python_task);
  if (!recorded.has_identity()) return absl::OkStatus();
  return Annotate(python::CheckSame(recorded, resolved.task_options().GetExtension(v1::python_task)), kOption);
}

absl::StatusOr<v1::Experiment> ResolveAndCheck(const v1::Experiment& experiment) {
  const v1::Experiment resolved = ResolveExperiment(experiment);
  RETURN_IF_ERROR(ValidateExperiment(resolved, TaskNames(), AlgorithmNames()));
  // Refuse options and known constraints that the task does not have, and algorithms that cannot act in it.
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(resolved.task(), resolved.task_options()));
  RETURN_IF_ERROR(SelectKnownRows(model, resolved.constraints()).status());
  const v1::PythonTask& python = resolved.task_options().GetExtension(v1::python_task);
  if (!python.environment().empty() && resolved.run().lockstep() && !python.repeatable()) {
    return absl::InvalidArgumentError(
        absl::StrCat("run.lockstep: ", python.environment(),
                     " is not repeatable: two environments, or two episodes of one, gave different numbers after "
                     "reset(seed=0) and the same actions; leave out --lockstep, or let the seed of reset decide all"));
  }
  RETURN_IF_ERROR(CheckActingRuleTask(FindAlgorithm(resolved.algorithm())->acting_rule, model));
  if (resolved.learner().bound_returns()) {
    RETURN_IF_ERROR(
        Annotate(ReturnRangeOf(model.spec, resolved.learner().discount()).status(), "learner.bound_returns"));
  }
  if (resolved.has_demonstrations()) {
    const auto controller = FindScriptedPolicy(model, resolved.demonstrations().controller());
    RETURN_IF_ERROR(Annotate(controller.status(), "demonstrations.controller"));
  }
  return resolved;
}

// The learned delta of a member is drawn towards its discounted budget (docs/algorithms.md 5.4). Says so if
// it starts below; empty otherwise, and if it never moves.
std::string LooseningNote(const v1::Experiment& resolved, int member, int horizon) {
  const AlgorithmInfo& algorithm = *FindAlgorithm(resolved.algorithm());
  const v1::Hyper hyper = MemberHyper(resolved, member);
  const bool moves = hyper.delta_lr() > 0 && resolved.run().env_steps() > hyper.delta_warmup();
  if (!algorithm.learns_delta || DeltaModeOf(hyper) != DeltaMode::kLearned || !moves) return "";
  const double start = Softplus(RawStartOfDelta(hyper.init_delta()));
  const double share = algorithm.discounted_budget ? 1 : DiscountedBudget(1, horizon, resolved.learner().discount());
  const double goal = share * hyper.cost_budget();
  if (start >= goal) return "";
  const std::string from = absl::StrFormat("%.4g", start), to = absl::StrFormat("%.4g", goal);
  return absl::StrCat("delta starts at ", from, " and is drawn towards ", to,
                      ", the discounted hyper.cost_budget=", hyper.cost_budget(),
                      ": the constraint loosens after the first ", hyper.delta_warmup(),
                      " steps; to keep its start, lower the budget: --set hyper.cost_budget=",
                      absl::StrFormat("%.2f", std::floor(start / share * 100) / 100),
                      ", or hold it: --set hyper.delta_mode=fixed --set hyper.init_delta=", from,
                      "; hyper.delta_mode=peak follows the risk of episodes within the budget");
}

// Number of parameters of the dense layers in -> hidden... -> out.
template <typename Hidden>
uint64_t DenseParameters(uint64_t in, const Hidden& hidden, uint64_t out) {
  uint64_t count = 0;
  for (const uint64_t width : hidden) {
    count += (in + 1) * width;
    in = width;
  }
  return count + (in + 1) * out;
}

}  // namespace

void UseNetworkSchedule(v1::Experiment* experiment) {
  const v1::Schedule resolved = ResolveExperiment(*experiment).schedule();
  const v1::Schedule& usual = v1::Schedule::default_instance();
  v1::Schedule* const schedule = experiment->mutable_schedule();
  if (!schedule->has_tolerance_steps() && resolved.tolerance_steps() == usual.tolerance_steps()) {
    schedule->set_tolerance_steps(64);
  }
  if (!schedule->has_publish_period() && resolved.publish_period() == usual.publish_period()) {
    schedule->set_publish_period(16);
  }
}

absl::StatusOr<v1::Experiment> PlanExperiment(const TrainOptions& options) {
  if (options.experiment.empty()) {
    return absl::InvalidArgumentError(
        "name an experiment, e.g. datacom train cartpole/datacom; list them with `datacom list experiments`");
  }
  absl::StatusOr<v1::Experiment> experiment = NamedExperiment(options);
  if (!experiment.ok()) return experiment;
  RETURN_IF_ERROR(ApplyOptions(options, &*experiment));
  if (options.network) UseNetworkSchedule(&*experiment);
  LeaveOutModel(&*experiment);
  NamePlugins(&*experiment);
  ASSIGN_OR_RETURN(const v1::Experiment resolved, ResolveAndCheck(*experiment));
  RETURN_IF_ERROR(CheckPretrain(resolved));
  return resolved;
}

std::vector<std::string> PlanNotes(const v1::Experiment& resolved) {
  const absl::StatusOr<TaskModel> model = MakeTaskModel(resolved.task(), resolved.task_options());
  std::vector<std::string> notes = python::DescribeFacts(resolved.task_options());
  for (int member = 0; model.ok() && member < resolved.members_size(); ++member) {
    const std::string note = LooseningNote(resolved, member, model->spec.horizon);
    // Members with the same settings have the same note.
    if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  }
  const std::vector<std::string> unread = UnreadNotes(resolved);
  notes.insert(notes.end(), unread.begin(), unread.end());
  return notes;
}

std::string ReplacedPolicyNote(const std::string& run_dir, const v1::Experiment& before, const v1::Experiment& after) {
  const uint64_t end = before.run().env_steps(), length = after.run().steps_per_epoch();
  const auto epoch = static_cast<uint32_t>(end / length + 1);
  if (end % length == 0 || after.run().env_steps() <= end) return "";
  if (!FileExists(absl::StrCat(run_dir, "/", PoliciesPath(epoch)))) return "";
  return absl::StrCat("epoch ", epoch, " ended early, after ", end, " steps: its row of progress.csv stays, but its ",
                      "policies are replaced when the epoch ends again; to keep one of them: datacom export ",
                      ShellWord(run_dir), " --epoch ", epoch, " --out FILE");
}

absl::StatusOr<v1::Experiment> PlanResume(const TrainOptions& options, const v1::Experiment& stored) {
  if (!options.experiment.empty()) {
    const absl::StatusOr<v1::Experiment> named = NamedExperiment(options);
    if (!named.ok()) return named;
    if (named->name() != stored.name()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--resume: this is a run of experiment ", stored.name(), ", not ", named->name(),
                       "; resume it with: ", ResumeCommand(options.run_dir, stored), ", or choose another --run-dir"));
    }
  }
  // Applies only the given options: members keep their overrides when the seeds are the same as in the run.
  v1::Experiment wanted = stored;
  TrainOptions typed = options;
  if (!typed.seeds.empty()) {
    absl::StatusOr<std::vector<uint64_t>> seeds = ParseSeeds(typed.seeds);
    if (!seeds.ok()) return Annotate(seeds.status(), "--seeds");
    std::vector<uint64_t> held;
    for (const v1::Member& member : stored.members()) held.push_back(member.seed());
    if (*seeds == held) typed.seeds.clear();
  }
  RETURN_IF_ERROR(ApplyOptions(typed, &wanted));
  ASSIGN_OR_RETURN(const v1::Experiment resolved, ResolveAndCheck(wanted));
  v1::Experiment compared = resolved;
  const v1::Experiment before = ResolveExperiment(stored);
  CopyFreeSettings(before, &compared);
  if (const std::string difference = DifferenceOf(before, compared); !difference.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume may change only ", kFreeOnResume, ". The difference: ", difference,
                     "\nresume the run as it is with: ", ResumeCommand(options.run_dir, stored),
                     ", or start a new run in another --run-dir"));
  }
  return resolved;
}

absl::StatusOr<Layout> PlanLayout(const TrainOptions& options, const v1::Experiment& resolved) {
  const int members = std::max(1, resolved.members_size());
  Layout layout;
  if (resolved.run().lockstep()) {
    if (options.actors > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--actors ", options.actors, ": lockstep runs one actor; leave out --actors"));
    }
    if (options.environments > 0 && options.environments != members) {
      return absl::InvalidArgumentError(absl::StrCat("--envs ", options.environments,
                                                     ": lockstep steps one environment per member, here ", members,
                                                     "; leave out --envs"));
    }
    layout.environments = members;
    return layout;
  }
  layout.actors = std::max(1, options.actors);
  const int shard = (members + layout.actors - 1) / layout.actors;  // members per actor when each has one lane
  const int asked = options.environments > 0 ? options.environments : shard;
  // The replay divides the members over the actors. Multiples leave no environment without a member.
  layout.environments = members <= asked ? (asked + members - 1) / members * members : std::max(asked, shard);
  if (options.environments > 0 && layout.environments != asked) {
    layout.note = absl::StrCat("using --envs ", layout.environments, " instead of ", asked, ", so that the ", members,
                               " members have equally many environments");
  }
  if (resolved.task_options().HasExtension(v1::python_task)) {
    const int most = python::MostEnvironments(resolved.task_options().GetExtension(v1::python_task));
    if (layout.environments > most) {
      return absl::InvalidArgumentError(absl::StrCat("--envs ", layout.environments, ": an actor steps at most ", most,
                                                     " environments in Python; use more --actors"));
    }
  }
  return layout;
}

absl::StatusOr<Needs> EstimateNeeds(const v1::Experiment& resolved, const Layout& layout) {
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(resolved.task(), resolved.task_options()));
  const uint64_t obs = model.spec.seen_dim(), action = model.spec.action_dim;
  ASSIGN_OR_RETURN(const RowSchema schema,
                   ActingRuleSchema(FindAlgorithm(resolved.algorithm())->acting_rule, model.spec));
  const uint64_t members = std::max(1, resolved.members_size());
  const v1::Run& run = resolved.run();
  const v1::Network& network = resolved.network();
  if (!FindAlgorithm(resolved.algorithm())->new_rows) RETURN_IF_ERROR(CheckDrawSize(schema, RowsPerDraw(resolved)));
  Needs needs;
  const ReplayLayout rings = ReplayLayoutOf(resolved, schema.stored_row_bytes());
  needs.ring_bytes = rings.Bytes(members);
  needs.largest_file_bytes = RingBytes(rings.kept_rows(), rings.guard, rings.row_bytes);
  const uint64_t actor = 2 * DenseParameters(obs, network.actor_hidden(), action);
  const uint64_t critics = 2 * DenseParameters(obs + action, network.critic_hidden(), 1);
  const uint64_t constraints = 2 * DenseParameters(obs, network.constraint_hidden(), 1);
  const uint64_t epochs = run.env_steps() / run.steps_per_epoch() + 2;
  needs.policy_bytes = members * epochs * 4 * (actor + constraints);
  // Online nets with two Adam moments each, and target nets. Two checkpoints are kept while a third is written.
  const uint64_t state_bytes = 4 * (3 * actor + 4 * critics + 4 * constraints);
  needs.checkpoint_bytes = 3 * members * state_bytes;
  needs.ledger_bytes = members * LedgerStepBytes(run.env_steps(), static_cast<uint32_t>(action));
  const uint64_t batch_rows = RowsPerDraw(resolved);
  needs.replay_memory_bytes = kReplayMemory + members * kReplayMember;
  const auto actor_memory = [&](uint64_t lanes, uint64_t served) {  // lanes of the members that the actor serves
    return kActorMemory + lanes * kEnvironmentMemory + served * kPolicyCopies * 4 * (actor + constraints);
  };
  const uint64_t environments = layout.environments;
  // A single actor serves every member.
  needs.actor_memory_bytes = actor_memory(std::max(members, environments), members);
  needs.learner_memory_bytes = kLearnerMemory + members * (kLearnerMember + kStateCopies * state_bytes +
                                                           kBatchCopies * batch_rows * schema.learning_row_bytes());
  if (resolved.learner().device() != "cpu" || resolved.learner().kernels() == "tensor")
    needs.learner_memory_bytes += kLibTorchMemory;
  needs.memory_bytes = needs.replay_memory_bytes + needs.learner_memory_bytes +
                       (layout.actors + 1) * actor_memory(environments, std::min(members, environments));
  if (resolved.has_pretrain()) {  // the dataset may be gone after the pre-training
    if (const auto manifest = ReadManifest(resolved.pretrain().dataset()); manifest.ok()) {
      const uint64_t rows = RowsOf(*manifest) * schema.learning_row_bytes();
      needs.learner_memory_bytes += rows, needs.memory_bytes += rows;
    }
  }
  return needs;
}

uint64_t FolderBytes(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, error); entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    if (error) break;
    if (entry->is_regular_file(error)) bytes += entry->file_size(error);
  }
  return bytes;
}

absl::Status CheckResources(const Needs& needs, const std::string& run_dir) {
  RETURN_IF_ERROR(CheckProcessLimits(needs.largest_file_bytes));
  fs::path existing = AbsolutePath(run_dir);
  while (!existing.empty() && !FileExists(existing.string())) existing = existing.parent_path();
  ASSIGN_OR_RETURN(const uint64_t free_bytes, FreeBytes(existing.string()));
  const uint64_t present = FileExists(run_dir) ? FolderBytes(run_dir) : 0;
  if (needs.disk_bytes() > free_bytes + present) {
    return absl::ResourceExhaustedError(
        absl::StrCat("not enough disk space for ", run_dir, ": the run needs about ", FormatBytes(needs.disk_bytes()),
                     " (replay rings ", FormatBytes(needs.ring_bytes), ", policies ", FormatBytes(needs.policy_bytes),
                     ", checkpoints ", FormatBytes(needs.checkpoint_bytes), ", ledger ",
                     FormatBytes(needs.ledger_bytes), ") and ", FormatBytes(free_bytes),
                     " are free; choose another --run-dir, a smaller --set replay.capacity=N, or fewer --seeds"));
  }
  const uint64_t memory = AvailableMemory();
  if (needs.memory_bytes > memory) {
    return absl::ResourceExhaustedError(
        absl::StrCat("not enough memory: the processes need about ", FormatBytes(needs.memory_bytes), " and ",
                     FormatBytes(memory), " are available; use fewer --actors or --seeds, or stop other programs"));
  }
  return absl::OkStatus();
}

uint64_t MebibytesFor(uint64_t bytes) { return (bytes + bytes / 4 + kMiB - 1) / kMiB; }

std::string FormatBytes(uint64_t bytes) {
  if (bytes >= 1000ull * 1000 * 1000) return absl::StrFormat("%.1f GB", bytes / 1e9);
  if (bytes >= 1000 * 1000) return absl::StrFormat("%.1f MB", bytes / 1e6);
  return absl::StrFormat("%.1f kB", bytes / 1e3);
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
