#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/records/ledger.h"
#include "common/records/ledger_format.h"

namespace datacom {
namespace {

constexpr size_t kBlockRecords = 1 << 14;

template <typename T>
T Take(const char** in) {
  T value;
  std::memcpy(&value, *in, sizeof value);
  *in += sizeof value;
  return value;
}

// Reads the cells of a row from left to right and keeps the first error.
class RowReader {
 public:
  RowReader(const std::string& line, std::string where) : cells_(absl::StrSplit(line, ',')), where_(std::move(where)) {}

  size_t cells() const { return cells_.size(); }
  const std::string& Text() { return cells_[next_++]; }
  bool Skip(size_t count) {  // if the next cells are all empty, skips them and returns true
    const bool empty = std::all_of(cells_.begin() + next_, cells_.begin() + next_ + count,
                                   [](const std::string& cell) { return cell.empty(); });
    if (empty) next_ += count;
    return empty;
  }
  template <typename Integer>
  void Read(Integer* value) {
    if (!absl::SimpleAtoi(cells_[next_], value)) Fail();
    ++next_;
  }
  void Read(float* value) {
    if (!absl::SimpleAtof(cells_[next_], value)) Fail();
    ++next_;
  }
  const absl::Status& status() const { return status_; }

 private:
  void Fail() {
    if (!status_.ok()) return;
    status_ =
        absl::DataLossError(absl::StrCat(where_, ", column ", next_ + 1, ": \"", cells_[next_], "\" is not a number"));
  }

  const std::vector<std::string> cells_;
  const std::string where_;
  size_t next_ = 0;
  absl::Status status_;
};

absl::StatusOr<LedgerViolation> ParseViolation(const std::string& line, uint32_t action_dim, const std::string& where) {
  RowReader row(line, where);
  const size_t columns = ledger::ViolationColumns(action_dim).size();
  if (row.cells() != columns) {
    return absl::DataLossError(absl::StrCat(where, ": ", row.cells(), " columns instead of ", columns));
  }
  LedgerViolation v;
  row.Read(&v.id);
  row.Read(&v.member);
  row.Read(&v.seed);
  v.actor = row.Text();
  row.Read(&v.session);
  row.Read(&v.environment);
  row.Read(&v.episode);
  row.Read(&v.step);
  row.Read(&v.env_steps);
  row.Read(&v.policy_version);
  if (!row.Skip(3)) {
    v.judgement.emplace();
    row.Read(&v.judgement->delta);
    row.Read(&v.judgement->cvar);
    row.Read(&v.judgement->slack);
  }
  row.Read(&v.cost);
  for (std::vector<float>* action : {&v.raw_action, &v.executed_action}) {
    action->resize(action_dim);
    for (float& value : *action) row.Read(&value);
  }
  RETURN_IF_ERROR(row.status());
  return v;
}

LedgerStep ParseStep(const char* record, uint32_t action_dim) {
  LedgerStep step;
  for (uint32_t* value : {&step.session, &step.environment, &step.episode, &step.step})
    *value = Take<uint32_t>(&record);
  step.cost = Take<float>(&record);
  step.check = Take<uint32_t>(&record);
  step.execution.resize(action_dim);
  std::memcpy(step.execution.data(), record, action_dim * sizeof(float));
  return step;
}

absl::Status CheckRecord(const std::string& path, uint64_t number, absl::string_view record) {
  const absl::string_view content = record.substr(0, record.size() - sizeof(uint32_t));
  const char* end = record.data() + content.size();
  if (Take<uint32_t>(&end) == ledger::RecordChecksum(number, content)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ", record ", number, ": its checksum is wrong"));
}

// Visits every complete record of a step file in order, with its number from 0.
template <typename Visit>
absl::Status VisitSteps(const std::string& path, uint32_t member, uint32_t action_dim, const Visit& visit) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, " does not exist"));
  std::string block(ledger::kStepHeaderBytes, '\0');
  file.read(block.data(), static_cast<std::streamsize>(block.size()));
  block.resize(static_cast<size_t>(file.gcount()));
  RETURN_IF_ERROR(ledger::CheckStepHeader(path, block, member, action_dim));
  const size_t bytes = ledger::StepBytes(action_dim);
  block.resize(kBlockRecords * bytes);
  for (uint64_t number = 0; file;) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    const size_t records = static_cast<size_t>(file.gcount()) / bytes;
    for (size_t i = 0; i < records; ++i, ++number) {
      RETURN_IF_ERROR(CheckRecord(path, number, absl::string_view(block.data() + i * bytes, bytes)));
      RETURN_IF_ERROR(visit(number, block.data() + i * bytes));
    }
  }
  return absl::OkStatus();
}

// Visits every complete row of violations.csv until `visit` returns CANCELLED. Returns the last id.
template <typename Visit>
absl::StatusOr<uint64_t> VisitRows(const std::string& run_dir, const Visit& visit) {
  const std::string path = absl::StrCat(run_dir, "/", ledger::kViolationsPath);
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, " does not exist: ", run_dir, " has no ledger"));
  std::string line;
  std::getline(file, line);
  const size_t fixed = ledger::ViolationColumns(0).size();
  const size_t columns = std::vector<absl::string_view>(absl::StrSplit(line, ',')).size();
  const auto action_dim = static_cast<uint32_t>(columns < fixed ? 0 : (columns - fixed) / 2);
  if (line != absl::StrJoin(ledger::ViolationColumns(action_dim), ",")) {
    return absl::DataLossError(absl::StrCat(path, " line 1: not the header of a ledger"));
  }
  uint64_t last = 0;
  for (uint64_t number = 2; std::getline(file, line) && !file.eof(); ++number) {  // at eof the row is unfinished
    const std::string where = absl::StrCat(path, " line ", number);
    if (!absl::SimpleAtoi(line.substr(0, line.find(',')), &last) || last != number - 1) {
      return absl::DataLossError(absl::StrCat(where, ": its id is not ", number - 1));
    }
    const absl::Status visited = visit(last, line, action_dim, where);
    if (absl::IsCancelled(visited)) break;
    RETURN_IF_ERROR(visited);
  }
  return last;
}

}  // namespace

absl::Status VisitViolations(const std::string& run_dir, const std::function<void(const LedgerViolation&)>& visit) {
  return VisitRows(run_dir,
                   [&](uint64_t, const std::string& line, uint32_t action_dim, const std::string& where) {
                     const absl::StatusOr<LedgerViolation> violation = ParseViolation(line, action_dim, where);
                     if (violation.ok()) visit(*violation);
                     return violation.status();
                   })
      .status();
}

absl::StatusOr<LedgerViolation> ReadViolation(const std::string& run_dir, uint64_t id) {
  std::optional<absl::StatusOr<LedgerViolation>> found;
  ASSIGN_OR_RETURN(const uint64_t last, VisitRows(run_dir, [&](uint64_t row, const std::string& line,
                                                               uint32_t action_dim, const std::string& where) {
                     if (row != id) return absl::OkStatus();
                     found = ParseViolation(line, action_dim, where);
                     return absl::CancelledError();
                   }));
  if (found.has_value()) return *std::move(found);
  return absl::NotFoundError(absl::StrCat("violation ", id, " is not in ", run_dir, "/", ledger::kViolationsPath, ": ",
                                          last == 0 ? "it holds none" : absl::StrCat("it holds 1 to ", last)));
}

absl::StatusOr<std::vector<LedgerStep>> ReadEpisode(const std::string& run_dir, const LedgerViolation& violation) {
  const std::string path = absl::StrCat(run_dir, "/", ledger::StepsPath(violation.member));
  const auto action_dim = static_cast<uint32_t>(violation.executed_action.size());
  std::vector<LedgerStep> steps;
  bool found = false;
  RETURN_IF_ERROR(VisitSteps(path, violation.member, action_dim, [&](uint64_t number, const char* record) {
    LedgerStep step = ParseStep(record, action_dim);
    if (step.session != violation.session || step.environment != violation.environment ||
        step.episode != violation.episode)
      return absl::OkStatus();
    if (step.step != steps.size()) {
      return absl::DataLossError(absl::StrCat(path, ", record ", number, ": step ", step.step,
                                              " of its episode instead of step ", steps.size()));
    }
    found = found || (step.step == violation.step && step.cost == violation.cost);
    steps.push_back(std::move(step));
    return absl::OkStatus();
  }));
  if (found) return steps;
  return absl::DataLossError(absl::StrCat(path, ": record ", violation.env_steps - 1, " is not violation ",
                                          violation.id, " of violations.csv"));
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
