#include "learner/setup.h"

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/acting/acting_rule.h"
#include "common/base/machine.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/records/best_epoch.h"
#include "common/tasks/python/identity.h"
#include "common/tasks/task.h"

namespace datacom::learner {
namespace {

// Of the CPU's kernels, and of decoding with every device. More than two threads for a member find nothing to do.
int ThreadsOf(const v1::Experiment& resolved) {
  const int threads = static_cast<int>(resolved.learner().threads());
  return std::min(threads > 0 ? threads : UsableProcessors(), 2 * resolved.members_size());
}

absl::StatusOr<Imitation> ImitationOf(const v1::Demonstrations& demonstrations, const TaskModel& task) {
  if (demonstrations.imitation() == 0) return Imitation();
  ASSIGN_OR_RETURN(const ScriptedPolicy* const controller, FindScriptedPolicy(task, demonstrations.controller()));
  return Imitation{controller->act, demonstrations.imitation(), demonstrations.until_update()};
}

// With learner.bound_returns gives members without bounds of their own those of the task (docs/algorithms.md
// 1.6). Refuses a floor that is not below the ceiling.
absl::Status BoundReturns(const v1::LearnerOptions& learner, const TaskModel& task,
                          std::vector<MemberConfig>* members) {
  const v1::Hyper& none = v1::Hyper::default_instance();
  double low = none.return_floor(), high = none.return_ceiling();
  if (learner.bound_returns()) {
    const absl::StatusOr<ReturnRange> range = ReturnRangeOf(task.spec, learner.discount());
    RETURN_IF_ERROR(Annotate(range.status(), "learner.bound_returns"));
    const double room = (range->high - range->low) / 10;  // for the entropy
    low = range->low - room, high = range->high + room;
  }
  for (MemberConfig& member : *members) {
    v1::Hyper& own = member.hyper;
    const bool has_floor = own.return_floor() != none.return_floor();
    if (!has_floor) own.set_return_floor(low);
    if (own.return_ceiling() == none.return_ceiling()) own.set_return_ceiling(high);
    const double floor = own.return_floor(), ceiling = own.return_ceiling();
    if (floor < ceiling) continue;
    return absl::InvalidArgumentError(
        has_floor ? absl::StrCat("hyper.return_floor: ", floor, " is not below the ceiling, ", ceiling)
                  : absl::StrCat("hyper.return_ceiling: ", ceiling, " is not above the floor, ", floor));
  }
  return absl::OkStatus();
}

// Refuses an algorithm that reads a column which its acting rule does not send to the learner.
absl::Status CheckColumns(const AlgorithmConfig& config, const std::string& rule) {
  ASSIGN_OR_RETURN(const std::vector<Column> sent, ActingRuleColumns(rule, config.action_dim));
  for (const RuleColumn& read : ColumnsOf(config)) {
    const auto is_read = [&](const Column& column) {
      return column.learning && column.name == read.name && static_cast<int>(column.width) == read.width;
    };
    if (std::any_of(sent.begin(), sent.end(), is_read)) continue;
    return absl::InvalidArgumentError(absl::StrCat("algorithm ", config.algorithm, " reads the row column ", read.name,
                                                   "[", read.width, "], which acting rule ", rule, " does not send"));
  }
  return absl::OkStatus();
}

}  // namespace

RunSettings MakeRunSettings(const v1::Experiment& resolved) {
  const AlgorithmInfo& algorithm = *FindAlgorithm(resolved.algorithm());
  RunSettings settings;
  settings.resolved = std::make_shared<v1::Experiment>(resolved);
  settings.experiment = PrintExperiment(resolved);
  settings.fixed = FixedSettings(resolved);
  settings.acting_rule = algorithm.acting_rule;
  settings.needs_dynamics = algorithm.needs_dynamics;
  settings.on_policy = algorithm.on_policy;
  settings.environment = python::CodeLine(resolved.task_options().GetExtension(v1::python_task));
  for (int i = 0; i < resolved.members_size(); ++i) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    settings.cost_budgets.push_back(algorithm.has_budget ? CostBudget(resolved, i) : none);
  }
  settings.schedule = EpochSchedule(UpdatesOf(resolved), resolved.run().steps_per_epoch());
  settings.rows_per_draw = RowsPerDraw(resolved);
  settings.draws_wait = resolved.run().lockstep() || algorithm.on_policy;
  return settings;
}

absl::StatusOr<AlgorithmConfig> MakeAlgorithmConfig(const v1::Experiment& resolved, const TaskModel& task) {
  const AlgorithmInfo& info = *FindAlgorithm(resolved.algorithm());
  RETURN_IF_ERROR(CheckActingRuleTask(info.acting_rule, task));
  AlgorithmConfig config;
  ASSIGN_OR_RETURN(const std::vector<int> known, SelectKnownRows(task, resolved.constraints()));
  for (const int row : known) {
    config.known.push_back(task.known_constraints->names()[row]);
    config.known_equalities += task.known_constraints->equality(row) ? 1 : 0;
  }
  config.algorithm = resolved.algorithm();
  for (int member = 0; member < resolved.members_size(); ++member) {
    MemberConfig& own = config.members.emplace_back();
    own.seed = resolved.members(member).seed();
    own.hyper = MemberHyper(resolved, member);
  }
  config.run_seed = resolved.run().seed();
  const ControlAffineDims dims = task.dynamics->dims();
  config.obs_dim = task.spec.seen_dim();
  config.action_dim = task.spec.action_dim;
  config.q_dim = dims.q;
  config.x_dim = dims.x;
  config.action_low = task.spec.action_low;
  config.action_high = task.spec.action_high;
  config.horizon = task.spec.horizon;
  config.network = resolved.network();
  config.learner = resolved.learner();
  config.quantiles = info.quantiles;
  if (info.new_rows) {
    config.epoch_rows = static_cast<int>(RowsPerDraw(resolved));
    config.epochs = UpdatesOf(resolved).LastUpdate();
  }
  if (info.plans) {
    config.planning = resolved.planning();
    config.memory_rows = static_cast<int>(resolved.replay().capacity());
  }
  RETURN_IF_ERROR(CheckColumns(config, info.acting_rule));
  RETURN_IF_ERROR(BoundReturns(resolved.learner(), task, &config.members));
  ASSIGN_OR_RETURN(config.imitation, ImitationOf(resolved.demonstrations(), task));
  config.policy_delay = static_cast<int>(resolved.schedule().policy_delay());
  config.policy_warmup = UpdatesOf(resolved).UpdatesAt(resolved.schedule().policy_warmup());
  const int threads = ThreadsOf(resolved);
  if (threads > 1) {
    try {
      config.team = std::make_shared<Team>(threads, resolved.learner().pin_threads());
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot start the ", threads, " threads of learner.threads: ", error.what()));
    }
  }
  return config;
}

absl::StatusOr<KnownRows> MakeKnownRows(const v1::Experiment& resolved, const TaskModel& task) {
  ASSIGN_OR_RETURN(std::vector<int> rows, SelectKnownRows(task, resolved.constraints()));
  return KnownRows(task.known_constraints, std::move(rows), task.dynamics->dims());
}

int DrawsAhead(const RunSettings& settings, const RowSchema& schema) {
  constexpr uint64_t kBytes = 16 << 20, kFewest = 4, kMost = 32;
  if (settings.draws_wait) return 1;
  const uint64_t draw_bytes = settings.member_count() * settings.rows_per_draw * schema.learning_row_bytes();
  return static_cast<int>(std::clamp(kBytes / std::max<uint64_t>(draw_bytes, 1), kFewest, kMost));
}

uint64_t AnnouncedTogether(const RunSettings& settings) {
  if (settings.draws_wait) return 1;
  const v1::Schedule& schedule = settings.resolved->schedule();
  const double updates = schedule.updates_per_step() * static_cast<double>(schedule.tolerance_steps()) / 4;
  const double lag = static_cast<double>(schedule.max_policy_lag()) / 16;
  return static_cast<uint64_t>(std::max(std::min(updates, lag), 1.0));
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
