// The calls of Store for the learner (declared in store.h).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "replay/store.h"

namespace datacom::replay {

void Store::SetLearnerConnected(bool connected) {
  MutexLock lock(&mutex_);
  learners_ += connected ? 1 : -1;
  waiting_draw_ = 0;
}

absl::Status Store::Announce(uint64_t completed_update, uint32_t incarnation) {
  MutexLock lock(&mutex_);
  if (incarnation < learner_incarnation_) {
    return absl::AlreadyExistsError(absl::StrCat("start ", incarnation, " of the learner: start ", learner_incarnation_,
                                                 " draws now; end the older process"));
  }
  learner_incarnation_ = incarnation;
  if (completed_update_ == completed_update) return absl::OkStatus();
  if (completed_update > limiter_.schedule().LastUpdate()) {
    return absl::InvalidArgumentError(absl::StrCat("completed update ", completed_update, ": the run has updates 1 to ",
                                                   limiter_.schedule().LastUpdate()));
  }
  const uint64_t seen = completed_update == 0 ? 0 : limiter_.schedule().RowsSeen(completed_update);
  for (uint32_t member = 0; member < members_.size(); ++member) {
    if (members_[member]->inserted() >= seen) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the learner has completed update ", completed_update, ", which has seen ", seen,
                     " rows of member ", member, ", but ", options_.folder, " holds ", members_[member]->inserted(),
                     ": the replay is older than the checkpoint; restore both from one copy of the run folder"));
  }
  completed_update_ = completed_update;
  GrantAll();
  return absl::OkStatus();
}

bool Store::Ready(uint64_t update) const {
  MutexLock lock(&mutex_);
  const uint64_t seen = limiter_.schedule().RowsSeen(update);
  return std::all_of(members_.begin(), members_.end(), [&](const auto& table) { return table->inserted() >= seen; });
}

absl::Status Store::Draw(uint64_t update, v1::DrawReply* reply, DrawPlace* place) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(health_);  // a failed commit may have left rows without their failures and episodes
  if (update == 0 || update > limiter_.schedule().LastUpdate()) {
    return absl::InvalidArgumentError(
        absl::StrCat("draw of update ", update, ": the run has updates 1 to ", limiter_.schedule().LastUpdate()));
  }
  const uint64_t seen = limiter_.schedule().RowsSeen(update);
  const uint64_t before =
      update == 1 ? 0 : limiter_.schedule().RowsSeen(update - 1);  // update 1 gets all earlier episodes
  waiting_draw_ = update;
  for (const auto& table : members_) {
    if (table->inserted() < seen)
      return absl::UnavailableError(absl::StrCat("update ", update, " needs ", seen, " rows"));
  }
  waiting_draw_ = 0;
  reply->set_update(update);
  RETURN_IF_ERROR(options_.new_rows ? DrawNewRows(update, seen, before, reply, place)
                                    : DrawSample(update, seen, before, reply));
  if (!reply->more()) ++counters_.draws;
  return absl::OkStatus();
}

v1::MemberBatch* Store::AddBatch(uint64_t update, uint32_t member, v1::DrawReply* reply) const {
  v1::MemberBatch* batch = reply->add_batches();
  batch->set_inserted(std::min(members_[member]->inserted(), limiter_.Allowed(update - 1)));
  batch->set_lanes(credit_.lanes(member));
  return batch;
}

absl::Status Store::DrawSample(uint64_t update, uint64_t seen, uint64_t before, v1::DrawReply* reply) {
  for (uint32_t member = 0; member < members_.size(); ++member) {
    RETURN_IF_ERROR(members_[member]->Draw(update, seen, before, AddBatch(update, member, reply)));
  }
  return absl::OkStatus();
}

absl::Status Store::DrawNewRows(uint64_t update, uint64_t seen, uint64_t before, v1::DrawReply* reply,
                                DrawPlace* place) {
  uint64_t room = std::max<uint64_t>(1, kNewRowsBytes / (schema_.learning_row_bytes() + kPlaceBytes));
  for (; place->member < members_.size(); ++place->member, place->rows = 0) {
    const uint64_t from = before + place->rows, rows = std::min(room, seen - from);
    if (rows == 0 && from < seen) break;
    v1::MemberBatch* batch = AddBatch(update, place->member, reply);
    RETURN_IF_ERROR(members_[place->member]->DrawNew(update, seen, before, {from, from + rows}, batch));
    room -= rows;
    place->rows += rows;
    if (from + rows < seen) break;
  }
  reply->set_more(place->member < members_.size());
  return absl::OkStatus();
}

}  // namespace datacom::replay
