#include "deploy/tools/verify/check_rings.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/records/ledger.h"
#include "common/safety/safe_map.h"
#include "common/transitions/replay_layout.h"
#include "common/transitions/row_schema.h"
#include "deploy/tools/verify/run.h"
#include "replay/member_table.h"
#include "replay/ring.h"
#include "replay/row_offsets.h"

namespace datacom::verify {
namespace {

// The failure ring of a member in memory: the number of each copied row and a checksum of the copy. Rows are compared
// with it in ascending order. Not thread-safe.
class FailureCopies {
 public:
  // Reads the ring (null: unknown) and reports damage. `rows`: the ring of rows, whose counters say how many copies
  // were made.
  FailureCopies(VerifiedRun* run, std::string file, const replay::Ring* ring, const replay::Ring& rows,
                Report::Repair repair);

  // Before the first row and after rows that are not known: copies of rows below `row` are not compared.
  void SkipTo(uint64_t row);
  // A held row, `row_bytes` long.
  void Compare(uint64_t row, bool failed, absl::string_view bytes);
  void End(uint64_t end);  // `end`: the number after the last row
  uint64_t size() const { return copies_.size(); }

 private:
  struct Copy {
    uint64_t row = 0;
    uint32_t crc = 0;
    uint64_t record = 0;  // its number in the ring
  };
  void Read(const replay::Ring& ring);
  void AddBlock(uint64_t from, uint64_t record_bytes, const std::string& records);
  void Damage(absl::string_view what);

  VerifiedRun* const run_;
  const std::string file_;
  const uint64_t complete_below_;  // rows with cost > 0 below it have their copies
  const uint64_t made_;            // copies of these rows
  Report::Repair repair_;          // repairs the whole file; given with the first finding
  bool sound_ = false;             // every held record was read
  uint64_t complete_from_ = 0;     // older copies were overwritten
  std::vector<Copy> copies_;
  size_t next_ = 0;
};

FailureCopies::FailureCopies(VerifiedRun* run, std::string file, const replay::Ring* ring, const replay::Ring& rows,
                             Report::Repair repair)
    : run_(run),
      file_(std::move(file)),
      complete_below_(rows.counter(replay::kCountedUpTo)),
      made_(rows.counter(replay::kFailures)),
      repair_(std::move(repair)) {
  if (ring != nullptr) Read(*ring);
}

void FailureCopies::Damage(absl::string_view what) {
  run_->report->Damage(file_, what, std::exchange(repair_, nullptr));
}

void FailureCopies::Read(const replay::Ring& ring) {
  const absl::StatusOr<uint64_t> end = ring.StoredCursor();
  if (!end.ok()) return Damage(end.status().message());
  sound_ = true;
  if (*end < made_) {
    Damage(absl::StrCat("record ", *end, ": the ring ends, but ", made_, " copies of rows with cost > 0 were made"));
  }
  const uint64_t first = *end - std::min(*end, ring.kept());
  bool cut = first > 0;
  std::string records;
  for (uint64_t block = first / kRingBlockRecords; block * kRingBlockRecords < *end; ++block) {
    const absl::Status copied = ring.CopyBlock(block, *end, &records);
    if (absl::IsOutOfRange(copied)) {
      cut = true;
      continue;
    }
    if (!copied.ok()) {
      sound_ = false;
      Damage(copied.message());
      continue;
    }
    const uint64_t from = std::max(first, block * kRingBlockRecords);
    records.erase(0, (from - block * kRingBlockRecords) * ring.record_bytes());
    AddBlock(from, ring.record_bytes(), records);
  }
  if (cut) complete_from_ = copies_.empty() ? std::numeric_limits<uint64_t>::max() : copies_.front().row;
}

void FailureCopies::AddBlock(uint64_t from, uint64_t record_bytes, const std::string& records) {
  for (uint64_t i = 0; (i + 1) * record_bytes <= records.size(); ++i) {
    const char* record = records.data() + i * record_bytes;
    const uint64_t row = At<uint64_t>(record, 0);
    if (!copies_.empty() && row <= copies_.back().row) {
      Damage(
          absl::StrCat("record ", from + i, ": copies row ", row, ", the record before it row ", copies_.back().row));
      sound_ = false;
      continue;
    }
    const absl::string_view bytes(record + kFailureHeaderBytes, record_bytes - kFailureHeaderBytes);
    copies_.push_back({row, Crc32c(bytes), from + i});
  }
}

void FailureCopies::SkipTo(uint64_t row) {
  while (next_ < copies_.size() && copies_[next_].row < row) ++next_;
}

void FailureCopies::Compare(uint64_t row, bool failed, absl::string_view bytes) {
  const bool copied = next_ < copies_.size() && copies_[next_].row == row;
  if (copied) {
    const Copy& copy = copies_[next_++];
    if (!failed || copy.crc != Crc32c(bytes))
      Damage(absl::StrCat("record ", copy.record, ": differs from row ", row, ", which it copies"));
  } else if (failed && sound_ && row >= complete_from_ && row < complete_below_) {
    Damage(absl::StrCat("row ", row, " has cost > 0 and no copy"));
  }
}

void FailureCopies::End(uint64_t end) {
  SkipTo(end);
  if (next_ == copies_.size()) return;
  Damage(absl::StrCat("record ", copies_[next_].record, ": copies row ", copies_[next_].row, ", the member has ", end,
                      " rows"));
}

std::string RowsFile(uint32_t member) { return absl::StrCat("replay/member_", member, ".rows"); }
std::string FailuresFile(uint32_t member) { return absl::StrCat("replay/member_", member, ".failures"); }

std::unique_ptr<const replay::Ring> OpenRing(VerifiedRun* run, uint32_t member, const std::string& file,
                                             uint64_t record_bytes, Report::Repair repair) {
  absl::StatusOr<std::unique_ptr<const replay::Ring>> ring = replay::Ring::OpenShared(
      {.path = run->Path(file), .schema_fingerprint = run->schema.fingerprint(), .record_bytes = record_bytes});
  if (ring.ok()) {
    if (run->settings.run_id.empty()) run->settings.run_id = (*ring)->run_id();
    const absl::Status owner = (*ring)->CheckBelongsTo(run->settings.run_id, member);
    if (!owner.ok()) run->report->Damage(file, owner.message());
    return *std::move(ring);
  }
  // The replay creates its files when it starts, before an actor can register.
  if (run->has_rows()) run->report->Damage(file, ring.status().message(), std::move(repair));
  return nullptr;
}

// Costs are equal when their bits are, as a cost that is not a number has to equal itself.
bool SamePlaceAndCost(const LedgerStep& a, const LedgerStep& b) {
  return std::tie(a.session, a.environment, a.episode, a.step) ==
             std::tie(b.session, b.environment, b.episode, b.step) &&
         std::bit_cast<uint32_t>(a.cost) == std::bit_cast<uint32_t>(b.cost);
}

// Reads the rows of one member in order.
class MemberPass {
 public:
  MemberPass(VerifiedRun* run, uint32_t member, const MemberRings& rings, LedgerState* ledger, EpisodeRecords* episodes)
      : run_(run),
        member_(member),
        rings_(rings),
        ring_(*rings.rows),
        offsets_(run->schema),
        absorbing_(run->schema.offset("absorbing")),
        one_policy_(run->settings.limits.max_policy_lag == 0),
        ledger_(ledger->files[member].get()),
        violations_(ledger->violations[member]),
        episodes_(episodes),
        tracker_(std::in_place, offsets_, run->settings.discount) {}

  HeldSessions Go();
  uint64_t held() const { return held_; }
  uint64_t blocks() const { return blocks_; }
  uint64_t copies() const { return copies_; }

 private:
  bool Begin(uint64_t* end);
  void Block(uint64_t from, const std::string& records, FailureCopies* copies);
  void Skip(uint64_t to, FailureCopies* copies);
  void CheckOrder(uint64_t number, const char* row, const LedgerStep& at);
  void CheckPolicy(uint64_t number, const char* row);
  void CheckLedger(uint64_t number, const char* row, const LedgerStep& at, const LedgerStep& step);
  void CheckViolation(uint64_t number, const char* row, const LedgerStep& at);
  void CheckEpisode(uint64_t number, const char* row, const LedgerStep& at);
  void CheckFinished(uint64_t after, uint64_t up_to);
  void Damage(uint64_t number, const std::string& what) {
    run_->report->Damage(RowsFile(member_), absl::StrCat("row ", number, ": ", what));
  }

  VerifiedRun* const run_;
  const uint32_t member_;
  const MemberRings& rings_;
  const replay::Ring& ring_;
  const replay::RowOffsets offsets_;
  const size_t absorbing_;
  const bool one_policy_;  // the policy that acts follows from the row (replay/limiter.h)
  StepReader* const ledger_;
  const std::vector<SeenViolation>& violations_;
  EpisodeRecords* const episodes_;
  std::optional<replay::EpisodeTracker> tracker_;
  HeldSessions sessions_;
  std::unordered_map<uint32_t, uint64_t> next_sequence_;
  size_t next_violation_ = 0;
  uint64_t held_ = 0, blocks_ = 0, copies_ = 0;
  uint64_t known_from_ = 0;  // episodes that began later were read whole
};

bool MemberPass::Begin(uint64_t* end) {
  const absl::StatusOr<uint64_t> stored = ring_.StoredCursor();
  if (!stored.ok()) {
    run_->report->Damage(RowsFile(member_), stored.status().message());
    return false;
  }
  *end = stored.value();
  const uint64_t steps = run_->updates().env_steps;
  if (*end > steps) {
    run_->report->Damage(RowsFile(member_), absl::StrCat("row ", *end - 1, ": the run has ", steps, " steps"));
  }
  const uint64_t recorded = ledger_ == nullptr ? 0 : ledger_->records();
  if (recorded > *end) {
    run_->report->Damage(RowsFile(member_), absl::StrCat("row ", *end, ": missing; the ring is older than the ledger, ",
                                                         "which has ", recorded, " steps of member ", member_));
  }
  return true;
}

HeldSessions MemberPass::Go() {
  // The failure ring first: its copies are of rows that are committed by then.
  FailureCopies copies(run_, FailuresFile(member_), rings_.failures.get(), ring_,
                       ring_.first() == 0 ? RebuildFailures(*run_, member_) : nullptr);
  uint64_t end = 0;
  if (!Begin(&end)) return sessions_;
  const uint64_t first = end - std::min(end, ring_.kept());
  sessions_.known = true;
  sessions_.end = end;
  sessions_.from_start = first == 0;
  if (first > 0) Skip(first, &copies);
  std::string records;
  for (uint64_t block = first / kRingBlockRecords; block * kRingBlockRecords < end; ++block) {
    const uint64_t from = std::max(first, block * kRingBlockRecords);
    const absl::Status copied = ring_.CopyBlock(block, end, &records);
    if (!copied.ok()) {
      if (!absl::IsOutOfRange(copied)) {
        run_->report->Damage(RowsFile(member_), copied.message());
        sessions_.known = false;
      }
      Skip(std::min(end, (block + 1) * kRingBlockRecords), &copies);
      continue;
    }
    records.erase(0, (from - block * kRingBlockRecords) * ring_.record_bytes());
    if (++blocks_ % 256 == 0) run_->progress->Tell(absl::StrCat("rows of member ", member_), from - first, end - first);
    Block(from, records, &copies);
  }
  copies.End(end);
  copies_ = copies.size();
  sessions_.next_sequence.insert(next_sequence_.begin(), next_sequence_.end());
  return std::move(sessions_);
}

void MemberPass::Skip(uint64_t to, FailureCopies* copies) {
  copies->SkipTo(to);
  tracker_.emplace(offsets_, run_->settings.discount);
  next_sequence_.clear();
  sessions_.from_start = false;
  known_from_ = to;
}

void MemberPass::Block(uint64_t from, const std::string& records, FailureCopies* copies) {
  const uint64_t bytes = ring_.record_bytes(), count = records.size() / bytes;
  uint64_t recorded = 0;
  if (ledger_ != nullptr) recorded = ledger_->Read(from, count).value_or(0);
  for (uint64_t i = 0; i < count; ++i) {
    const char* row = records.data() + i * bytes;
    const uint64_t number = from + i;
    const LedgerStep at{At<uint32_t>(row, offsets_.session),
                        At<uint32_t>(row, offsets_.environment),
                        At<uint32_t>(row, offsets_.episode),
                        At<uint32_t>(row, offsets_.step),
                        At<float>(row, offsets_.cost),
                        0,
                        {}};
    CheckOrder(number, row, at);
    if (one_policy_) CheckPolicy(number, row);
    if (i < recorded) {
      if (const auto step = ledger_->Step(number); step.ok()) CheckLedger(number, row, at, **step);
    }
    if (at.cost > 0) CheckViolation(number, row, at);
    copies->Compare(number, at.cost > 0, absl::string_view(row, bytes));
    tracker_->Feed(number, row);
    CheckEpisode(number, row, at);
  }
  held_ += count;
  CheckFinished(from, from + count);
}

void MemberPass::CheckOrder(uint64_t number, const char* row, const LedgerStep& at) {
  const std::string wrong = WrongPlace(at, tracker_->Newest(at.session, at.environment), known_from_ == 0);
  if (!wrong.empty()) Damage(number, wrong);
  const auto sequence = At<uint64_t>(row, offsets_.sequence);
  const auto [found, is_new] = next_sequence_.try_emplace(at.session, sessions_.from_start ? 0 : sequence);
  if (found->second != sequence) {
    Damage(number,
           absl::StrCat("sequence ", sequence, " of session ", at.session, ", ", found->second, " is expected"));
  }
  found->second = sequence + 1;
}

void MemberPass::CheckPolicy(uint64_t number, const char* row) {
  const UpdateSchedule& updates = run_->updates();
  const uint64_t due = std::min(updates.LastUpdate(), updates.UpdatesAt(number));
  const auto acted = At<uint64_t>(row, offsets_.policy_update);
  if (acted != due) Damage(number, absl::StrCat("acted by the policy of update ", acted, ", not of update ", due));
}

void MemberPass::CheckLedger(uint64_t number, const char* row, const LedgerStep& at, const LedgerStep& step) {
  std::string what;
  if (!SamePlaceAndCost(at, step)) {
    what = absl::StrCat(Name(at), ", cost ", at.cost, "; the ledger has ", Name(step), ", cost ", step.cost);
  } else if (std::memcmp(step.execution.data(), row + offsets_.executed, step.execution.size() * sizeof(float)) != 0) {
    what = "the executed action differs from the ledger's";
  } else {
    const auto floats = [row](size_t offset) { return reinterpret_cast<const float*>(row + offset); };
    const uint32_t check =
        StepCheck(floats(offsets_.observation), floats(offsets_.next_observation),
                  static_cast<int>(run_->schema.obs_dim()), At<float>(row, offsets_.reward), row[absorbing_] != 0);
    if (check != step.check) what = "observations or reward differ from the ledger's check";
  }
  if (what.empty()) return;
  Damage(number, what);
  run_->report->Damage(ledger::StepsPath(member_),
                       absl::StrCat("record ", number, ": differs from row ", number, " of ", RowsFile(member_)));
}

void MemberPass::CheckViolation(uint64_t number, const char* row, const LedgerStep& at) {
  while (next_violation_ < violations_.size() && violations_[next_violation_].row < number) ++next_violation_;
  if (next_violation_ == violations_.size() || violations_[next_violation_].row != number) return;
  const SeenViolation& seen = violations_[next_violation_++];
  const RowSchema& schema = run_->schema;
  const auto floats = [&](absl::string_view column) {
    std::vector<float> values(schema.action_dim());
    std::memcpy(values.data(), row + schema.offset(column), values.size() * sizeof(float));
    return values;
  };
  LedgerViolation violation = ViolationOf(member_, run_->settings.members[member_].seed, number, at);
  violation.id = seen.id;
  violation.policy_version = At<uint64_t>(row, offsets_.policy_update);
  if (schema.has(kCvar) && schema.has(kDelta)) {
    const float cvar = At<float>(row, schema.offset(kCvar)), delta = At<float>(row, schema.offset(kDelta));
    violation.judgement = {delta, cvar, static_cast<float>(SafeMapSlack(static_cast<double>(cvar) - delta))};
  }
  violation.raw_action = floats(schema.raw_column());
  violation.executed_action = floats(schema.executed_column());
  if (ViolationChecksum(violation) == seen.crc) return;
  run_->report->Damage(ledger::kViolationsPath,
                       absl::StrCat("line ", seen.id + 1, ": differs from row ", number, " of ", RowsFile(member_)));
}

// A row of episodes.csv names the row that ended its episode.
void MemberPass::CheckEpisode(uint64_t number, const char* row, const LedgerStep& at) {
  const EpisodeRow* episode = episodes_->Find(member_, number + 1);
  if (episode == nullptr) return;
  if (At<uint8_t>(row, offsets_.last) != 0 && episode->session == at.session &&
      episode->environment == at.environment && episode->episode == at.episode && episode->length == at.step + 1)
    return;
  run_->report->Damage(kEpisodesFile, absl::StrCat("line ", episode->line(), ": row ", number, " of ",
                                                   RowsFile(member_), " is not the last of this episode"));
}

void MemberPass::CheckFinished(uint64_t after, uint64_t up_to) {
  for (const auto& [episode, first_row] : tracker_->Finished(after, up_to)) {
    if (!episodes_->known()) break;
    if (const EpisodeRow* recorded = episodes_->Find(member_, episode.last_row())) {
      episodes_->CompareWithEpisode(member_, *recorded, episode);
    } else if (episode.last_row() <= run_->RowsLearned() && first_row >= known_from_) {
      run_->report->Damage(kEpisodesFile,
                           absl::StrCat("no line for episode ", episode.episode(), " of member ", member_, ", session ",
                                        episode.session(), ", environment ", episode.environment(),
                                        ", which ended with row ", episode.last_row() - 1));
    }
  }
  tracker_->Forget(up_to);
}

}  // namespace

std::vector<MemberRings> OpenRings(VerifiedRun* run) {
  std::vector<MemberRings> all(run->members());
  const uint64_t row_bytes = run->schema.stored_row_bytes();
  for (uint32_t member = 0; member < run->members(); ++member) {
    MemberRings& rings = all[member];
    rings.rows = OpenRing(run, member, RowsFile(member), row_bytes, nullptr);
    const bool all_held = rings.rows != nullptr && rings.rows->first() == 0;
    rings.failures = OpenRing(run, member, FailuresFile(member), row_bytes + kFailureHeaderBytes,
                              all_held ? RebuildFailures(*run, member) : nullptr);
  }
  return all;
}

std::vector<uint64_t> FirstRows(const std::vector<MemberRings>& rings) {
  std::vector<uint64_t> first;
  for (const MemberRings& member : rings) first.push_back(member.rows == nullptr ? UINT64_MAX : member.rows->first());
  return first;
}

std::vector<HeldSessions> VerifyRings(VerifiedRun* run, const std::vector<MemberRings>& rings, LedgerState* ledger,
                                      EpisodeRecords* episodes) {
  std::vector<HeldSessions> held;
  uint64_t opened = 0, rows = 0, blocks = 0, copies = 0;
  for (uint32_t member = 0; member < run->members(); ++member) {
    if (rings[member].rows == nullptr) {
      held.emplace_back();
      continue;
    }
    MemberPass pass(run, member, rings[member], ledger, episodes);
    held.push_back(pass.Go());
    ++opened;
    rows += pass.held();
    blocks += pass.blocks();
    copies += pass.copies();
  }
  if (run->rings_elsewhere) {
    run->report->Part("rings", "not in this folder; the replay has a folder of its own");
    return held;
  }
  run->report->Part("rings", opened == 0 ? "not there yet"
                                         : absl::StrCat(Count(opened, "ring"), ", ", Count(rows, "row"), " held in ",
                                                        Count(blocks, "block"), ", ", copies,
                                                        copies == 1 ? " copy" : " copies", " of rows with cost > 0"));
  return held;
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
