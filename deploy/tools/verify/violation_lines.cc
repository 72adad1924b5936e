#include "deploy/tools/verify/violation_lines.h"

#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/records/ledger_format.h"

namespace datacom::verify {
namespace {

constexpr size_t kActorCell = 3, kFirstJudgement = 10, kEndOfJudgement = 13;

}  // namespace

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

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
