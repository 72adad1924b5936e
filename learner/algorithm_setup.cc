#include "learner/algorithm_setup.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/machine.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/tasks/known_selection.h"
#include "learner/schedule.h"

namespace datacom::learner {
namespace {

std::vector<int> Sizes(const google::protobuf::RepeatedField<uint32_t>& sizes) { return {sizes.begin(), sizes.end()}; }

// LibTorch has threads of its own. More than two threads for a member find nothing to do.
int ThreadsOf(const v1::Experiment& resolved) {
  if (resolved.learner().device() != "cpu") return 1;
  const int threads = static_cast<int>(resolved.learner().threads());
  return std::min(threads > 0 ? threads : UsableProcessors(), 2 * resolved.members_size());
}

}  // namespace

absl::StatusOr<AlgorithmConfig> MakeAlgorithmConfig(const v1::Experiment& resolved, const TaskModel& task) {
  AlgorithmConfig config;
  ASSIGN_OR_RETURN(const std::vector<int> known, SelectKnownRows(task, resolved.constraints()));
  for (const int row : known) config.known.push_back(task.known_constraints->names()[row]);
  config.algorithm = resolved.algorithm();
  for (int member = 0; member < resolved.members_size(); ++member) {
    config.members.push_back({resolved.members(member).seed(), MemberHyper(resolved, member)});
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
  config.actor_hidden = Sizes(resolved.network().actor_hidden());
  config.critic_hidden = Sizes(resolved.network().critic_hidden());
  config.constraint_hidden = Sizes(resolved.network().constraint_hidden());
  config.batch_size = static_cast<int>(resolved.learner().batch_size());
  config.failure_batch_size = static_cast<int>(resolved.learner().failure_batch_size());
  const AlgorithmInfo& info = *FindAlgorithm(config.algorithm);
  config.quantiles = info.quantiles;
  if (info.new_rows) {
    config.epoch_rows = static_cast<int>(RowsPerDraw(resolved));
    config.epochs = Schedule::Of(resolved).last_update();
  }
  if (info.plans) {
    if (!task.cost) {
      return absl::InvalidArgumentError(
          absl::StrCat(info.name, " plans with the cost of imagined observations; task ", task.spec.name, " has none"));
    }
    config.planning = resolved.planning();
    config.memory_rows = static_cast<int>(resolved.replay().capacity());
  }
  config.passes = static_cast<int>(resolved.learner().passes());
  config.discount = resolved.learner().discount();
  config.tau = resolved.learner().tau();
  config.policy_delay = static_cast<int>(resolved.schedule().policy_delay());
  config.policy_warmup = Schedule::Of(resolved).UpdatesAt(resolved.schedule().policy_warmup());
  config.device = resolved.learner().device();
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

std::vector<uint64_t> DeltaWarmups(const v1::Experiment& resolved) {
  std::vector<uint64_t> warmups;
  for (int member = 0; member < resolved.members_size(); ++member) {
    warmups.push_back(MemberHyper(resolved, member).delta_warmup());
  }
  return warmups;
}

int DrawsAhead(const v1::Experiment& resolved, const RowSchema& schema) {
  constexpr uint64_t kBytes = 16 << 20, kFewest = 4, kMost = 32;
  // The rows of the next epoch are acted by the policy that this one leaves.
  if (resolved.run().lockstep() || FindAlgorithm(resolved.algorithm())->on_policy) return 1;
  const uint64_t draw_bytes = resolved.members_size() * RowsPerDraw(resolved) * schema.learning_row_bytes();
  return static_cast<int>(std::clamp(kBytes / std::max<uint64_t>(draw_bytes, 1), kFewest, kMost));
}

}  // namespace datacom::learner
