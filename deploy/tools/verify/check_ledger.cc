#include "deploy/tools/verify/check_ledger.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/checksum.h"
#include "common/records/ledger.h"

namespace datacom::verify {
namespace {

constexpr uint64_t kBlockRows = 4096;

// A step with cost > 0 whose line must come next.
struct Expected {
  uint64_t row = 0;
  uint32_t member = 0;
  LedgerStep step;
};

// The steps of a member in their order.
class MemberSteps {
 public:
  // Adds the next one. `wrong` receives what is wrong with its place. Returns its environment.
  const CountedEpisode& Add(const LedgerStep& next, std::string* wrong) {
    CountedEpisode& counted = environments_[{next.session, next.environment}];
    *wrong = WrongPlace(next, counted.newest, all_known_);
    if (next.step == 0 || !replay::Follows(counted.newest, next.episode, next.step)) {
      counted = CountedEpisode{};
      counted.whole = next.step == 0;
    }
    counted.newest = {true, /*last=*/false, next.episode, next.step};
    const double cost = std::max(0.0, static_cast<double>(next.cost));
    counted.sum_cost += cost;
    counted.max_violation = std::max(counted.max_violation, cost);
    if (cost > 0) ++counted.violating_steps;
    return counted;
  }
  // Some steps are unknown: any may come next.
  void Skip() {
    environments_.clear();
    all_known_ = false;
  }

 private:
  bool all_known_ = true;
  std::map<std::pair<uint32_t, uint32_t>, CountedEpisode> environments_;  // by session and environment
};

class LedgerPass {
 public:
  LedgerPass(VerifiedRun* run, const std::vector<uint64_t>& wanted_from, const std::map<uint32_t, std::string>& actors,
             EpisodeRecords* episodes, LedgerState* state)
      : run_(run),
        wanted_from_(wanted_from),
        actors_(actors),
        episodes_(episodes),
        state_(state),
        kept_bytes_(run->KeptLength(ledger::kViolationsPath)),
        steps_(run->members()) {}

  void Go();

 private:
  void OpenViolations();
  void OpenSteps();
  void ReadMember(uint32_t member, uint64_t from);
  void AddStep(uint32_t member, uint64_t row);
  void CompareViolations();
  void CompareLine(const Expected& expected);
  // Reads the next line of violations.csv; false when there is none. Reports a line that cannot be read.
  bool NextLine();
  void LineDamage(const std::string& what);
  void CompareEnd();
  void StopComparing(uint64_t row) { comparable_rows_ = std::min(comparable_rows_, row); }

  VerifiedRun* const run_;
  const std::vector<uint64_t>& wanted_from_;
  const std::map<uint32_t, std::string>& actors_;
  EpisodeRecords* const episodes_;
  LedgerState* const state_;
  const uint64_t kept_bytes_;               // of violations.csv at the newest checkpoint
  std::unique_ptr<ViolationReader> lines_;  // null: missing or damaged
  std::optional<LedgerViolation> line_;     // the line that was read last; empty if it cannot be read
  std::vector<MemberSteps> steps_;
  std::vector<Expected> expected_;  // violations in the current block of steps
  uint64_t transitions_ = 0, longest_ = 0;
  uint64_t comparable_rows_ = UINT64_MAX;  // violations are compared up to this row: beyond it a step is unknown
  uint64_t kept_rows_ = 0;                 // rows of each member at the newest checkpoint
  uint64_t below_kept_ = 0;                // violations among them
  uint64_t lines_below_kept_ = 0;          // lines in the first kept_bytes_
};

void LedgerPass::OpenViolations() {
  absl::StatusOr<std::unique_ptr<ViolationReader>> opened = ViolationReader::Open(run_->dir, run_->schema.action_dim());
  if (opened.ok()) {
    lines_ = *std::move(opened);
  } else if (!absl::IsNotFound(opened.status()) || kept_bytes_ > 0) {
    run_->report->Damage(ledger::kViolationsPath, opened.status().message());
  }
}

void LedgerPass::OpenSteps() {
  for (uint32_t member = 0; member < run_->members(); ++member) {
    const std::string file = ledger::StepsPath(member);
    auto opened =
        StepReader::Open(run_->Path(file), MakeOwner(run_->settings.run_id, member), run_->schema.action_dim());
    const uint64_t kept = run_->KeptLength(file);
    if (kept > 0) kept_rows_ = (kept - ledger::kStepHeaderBytes) / ledger::StepBytes(run_->schema.action_dim());
    if (opened.ok()) {
      const uint64_t tail = (*opened)->tail();
      if (tail > 0 && !run_->running) {
        const uint64_t whole = LedgerStepBytes((*opened)->records(), run_->schema.action_dim());
        run_->report->Damage(file, absl::StrCat("record ", (*opened)->records(), ": unfinished, ", tail, " bytes"),
                             CutTail(*run_, file, whole));
      }
      longest_ = std::max(longest_, (*opened)->records());
      transitions_ += (*opened)->records();
    } else if (!absl::IsNotFound(opened.status()) || kept > 0) {
      run_->report->Damage(file, opened.status().message());
    }
    if (!opened.ok()) StopComparing(0);
    state_->files.push_back(opened.ok() ? *std::move(opened) : nullptr);
  }
}

void LedgerPass::Go() {
  OpenViolations();  // before the step files: every line has its step by then
  OpenSteps();
  state_->violations.resize(run_->members());
  for (uint64_t from = 0; from < longest_; from += kBlockRows) {
    run_->progress->Tell("ledger", from, longest_);
    expected_.clear();
    for (uint32_t member = 0; member < run_->members(); ++member) ReadMember(member, from);
    std::sort(expected_.begin(), expected_.end(), [](const Expected& a, const Expected& b) {
      return a.row != b.row ? a.row < b.row : a.member < b.member;
    });
    CompareViolations();
  }
  CompareEnd();
}

void LedgerPass::ReadMember(uint32_t member, uint64_t from) {
  StepReader* file = state_->files[member].get();
  if (file == nullptr) return;
  const uint64_t wanted = std::min(kBlockRows, file->records() - std::min(file->records(), from));
  const absl::StatusOr<uint64_t> read = file->Read(from, kBlockRows);
  if (!read.ok()) {
    run_->report->Damage(ledger::StepsPath(member), read.status().message());
    return StopComparing(from);
  }
  if (*read < wanted) StopComparing(from + *read);  // a learner that resumed has cut it
  for (uint64_t row = from; row < from + *read; ++row) AddStep(member, row);
}

void LedgerPass::AddStep(uint32_t member, uint64_t row) {
  const absl::StatusOr<const LedgerStep*> read = state_->files[member]->Step(row);
  if (!read.ok()) {
    run_->report->Damage(ledger::StepsPath(member), absl::StrCat("record ", row, ": its checksum is wrong"));
    steps_[member].Skip();
    return StopComparing(row);
  }
  const LedgerStep& step = **read;
  std::string wrong;
  const CountedEpisode& counted = steps_[member].Add(step, &wrong);
  if (!wrong.empty()) run_->report->Damage(ledger::StepsPath(member), absl::StrCat("record ", row, ": ", wrong));
  if (const EpisodeRow* episode = episodes_->Find(member, row + 1)) {
    episodes_->CompareWithSteps(*episode, step, counted);
  }
  if (step.cost > 0) expected_.push_back({row, member, step});
}

void LedgerPass::CompareViolations() {
  for (const Expected& expected : expected_) {
    if (expected.row >= comparable_rows_) return;
    if (expected.row < kept_rows_) ++below_kept_;
    if (NextLine() && line_.has_value()) CompareLine(expected);
  }
}

bool LedgerPass::NextLine() {
  line_.reset();
  if (lines_ == nullptr || !lines_->Next()) return false;
  if (lines_->bytes() <= kept_bytes_) ++lines_below_kept_;
  absl::StatusOr<LedgerViolation> read = lines_->Violation();
  if (read.ok()) {
    line_ = *std::move(read);
  } else {
    run_->report->Damage(ledger::kViolationsPath, read.status().message());
  }
  return true;
}

void LedgerPass::LineDamage(const std::string& what) {
  run_->report->Damage(ledger::kViolationsPath, absl::StrCat("line ", lines_->lines(), what));
}

// Compares all cells with those that the writer makes of the step and of what only the line says.
void LedgerPass::CompareLine(const Expected& expected) {
  const uint64_t seed = run_->settings.members[expected.member].seed;
  LedgerViolation known = ViolationOf(expected.member, seed, expected.row, expected.step);
  known.id = lines_->id();
  const auto actor = actors_.find(expected.step.session);
  known.actor = actor == actors_.end() ? line_->actor : actor->second;
  known.policy_version = line_->policy_version;
  if (run_->schema.has(kCvar) && run_->schema.has(kDelta)) known.judgement = line_->judgement;
  known.raw_action = line_->raw_action;
  const std::vector<std::string> cells = ledger::ViolationCells(known), found = absl::StrSplit(lines_->text(), ',');
  const auto other = std::mismatch(cells.begin(), cells.end(), found.begin());
  if (other.first != cells.end()) {
    LineDamage(absl::StrCat(", column ", other.first - cells.begin() + 1, ": \"", *other.second,
                            "\", the violation of row ", expected.row, " of member ", expected.member, " has \"",
                            *other.first, "\""));
    const bool same = line_->member == expected.member && line_->env_steps == expected.row + 1;
    if (!same) StopComparing(expected.row);  // from here on lines and steps do not belong together
  } else if (expected.row >= wanted_from_[expected.member]) {
    state_->violations[expected.member].push_back({expected.row, known.id, ViolationChecksum(known)});
  }
}

void LedgerPass::CompareEnd() {
  const std::string file = ledger::kViolationsPath;
  if (comparable_rows_ == UINT64_MAX && NextLine()) LineDamage(": there is no such step in the ledger");
  while (NextLine()) {
  }
  const uint64_t lines = lines_ == nullptr ? 0 : lines_->id();
  if (lines_ != nullptr && lines_->bytes() < lines_->size() && !run_->running) {
    run_->report->Damage(file, absl::StrCat("line ", lines_->lines() + 1, ": unfinished"),
                         CutTail(*run_, file, lines_->bytes()));
  }
  if (kept_bytes_ > 0 && comparable_rows_ >= kept_rows_ && lines_below_kept_ != below_kept_) {
    run_->report->Damage(file, absl::StrCat("byte ", kept_bytes_, ": ", lines_below_kept_,
                                            " violations up to the length at the newest checkpoint, the steps up to "
                                            "then have ",
                                            below_kept_));
  }
  run_->report->Part("ledger", transitions_ == 0 && lines == 0
                                   ? "no steps yet"
                                   : absl::StrCat(Count(transitions_, "step"), ", ", Count(lines, "violation")));
}

}  // namespace

std::string WrongPlace(const LedgerStep& next, const replay::NewestRow& newest, bool all_known) {
  if (next.environment >= replay::kMaxEnvironments) {
    return absl::StrCat(Name(next), ": there are at most ", replay::kMaxEnvironments, " environments");
  }
  if (replay::Follows(newest, next.episode, next.step)) return "";
  if (!newest.known) return all_known ? absl::StrCat(Name(next), " is the first of its environment") : "";
  return absl::StrCat(Name(next), " follows episode ", newest.episode, ", step ", newest.step,
                      newest.last ? ", its last" : "");
}

uint32_t ViolationChecksum(LedgerViolation violation) {
  violation.actor.clear();
  return Crc32c(absl::StrJoin(ledger::ViolationCells(violation), ","));
}

LedgerState VerifyLedger(VerifiedRun* run, const std::vector<uint64_t>& wanted_from,
                         const std::map<uint32_t, std::string>& actors, EpisodeRecords* episodes) {
  LedgerState state;
  LedgerPass(run, wanted_from, actors, episodes, &state).Go();
  return state;
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
