#include "common/metrics/metrics.h"
#include "common/metrics/statistics.h"

namespace datacom {
namespace {

// Bucket bounds in seconds, about three per decade, around the expected durations.
std::vector<double> Microseconds() { return {1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 1e-3, 1e-2}; }
std::vector<double> FastCalls() { return {5e-6, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 5e-3, 2e-2, 1e-1, 1}; }
std::vector<double> SlowCalls() { return {2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.5, 1, 5}; }
std::vector<double> Writes() { return {1e-3, 5e-3, 2e-2, 5e-2, 0.1, 0.5, 1, 5, 20}; }
// Lengths of action vectors, whose entries lie in [-1, 1].
std::vector<double> ActionNorms() { return {0.001, 0.01, 0.03, 0.1, 0.3, 1, 3}; }

MetricInfo Counter(const std::string& name, const std::string& help, const std::string& label = "",
                   const std::vector<std::string>& values = {}) {
  return {name, "counter", help, label.empty() ? std::vector<std::string>{} : std::vector<std::string>{label},
          {},   values};
}

MetricInfo Gauge(const std::string& name, const std::string& help, const std::string& label = "",
                 const std::vector<std::string>& values = {}) {
  return {name, "gauge", help, label.empty() ? std::vector<std::string>{} : std::vector<std::string>{label},
          {},   values};
}

MetricInfo Histogram(const std::string& name, const std::string& help, const std::vector<double>& buckets) {
  return {name, "histogram", help, {}, buckets, {}};
}

std::vector<MetricInfo> Actor() {
  return {
      Counter("datacom_actor_env_steps_total", "Environment steps taken"),
      Counter("datacom_actor_rows_total", "Transitions appended to the insert session"),
      Counter("datacom_actor_episodes_total", "Episodes finished"),
      Counter("datacom_actor_abandoned_episodes_total",
              "Episodes abandoned, by reason; evaluation episodes only when every attempt failed", "reason",
              {"invalid", "session"}),
      Counter("datacom_actor_wait_seconds_total", "Time the actor could not step, by what was missing", "reason",
              {"credit", "snapshot", "register"}),
      Gauge("datacom_actor_snapshot_age_seconds", "Time since the newest snapshot arrived; maximum over the members"),
      Gauge("datacom_actor_policy_lag_updates",
            "Updates that the acting policy is behind the newest known; maximum over the members"),
      Histogram("datacom_actor_safe_map_seconds", "Time of the acting rule (policy and safe map) per environment step",
                Microseconds()),
      Histogram("datacom_actor_step_seconds", "Time of the simulation per environment step", Microseconds()),
      Histogram("datacom_actor_filter_intervention",
                "Distance that the filter moved an action, in normalised units; one iteration in 64", ActionNorms()),
      Counter("datacom_actor_snapshots_discarded_total", "Snapshots that did not decode or did not fit"),
      Gauge("datacom_actor_environments", "Environments this process steps"),
  };
}

std::vector<MetricInfo> Replay() {
  return {
      Gauge("datacom_replay_rows", "Rows held for all members, by table", "table", {"main", "failure"}),
      Counter("datacom_replay_inserts_total", "Rows committed"),
      Counter("datacom_replay_duplicate_rows_total",
              "Rows received again after they were committed; acknowledged, not stored"),
      Counter("datacom_replay_rejected_rows_total", "Rows rejected, by reason", "reason", {"invalid", "gap", "credit"}),
      Counter("datacom_replay_episodes_total", "Training episodes, by how they ended", "state",
              {"finished", "abandoned"}),
      Gauge("datacom_replay_outstanding_rows", "Rows granted to actors and not yet inserted"),
      Gauge("datacom_replay_sessions", "Live actor sessions"),
      Histogram("datacom_replay_insert_seconds", "Time from a chunk's arrival to its commit", FastCalls()),
      Histogram("datacom_replay_draw_seconds", "Time to assemble the batches of all members", FastCalls()),
      Counter("datacom_replay_draws_total", "Draws answered"),
      Counter("datacom_replay_blocked_seconds_total", "Time in which the limiter blocked a side", "side",
              {"insert", "draw"}),
      Gauge("datacom_replay_samples_per_insert_error_ratio",
            "Relative error of updates per insert against the configured ratio; maximum over the members; 0 is exact"),
      Gauge("datacom_replay_disk_free_bytes", "Free space of the file system with the replay's files"),
  };
}

std::vector<MetricInfo> Learner() {
  return {
      Counter("datacom_learner_updates_total", "Updates of the whole population done by this process"),
      Counter("datacom_learner_pretrain_updates_total",
              "Pre-training updates of the whole population done by this process; not counted as updates"),
      Histogram("datacom_learner_update_seconds", "Time of an update of all members, including pre-training",
                SlowCalls()),
      Counter("datacom_learner_wait_seconds_total", "Time the update loop waited, by what it waited for", "reason",
              {"draw", "features"}),
      Counter("datacom_learner_snapshots_published_total", "Snapshots published, counted per member"),
      Counter("datacom_learner_checkpoints_total", "Checkpoints written"),
      Histogram("datacom_learner_checkpoint_seconds", "Time to write a checkpoint", Writes()),
      Gauge("datacom_learner_checkpoint_timestamp_seconds", "Unix time of the newest checkpoint; 0 before the first"),
      Gauge("datacom_learner_repeated_updates",
            "Updates made again because no checkpoint held them when the learner ended, over all its starts"),
      Gauge("datacom_learner_pending_evaluations", "Evaluation items not reported yet"),
      Gauge("datacom_learner_subscribers", "Open snapshot streams"),
      Gauge("datacom_learner_diverged_members", "Members frozen because a loss was not finite"),
      Gauge("datacom_learner_progress_ratio",
            "Updates done divided by the updates of the run; 1 = only evaluations are left"),
      Gauge("datacom_learner_disk_free_bytes", "Free space of the file system with the run's records"),
      {"datacom_learner_device_info", "gauge", "Always 1; the device that computes updates", {"device"}, {}, {}},
      Gauge("datacom_learner_threads", "Threads that compute updates on the CPU; with LibTorch they decode batches"),
      Gauge("datacom_learner_thread_wait_ratio",
            "Share of the time of updates in which these threads have nothing to do; 0 = all compute all the time"),
  };
}

std::vector<MetricInfo> Member() {
  return {
      {"datacom_member_info",
       "gauge",
       "Always 1; seed and setting of a member. Absent with more than 128 members",
       {"member", "seed", "label"},
       {},
       {}},
      Gauge("datacom_member_env_steps", "Environment steps used by this member's updates", "member"),
      Counter("datacom_member_episodes_total", "Training episodes finished", "member"),
      Counter("datacom_member_abandoned_episodes_total", "Training episodes abandoned because a step was invalid",
              "member"),
      Counter("datacom_member_violations_total", "Transitions with cost > 0 in finished training episodes", "member"),
      Counter("datacom_member_cost_total", "Sum of violation costs over finished training episodes", "member"),
      {"datacom_member_named_cost_total",
       "counter",
       "Sum of one named cost over finished training episodes; only of tasks with several costs",
       {"member", "cost"},
       {},
       {}},
      {"datacom_member_named_violations_total",
       "counter",
       "Transitions with one named cost > 0 in finished training episodes; only of tasks with several costs",
       {"member", "cost"},
       {},
       {}},
      Gauge("datacom_member_cost_budget", "Cost budget per episode, undiscounted (iqn_datacom: discounted)", "member"),
      Gauge("datacom_member_return", "Return of the newest finished training episode", "member"),
      Gauge("datacom_member_cvar", "Mean CVaR of the long-term cost over recent batches", "member"),
      Gauge("datacom_member_critic_runaway",
            "1: the critic loss of the newest epoch is over ten times the smallest of the ten epochs before it, or the "
            "temperature over thirty times its smallest",
            "member"),
      Gauge("datacom_member_shield_locked",
            "1: k was above 0 in more than half of the states of the newest epochs, over 10000 rows", "member"),
      Gauge("datacom_member_eval_shield_share",
            "Newest evaluation: share of steps in which the shield changes the action; NaN without a shield", "member"),
      Gauge("datacom_member_eval_discounted_return", "Newest evaluation: mean discounted return", "member"),
      Gauge("datacom_member_eval_max_violation", "Newest evaluation: mean over episodes of the largest violation",
            "member"),
      Gauge("datacom_member_eval_sum_cost", "Newest evaluation: mean cost sum per episode", "member"),
      Gauge("datacom_member_eval_violating_steps", "Newest evaluation: mean number of steps with cost > 0 per episode",
            "member"),
      {"datacom_member_eval_named_cost",
       "gauge",
       "Newest evaluation: mean sum of one named cost per episode; only of tasks with several costs",
       {"member", "cost"},
       {},
       {}},
      Gauge("datacom_member_eval_abandoned_episodes",
            "Newest evaluation: episodes with an invalid simulator step in every attempt", "member"),
  };
}

// The gauges of statistics.
std::vector<MetricInfo> MemberStatistics() {
  std::vector<MetricInfo> gauges;
  for (const EpochStatistic& statistic : Statistics()) {
    if (!statistic.about().has_help()) continue;
    gauges.push_back(Gauge(statistic.gauge(), statistic.about().help(), "member"));
  }
  return gauges;
}

std::vector<MetricInfo> Everyone() {
  return {
      Counter("datacom_evaluator_episodes_total", "Evaluation episodes played"),
      Counter("datacom_evaluator_items_total", "Evaluation items processed, by result", "result",
              {"accepted", "stale", "failed"}),
      {"datacom_build_info",
       "gauge",
       "Always 1; build and role of the process",
       {"version", "revision", "role"},
       {},
       {}},
      Gauge("datacom_up_timestamp_seconds", "Unix time at which the process started"),
  };
}

}  // namespace

const std::vector<MetricInfo>& MetricTable() {
  static const auto* const kTable = [] {
    auto* table = new std::vector<MetricInfo>;
    for (const auto& part : {Actor(), Replay(), Learner(), Member(), MemberStatistics(), Everyone()})
      table->insert(table->end(), part.begin(), part.end());
    return table;
  }();
  return *kTable;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
