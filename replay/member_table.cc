#include "replay/member_table.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/base/status.h"
#include "common/transitions/draw_rows.h"
#include "replay/starts.h"

namespace datacom::replay {
namespace {

constexpr size_t kRangeBytes = 1 << 20;

ReplayLayout LayoutOf(const RowSchema& schema, const Options& options) {
  ReplayLayout layout = options.layout;
  layout.env_steps = options.limits.schedule.env_steps;
  layout.row_bytes = schema.stored_row_bytes();
  return layout;
}

}  // namespace

MemberTable::MemberTable(const RowSchema& schema, const Options& options, uint32_t member)
    : schema_(schema),
      offsets_(schema),
      layout_(LayoutOf(schema, options)),
      settings_(options.members[member]),
      member_(member),
      path_(absl::StrCat(options.folder, "/member_", member)),
      batch_(options.batch),
      failure_batch_(options.failure_batch),
      run_seed_(options.run_seed),
      episodes_(offsets_, options.discount),
      order_(schema, {options.limits.schedule.LastUpdate(), options.horizon}) {
  for (const Column& column : schema.stored()) column_offsets_.push_back(schema.offset(column.name));
  const size_t most = std::max(batch_, failure_batch_);
  numbers_.resize(most);
  pointers_.reserve(most);
}

absl::StatusOr<std::unique_ptr<MemberTable>> MemberTable::Open(const RowSchema& schema, const Options& options,
                                                               uint32_t member) {
  std::unique_ptr<MemberTable> table(new MemberTable(schema, options, member));
  const ReplayLayout& layout = table->layout_;
  Ring::Options ring;
  ring.run_id = options.run_id;
  ring.member = member;
  ring.schema_fingerprint = schema.fingerprint();
  ring.sync = options.sync;
  ring.guard = layout.guard;
  ring.path = table->path_ + ".rows";
  ring.record_bytes = layout.row_bytes;
  ring.kept = layout.kept_rows();
  if (!Ring::HasContent(ring.path) && Ring::HasContent(table->path_ + ".failures")) {  // rows are made first
    return absl::DataLossError(absl::StrCat("ring ", ring.path, " was missing or is empty, although the run has ",
                                            table->path_,
                                            ".failures; restore it from a copy, or start a new run folder"));
  }
  ASSIGN_OR_RETURN(table->rows_, Ring::Open(ring));
  ring.path = table->path_ + ".failures";
  ring.record_bytes = layout.failure_bytes();
  ring.kept = layout.kept_failures();
  if (!Ring::HasContent(ring.path)) {  // Open would make a new one
    RETURN_IF_ERROR(table->CheckAllRestored(table->CountFailures(table->rows_->first())));
  }
  ASSIGN_OR_RETURN(table->failures_, Ring::Open(ring));
  RETURN_IF_ERROR(table->Recover());
  return table;
}

uint64_t MemberTable::CountFailures(uint64_t from) const {
  uint64_t failures = 0;
  for (uint64_t number = from; number < rows_->cursor(); ++number) {
    failures += At<float>(rows_->record(number), offsets_.cost) > 0 ? 1 : 0;
  }
  return failures;
}

absl::Status MemberTable::CheckAllRestored(uint64_t failures) const {
  const uint64_t made = rows_->counter(kFailures);
  if (failures >= made || rows_->counter(kCountedUpTo) > rows_->cursor()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "ring ", path_, ".failures: ", made, " copies of rows with cost > 0 were made, only ", failures,
      " can be restored, and the rows of the others are overwritten; restore the file from a copy, or start a new run "
      "folder"));
}

absl::Status MemberTable::Recover() {
  if (rows_->cursor() > layout_.env_steps) {
    return absl::InvalidArgumentError(absl::StrCat("run.env_steps=", layout_.env_steps, ": ring ", path_,
                                                   ".rows already holds ", rows_->cursor(),
                                                   " rows; resume with at least as many steps"));
  }
  // Failures are committed after their rows: after a crash some may be missing, after a loss of power there may be more
  // failures than rows. To drop more of them than a commit has would bring back older ones that are overwritten.
  uint64_t failures = failures_->cursor();
  if (failures > rows_->cursor()) {
    return absl::DataLossError(
        absl::StrCat("ring ", path_, ".failures: its cursor is damaged; start a new run folder"));
  }
  while (failures > failures_->first() && At<uint64_t>(failures_->record(failures - 1), 0) >= rows_->cursor())
    --failures;
  if (const uint64_t newer = failures_->cursor() - failures; newer > layout_.guard) {
    return absl::DataLossError(absl::StrCat("ring ", path_, ".rows holds ", rows_->cursor(), " rows, and ", newer,
                                            " failures are newer; restore both from one copy, or start a new run "
                                            "folder"));
  }
  staged_ = rows_->cursor();
  staged_failures_ = failures;
  indexed_ = failures == 0 ? 0 : At<uint64_t>(failures_->record(failures - 1), 0) + 1;
  RETURN_IF_ERROR(CheckAllRestored(failures + CountFailures(std::max(rows_->first(), indexed_))));
  const uint64_t counted = std::min(rows_->counter(kCountedUpTo), rows_->cursor());
  for (uint64_t number = rows_->first(); number < rows_->cursor(); ++number) {
    const char* row = rows_->record(number);
    const auto sequence = At<uint64_t>(row, offsets_.sequence);
    if (sequence > number) {  // a session's rows are numbered from 0
      return absl::DataLossError(absl::StrCat("ring ", path_, ".rows: row ", number, " has sequence ", sequence,
                                              "; restore the file from a copy, or start a new run folder"));
    }
    episodes_.Feed(number, row);
    next_sequences_[At<uint32_t>(row, offsets_.session)] = sequence + 1;
    if (number + 1 == counted) episodes_.set_finished_count(rows_->counter(kFinishedEpisodes));
  }
  return absl::OkStatus();
}

absl::Status MemberTable::CheckStarts(const std::vector<uint64_t>& known) const {
  RETURN_IF_ERROR(CheckStart(absl::StrCat("ring ", path_, ".rows"), rows_->counter(kStart), known));
  return CheckStart(absl::StrCat("ring ", path_, ".failures"), failures_->counter(kStart), known);
}

absl::Status MemberTable::Complete(uint64_t start) {
  rows_->set_counter(kStart, start);
  failures_->set_counter(kStart, start);
  RETURN_IF_ERROR(failures_->Truncate(staged_failures_));
  for (uint64_t from = std::max(rows_->first(), indexed_); from < rows_->cursor(); from += layout_.guard) {
    Index(from, std::min(from + layout_.guard, rows_->cursor()));
    RETURN_IF_ERROR(failures_->Commit(staged_failures_));
  }
  return absl::OkStatus();
}

uint64_t MemberTable::NextSequence(uint32_t session) const {
  const auto found = next_sequences_.find(session);
  return found == next_sequences_.end() ? 0 : found->second;
}

void MemberTable::Index(uint64_t from, uint64_t to) {
  for (uint64_t number = from; number < to; ++number) {
    const char* row = rows_->record(number);
    if (!(At<float>(row, offsets_.cost) > 0)) continue;
    char* record = failures_->writable(staged_failures_++);
    std::memcpy(record, &number, kFailureHeaderBytes);
    std::memcpy(record + kFailureHeaderBytes, row, schema_.stored_row_bytes());
  }
}

void MemberTable::Transpose(const std::string& columns, uint32_t count, uint32_t from, uint32_t rows, uint64_t number,
                            uint32_t session, uint64_t sequence) {
  char* const first = rows_->writable(number);
  const size_t stride = schema_.stored_row_bytes();
  const char* column_data = columns.data();
  for (size_t c = 0; c < schema_.wire().size(); ++c) {
    const size_t bytes = schema_.wire()[c].bytes();
    const char* source = column_data + from * bytes;
    char* target = first + column_offsets_[c];
    if (bytes == 4) {  // copies of constant size compile to single moves
      for (uint32_t i = 0; i < rows; ++i, source += 4, target += stride) std::memcpy(target, source, 4);
    } else if (bytes == 8) {
      for (uint32_t i = 0; i < rows; ++i, source += 8, target += stride) std::memcpy(target, source, 8);
    } else if (bytes == 1) {
      for (uint32_t i = 0; i < rows; ++i, ++source, target += stride) *target = *source;
    } else {
      for (uint32_t i = 0; i < rows; ++i, source += bytes, target += stride) std::memcpy(target, source, bytes);
    }
    column_data += count * bytes;
  }
  char* row = first;
  for (uint32_t i = 0; i < rows; ++i, ++sequence, row += stride) {
    std::memcpy(row + offsets_.session, &session, sizeof session);
    std::memcpy(row + offsets_.sequence, &sequence, sizeof sequence);
  }
}

void MemberTable::Stage(uint32_t session, uint64_t sequence, const std::string& columns, uint32_t count, uint32_t from,
                        uint32_t to) {
  const uint64_t base = staged_;
  while (from < to) {
    const uint32_t part = static_cast<uint32_t>(std::min<uint64_t>(to - from, Ring::contiguous(staged_)));
    Transpose(columns, count, from, part, staged_, session, sequence);
    sequence += part;
    from += part;
    staged_ += part;
  }
  Index(base, staged_);
  for (uint64_t number = base; number < staged_; ++number) episodes_.Feed(number, rows_->record(number));
}

absl::Status MemberTable::Commit() {
  if (!Prepare()) return absl::OkStatus();
  RETURN_IF_ERROR(SyncRows());
  RETURN_IF_ERROR(SyncCursors());
  Finish();
  return absl::OkStatus();
}

bool MemberTable::Prepare() {
  if (staged_ == rows_->cursor()) return false;
  rows_->Prepare(staged_);
  failures_->Prepare(staged_failures_);
  prepared_ = {staged_, staged_failures_, episodes_.finished_count()};
  return true;
}

absl::Status MemberTable::SyncRows() const {
  RETURN_IF_ERROR(rows_->SyncRecords());
  return failures_->SyncRecords();
}

absl::Status MemberTable::SyncCursors() {
  RETURN_IF_ERROR(rows_->SyncCursor());
  if (prepared_.failures != failures_->cursor()) DATACOM_FAILPOINT("table.rows");
  RETURN_IF_ERROR(failures_->SyncCursor());
  DATACOM_FAILPOINT("table.failures");
  return absl::OkStatus();
}

void MemberTable::Finish() {
  rows_->Finish();
  failures_->Finish();
  rows_->set_counter(kFinishedEpisodes, prepared_.finished_episodes);
  rows_->set_counter(kFailures, prepared_.failures);
  rows_->set_counter(kCountedUpTo, prepared_.rows);
  // No draw that can still be answered needs episodes that ended before the oldest row.
  if (rows_->first() > 0) episodes_.Forget(rows_->first());
}

absl::Status MemberTable::Overwritten(uint64_t update, const std::string& what) const {
  return absl::FailedPreconditionError(absl::StrCat("update ", update, " of member ", member_, what,
                                                    " are overwritten: the learner resumed from further back than the "
                                                    "replay keeps; resume from one of the two newest checkpoints"));
}

absl::Status MemberTable::CheckReadable(uint64_t update, uint64_t oldest, uint64_t seen) const {
  if (oldest >= rows_->first()) return absl::OkStatus();
  return Overwritten(update,
                     absl::StrCat(" draws from rows ", oldest, " to ", seen, ", but rows below ", rows_->first()));
}

uint64_t MemberTable::FailuresBelow(uint64_t row) const {
  uint64_t low = failures_->first(), high = failures_->cursor();
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (At<uint64_t>(failures_->record(middle), 0) < row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void MemberTable::Gather(const std::vector<const char*>& rows, std::string* columns) const {
  // Prefetch into L2: it keeps several times as many misses in flight as L1, and cache misses dominate a draw's time.
  constexpr int kRead = 0, kSecondLevel = 2;
  const size_t row_bytes = schema_.stored_row_bytes();
  for (const char* row : rows) {
    for (size_t i = 0; i < row_bytes; i += 64) __builtin_prefetch(row + i, kRead, kSecondLevel);
    __builtin_prefetch(row + row_bytes - 1, kRead, kSecondLevel);  // rows need not start at a cache line
  }
  columns->resize(rows.size() * schema_.learning_row_bytes());
  char* out = columns->data();
  for (size_t c = 0; c < schema_.wire().size(); ++c) {
    const Column& column = schema_.wire()[c];
    if (!column.learning) continue;
    const size_t bytes = column.bytes(), offset = column_offsets_[c];
    if (bytes == sizeof(float)) {  // most columns: one value, copied without a call
      for (const char* row : rows) {
        std::memcpy(out, row + offset, sizeof(float));
        out += sizeof(float);
      }
      continue;
    }
    for (const char* row : rows) {
      std::memcpy(out, row + offset, bytes);
      out += bytes;
    }
  }
}

absl::Status MemberTable::Draw(uint64_t update, uint64_t seen, uint64_t seen_before, v1::MemberBatch* batch) {
  const uint64_t oldest = seen - std::min(seen, layout_.capacity);
  RETURN_IF_ERROR(CheckReadable(update, oldest, seen));
  const DrawKey key{run_seed_, settings_.seed, update};
  batch->set_rows_seen(seen);
  DrawMain(key, seen, layout_.Window(seen), batch_, numbers_.data());
  pointers_.clear();
  for (uint32_t i = 0; i < batch_; ++i) pointers_.push_back(rows_->record(numbers_[i]));
  Gather(pointers_, batch->mutable_main());
  const uint64_t failures = failure_batch_ == 0 ? 0 : FailuresBelow(seen);
  if (UseFailures(failures, layout_.failure_capacity, failure_batch_)) {
    if (failures - std::min(failures, layout_.failure_capacity) < failures_->first())
      return Overwritten(update, absl::StrCat(": failures below ", failures_->first()));
    DrawFailures(key, failures, layout_.failure_capacity, failure_batch_, numbers_.data());
    pointers_.clear();
    for (uint32_t i = 0; i < failure_batch_; ++i)
      pointers_.push_back(failures_->record(numbers_[i]) + kFailureHeaderBytes);
    Gather(pointers_, batch->mutable_failure());
  }
  AddEpisodes(seen_before, seen, oldest, batch);
  return absl::OkStatus();
}

absl::Status MemberTable::DrawNew(uint64_t update, uint64_t seen, uint64_t seen_before, RowInterval rows,
                                  v1::MemberBatch* batch) {
  RETURN_IF_ERROR(CheckReadable(update, seen_before, seen));
  batch->set_rows_seen(seen);
  batch->set_member(member_);
  batch->set_first_row(rows.from);
  batch->set_row_count(static_cast<uint32_t>(rows.to - rows.from));
  pointers_.clear();
  for (uint64_t number = rows.from; number < rows.to; ++number) pointers_.push_back(rows_->record(number));
  Gather(pointers_, batch->mutable_main());
  batch->mutable_places()->reserve(pointers_.size() * kPlaceBytes);
  for (const size_t offset : {offsets_.session, offsets_.environment, offsets_.episode, offsets_.step}) {
    for (const char* row : pointers_) batch->mutable_places()->append(row + offset, sizeof(uint32_t));
  }
  if (rows.to < seen) return absl::OkStatus();
  const uint64_t oldest = seen - std::min(seen, layout_.capacity);
  AddEpisodes(seen_before, seen, oldest, batch);
  return absl::OkStatus();
}

template <typename Visit>
void MemberTable::VisitRows(const EpisodeSummary& episode, const Visit& visit) const {
  for (uint64_t number = episode.first_row; number < episode.facts.last_row(); ++number) {
    const char* row = rows_->record(number);
    if (At<uint32_t>(row, offsets_.session) == episode.facts.session() &&
        At<uint32_t>(row, offsets_.environment) == episode.facts.environment())
      visit(row);
  }
}

void MemberTable::AddEpisodes(uint64_t after, uint64_t up_to, uint64_t oldest, v1::MemberBatch* batch) const {
  for (const EpisodeSummary& episode : episodes_.Finished(after, up_to)) AddEpisode(episode, oldest, batch);
  batch->set_abandoned(episodes_.Invalid(after, up_to));
  if (batch->abandoned() > 0) batch->set_fault(fault_);
}

void MemberTable::AddEpisode(const EpisodeSummary& summary, uint64_t oldest, v1::MemberBatch* batch) const {
  v1::Episode* episode = batch->add_episodes();
  *episode = summary.facts;
  if (!settings_.episode_rows || episode->last_row() - 1 <= settings_.delta_warmup || summary.first_row < oldest)
    return;
  const size_t width = schema_.obs_dim() * sizeof(float);
  std::string* observations = episode->mutable_observations();
  std::string* costs = episode->mutable_costs();
  observations->reserve((episode->length() + 1) * width);
  costs->assign(sizeof(float), '\0');  // costs[0] = 0: the cost of the state after a reset is unknown
  costs->reserve((episode->length() + 1) * sizeof(float));
  const char* newest = nullptr;
  VisitRows(summary, [&](const char* row) {
    observations->append(row + offsets_.observation, width);
    costs->append(row + offsets_.cost, sizeof(float));
    newest = row;
  });
  if (newest != nullptr) observations->append(newest + offsets_.next_observation, width);
}

std::string MemberTable::Actions(const EpisodeSummary& episode) const {
  std::string actions;
  VisitRows(episode,
            [&](const char* row) { actions.append(row + offsets_.executed, schema_.action_dim() * sizeof(float)); });
  return actions;
}

std::string MemberTable::Memory(const EpisodeSummary& episode) const {
  if (!schema_.has(kMemory)) return "";
  const size_t offset = schema_.offset(kMemory);
  std::string memory(PlaceOf(schema_.stored(), kMemory).bytes, '\0');
  VisitRows(episode, [&](const char* row) { std::memcpy(memory.data(), row + offset, memory.size()); });
  return memory;
}

absl::Status MemberTable::ReadRange(uint64_t from, uint64_t to, v1::RowRange* range,
                                    std::vector<uint32_t>* sessions) const {
  if (to > rows_->cursor() || from > to) {
    return absl::OutOfRangeError(
        absl::StrCat("rows ", from, " to ", to, " of member ", member_, ": ", rows_->cursor(), " are committed"));
  }
  if (from < rows_->first()) {
    return absl::NotFoundError(absl::StrCat("row ", from, " of member ", member_, " is overwritten; rows ",
                                            rows_->first(), " to ", rows_->cursor(), " are held"));
  }
  const uint64_t count = std::min<uint64_t>(to - from, std::max<uint64_t>(1, kRangeBytes / schema_.stored_row_bytes()));
  range->set_from(from);
  range->set_row_count(static_cast<uint32_t>(count));
  range->clear_columns();
  for (size_t c = 0; c < schema_.stored().size(); ++c) {
    for (uint64_t i = 0; i < count; ++i) {
      range->mutable_columns()->append(rows_->record(from + i) + column_offsets_[c], schema_.stored()[c].bytes());
    }
  }
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t session = At<uint32_t>(rows_->record(from + i), offsets_.session);
    if (sessions->empty() || sessions->back() != session) sessions->push_back(session);
  }
  std::sort(sessions->begin(), sessions->end());
  sessions->erase(std::unique(sessions->begin(), sessions->end()), sessions->end());
  return absl::OkStatus();
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
