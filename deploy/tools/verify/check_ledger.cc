#include "deploy/tools/verify/check_ledger.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/checksum.h"
#include "common/records/ledger.h"

namespace datacom::verify {
namespace {

constexpr uint64_t kBlockRows = 4096;
constexpr size_t kActorCell = 3, kFirstJudgement = 10, kEndOfJudgement = 13;

// A step with cost > 0 whose line must come next.
struct Expected {
  uint64_t row = 0;
  uint32_t member = 0;
  LedgerStep step;
};

// Reads violations.csv line by line. Reports lines that cannot be read.
class ViolationLines {
 public:
  explicit ViolationLines(VerifiedRun* run) : run_(run) {}

  void Open();
  // Reads the next line; returns false when there is none. A line with another number of cells, or with a cell that is
  // not a number, is reported and not readable.
  bool Next();
  bool readable() const { return readable_; }  // the last line
  uint64_t count() const { return count_; }    // lines read, without the header: the id of the last one
  const std::vector<std::string>& cells() const { return cells_; }
  uint64_t LinesBelow(uint64_t bytes) const { return bytes == kept_ ? below_kept_ : 0; }
  // About the last line.
  void Damage(const std::string& what);

 private:
  bool ReadLine(std::string* line);
  std::string WrongCell() const;  // empty when there is none

  VerifiedRun* const run_;
  std::ifstream file_;
  uint64_t left_ = 0, read_ = 0;  // bytes
  uint64_t kept_ = 0, below_kept_ = 0;
  uint64_t count_ = 0;
  size_t columns_ = 0;
  bool readable_ = false;
  std::vector<std::string> cells_;
};

void ViolationLines::Open() {
  kept_ = run_->KeptLength(ledger::kViolationsPath);
  const std::string path = run_->Path(ledger::kViolationsPath);
  std::error_code error;
  left_ = std::filesystem::file_size(path, error);
  file_.open(path, std::ios::binary);
  if (error || !file_) {
    left_ = 0;
    if (kept_ > 0) run_->report->Damage(ledger::kViolationsPath, "missing, although a checkpoint names its length");
    return;
  }
  const std::vector<std::string> columns = ledger::ViolationColumns(run_->schema.action_dim());
  columns_ = columns.size();
  std::string header;
  if (ReadLine(&header) && header != absl::StrJoin(columns, ",")) {
    run_->report->Damage(ledger::kViolationsPath, "line 1: not the header of this run's violations");
    left_ = 0;
  }
}

bool ViolationLines::ReadLine(std::string* line) {
  if (left_ == 0 || !std::getline(file_, *line)) return false;
  const uint64_t bytes = line->size() + 1;
  if (file_.eof() || bytes > left_) {  // unfinished, or finished after the file was opened
    left_ = 0;
    if (run_->running) return false;
    const std::string file = ledger::kViolationsPath;
    run_->report->Damage(file, absl::StrCat("line ", count_ + 2, ": unfinished"), CutTail(*run_, file, read_));
    return false;
  }
  left_ -= bytes;
  read_ += bytes;
  return true;
}

bool ViolationLines::Next() {
  std::string line;
  if (!ReadLine(&line)) return false;
  ++count_;
  if (read_ <= kept_) ++below_kept_;
  cells_ = absl::StrSplit(line, ',');
  std::string wrong;
  if (cells_.size() != columns_) {
    wrong = absl::StrCat(cells_.size(), " columns instead of ", columns_);
  } else {
    wrong = WrongCell();
  }
  readable_ = wrong.empty();
  if (!readable_) Damage(wrong);
  return true;
}

std::string ViolationLines::WrongCell() const {
  const bool judged = run_->schema.has(kCvar) && run_->schema.has(kDelta);
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (i == kActorCell) continue;
    double number = 0;
    const bool may_be_empty = i >= kFirstJudgement && i < kEndOfJudgement;  // also where it is not a number
    if (may_be_empty && cells_[i].empty()) continue;
    if ((judged || !may_be_empty) && absl::SimpleAtod(cells_[i], &number)) continue;
    return absl::StrCat("column ", i + 1, ": \"", cells_[i], "\" is not a number");
  }
  return "";
}

void ViolationLines::Damage(const std::string& what) {
  run_->report->Damage(ledger::kViolationsPath, absl::StrCat("line ", count_ + 1, ": ", what));
}

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
  void AddStep(uint32_t member, uint64_t row);
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
    order_[member].Skip();
    return StopComparing(row);
  }
  const LedgerStep& step = **read;
  std::string wrong;
  const StepOrder::Environment& environment = order_[member].Add(step, &wrong);
  if (!wrong.empty()) run_->report->Damage(ledger::StepsPath(member), absl::StrCat("record ", row, ": ", wrong));
  if (const EpisodeRow* episode = episodes_->Find(member, row + 1)) {
    episodes_->CompareWithSteps(member, *episode, step, environment, "the steps of the ledger");
  }
  if (step.cost > 0) expected_.push_back({row, member, step});
}

void LedgerPass::CompareViolations() {
  for (const Expected& expected : expected_) {
    if (expected.row >= comparable_rows_) return;
    if (expected.row < kept_rows_) ++below_kept_;
    if (lines_.Next() && lines_.readable()) CompareLine(expected);
  }
}

std::vector<std::string> LedgerPass::KnownCells(const Expected& expected, uint64_t id) const {
  const uint64_t seed = run_->settings.members[expected.member].seed;
  LedgerViolation violation = ViolationOf(expected.member, seed, expected.row, expected.step);
  violation.id = id;
  const auto actor = actors_.find(expected.step.session);
  if (actor != actors_.end()) violation.actor = actor->second;
  std::vector<std::string> cells = ledger::ViolationCells(violation);
  const size_t actions = expected.step.execution.size();
  cells.insert(cells.end() - static_cast<int64_t>(actions), actions, "");
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

LedgerState VerifyLedger(VerifiedRun* run, const std::vector<uint64_t>& wanted_from,
                         const std::map<uint32_t, std::string>& actors, EpisodeRecords* episodes) {
  LedgerState state;
  LedgerPass(run, wanted_from, actors, episodes, &state).Go();
  return state;
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
