#include "learner/ledger_recorder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/safety/safe_map.h"

namespace datacom::learner {
namespace {

constexpr uint64_t kSliceBytes = 4 << 20;  // of the rows of all members that are read at once
constexpr uint64_t kSliceRows = 4096;

}  // namespace

LedgerRecorder::LedgerRecorder(const std::vector<uint64_t>& seeds, const RowSchema& schema, RowSource source)
    : seeds_(seeds),
      schema_(schema),
      source_(std::move(source)),
      judged_(schema.has(kCvar) && schema.has(kDelta)),
      read_(seeds.size()) {
  for (const Column& column : schema_.stored()) row_bytes_ += column.bytes();
  slice_ = std::clamp<uint64_t>(kSliceBytes / (row_bytes_ * read_.size()), 1, kSliceRows);
  const auto find = [&](absl::string_view column) { return PlaceOf(schema_.stored(), column); };
  places_.observation = find("observation"), places_.next_observation = find("next_observation");
  places_.reward = find("reward"), places_.cost = find("cost"), places_.absorbing = find("absorbing");
  places_.environment = find("environment"), places_.episode = find("episode"), places_.step = find("step");
  places_.policy_update = find("policy_update"), places_.session = find("session");
  places_.raw = find(schema_.raw_column()), places_.executed = find(schema_.executed_column());
  places_.cvar = find(kCvar), places_.delta = find(kDelta);
}

absl::StatusOr<std::unique_ptr<LedgerRecorder>> LedgerRecorder::Open(const std::string& run_dir,
                                                                     const std::string& run_id,
                                                                     const std::vector<uint64_t>& seeds,
                                                                     const RowSchema& schema, const FileEnds& ends,
                                                                     RowSource source) {
  std::unique_ptr<LedgerRecorder> ledger(new LedgerRecorder(seeds, schema, std::move(source)));
  ASSIGN_OR_RETURN(
      ledger->writer_,
      LedgerWriter::Open({run_dir, static_cast<uint32_t>(seeds.size()), schema.action_dim(), run_id}, ends));
  ledger->rows_ = ledger->writer_->transitions(0);
  return ledger;
}

absl::Status LedgerRecorder::Advance(uint64_t rows) {
  const auto members = static_cast<uint32_t>(read_.size());
  while (rows_ < rows) {
    const uint64_t end = std::min(rows, rows_ + slice_);
    for (uint32_t member = 0; member < members; ++member) RETURN_IF_ERROR(Read(member, rows_, end));
    // The order is by row, then by member, so that it does not depend on the ends of slices and checkpoints.
    std::vector<std::pair<size_t, uint32_t>> next(members);  // range, row within it
    for (; rows_ < end; ++rows_) {
      for (uint32_t member = 0; member < members; ++member) {
        auto& [range, index] = next[member];
        if (index == read_[member][range].row_count()) {
          ++range;
          index = 0;
        }
        RETURN_IF_ERROR(Write(member, rows_, read_[member][range], index++));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status LedgerRecorder::Read(uint32_t member, uint64_t from, uint64_t to) {
  read_[member].clear();
  uint64_t next = from;
  const absl::Status status = source_(member, from, to, [&](const v1::RowRange& range) {
    if (range.from() != next || range.row_count() == 0 || range.columns().size() != range.row_count() * row_bytes_) {
      return absl::DataLossError(absl::StrCat("ledger: rows of member ", member, " from ", next, ": ",
                                              range.row_count(), " rows from ", range.from(), " arrived in ",
                                              range.columns().size(), " bytes; a row has ", row_bytes_));
    }
    next += range.row_count();
    read_[member].push_back(range);
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(status);
  if (next == to) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("ledger: rows ", from, " to ", to, " of member ", member, ": only those below ", next, " arrived"));
}

absl::Status LedgerRecorder::Write(uint32_t member, uint64_t row, const v1::RowRange& range, uint32_t index) {
  const char* const columns = range.columns().data();
  const auto at = [&](ColumnPlace place) { return columns + place.before * range.row_count() + place.bytes * index; };
  const auto read = [&](ColumnPlace place, auto* value) { std::memcpy(value, at(place), sizeof *value); };
  const auto floats = [&](ColumnPlace place, std::vector<float>* values) {
    values->resize(place.bytes / sizeof(float));
    std::memcpy(values->data(), at(place), place.bytes);
  };
  float reward = 0;
  read(places_.session, &step_.session);
  read(places_.environment, &step_.environment);
  read(places_.episode, &step_.episode);
  read(places_.step, &step_.step);
  read(places_.cost, &step_.cost);
  read(places_.reward, &reward);
  floats(places_.observation, &observation_);
  floats(places_.next_observation, &next_observation_);
  step_.check = StepCheck(observation_.data(), next_observation_.data(), static_cast<int>(schema_.obs_dim()), reward,
                          *at(places_.absorbing) != 0);
  floats(places_.executed, &step_.execution);
  RETURN_IF_ERROR(writer_->AppendStep(member, step_));
  if (!(step_.cost > 0)) return absl::OkStatus();
  LedgerViolation violation = ViolationOf(member, seeds_[member], row, step_);
  const auto actor = range.actors().find(step_.session);
  if (actor != range.actors().end()) violation.actor = actor->second;
  read(places_.policy_update, &violation.policy_version);
  if (judged_) {
    LedgerJudgement& judgement = violation.judgement.emplace();
    read(places_.cvar, &judgement.cvar);
    read(places_.delta, &judgement.delta);
    judgement.slack = static_cast<float>(SafeMapSlack(static_cast<double>(judgement.cvar) - judgement.delta));
  }
  floats(places_.raw, &violation.raw_action);
  return writer_->AppendViolation(violation);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
