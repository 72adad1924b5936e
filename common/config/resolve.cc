#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/config/textproto.h"
#include "common/transitions/update_schedule.h"
#include "datacom/v1/task.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace datacom {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr uint64_t kMaxMembers = 65536;

bool HasDefaults(const google::protobuf::Descriptor* descriptor) {
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->has_default_value() || (field->message_type() != nullptr && HasDefaults(field->message_type())))
      return true;
  }
  return false;
}

// Whether a message cannot be without one of its scalars. Where such a message is absent, nothing of it is meant.
bool HasRequired(const google::protobuf::Descriptor* descriptor) {
  for (int i = 0; i < descriptor->field_count(); ++i) {
    if (descriptor->field(i)->options().GetExtension(v1::rule).required()) return true;
  }
  return false;
}

// Fills every absent scalar or list that has a default and that the algorithm reads or may have all the same,
// recursively through singular messages. Fields stay absent where absence has a meaning: in repeated messages (members:
// "as the experiment") and in those without defaults (task options).
void FillDefaults(const AlgorithmInfo* algorithm, Message* message) {
  const google::protobuf::Descriptor* descriptor = message->GetDescriptor();
  const Reflection* reflection = message->GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (algorithm != nullptr && !ReadsSetting(*algorithm, *field) && !MayBeUnread(*field)) continue;
    if (field->is_repeated()) {
      if (reflection->FieldSize(*message, field) > 0) continue;
      for (const uint32_t item : field->options().GetExtension(v1::rule).items()) {
        reflection->AddUInt32(message, field, item);
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!reflection->HasField(*message, field) && HasRequired(field->message_type())) continue;
      if (HasDefaults(field->message_type())) FillDefaults(algorithm, reflection->MutableMessage(message, field));
    } else if (field->has_default_value() && !reflection->HasField(*message, field)) {
      google::protobuf::TextFormat::ParseFieldValueFromString(PrintField(*message, field), field, message);
    }
  }
}

// Sets what is absent as AlgorithmInfo.defaults says.
void FillOwnDefaults(const AlgorithmInfo& algorithm, v1::Experiment* experiment) {
  if (algorithm.defaults.empty()) return;
  v1::Experiment defaults;
  google::protobuf::TextFormat::ParseFromString(algorithm.defaults, &defaults);  // experiment_test.cc parses all
  defaults.MergeFrom(*experiment);                                               // what the experiment sets counts
  *experiment = std::move(defaults);
}

// The defaults of algorithms that learn from whole epochs (proto Schedule).
void FillOnPolicy(v1::Experiment* experiment) {
  const uint64_t epoch = experiment->run().steps_per_epoch();
  v1::Schedule* const schedule = experiment->mutable_schedule();
  v1::ReplayOptions* const replay = experiment->mutable_replay();
  if (!schedule->has_updates_per_step()) schedule->set_updates_per_step(1 / static_cast<double>(epoch));
  if (!schedule->has_tolerance_steps()) schedule->set_tolerance_steps(std::min<uint64_t>(256, epoch));
  if (!schedule->has_max_policy_lag()) schedule->set_max_policy_lag(0);
  if (!schedule->has_publish_period()) schedule->set_publish_period(1);
  if (!replay->has_min_size()) replay->set_min_size(0);
  if (!replay->has_capacity()) replay->set_capacity(epoch);
  if (!experiment->run().has_checkpoint_updates()) experiment->mutable_run()->set_checkpoint_updates(1);
  if (!experiment->learner().has_failure_batch_size()) experiment->mutable_learner()->set_failure_batch_size(0);
}

// A task whose costs have budgets measures its cost in shares of them (proto Cost.budget).
void FillBudget(const AlgorithmInfo& algorithm, v1::Experiment* experiment) {
  const auto& costs = experiment->task_options().GetExtension(v1::text_task).definition().cost();
  const bool shares = !costs.empty() && costs[0].has_budget();
  if (shares && algorithm.has_budget && !experiment->hyper().has_cost_budget()) {
    experiment->mutable_hyper()->set_cost_budget(1);
  }
}

absl::Status ParseSeedRange(const std::string& part, std::vector<uint64_t>* seeds) {
  const auto wrong = [&part](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("\"", part, "\" ", why));
  };
  const std::vector<std::string> ends = absl::StrSplit(part, '-');
  uint64_t first = 0, last = 0;
  if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last)) {
    return wrong("is neither a number nor a range such as 0-4");
  }
  if (last < first) return wrong("ends before it begins");
  if (last - first >= kMaxMembers || seeds->size() + (last - first) >= kMaxMembers) {
    return wrong(absl::StrCat("makes more than ", kMaxMembers, " members"));
  }
  for (uint64_t i = 0; i <= last - first; ++i) seeds->push_back(first + i);
  return absl::OkStatus();
}

}  // namespace

v1::Experiment ResolveExperiment(v1::Experiment experiment) {
  const AlgorithmInfo* const algorithm = FindAlgorithm(experiment.algorithm());
  if (algorithm != nullptr) FillOwnDefaults(*algorithm, &experiment);
  if (algorithm != nullptr && algorithm->on_policy) FillOnPolicy(&experiment);
  if (algorithm != nullptr) FillBudget(*algorithm, &experiment);
  FillDefaults(algorithm, &experiment);
  if (experiment.members().empty()) experiment.add_members()->set_seed(experiment.run().seed());
  if (experiment.run().lockstep()) {
    experiment.mutable_schedule()->set_max_policy_lag(0);
    experiment.mutable_schedule()->set_tolerance_steps(1);
    experiment.mutable_schedule()->set_publish_period(1);
  }
  return experiment;
}

void CopyFreeSettings(const v1::Experiment& from, v1::Experiment* to) {
  to->mutable_run()->set_env_steps(from.run().env_steps());
  to->mutable_learner()->set_device(from.learner().device());
  to->mutable_learner()->set_kernels(from.learner().kernels());
  to->mutable_learner()->set_precision(from.learner().precision());
  to->mutable_learner()->set_threads(from.learner().threads());
  to->mutable_learner()->set_pin_threads(from.learner().pin_threads());
}

std::string FixedSettings(v1::Experiment resolved) {
  CopyFreeSettings(v1::Experiment(), &resolved);
  return PrintExperiment(resolved);
}

double DiscountOfReturns(const v1::Experiment& resolved) {
  const double discount =
      resolved.run().has_return_discount() ? resolved.run().return_discount() : resolved.learner().discount();
  const uint32_t steps = resolved.task_options().action_repeat();
  return steps > 1 ? std::pow(discount, steps) : discount;
}

UpdateSchedule UpdatesOf(const v1::Experiment& resolved) {
  return {resolved.run().env_steps(), resolved.replay().min_size(), resolved.schedule().updates_per_step()};
}

uint64_t RowsPerDraw(const v1::Experiment& resolved) {
  const AlgorithmInfo* const algorithm = FindAlgorithm(resolved.algorithm());
  if (algorithm == nullptr || !algorithm->new_rows)
    return resolved.learner().batch_size() + resolved.learner().failure_batch_size();
  UpdateSchedule updates;
  updates.updates_per_step = resolved.schedule().updates_per_step();
  return updates.StartedRows(1);
}

ReplayLayout ReplayLayoutOf(const v1::Experiment& resolved, uint64_t row_bytes) {
  const double interval =
      std::ceil(static_cast<double>(resolved.run().checkpoint_updates()) / resolved.schedule().updates_per_step());
  ReplayLayout layout;
  layout.capacity = resolved.replay().capacity();
  layout.failure_capacity = resolved.replay().failure_capacity();
  layout.slack =
      resolved.schedule().tolerance_steps() + 2 * static_cast<uint64_t>(interval) + resolved.run().steps_per_epoch();
  layout.env_steps = resolved.run().env_steps();
  layout.newest_share = resolved.replay().newest_share();
  layout.row_bytes = row_bytes;
  return layout;
}

absl::StatusOr<std::vector<uint64_t>> ParseSeeds(const std::string& text) {
  std::vector<uint64_t> seeds;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const absl::Status status = ParseSeedRange(std::string(part), &seeds);
    if (!status.ok()) return status;
  }
  std::set<uint64_t> seen;
  for (const uint64_t seed : seeds) {
    if (!seen.insert(seed).second) return absl::InvalidArgumentError(absl::StrCat(seed, " appears twice in ", text));
  }
  return seeds;
}

absl::Status SetSeeds(const std::vector<uint64_t>& seeds, v1::Experiment* experiment) {
  if (seeds.empty()) return absl::InvalidArgumentError("seeds: none given");
  for (int i = 0; i < experiment->members_size(); ++i) {
    if (experiment->members(i).hyper().ByteSizeLong() > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "members[", i,
          "].hyper is set by the experiment; seeds would replace that member: set seeds or members, not both"));
    }
  }
  experiment->clear_members();
  for (const uint64_t seed : seeds) experiment->add_members()->set_seed(seed);
  return absl::OkStatus();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
