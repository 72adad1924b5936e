#include "replay/counters.h"

#include <algorithm>
#include <cmath>

namespace datacom::replay {
namespace {

constexpr double kRateWindowSeconds = 10;
constexpr uint64_t kMostClaimedRows = 1 << 20;

}  // namespace

Statistics::Statistics(uint32_t members, const Clock* clock)
    : clock_(clock),
      started_(clock->Now()),
      rejected_(members),
      duplicates_(members),
      rows_rate_(clock, kRateWindowSeconds) {}

void Statistics::CountDuplicates(uint32_t member, uint64_t rows) {
  totals_.duplicates += rows;
  duplicates_[member] += rows;
}

void Statistics::CountRejected(const v1::Chunk& chunk, absl::StatusCode why) {
  const uint64_t rows = std::min<uint64_t>(chunk.row_count(), kMostClaimedRows);  // the sender's claim, bounded
  (why == absl::StatusCode::kOutOfRange          ? totals_.rejected_gap
   : why == absl::StatusCode::kResourceExhausted ? totals_.rejected_credit
                                                 : totals_.rejected_invalid) += rows;
  if (chunk.member() < rejected_.size()) rejected_[chunk.member()] += rows;
}

StoreCounters Statistics::Counters(const Tables& tables, const Draws& draws) const {
  StoreCounters counters = totals_;
  counters.draws = draws.answered();
  counters.learner_waits = draws.waiting() > 0;
  const auto& living = tables.sessions().living();
  counters.sessions = living.size();
  counters.actors_wait =
      std::any_of(living.begin(), living.end(), [](const auto& entry) { return entry.second.has_no_credit; });
  const auto completed = static_cast<double>(draws.completed_update());
  for (uint32_t member = 0; member < tables.members(); ++member) {
    const MemberTable& table = tables.member(member);
    counters.held += table.held();
    counters.failures += table.failures();
    counters.finished_episodes += table.episodes().finished_count();
    counters.abandoned_episodes += table.episodes().abandoned_count();
    counters.outstanding += tables.sessions().Outstanding(member);
    const uint64_t due =
        tables.schedule().UpdatesAt(table.inserted());  // an update is not late until all rows are there
    if (due == 0 || completed == 0) continue;
    counters.ratio_error = std::max(counters.ratio_error, std::abs(completed / static_cast<double>(due) - 1));
  }
  return counters;
}

void Statistics::Fill(const Tables& tables, const Draws& draws, v1::ReplayInfo* info) const {
  const uint64_t completed = draws.completed_update();
  info->set_completed_update(completed);
  info->set_learner_connected(draws.learner_connected());
  info->set_rows_per_second(rows_rate_.rate());
  info->set_uptime_seconds(Seconds(clock_->Now() - started_));
  for (uint32_t i = 0; i < tables.members(); ++i) {
    const MemberTable& table = tables.member(i);
    v1::MemberInfo* member = info->add_members();
    member->set_member(i);
    member->set_inserted(table.inserted());
    member->set_allowed(tables.limiter().Allowed(completed));
    member->set_outstanding(tables.sessions().Outstanding(i));
    member->set_failures(table.failures());
    member->set_episodes(table.episodes().finished_count());
    member->set_env_steps(tables.schedule().env_steps);
    const uint64_t start = tables.schedule().min_size;
    if (table.inserted() > start)
      member->set_samples_per_insert(static_cast<double>(completed) / (table.inserted() - start));
    member->set_rejected_rows(rejected_[i]);
    member->set_duplicate_rows(duplicates_[i]);
    member->set_lanes(tables.lanes(i));
  }
  for (const auto& [number, session] : tables.sessions().living()) {
    v1::SessionInfo* to = info->add_sessions();
    to->set_session(number);
    to->set_actor(session.actor);
    to->set_environments(session.environments);
    to->set_connected(session.connected());
    *to->mutable_assignment() = session.Assigned();
    to->set_rows(session.rows);
  }
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
