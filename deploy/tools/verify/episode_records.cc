#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/records/csv.h"
#include "common/records/evaluation_means.h"
#include "deploy/tools/verify/check_ledger.h"

namespace datacom::verify {
namespace {

std::string Line(const EpisodeRow& row) { return absl::StrCat("line ", row.line()); }

}  // namespace

EpisodeRecords::EpisodeRecords(VerifiedRun* run)
    : run_(run),
      columns_(EpisodeColumns(run->schema.named_costs().names, run->schema.logs().names)),
      rows_(run->members()),
      next_(run->members()) {
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  std::optional<RecordFile> file = ReadRecordFile(run, kEpisodesFile,
                                                  {{"member", run->members() - 1},
                                                   {"session", kMost},
                                                   {"environment", kMost},
                                                   {"episode", kMost},
                                                   {"env_steps", run->updates().env_steps},
                                                   {"length", kMost}});
  if (!file) return;
  csv_ = std::move(file->csv);
  known_ = CheckHeader();
  if (!known_) run->report->Damage(kEpisodesFile, "line 1: not the header of this file");
  if (!known_) return;
  for (size_t row = 0; row < csv_.rows(); ++row) Add(row);
  if (file->kept) CompareWithCheckpoint(*file->kept);
  for (std::vector<EpisodeRow>& rows : rows_) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const EpisodeRow& a, const EpisodeRow& b) { return a.last_row < b.last_row; });
  }
  FindRepeated();
}

bool EpisodeRecords::CheckHeader() const {
  return csv_.columns() == columns_.size() &&
         std::all_of(columns_.begin(), columns_.end(), [this](const std::string& name) { return csv_.has(name); });
}

void EpisodeRecords::Add(size_t number) {
  for (const std::string& column : csv_.names()) {
    if (csv_.Text(number, column).empty()) {
      return run_->report->Damage(kEpisodesFile, absl::StrCat("line ", number + 2, ": ", column, " is empty"));
    }
  }
  const auto whole = [&](const char* column) { return static_cast<uint64_t>(csv_.Number(number, column)); };
  const auto small = [&](const char* column) { return static_cast<uint32_t>(whole(column)); };
  const EpisodeRow row = {number,           whole("env_steps"), small("session"), small("environment"),
                          small("episode"), small("length")};
  if (row.length == 0 || row.last_row < row.length) {
    return run_->report->Damage(kEpisodesFile, absl::StrCat(Line(row), ": its length does not exist in this run"));
  }
  rows_[small("member")].push_back(row);
}

void EpisodeRecords::FindRepeated() {
  for (uint32_t member = 0; member < rows_.size(); ++member) {
    std::set<std::tuple<uint32_t, uint32_t, uint32_t>> seen;
    uint64_t last_row = 0;
    for (const EpisodeRow& row : rows_[member]) {
      const bool again = !seen.insert({row.session, row.environment, row.episode}).second;
      if (again || row.last_row == last_row) {
        run_->report->Damage(kEpisodesFile,
                             absl::StrCat(Line(row), ": ", again ? "episode " : "last transition ",
                                          again ? row.episode : row.last_row, " of member ", member, " occurs twice"));
      }
      last_row = row.last_row;
    }
  }
}

// A checkpoint holds the number of every member's episodes.
void EpisodeRecords::CompareWithCheckpoint(size_t kept) {
  for (uint32_t member = 0; member < rows_.size(); ++member) {
    if (static_cast<int>(member) >= run_->checkpoint->totals_size()) break;
    const uint64_t counted = run_->checkpoint->totals(static_cast<int>(member)).episodes();
    const auto held = static_cast<uint64_t>(std::count_if(rows_[member].begin(), rows_[member].end(),
                                                          [&](const EpisodeRow& row) { return row.row < kept; }));
    if (held == counted) continue;
    run_->report->Damage(kEpisodesFile, absl::StrCat("lines 2 to ", kept + 1, ": ", held, " episodes of member ",
                                                     member, ", the newest checkpoint has counted ", counted));
  }
}

const EpisodeRow* EpisodeRecords::Find(uint32_t member, uint64_t last_row) {
  const std::vector<EpisodeRow>& rows = rows_[member];
  size_t& next = next_[member];
  const bool beyond = next == rows.size() || rows[next].last_row >= last_row;
  if (!beyond || (next > 0 && rows[next - 1].last_row >= last_row)) {
    next = static_cast<size_t>(
        std::lower_bound(rows.begin(), rows.end(), last_row,
                         [](const EpisodeRow& row, uint64_t wanted) { return row.last_row < wanted; }) -
        rows.begin());
  }
  return next < rows.size() && rows[next].last_row == last_row ? &rows[next] : nullptr;
}

void EpisodeRecords::Expect(const EpisodeRow& row, const std::string& column, const std::string& value,
                            const std::string& other) {
  const std::string cell = csv_.Text(row.row, column);
  if (cell == value) return;
  run_->report->Damage(kEpisodesFile,
                       absl::StrCat(Line(row), ", column ", column, ": ", cell, ", ", other, " say ", value));
}

void EpisodeRecords::CompareWithSteps(const EpisodeRow& row, const LedgerStep& last, const CountedEpisode& counted) {
  const std::string other = "the steps of the ledger";
  ++recounted;
  Expect(row, "session", Cell(last.session), other);
  Expect(row, "environment", Cell(last.environment), other);
  Expect(row, "episode", Cell(last.episode), other);
  Expect(row, "length", Cell(last.step + 1), other);
  if (!counted.whole) return;
  Expect(row, "sum_cost", Cell(counted.sum_cost), other);
  Expect(row, "max_violation", Cell(counted.max_violation), other);
  Expect(row, "violating_steps", Cell(counted.violating_steps), other);
}

void EpisodeRecords::CompareWithEpisode(uint32_t member, const EpisodeRow& row, const v1::Episode& episode) {
  ++assembled;
  const RowSchema& schema = run_->schema;
  const std::vector<std::string> cells =
      EpisodeCells(member, episode, schema.named_costs().names.size(), schema.logs().names.size());
  for (size_t i = 0; i < cells.size(); ++i) Expect(row, columns_[i], cells[i], "the rows of the ring");
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
