#include "common/records/ledger.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/files.h"
#include "common/base/framed_file.h"
#include "common/base/status.h"
#include "common/records/csv.h"

namespace datacom {
namespace ledger {
namespace {

constexpr FileFormat kFormat = {"step file", "DCSTEPS\n", 3,
                                "; use the build named in build.txt, or start a new run folder"};

std::string PlainName(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ',' || c == '"' || c < ' '; }, '_');
  return name;
}

}  // namespace

std::string StepsPath(uint32_t member) { return absl::StrCat("ledger/member_", member, ".steps"); }

std::string StepHeader(const Owner& owner, uint32_t action_dim) {
  std::string identity;
  PutValue(owner, &identity);
  PutValue(uint64_t{action_dim}, &identity);
  return Frame(kFormat, identity);
}

absl::Status CheckStepHeader(const std::string& path, absl::string_view content, const Owner& owner,
                             uint32_t action_dim) {
  ASSIGN_OR_RETURN(absl::string_view payload, Unframe(kFormat, path, content));
  Owner found;
  uint64_t actions = 0;
  if (!TakeValue(&payload, &found) || !TakeValue(&payload, &actions) || actions != action_dim) {
    return absl::DataLossError(absl::StrCat("step file ", path, ": its steps have not ", action_dim, " action values"));
  }
  return CheckOwner(kFormat, path, found, RunOf(owner).empty() ? MakeOwner(RunOf(found), owner.member) : owner);
}

uint32_t RecordChecksum(uint64_t number, absl::string_view bytes) { return Crc32c(bytes, Crc32c(RawBytes(number))); }

std::vector<std::string> ViolationColumns(uint32_t action_dim) {
  std::vector<std::string> columns = {"id",          "member",  "seed",  "actor",     "session",
                                      "environment", "episode", "step",  "env_steps", "policy_version",
                                      "delta",       "cvar",    "slack", "cost"};
  for (const char* name : {"raw_action", "executed_action"}) {
    for (uint32_t i = 0; i < action_dim; ++i) columns.push_back(absl::StrCat(name, i));
  }
  return columns;
}

std::vector<std::string> ViolationCells(const LedgerViolation& v) {
  std::vector<std::string> cells = {Cell(v.id),        Cell(v.member),        Cell(v.seed),    PlainName(v.actor),
                                    Cell(v.session),   Cell(v.environment),   Cell(v.episode), Cell(v.step),
                                    Cell(v.env_steps), Cell(v.policy_version)};
  if (v.judgement.has_value()) {
    for (const float value : {v.judgement->delta, v.judgement->cvar, v.judgement->slack}) cells.push_back(Cell(value));
  } else {
    cells.insert(cells.end(), 3, "");
  }
  cells.push_back(Cell(v.cost));
  for (const std::vector<float>* action : {&v.raw_action, &v.executed_action}) {
    for (const float value : *action) cells.push_back(Cell(value));
  }
  return cells;
}

}  // namespace ledger

LedgerViolation ViolationOf(uint32_t member, uint64_t seed, uint64_t row, const LedgerStep& step) {
  LedgerViolation violation;
  violation.member = member;
  violation.seed = seed;
  violation.session = step.session;
  violation.environment = step.environment;
  violation.episode = step.episode;
  violation.step = step.step;
  violation.env_steps = row + 1;
  violation.cost = step.cost;
  violation.executed_action = step.execution;
  return violation;
}

uint32_t StepCheck(const float* observation, const float* next_observation, int obs_dim, float reward, bool absorbing) {
  const char last = absorbing ? 1 : 0;
  uint32_t crc = 0;
  for (const float* values : {observation, next_observation}) {
    crc = Crc32c(absl::string_view(reinterpret_cast<const char*>(values), obs_dim * sizeof *values), crc);
  }
  return Crc32c(RawBytes(last), Crc32c(RawBytes(reward), crc));
}

uint64_t LedgerStepBytes(uint64_t transitions, uint32_t action_dim) {
  return ledger::kStepHeaderBytes + transitions * ledger::StepBytes(action_dim);
}

namespace {

using ledger::kStepHeaderBytes;
using ledger::PutFloats;

constexpr uint64_t kLongestLine = 1 << 14;  // bytes; a row has a few hundred

// Bytes [from, to) of a file. DATA_LOSS when it is shorter.
absl::StatusOr<std::string> ReadBytes(const std::string& path, uint64_t from, uint64_t to) {
  ASSIGN_OR_RETURN(const OpenedFile file, OpenedFile::Open(path));
  ASSIGN_OR_RETURN(std::string bytes, file.Read(from, to));
  if (bytes.size() == to - from) return bytes;
  return absl::DataLossError(absl::StrCat(path, " is shorter than the recorded length of ", to, " bytes"));
}

absl::Status CheckStart(const std::string& path, const std::string& expected, uint64_t offset) {
  ASSIGN_OR_RETURN(const std::string found, ReadBytes(path, 0, std::min<uint64_t>(expected.size(), offset)));
  if (found == expected) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": its header differs from the one that this build writes for this run"));
}

struct LastRow {
  uint64_t id = 0;   // 0: there is no row
  uint64_t end = 0;  // bytes up to its end, or to that of the header
};

// The last whole row of violations.csv among the file's first `bytes`.
absl::StatusOr<LastRow> FindLastRow(const std::string& path, uint64_t bytes) {
  const uint64_t from = bytes - std::min(bytes, 2 * kLongestLine);
  ASSIGN_OR_RETURN(const std::string tail, ReadBytes(path, from, bytes));
  const absl::string_view whole = absl::string_view(tail).substr(0, tail.rfind('\n') + 1);  // npos + 1 is 0
  const size_t before = whole.size() < 2 ? std::string::npos : whole.rfind('\n', whole.size() - 2);
  LastRow last{0, from + whole.size()};
  if (from == 0 && before == std::string::npos) return last;
  const absl::string_view line = whole.substr(before + 1);
  if (before != std::string::npos && absl::SimpleAtoi(line.substr(0, line.find(',')), &last.id)) return last;
  return absl::DataLossError(absl::StrCat(path, ": no row with an id ends before byte ", bytes));
}

}  // namespace

absl::StatusOr<uint64_t> CountViolations(const std::string& run_dir) {
  const std::string path = absl::StrCat(run_dir, "/", ledger::kViolationsPath);
  std::error_code missing;
  const uint64_t bytes = std::filesystem::file_size(path, missing);
  if (missing) return 0;
  ASSIGN_OR_RETURN(const LastRow last, FindLastRow(path, bytes));
  return last.id;
}

absl::StatusOr<std::unique_ptr<LedgerWriter>> LedgerWriter::Open(const Options& options, const FileEnds& ends) {
  if (ends.empty()) RETURN_IF_ERROR(MakeFolders(options.run_dir + "/ledger"));
  std::unique_ptr<LedgerWriter> writer(new LedgerWriter(options));
  for (uint32_t member = 0; member < options.members; ++member) {
    ASSIGN_OR_RETURN(const FileEnd end, EndOf(ends, ledger::StepsPath(member)));
    RETURN_IF_ERROR(writer->OpenSteps(member, end));
    if (writer->transitions(member) != writer->transitions(0)) {
      return absl::DataLossError(absl::StrCat(options.run_dir, "/ledger: member 0 has ", writer->transitions(0),
                                              " transitions, member ", member, " has ", writer->transitions(member)));
    }
  }
  ASSIGN_OR_RETURN(const FileEnd end, EndOf(ends, ledger::kViolationsPath));
  RETURN_IF_ERROR(writer->OpenViolations(end));
  return writer;
}

absl::Status LedgerWriter::OpenSteps(uint32_t member, const FileEnd& end) {
  const std::string path = absl::StrCat(options_.run_dir, "/", ledger::StepsPath(member));
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, AppendFile::Open(path, end));
  steps_.push_back(std::move(file));
  const Owner owner = MakeOwner(options_.run_id, member);
  if (end.bytes == 0) return steps_.back()->Append(ledger::StepHeader(owner, options_.action_dim));
  ASSIGN_OR_RETURN(const std::string found, ReadBytes(path, 0, std::min<uint64_t>(kStepHeaderBytes, end.bytes)));
  RETURN_IF_ERROR(ledger::CheckStepHeader(path, found, owner, options_.action_dim));
  if ((end.bytes - kStepHeaderBytes) % ledger::StepBytes(options_.action_dim) == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": no record ends at the recorded length of ", end.bytes, " bytes"));
}

absl::Status LedgerWriter::OpenViolations(const FileEnd& end) {
  const std::string path = absl::StrCat(options_.run_dir, "/", ledger::kViolationsPath);
  const std::string header = absl::StrCat(absl::StrJoin(ledger::ViolationColumns(options_.action_dim), ","), "\n");
  ASSIGN_OR_RETURN(violations_, AppendFile::Open(path, end));
  if (end.bytes == 0) return violations_->Append(header);
  RETURN_IF_ERROR(CheckStart(path, header, end.bytes));
  ASSIGN_OR_RETURN(const LastRow last, FindLastRow(path, end.bytes));
  last_id_ = last.id;
  if (last.end == end.bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": no row ends at the recorded length of ", end.bytes, " bytes"));
}

uint64_t LedgerWriter::transitions(uint32_t member) const {
  return (steps_[member]->bytes() - kStepHeaderBytes) / ledger::StepBytes(options_.action_dim);
}

absl::Status LedgerWriter::AppendStep(uint32_t member, const LedgerStep& step) {
  record_.clear();
  for (const uint32_t value : {step.session, step.environment, step.episode, step.step}) PutValue(value, &record_);
  PutValue(step.cost, &record_);
  PutValue(step.check, &record_);
  PutFloats(step.execution.data(), options_.action_dim, &record_);
  PutValue(ledger::RecordChecksum(transitions(member), record_), &record_);
  return steps_[member]->Append(record_);
}

absl::Status LedgerWriter::AppendViolation(const LedgerViolation& v) {
  LedgerViolation numbered = v;
  numbered.id = ++last_id_;
  const std::string row = absl::StrCat(absl::StrJoin(ledger::ViolationCells(numbered), ","), "\n");
  if (violations_->Writes(row.size())) RETURN_IF_ERROR(FlushSteps(/*sync=*/false));
  return violations_->Append(row);
}

absl::Status LedgerWriter::FlushSteps(bool sync) {
  for (const auto& file : steps_) RETURN_IF_ERROR(file->Flush(sync));
  return absl::OkStatus();
}

absl::Status LedgerWriter::Flush(bool sync) {
  RETURN_IF_ERROR(FlushSteps(sync));
  return violations_->Flush(sync);
}

FileEnds LedgerWriter::Ends() const {
  FileEnds ends = {{ledger::kViolationsPath, violations_->end()}};
  for (uint32_t member = 0; member < options_.members; ++member) {
    ends[ledger::StepsPath(member)] = steps_[member]->end();
  }
  return ends;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
