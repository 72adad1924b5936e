#include "deploy/tools/verify/episode_records.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/records/csv.h"
#include "common/records/evaluation_means.h"

namespace datacom::verify {
namespace {

constexpr const char* kWhole[] = {"member", "session", "environment", "episode", "env_steps", "length"};
constexpr const char* kNumbers[] = {"discounted_return", "return",          "max_violation",
                                    "sum_cost",          "violating_steps", "policy_version"};

std::vector<std::string> NumberColumns(const std::vector<std::string>& named, const std::vector<std::string>& logs) {
  std::vector<std::string> columns(std::begin(kNumbers), std::end(kNumbers));
  columns.insert(columns.end(), named.begin(), named.end());
  columns.insert(columns.end(), logs.begin(), logs.end());
  return columns;
}

std::string Line(uint64_t line) { return absl::StrCat("line ", line); }

}  // namespace

EpisodeRecords::EpisodeRecords(VerifiedRun* run)
    : run_(run),
      named_(NamedCostColumns(run->schema.named_costs().names)),
      logs_(LogColumns(run->schema.logs().names)),
      numbers_(NumberColumns(named_, logs_)),
      rows_(run->members()),
      next_(run->members()) {
  const absl::StatusOr<std::string> text = ReadFile(run->Path(kEpisodesFile));
  if (!text.ok()) {
    if (run->KeptLength(kEpisodesFile) > 0) {
      run->report->Damage(kEpisodesFile, text.status().message());
    } else {
      run->report->Part("episodes", "not there yet");
    }
    return;
  }
  absl::string_view rest = *text;
  uint64_t line = 0;
  while (true) {
    const size_t end = rest.find('\n');
    if (end == absl::string_view::npos) break;
    ++line;
    if (line == 1 && !ReadHeader(rest.substr(0, end))) return;
    if (line > 1) Add(rest.substr(0, end), line);
    rest.remove_prefix(end + 1);
  }
  if (!rest.empty() && !run->running) {
    run->report->Damage(kEpisodesFile, absl::StrCat(Line(line + 1), ": unfinished"),
                        CutTail(*run, kEpisodesFile, text->size() - rest.size()));
  }
  CompareWithCheckpoint(*text, run->KeptLength(kEpisodesFile));
  for (std::vector<EpisodeRow>& rows : rows_) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const EpisodeRow& a, const EpisodeRow& b) { return a.last_row < b.last_row; });
  }
  FindRepeated();
}

bool EpisodeRecords::ReadHeader(absl::string_view line) {
  const std::vector<std::string> names = absl::StrSplit(line, ',');
  for (size_t i = 0; i < names.size(); ++i) columns_[names[i]] = i;
  bool whole = true;
  for (const char* name : kWhole) whole = whole && columns_.count(name) > 0;
  for (const std::string& name : numbers_) whole = whole && columns_.count(name) > 0;
  if (!whole || columns_.size() != names.size() || names.size() != std::size(kWhole) + numbers_.size()) {
    run_->report->Damage(kEpisodesFile, "line 1: not the header of this file");
    return false;
  }
  return true;
}

void EpisodeRecords::Add(absl::string_view line, uint64_t number) {
  EpisodeRow row;
  row.line = number;
  row.cells = absl::StrSplit(line, ',');
  const auto damaged = [&](const std::string& what) {
    run_->report->Damage(kEpisodesFile, absl::StrCat(Line(number), ": ", what));
  };
  if (row.cells.size() != columns_.size())
    return damaged(absl::StrCat(row.cells.size(), " columns instead of ", columns_.size()));
  uint32_t member = 0;
  uint64_t value = 0;
  for (const char* name : kWhole) {
    const std::string& cell = row.cells[columns_[name]];
    if (!absl::SimpleAtoi(cell, &value) || Cell(value) != cell)
      return damaged(absl::StrCat(name, " is \"", cell, "\", not a whole number"));
  }
  const auto read = [&](const char* name, auto* to) { return absl::SimpleAtoi(row.cells[columns_[name]], to); };
  if (!read("member", &member) || !read("session", &row.session) || !read("environment", &row.environment) ||
      !read("episode", &row.episode) || !read("env_steps", &row.last_row) || !read("length", &row.length) ||
      member >= rows_.size() || row.length == 0 || row.last_row < row.length ||
      row.last_row > run_->updates().env_steps) {
    return damaged("its member, place or length does not exist in this run");
  }
  for (const std::string& name : numbers_) {
    double number_of = 0;
    const std::string& cell = row.cells[columns_[name]];
    if (!absl::SimpleAtod(cell, &number_of)) return damaged(absl::StrCat(name, " is \"", cell, "\", not a number"));
  }
  ++count_;
  rows_[member].push_back(std::move(row));
}

void EpisodeRecords::FindRepeated() {
  for (uint32_t member = 0; member < rows_.size(); ++member) {
    std::set<std::tuple<uint32_t, uint32_t, uint32_t>> seen;
    uint64_t last_row = 0;
    for (const EpisodeRow& row : rows_[member]) {
      const bool again = !seen.insert({row.session, row.environment, row.episode}).second;
      if (again || row.last_row == last_row) {
        run_->report->Damage(kEpisodesFile,
                             absl::StrCat(Line(row.line), ": ", again ? "episode " : "last transition ",
                                          again ? row.episode : row.last_row, " of member ", member, " occurs twice"));
      }
      last_row = row.last_row;
    }
  }
}

// A checkpoint holds the number of every member's episodes.
void EpisodeRecords::CompareWithCheckpoint(absl::string_view text, uint64_t kept) {
  if (kept == 0) return;
  if (kept > text.size()) return;  // reported with the checkpoints
  if (text[kept - 1] != '\n') {
    run_->report->Damage(kEpisodesFile,
                         absl::StrCat("byte ", kept, ": the newest checkpoint ends here, and no line does"));
    return;
  }
  const auto lines = static_cast<uint64_t>(std::count(text.begin(), text.begin() + static_cast<int64_t>(kept), '\n'));
  for (uint32_t member = 0; member < rows_.size(); ++member) {
    if (static_cast<int>(member) >= run_->checkpoint->totals_size()) break;
    const uint64_t counted = run_->checkpoint->totals(static_cast<int>(member)).episodes();
    const auto held = static_cast<uint64_t>(std::count_if(rows_[member].begin(), rows_[member].end(),
                                                          [&](const EpisodeRow& row) { return row.line <= lines; }));
    if (held == counted) continue;
    run_->report->Damage(kEpisodesFile, absl::StrCat("lines 2 to ", lines, ": ", held, " episodes of member ", member,
                                                     ", the newest checkpoint has counted ", counted));
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
  const std::string& cell = row.cells[columns_[column]];
  if (cell == value) return;
  run_->report->Damage(kEpisodesFile,
                       absl::StrCat(Line(row.line), ", column ", column, ": ", cell, ", ", other, " say ", value));
}

void EpisodeRecords::CompareWithSteps(uint32_t member, const EpisodeRow& row, const Transition& last,
                                      const StepOrder::Environment& environment, const std::string& other) {
  ++recounted;
  Expect(row, "session", Cell(last.session), other);
  Expect(row, "environment", Cell(last.environment), other);
  Expect(row, "episode", Cell(last.episode), other);
  Expect(row, "length", Cell(last.step + 1), other);
  if (!environment.whole) return;
  Expect(row, "sum_cost", Cell(environment.sum_cost), other);
  Expect(row, "max_violation", Cell(environment.max_violation), other);
  Expect(row, "violating_steps", Cell(environment.violating_steps), other);
}

void EpisodeRecords::CompareWithEpisode(uint32_t member, const EpisodeRow& row, const replay::EpisodeSummary& episode) {
  ++assembled;
  const std::string other = "the rows of the ring";
  Expect(row, "session", Cell(episode.session), other);
  Expect(row, "environment", Cell(episode.environment), other);
  Expect(row, "episode", Cell(episode.episode), other);
  Expect(row, "length", Cell(episode.length), other);
  Expect(row, "discounted_return", Cell(episode.discounted_return), other);
  Expect(row, "return", Cell(episode.return_), other);
  Expect(row, "max_violation", Cell(episode.max_violation), other);
  Expect(row, "sum_cost", Cell(episode.sum_cost), other);
  Expect(row, "violating_steps", Cell(episode.violating_steps), other);
  Expect(row, "policy_version", Cell(episode.policy_update), other);
  for (size_t i = 0; i < episode.named_sum_cost.size(); ++i) {
    Expect(row, named_[3 * i], Cell(episode.named_max_violation[i]), other);
    Expect(row, named_[3 * i + 1], Cell(episode.named_sum_cost[i]), other);
    Expect(row, named_[3 * i + 2], Cell(episode.named_violating_steps[i]), other);
  }
  for (size_t i = 0; i < episode.log_sum.size(); ++i) {
    Expect(row, logs_[i], Cell(episode.log_sum[i] / episode.length), other);
  }
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
