#include "replay/draws.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom::replay {

Draws::Draws(Tables* tables, const RowSchema& schema, const Options& options)
    : tables_(*tables),
      new_rows_(options.new_rows),
      sample_bytes_((uint64_t{options.batch} + options.failure_batch) * schema.learning_row_bytes()),
      rows_per_reply_(std::max<uint64_t>(1, kNewRowsBytes / (schema.learning_row_bytes() + kPlaceBytes))) {}

void Draws::SetLearnerConnected(bool connected) {
  learners_ += connected ? 1 : -1;
  waiting_ = 0;
}

absl::Status Draws::Announce(uint64_t completed_update, uint32_t incarnation) {
  // Without a connected learner any start may draw: a number that a stranger made up locks nobody out.
  if (learners_ > 0 && incarnation < incarnation_) {
    return absl::AlreadyExistsError(absl::StrCat("start ", incarnation, " of the learner: start ", incarnation_,
                                                 " draws now; end the older process"));
  }
  if (learners_ > 0 && incarnation - incarnation_ > kMostSkippedStarts) {
    return absl::InvalidArgumentError(absl::StrCat("start ", incarnation, " of the learner: start ", incarnation_,
                                                   " draws now, and no start skips more than ", kMostSkippedStarts));
  }
  incarnation_ = incarnation;
  if (completed_update_ == completed_update) return absl::OkStatus();
  if (completed_update > tables_.schedule().LastUpdate()) {
    return absl::InvalidArgumentError(absl::StrCat("completed update ", completed_update, ": the run has updates 1 to ",
                                                   tables_.schedule().LastUpdate()));
  }
  const uint64_t seen = completed_update == 0 ? 0 : tables_.schedule().RowsSeen(completed_update);
  for (uint32_t member = 0; member < tables_.members(); ++member) {
    const uint64_t held = tables_.member(member).inserted();
    if (held >= seen) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the learner has completed update ", completed_update, ", which has seen ", seen,
                     " rows of member ", member, ", but ", tables_.folder(), " holds ", held,
                     ": the replay is older than the checkpoint; restore both from one copy of the run folder"));
  }
  completed_update_ = completed_update;
  return absl::OkStatus();
}

absl::Status Draws::Draw(uint64_t update, v1::DrawReply* reply, DrawPlace* place) {
  const UpdateSchedule& schedule = tables_.schedule();
  if (update == 0 || update > schedule.LastUpdate()) {
    return absl::InvalidArgumentError(
        absl::StrCat("draw of update ", update, ": the run has updates 1 to ", schedule.LastUpdate()));
  }
  const uint64_t seen = schedule.RowsSeen(update);
  const uint64_t before = update == 1 ? 0 : schedule.RowsSeen(update - 1);  // update 1 gets all earlier episodes
  if (!tables_.AllHold(seen)) {
    waiting_ = update;
    return absl::UnavailableError(absl::StrCat("update ", update, " needs ", seen, " rows"));
  }
  waiting_ = 0;
  reply->set_update(update);
  RETURN_IF_ERROR(new_rows_ ? DrawNewRows(update, seen, before, reply, place)
                            : DrawSample(update, seen, before, reply, place));
  if (!reply->more()) ++answered_;
  return absl::OkStatus();
}

v1::MemberBatch* Draws::AddBatch(uint64_t update, uint32_t member, v1::DrawReply* reply) const {
  v1::MemberBatch* batch = reply->add_batches();
  batch->set_inserted(std::min(tables_.member(member).inserted(), tables_.limiter().Allowed(update - 1)));
  batch->set_lanes(tables_.lanes(member));
  return batch;
}

absl::Status Draws::DrawSample(uint64_t update, uint64_t seen, uint64_t before, v1::DrawReply* reply,
                               DrawPlace* place) {
  const uint64_t most = std::max<uint64_t>(1, kMaxDrawBytes / std::max<uint64_t>(1, sample_bytes_));
  for (uint64_t count = 0; count < most && place->member < tables_.members(); ++count, ++place->member) {
    v1::MemberBatch* const batch = AddBatch(update, place->member, reply);
    RETURN_IF_ERROR(tables_.member(place->member).Draw(update, seen, before, batch));
  }
  reply->set_more(place->member < tables_.members());
  return absl::OkStatus();
}

absl::Status Draws::DrawNewRows(uint64_t update, uint64_t seen, uint64_t before, v1::DrawReply* reply,
                                DrawPlace* place) {
  uint64_t room = rows_per_reply_;
  for (; place->member < tables_.members(); ++place->member, place->rows = 0) {
    const uint64_t from = before + place->rows, rows = std::min(room, seen - from);
    if (rows == 0 && from < seen) break;
    v1::MemberBatch* batch = AddBatch(update, place->member, reply);
    RETURN_IF_ERROR(tables_.member(place->member).DrawNew(update, seen, before, {from, from + rows}, batch));
    room -= rows;
    place->rows += rows;
    if (from + rows < seen) break;
  }
  reply->set_more(place->member < tables_.members());
  return absl::OkStatus();
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
