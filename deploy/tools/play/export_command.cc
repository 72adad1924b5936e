#include "deploy/tools/play/commands.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "actor/episode_player.h"
#include "common/acting/acting_rule.h"
#include "common/acting/policy_file.h"
#include "common/base/output_file.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/config/sha256.h"
#include "common/config/task_files.h"
#include "common/records/csv.h"
#include "common/records/ledger.h"
#include "common/records/message_json.h"
#include "common/tasks/python/identity.h"
#include "common/tasks/python/python_task.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/tools/onnx/rule_graphs.h"
#include "deploy/tools/policies/run_policies.h"

namespace datacom::tools {
namespace {

using onnx::Graph;
using onnx::GraphInput;

constexpr int kIrVersion = 7;  // the one of operator set 13

using Properties = std::vector<std::pair<std::string, std::string>>;

Properties Describe(const Policy& policy, const TaskModel& model) {
  const Snapshot& snapshot = policy.snapshot;
  const TaskSpec& spec = model.spec;
  std::vector<std::string> observed = spec.observation_names;
  observed.resize(onnx::ObservationColumns(snapshot, spec));
  Properties properties = {
      {"task", spec.name},
      {"experiment", policy.about.experiment()},
      {"algorithm", policy.about.algorithm()},
      {"acting_rule", snapshot.acting_rule},
      {"run", snapshot.run_id},
      {"member", absl::StrCat(snapshot.member)},
      {"seed", absl::StrCat(snapshot.member_seed)},
      {"epoch", absl::StrCat(policy.about.epoch())},
      {"update", absl::StrCat(snapshot.version.update)},
      {"build", policy.about.build()},
      {"weights_sha256", Sha256Hex(EncodeSnapshot(snapshot))},
      {"control_period_s", Cell(spec.control_dt)},
      {"observation_names", JsonText(observed)},
      {"action_names", JsonText(spec.action_names)},
      {"action_low", JsonText(spec.action_low)},
      {"action_high", JsonText(spec.action_high)},
  };
  for (const auto& [name, value] : snapshot.scalars)
    properties.emplace_back(absl::StrCat("scalar.", name), Cell(value));
  return properties;
}

std::vector<std::string> Header(int observations, const std::string& input, int inputs, int actions, bool judged) {
  std::vector<std::string> header;
  for (int i = 0; i < observations; ++i) header.push_back(absl::StrCat("observation_", i));
  for (int i = 0; i < inputs; ++i) header.push_back(absl::StrCat(input, "_", i));
  for (int i = 0; i < actions; ++i) header.push_back(absl::StrCat("action_", i));
  if (judged) header.insert(header.end(), {"cvar", "constraint", "intervention"});
  return header;
}

// What the acting rule answers to observations, as lines of the pairs.
class Recorder {
 public:
  // Of an observation the pairs have the first `columns` numbers.
  Recorder(std::unique_ptr<ActingRule> rule, const TaskSpec& spec, int columns, GraphInput input)
      : rule_(std::move(rule)),
        spec_(spec),
        columns_(columns),
        input_(input),
        seen_(spec.obs_dim),
        noise_(rule_->noise_dim()),
        proposed_(spec.action_dim),
        given_(proposed_.size()),
        action_(proposed_.size()) {}

  std::string Line(uint64_t index, const double* observation) {
    std::copy_n(observation, seen_.size(), seen_.begin());
    const float cost = 0;
    ActingInputs inputs{seen_.data(), noise_.data(), &cost};
    std::vector<std::string> cells;
    for (int i = 0; i < columns_; ++i) cells.push_back(Cell(seen_[i]));
    if (input_ == GraphInput::kNoise) {
      FillNormal(StreamKey("onnx.noise", {index}), noise_.data(), static_cast<int64_t>(noise_.size()));
      Append(noise_.data(), noise_.size(), &cells);
    }
    if (input_ == GraphInput::kProposed) {
      Propose(index);
      Append(proposed_.data(), proposed_.size(), &cells);
      inputs.proposals = given_.data();
    }
    double constraint = 0, cvar = 0, intervention = 0;
    rule_->Act(1, inputs, action_.data(), {&constraint, &cvar, &intervention});
    Append(rule_->executed() != nullptr ? rule_->executed() : action_.data(), action_.size(), &cells);
    if (rule_->has_constraint()) cells.insert(cells.end(), {Cell(cvar), Cell(constraint), Cell(intervention)});
    return absl::StrJoin(cells, ",");
  }

 private:
  // Somebody's action, now and then outside of the task's bounds, and what is left of it within them.
  void Propose(uint64_t index) {
    FillUniform(StreamKey("onnx.proposed", {index}), proposed_.data(), static_cast<int64_t>(proposed_.size()));
    for (size_t i = 0; i < proposed_.size(); ++i) {
      const auto low = static_cast<float>(spec_.action_low[i]), high = static_cast<float>(spec_.action_high[i]);
      proposed_[i] = (low + high) / 2 + 1.2f * (proposed_[i] - 0.5f) * (high - low);
      given_[i] = std::clamp(proposed_[i], low, high);
    }
  }
  static void Append(const float* numbers, size_t count, std::vector<std::string>* cells) {
    for (size_t i = 0; i < count; ++i) cells->push_back(Cell(numbers[i]));
  }

  const std::unique_ptr<ActingRule> rule_;
  const TaskSpec& spec_;
  const int columns_;
  const GraphInput input_;
  std::vector<float> seen_, noise_, proposed_, given_, action_;
};

// The model in binary form: graph (rule_graphs.h) and metadata_props (docs/python.md).
absl::StatusOr<std::string> EncodeOnnx(const Policy& policy, const TaskModel& model, GraphInput input) {
  Graph graph;
  RETURN_IF_ERROR(onnx::AddRule(policy.snapshot, model, policy.about.task_options(), input, &graph));
  v1::OnnxModel exported;
  exported.set_ir_version(kIrVersion);
  exported.set_producer_name("datacom");
  exported.set_producer_version(policy.about.build());
  exported.set_doc_string(absl::StrCat("Policy of ", policy.about.experiment(),
                                       " with its safety filter. The action is ",
                                       "not clipped: clip it to action_low and action_high."));
  exported.add_opset_import()->set_version(onnx::kOperatorSet);
  graph.mutable_proto()->set_name(policy.snapshot.acting_rule);
  exported.mutable_graph()->Swap(graph.mutable_proto());
  for (auto& [key, value] : Describe(policy, model)) {
    v1::OnnxEntry* const entry = exported.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  return exported.SerializeAsString();
}

// Columns: observation_I and, on request, noise_I or proposed_I, the inputs; action_I, cvar, constraint and
// intervention, the outputs, those that the graph has. The same for the same policy, which plays with noise: that leads
// to more states.
absl::StatusOr<std::string> RecordPairs(const Policy& policy, const TaskModel& model, GraphInput input,
                                        uint32_t pairs) {
  const Snapshot& snapshot = policy.snapshot;
  ASSIGN_OR_RETURN(std::unique_ptr<ActingRule> rule, MakeActingRule(snapshot, model, /*max_batch=*/1));
  ASSIGN_OR_RETURN(std::unique_ptr<ActingRule> playing, MakeActingRule(snapshot, model, /*max_batch=*/1));
  std::vector<std::unique_ptr<Task>> tasks(1);
  ASSIGN_OR_RETURN(tasks[0], MakeTask(snapshot.task, policy.about.task_options()));
  const int columns = onnx::ObservationColumns(snapshot, model.spec), actions = model.spec.action_dim;
  const bool proposed = input == GraphInput::kProposed;
  const int inputs = proposed ? actions : input == GraphInput::kNoise ? rule->noise_dim() : 0;
  std::string text =
      absl::StrJoin(Header(columns, proposed ? "proposed" : "noise", inputs, actions, rule->has_constraint()), ",");
  text += "\n";
  Recorder recorder(std::move(rule), model.spec, columns, input);
  actor::EpisodePlayer player(std::move(tasks), std::move(playing), /*discount=*/1);
  uint32_t lines = 0;
  for (uint32_t episode = 0; lines < pairs; ++episode) {
    RETURN_IF_ERROR(player.Watch({}, episode, [&](const actor::EpisodeState& state) {
      if (lines < pairs) absl::StrAppend(&text, recorder.Line(lines++, state.observation), "\n");
      return absl::OkStatus();
    }));
  }
  return text;
}

// Writes FILE.onnx and, unless that is no file, FILE.pairs.csv with `pairs` lines, and says on `out` what that has.
// INVALID_ARGUMENT, naming rule, known rows or task, if there is no graph; then nothing is written. The pairs come from
// the acting rule itself, in episodes of the task: whoever moves the file to another runtime repeats them there.
absl::Status WriteOnnx(const Policy& policy, const TaskModel& model, GraphInput input, uint32_t pairs,
                       const std::string& file, std::ostream* out) {
  ASSIGN_OR_RETURN(const std::string graph, EncodeOnnx(policy, model, input));
  ASSIGN_OR_RETURN(const std::string recorded, RecordPairs(policy, model, input, pairs));
  const std::string pairs_file = absl::StrCat(absl::StripSuffix(file, ".onnx"), ".pairs.csv");
  ASSIGN_OR_RETURN(const std::string replaced, ReplacedFile(file));
  RETURN_IF_ERROR(WriteOutputFile(file, graph));
  if (replaced.empty()) return absl::OkStatus();  // what is no file has no folder for them
  RETURN_IF_ERROR(WriteOutputFile(pairs_file, recorded));
  *out << pairs_file << ": " << pairs << " recorded inputs and outputs of the acting rule\n";
  return absl::OkStatus();
}

// A policy file needs no environment: only one that the command names is asked whether it is still the run's.
absl::Status CheckIfNamed(const v1::PythonTask& run) {
  if (!python::CheckNamed(run.environment()).ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::PythonTask now, python::AskEnvironment(run.environment(), run.q() + run.x() > 0));
  return python::CheckSame(run, now);
}

}  // namespace

absl::Status RunExportCommand(const ExportCommand& given, std::ostream* out) {
  ExportCommand command = given;
  ASSIGN_OR_RETURN(command.run_dir, RunFolderOf(given.run_dir));
  if (command.format != "onnx" && command.input != GraphInput::kNothing) {
    return absl::InvalidArgumentError("--noise and --filter: only a graph has other inputs; use --format onnx");
  }
  if (command.format != "onnx" && command.pairs != ExportCommand().pairs) {
    return absl::InvalidArgumentError("--pairs: only a graph has recorded pairs beside it; use --format onnx");
  }
  if (command.format != "violations" && command.largest != ExportCommand().largest) {
    return absl::InvalidArgumentError("--largest: only --format violations keeps violations");
  }
  if (command.format == "violations" && (command.member || command.epoch)) {
    return absl::InvalidArgumentError("--member and --epoch: --format violations takes those of the whole run");
  }
  if (command.format != "violations") {
    RETURN_IF_ERROR(CheckOutputFile("--out", command.file));
    if (IsStandardOutput(command.file)) out = &std::cerr;
  }
  if (command.format == "stored") {
    RETURN_IF_ERROR(StorePolicies(command.run_dir, command.member, command.epoch.value_or(""), command.file));
    *out << command.file << ": " << command.epoch.value_or("last and best") << " policies of "
         << (command.member ? absl::StrCat("member ", *command.member) : "all members") << ", in half precision\n";
    return absl::OkStatus();
  }
  if (command.format == "violations") {
    ASSIGN_OR_RETURN(const size_t kept, CopyLargestViolations(command.run_dir, command.largest, command.file));
    *out << command.file << ": " << kept << " violations, the largest of their episodes, and the steps before them\n";
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadRunExperiment(command.run_dir, {}));
  ASSIGN_OR_RETURN(const std::vector<MemberPolicy> policies,
                   ReadPolicies(command.run_dir, command.epoch.value_or("last")));
  ASSIGN_OR_RETURN(const MemberPolicy* const chosen, FindMember(policies, command.member));
  const Snapshot& snapshot = chosen->snapshot;
  RETURN_IF_ERROR(snapshot.CheckFinite());
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(experiment.task(), experiment.task_options()));
  RETURN_IF_ERROR(MakeActingRule(snapshot, model, /*max_batch=*/1).status());
  Policy policy;
  policy.about.set_experiment(experiment.name());
  policy.about.set_algorithm(experiment.algorithm());
  *policy.about.mutable_task_options() = experiment.task_options();
  DropTaskFiles(policy.about.mutable_task_options());
  policy.about.set_epoch(chosen->epoch);
  policy.about.set_build(BuildName());
  policy.snapshot = snapshot;
  if (command.format == "onnx") {
    RETURN_IF_ERROR(WriteOnnx(policy, model, command.input, command.pairs, command.file, out));
  } else {
    RETURN_IF_ERROR(CheckIfNamed(experiment.task_options().GetExtension(v1::python_task)));
    RETURN_IF_ERROR(WritePolicyFile(command.file, policy));
  }
  *out << command.file << ": " << experiment.name() << ", member " << snapshot.member << " (seed "
       << snapshot.member_seed << "), epoch " << chosen->epoch << ", update " << snapshot.version.update
       << ", acting rule " << snapshot.acting_rule << '\n';
  return absl::OkStatus();
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
