#include "deploy/tools/onnx/export_onnx.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/acting/acting_rule.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/config/sha256.h"
#include "common/records/csv.h"
#include "common/tasks/checked_step.h"
#include "deploy/tools/onnx/rule_graphs.h"
#include "nlohmann/json.hpp"

namespace datacom::onnx {
namespace {

constexpr int kIrVersion = 7;  // the one of operator set 13

using Properties = std::vector<std::pair<std::string, std::string>>;

Properties Describe(const Policy& policy, const TaskModel& model) {
  const Snapshot& snapshot = policy.snapshot;
  const TaskSpec& spec = model.spec;
  std::vector<std::string> observed = spec.observation_names;
  observed.resize(ObservationColumns(snapshot, spec));
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
      {"observation_names", nlohmann::json(observed).dump()},
      {"action_names", nlohmann::json(spec.action_names).dump()},
      {"action_low", nlohmann::json(spec.action_low).dump()},
      {"action_high", nlohmann::json(spec.action_high).dump()},
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

// One environment that plays the policy and restarts at the end of each episode.
class Player {
 public:
  Player(std::unique_ptr<Task> task, std::unique_ptr<ActingRule> rule, bool judged, GraphInput input)
      : task_(std::move(task)),
        rule_(std::move(rule)),
        judged_(judged),
        input_(input),
        observation_(task_->spec().obs_dim),
        seen_(observation_.size()),
        noise_(rule_->noise_dim()),
        zeros_(noise_.size()),
        proposed_(task_->spec().action_dim),
        given_(proposed_.size()),
        action_(task_->spec().action_dim),
        executed_(action_.size()) {}

  // One line of the pairs, of the first `columns` numbers of the observation; then a step of the task.
  absl::StatusOr<std::string> Line(uint64_t index, int columns) {
    if (steps_ == 0) {
      RandomStream stream(StreamKey("onnx.reset", {index}));
      task_->Reset(&stream, observation_.data());
      RETURN_IF_ERROR(task_->status());
    }
    std::copy(observation_.begin(), observation_.end(), seen_.begin());
    FillNormal(StreamKey("onnx.noise", {index}), noise_.data(), static_cast<int64_t>(noise_.size()));
    double constraint = 0, cvar = 0, intervention = 0;
    const std::vector<float>& recorded = input_ == GraphInput::kNoise ? noise_ : zeros_;
    Propose(index);
    const float cost = 0;
    ActingInputs inputs{seen_.data(), recorded.data(), &cost};
    if (input_ == GraphInput::kProposed) inputs.proposals = given_.data();
    rule_->Act(1, inputs, action_.data(), {&constraint, &cvar, &intervention});
    std::vector<std::string> cells;
    for (int i = 0; i < columns; ++i) cells.push_back(Cell(seen_[i]));
    if (input_ == GraphInput::kNoise) Append(noise_, &cells);
    if (input_ == GraphInput::kProposed) Append(proposed_, &cells);
    for (size_t i = 0; i < action_.size(); ++i) cells.push_back(Cell(Executed()[i]));
    if (judged_) cells.insert(cells.end(), {Cell(cvar), Cell(constraint), Cell(intervention)});
    // Episodes always have noise, which leads to more states.
    rule_->Act(1, {seen_.data(), noise_.data()}, action_.data(), {});
    std::copy_n(Executed(), executed_.size(), executed_.begin());
    const StepResult result = CheckedStep(task_.get(), executed_.data(), observation_.data());
    RETURN_IF_ERROR(task_->status());
    const bool over = result.ends() || !result.valid || steps_ + 1 == task_->spec().horizon;
    steps_ = over ? 0 : steps_ + 1;
    return absl::StrJoin(cells, ",");
  }

 private:
  // Somebody's action, now and then outside of the task's bounds, and what is left of it within them.
  void Propose(uint64_t index) {
    const TaskSpec& spec = task_->spec();
    FillUniform(StreamKey("onnx.proposed", {index}), proposed_.data(), static_cast<int64_t>(proposed_.size()));
    for (size_t i = 0; i < proposed_.size(); ++i) {
      const auto low = static_cast<float>(spec.action_low[i]), high = static_cast<float>(spec.action_high[i]);
      proposed_[i] = (low + high) / 2 + 1.2f * (proposed_[i] - 0.5f) * (high - low);
      given_[i] = std::clamp(proposed_[i], low, high);
    }
  }
  static void Append(const std::vector<float>& numbers, std::vector<std::string>* cells) {
    for (const float number : numbers) cells->push_back(Cell(number));
  }
  const float* Executed() const { return rule_->executed() != nullptr ? rule_->executed() : action_.data(); }

  std::unique_ptr<Task> task_;
  std::unique_ptr<ActingRule> rule_;
  bool judged_;
  GraphInput input_;
  int steps_ = 0;
  std::vector<double> observation_;
  std::vector<float> seen_, noise_, zeros_, proposed_, given_, action_;
  std::vector<double> executed_;
};

}  // namespace

std::string PairsFile(const std::string& path) { return absl::StrCat(absl::StripSuffix(path, ".onnx"), ".pairs.csv"); }

absl::StatusOr<std::string> EncodeOnnx(const Policy& policy, const TaskModel& model, GraphInput input) {
  Graph graph;
  RETURN_IF_ERROR(AddRule(policy.snapshot, model, policy.about.task_options(), input, &graph));
  v1::OnnxModel onnx;
  onnx.set_ir_version(kIrVersion);
  onnx.set_producer_name("datacom");
  onnx.set_producer_version(policy.about.build());
  onnx.set_doc_string(absl::StrCat("Policy of ", policy.about.experiment(), " with its safety filter. The action is ",
                                   "not clipped: clip it to action_low and action_high."));
  onnx.add_opset_import()->set_version(kOperatorSet);
  graph.mutable_proto()->set_name(policy.snapshot.acting_rule);
  onnx.mutable_graph()->Swap(graph.mutable_proto());
  for (auto& [key, value] : Describe(policy, model)) {
    v1::OnnxEntry* const entry = onnx.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  return onnx.SerializeAsString();
}

absl::StatusOr<std::string> RecordPairs(const Policy& policy, const TaskModel& model, GraphInput input,
                                        uint32_t pairs) {
  const Snapshot& snapshot = policy.snapshot;
  ASSIGN_OR_RETURN(std::unique_ptr<ActingRule> rule, MakeActingRule(snapshot, model, /*max_batch=*/1));
  ASSIGN_OR_RETURN(std::unique_ptr<Task> task, MakeTask(snapshot.task, policy.about.task_options()));
  const bool judged = rule->has_constraint();
  const int columns = ObservationColumns(snapshot, model.spec);
  const bool proposed = input == GraphInput::kProposed;
  const int inputs = proposed ? model.spec.action_dim : input == GraphInput::kNoise ? rule->noise_dim() : 0;
  std::string text =
      absl::StrJoin(Header(columns, proposed ? "proposed" : "noise", inputs, model.spec.action_dim, judged), ",") +
      "\n";
  Player player(std::move(task), std::move(rule), judged, input);
  for (uint32_t i = 0; i < pairs; ++i) {
    ASSIGN_OR_RETURN(const std::string line, player.Line(i, columns));
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace datacom::onnx
// SPDX-License-Identifier: Apache-2.0
