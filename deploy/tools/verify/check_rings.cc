#include "deploy/tools/verify/check_rings.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/status.h"
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

// Reads records [end - kept, end) of a ring that a replay may write. Calls visit(from, records) with those of a block,
// or lost(to, why) when the records below `to` could not be read; OUT_OF_RANGE: they were overwritten.
template <typename Visit, typename Lost>
void ReadBlocks(const replay::Ring& ring, uint64_t end, const Visit& visit, const Lost& lost) {
  const uint64_t first = end - std::min(end, ring.kept());
  std::string records;
  for (uint64_t block = first / kRingBlockRecords; block * kRingBlockRecords < end; ++block) {
    const absl::Status copied = ring.CopyBlock(block, end, &records);
    if (!copied.ok()) {
      lost(std::min(end, (block + 1) * kRingBlockRecords), copied);
      continue;
    }
    const uint64_t from = std::max(first, block * kRingBlockRecords);
    records.erase(0, (from - block * kRingBlockRecords) * ring.record_bytes());
    visit(from, records);
  }
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
  if (CannotBeReadForNow(ring.status())) repair = nullptr;
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

// Reads the rows of one member in order, and before them the copies of its rows with cost > 0, whose rows are committed
// by then.
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
        rebuild_(ring_.first() == 0 ? RebuildFailures(*run, member) : nullptr),
        tracker_(std::in_place, offsets_, run->settings.discount) {}

  HeldSessions Go();
  uint64_t held() const { return held_; }
  uint64_t blocks() const { return blocks_; }
  uint64_t copies() const { return copies_.size(); }

 private:
  struct Copy {
    uint64_t record = 0;  // its number in the failure ring
    uint32_t crc = 0;     // of the row
  };

  void ReadCopies(const replay::Ring& failures);
  void AddCopy(uint64_t record, absl::string_view bytes);
  bool Begin(uint64_t* end);
  void Block(uint64_t from, const std::string& records);
  void Skip(uint64_t to);  // the rows before `to` are not known
  void CheckOrder(uint64_t number, const char* row, const LedgerStep& at);
  void CheckPolicy(uint64_t number, const char* row);
  void CheckLedger(uint64_t number, const char* row, const LedgerStep& at, const LedgerStep& step);
  void CheckViolation(uint64_t number, const char* row, const LedgerStep& at);
  void CheckCopy(uint64_t number, bool failed, absl::string_view row);
  void CheckEpisode(uint64_t number, const char* row, const LedgerStep& at);
  void CheckFinished(uint64_t after, uint64_t up_to);
  void Damage(uint64_t number, const std::string& what) {
    run_->report->Damage(RowsFile(member_), absl::StrCat("row ", number, ": ", what));
  }
  void CopyDamage(absl::string_view what) {
    run_->report->Damage(FailuresFile(member_), what, std::exchange(rebuild_, nullptr));
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
  Report::Repair rebuild_;           // repairs the failure ring; given with its first finding
  std::map<uint64_t, Copy> copies_;  // by row
  bool all_copies_ = false;          // every held record of the failure ring was read
  uint64_t copies_from_ = 0;         // copies of rows below it were overwritten
  std::optional<replay::EpisodeTracker> tracker_;
  HeldSessions sessions_;
  size_t next_violation_ = 0;
  uint64_t held_ = 0, blocks_ = 0;
  uint64_t known_from_ = 0;  // all rows from it on were read
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

void MemberPass::ReadCopies(const replay::Ring& failures) {
  const absl::StatusOr<uint64_t> end = failures.StoredCursor();
  if (!end.ok()) return CopyDamage(end.status().message());
  if (const uint64_t made = ring_.counter(replay::kFailures); *end < made) {
    CopyDamage(absl::StrCat("record ", *end, ": the ring ends, but ", made, " copies of rows with cost > 0 were made"));
  }
  all_copies_ = true;
  bool cut = *end > failures.kept();
  const uint64_t bytes = failures.record_bytes();
  ReadBlocks(
      failures, *end,
      [&](uint64_t from, absl::string_view records) {
        for (; !records.empty(); records.remove_prefix(bytes)) AddCopy(from++, records.substr(0, bytes));
      },
      [&](uint64_t, const absl::Status& why) {
        if (absl::IsOutOfRange(why)) {
          cut = true;
          copies_.clear();  // they were overwritten, too
        } else {
          all_copies_ = false;
          CopyDamage(why.message());
        }
      });
  if (cut) copies_from_ = copies_.empty() ? std::numeric_limits<uint64_t>::max() : copies_.begin()->first;
}

void MemberPass::AddCopy(uint64_t record, absl::string_view bytes) {
  const uint64_t row = At<uint64_t>(bytes.data(), 0), before = copies_.empty() ? 0 : copies_.rbegin()->first;
  if (copies_.empty() || row > before) {
    copies_[row] = {record, Crc32c(bytes.substr(kFailureHeaderBytes))};
  } else {
    CopyDamage(absl::StrCat("record ", record, ": copies row ", row, ", the record before it row ", before));
    all_copies_ = false;
  }
}

void MemberPass::CheckCopy(uint64_t number, bool failed, absl::string_view row) {
  if (const auto copy = copies_.find(number); copy != copies_.end()) {
    if (failed && copy->second.crc == Crc32c(row)) return;
    CopyDamage(absl::StrCat("record ", copy->second.record, ": differs from row ", number, ", which it copies"));
  } else if (failed && all_copies_ && number >= copies_from_ && number < ring_.counter(replay::kCountedUpTo)) {
    CopyDamage(absl::StrCat("row ", number, " has cost > 0 and no copy"));
  }
}

HeldSessions MemberPass::Go() {
  if (rings_.failures != nullptr) ReadCopies(*rings_.failures);
  uint64_t end = 0;
  if (!Begin(&end)) return sessions_;
  const uint64_t first = end - std::min(end, ring_.kept());
  sessions_.known = true;
  sessions_.end = end;
  if (first > 0) Skip(first);
  ReadBlocks(
      ring_, end,
      [&](uint64_t from, const std::string& records) {
        if (++blocks_ % 256 == 0)
          run_->progress->Tell(absl::StrCat("rows of member ", member_), from - first, end - first);
        Block(from, records);
      },
      [&](uint64_t to, const absl::Status& why) {
        if (!absl::IsOutOfRange(why)) {
          run_->report->Damage(RowsFile(member_), why.message());
          sessions_.known = false;
        }
        Skip(to);
      });
  if (const auto newer = copies_.lower_bound(end); newer != copies_.end()) {
    CopyDamage(absl::StrCat("record ", newer->second.record, ": copies row ", newer->first, ", the member has ", end,
                            " rows"));
  }
  sessions_.from_start = known_from_ == 0;
  return std::move(sessions_);
}

void MemberPass::Skip(uint64_t to) {
  tracker_.emplace(offsets_, run_->settings.discount);
  sessions_.next_sequence.clear();
  known_from_ = to;
}

void MemberPass::Block(uint64_t from, const std::string& records) {
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
    CheckCopy(number, at.cost > 0, absl::string_view(row, bytes));
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
  const auto [found, is_new] = sessions_.next_sequence.try_emplace(at.session, known_from_ == 0 ? 0 : sequence);
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
                                                        Count(blocks, "block"), ", ", Count(copies, "copy", "copies"),
                                                        " of rows with cost > 0"));
  return held;
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
