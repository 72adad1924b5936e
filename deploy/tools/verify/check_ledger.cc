#include "deploy/tools/verify/check_ledger.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/checksum.h"
#include "common/records/csv.h"
#include "common/records/ledger_format.h"
#include "deploy/tools/verify/ledger_files.h"

namespace datacom::verify {
namespace {

constexpr uint64_t kBlockRows = 4096;
constexpr size_t kActorCell = 3;

// A step with cost > 0 whose line must come next.
struct Expected {
  uint64_t row = 0;
  uint32_t member = 0;
  Transition transition;
  std::vector<float> execution;
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
        lines_(run),
        order_(run->members(), StepOrder(/*from_start=*/true)) {}

  void Go();

 private:
  void OpenFiles();
  void ReadMember(uint32_t member, uint64_t from);
  void AddStep(uint32_t member, uint64_t row, const StepRecord& record);
  void CompareViolations();
  // The cells that a violation's line must have; the others are empty.
  std::vector<std::string> KnownCells(const Expected& expected, uint64_t id) const;
  void CompareLine(const Expected& expected);
  void CompareEnd();
  void StopComparing(uint64_t row) { comparable_rows_ = std::min(comparable_rows_, row); }

  VerifiedRun* const run_;
  const std::vector<uint64_t>& wanted_from_;
  const std::map<uint32_t, std::string>& actors_;
  EpisodeRecords* const episodes_;
  LedgerState* const state_;
  ViolationLines lines_;
  std::vector<StepOrder> order_;
  std::vector<Expected> expected_;  // violations in the current block of steps
  uint64_t transitions_ = 0, longest_ = 0;
  uint64_t comparable_rows_ = UINT64_MAX;  // violations are compared up to this row: beyond it a step is unknown
  uint64_t kept_rows_ = 0;                 // rows of each member at the newest checkpoint
  uint64_t below_kept_ = 0;                // violations among them
};

void LedgerPass::OpenFiles() {
  for (uint32_t member = 0; member < run_->members(); ++member) {
    const std::string file = ledger::StepsPath(member);
    auto opened = StepFile::Open(run_->Path(file), member, run_->schema.action_dim());
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
  lines_.Open();  // before the step files: every line has its step by then
  OpenFiles();
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
  StepFile* file = state_->files[member].get();
  if (file == nullptr) return;
  const uint64_t wanted = std::min(kBlockRows, file->records() - std::min(file->records(), from));
  const absl::StatusOr<uint64_t> read = file->Read(from, kBlockRows);
  if (!read.ok()) {
    run_->report->Damage(ledger::StepsPath(member), read.status().message());
    return StopComparing(from);
  }
  if (*read < wanted) StopComparing(from + *read);  // a learner that resumed has cut it
  for (uint64_t row = from; row < from + *read; ++row) AddStep(member, row, file->record(row));
}

void LedgerPass::AddStep(uint32_t member, uint64_t row, const StepRecord& record) {
  if (!record.sound) {
    run_->report->Damage(ledger::StepsPath(member), absl::StrCat("record ", row, ": its checksum is wrong"));
    order_[member].Skip();
    return StopComparing(row);
  }
  std::string wrong;
  const StepOrder::Environment& environment = order_[member].Add(record.transition, &wrong);
  if (!wrong.empty()) run_->report->Damage(ledger::StepsPath(member), absl::StrCat("record ", row, ": ", wrong));
  if (const EpisodeRow* episode = episodes_->Find(member, row + 1)) {
    episodes_->CompareWithSteps(member, *episode, record.transition, environment, "the steps of the ledger");
  }
  if (!(record.transition.cost > 0)) return;
  Expected expected{row, member, record.transition, {}};
  expected.execution.resize(record.execution.size() / sizeof(float));
  std::memcpy(expected.execution.data(), record.execution.data(), record.execution.size());
  expected_.push_back(std::move(expected));
}

void LedgerPass::CompareViolations() {
  for (const Expected& expected : expected_) {
    if (expected.row >= comparable_rows_) return;
    if (expected.row < kept_rows_) ++below_kept_;
    if (lines_.Next() && lines_.readable()) CompareLine(expected);
  }
}

std::vector<std::string> LedgerPass::KnownCells(const Expected& expected, uint64_t id) const {
  LedgerViolation violation;
  violation.id = id;
  violation.member = expected.member;
  violation.seed = run_->settings.members[expected.member].seed;
  const auto actor = actors_.find(expected.transition.session);
  if (actor != actors_.end()) violation.actor = actor->second;
  violation.session = expected.transition.session;
  violation.environment = expected.transition.environment;
  violation.episode = expected.transition.episode;
  violation.step = expected.transition.step;
  violation.env_steps = expected.row + 1;
  violation.cost = expected.transition.cost;
  violation.executed_action = expected.execution;
  std::vector<std::string> cells = ledger::ViolationCells(violation);
  cells.insert(cells.end() - static_cast<int64_t>(expected.execution.size()), expected.execution.size(), "");
  cells[kActorCell + 6].clear();  // the policy's version
  return cells;
}

void LedgerPass::CompareLine(const Expected& expected) {
  const std::vector<std::string>& cells = lines_.cells();
  const std::vector<std::string> known = KnownCells(expected, lines_.count());
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i].empty() || cells[i] == known[i]) continue;
    lines_.Damage(absl::StrCat("column ", i + 1, ": \"", cells[i], "\", the step of row ", expected.row, " of member ",
                               expected.member, " says \"", known[i], "\""));
    const bool other_step = i < kActorCell || (i > kActorCell && i <= kActorCell + 5);
    if (other_step) return StopComparing(expected.row);  // from here on lines and steps do not belong together
    break;
  }
  if (expected.row < wanted_from_[expected.member]) return;
  state_->violations[expected.member].push_back({expected.row, lines_.count(), LineChecksum(cells)});
}

void LedgerPass::CompareEnd() {
  const std::string file = ledger::kViolationsPath;
  const bool all = comparable_rows_ == UINT64_MAX;
  if (all && lines_.Next()) lines_.Damage("there is no such step in the ledger");
  while (lines_.Next()) {
  }
  const uint64_t kept = run_->KeptLength(file);
  if (kept > 0 && comparable_rows_ >= kept_rows_ && lines_.LinesBelow(kept) != below_kept_) {
    run_->report->Damage(file, absl::StrCat("byte ", kept, ": ", lines_.LinesBelow(kept),
                                            " violations up to the length at the newest checkpoint, the steps up to "
                                            "then have ",
                                            below_kept_));
  }
  const uint64_t rows = lines_.count();
  run_->report->Part("ledger", transitions_ == 0 && rows == 0
                                   ? "no steps yet"
                                   : absl::StrCat(Count(transitions_, "step"), ", ", Count(rows, "violation")));
}

}  // namespace

uint32_t LineChecksum(const std::vector<std::string>& cells) {
  uint32_t crc = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i != kActorCell) crc = Crc32c(",", Crc32c(cells[i], crc));
  }
  return crc;
}

std::string LedgerState::StepsFile(uint32_t member) const { return ledger::StepsPath(member); }

LedgerState VerifyLedger(VerifiedRun* run, const std::vector<uint64_t>& wanted_from,
                         const std::map<uint32_t, std::string>& actors, EpisodeRecords* episodes) {
  LedgerState state;
  LedgerPass(run, wanted_from, actors, episodes, &state).Go();
  return state;
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
