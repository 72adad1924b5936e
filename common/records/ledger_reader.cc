#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/records/ledger.h"

namespace datacom {
namespace {

constexpr size_t kBlockRecords = 1 << 14;

bool Parse(const std::string& cell, float* value) { return absl::SimpleAtof(cell, value); }
template <typename Integer>
bool Parse(const std::string& cell, Integer* value) {
  return absl::SimpleAtoi(cell, value);
}

}  // namespace

ViolationReader::ViolationReader(std::string path, uint64_t size)
    : path_(std::move(path)), file_(path_, std::ios::binary), size_(size) {}

absl::StatusOr<std::unique_ptr<ViolationReader>> ViolationReader::Open(const std::string& run_dir,
                                                                       std::optional<uint32_t> action_dim) {
  const std::string path = absl::StrCat(run_dir, "/", ledger::kViolationsPath);
  const absl::StatusOr<OpenedFile> file = OpenedFile::Open(path);
  if (absl::IsNotFound(file.status()))
    return absl::NotFoundError(absl::StrCat(path, " does not exist: ", run_dir, " has no ledger"));
  RETURN_IF_ERROR(file.status());
  std::unique_ptr<ViolationReader> reader(new ViolationReader(path, file->size()));
  if (!reader->Next()) return reader;  // the learner writes the header with the first rows
  const size_t fixed = ledger::ViolationColumns(0).size();
  const size_t columns = 1 + std::count(reader->line_.begin(), reader->line_.end(), ',');
  reader->action_dim_ = action_dim.value_or(columns < fixed ? 0 : static_cast<uint32_t>((columns - fixed) / 2));
  if (reader->line_ == absl::StrJoin(ledger::ViolationColumns(reader->action_dim_), ",")) return reader;
  return absl::DataLossError(
      absl::StrCat(path, " line 1: not the header of a ledger with ", reader->action_dim_, " action values"));
}

bool ViolationReader::Next() {
  std::string line;
  if (!std::getline(file_, line) || file_.eof() || line.size() + 1 > size_ - bytes_) return false;
  bytes_ += line.size() + 1;
  ++lines_;
  line_ = std::move(line);
  return true;
}

absl::Status ViolationReader::CheckId() const {
  uint64_t found = 0;
  if (absl::SimpleAtoi(line_.substr(0, line_.find(',')), &found) && found == id()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path_, " line ", lines_, ": its id is not ", id()));
}

absl::StatusOr<LedgerViolation> ViolationReader::Violation() const {
  const std::string where = absl::StrCat(path_, " line ", lines_);
  const std::vector<std::string> cells = absl::StrSplit(line_, ',');
  const size_t columns = ledger::ViolationColumns(action_dim_).size();
  if (cells.size() != columns) {
    return absl::DataLossError(absl::StrCat(where, ": ", cells.size(), " columns instead of ", columns));
  }
  absl::Status status;  // the first error
  auto next = cells.begin();
  const auto read = [&](auto* value) {
    if (!Parse(*next, value)) {
      status.Update(absl::DataLossError(
          absl::StrCat(where, ", column ", next - cells.begin() + 1, ": \"", *next, "\" is not a number")));
    }
    ++next;
  };
  LedgerViolation v;
  read(&v.id);
  read(&v.member);
  read(&v.seed);
  v.actor = *next++;
  for (uint32_t* value : {&v.session, &v.environment, &v.episode, &v.step}) read(value);
  read(&v.env_steps);
  read(&v.policy_version);
  if (std::all_of(next, next + 3, [](const std::string& cell) { return cell.empty(); })) {
    next += 3;
  } else {
    LedgerJudgement& judgement = v.judgement.emplace();
    for (float* value : {&judgement.delta, &judgement.cvar, &judgement.slack}) read(value);
  }
  read(&v.cost);
  for (std::vector<float>* action : {&v.raw_action, &v.executed_action}) {
    action->resize(action_dim_);
    for (float& value : *action) read(&value);
  }
  RETURN_IF_ERROR(status);
  return v;
}

absl::Status VisitViolations(const std::string& run_dir, const std::function<void(const LedgerViolation&)>& visit) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ViolationReader> reader, ViolationReader::Open(run_dir));
  while (reader->Next()) {
    RETURN_IF_ERROR(reader->CheckId());
    ASSIGN_OR_RETURN(const LedgerViolation violation, reader->Violation());
    visit(violation);
  }
  return absl::OkStatus();
}

absl::StatusOr<LedgerViolation> ReadViolation(const std::string& run_dir, uint64_t id) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ViolationReader> reader, ViolationReader::Open(run_dir));
  while (reader->Next()) {
    RETURN_IF_ERROR(reader->CheckId());
    if (reader->id() == id) return reader->Violation();
  }
  return absl::NotFoundError(
      absl::StrCat("violation ", id, " is not in ", run_dir, "/", ledger::kViolationsPath, ": ",
                   reader->id() == 0 ? "it holds none" : absl::StrCat("it holds 1 to ", reader->id())));
}

absl::StatusOr<std::unique_ptr<StepReader>> StepReader::Open(const std::string& path, const Owner& owner,
                                                             uint32_t action_dim) {
  ASSIGN_OR_RETURN(const OpenedFile file, OpenedFile::Open(path));
  std::unique_ptr<StepReader> reader(new StepReader(path, action_dim));
  if (file.size() == 0) return reader;  // the learner writes the header with the first records
  ASSIGN_OR_RETURN(const std::string header, file.Read(0, ledger::kStepHeaderBytes));
  RETURN_IF_ERROR(ledger::CheckStepHeader(path, header, owner, action_dim));
  reader->records_ = (file.size() - ledger::kStepHeaderBytes) / reader->bytes_;
  reader->tail_ = (file.size() - ledger::kStepHeaderBytes) % reader->bytes_;
  return reader;
}

StepReader::StepReader(std::string path, uint32_t action_dim)
    : path_(std::move(path)), bytes_(ledger::StepBytes(action_dim)) {
  step_.execution.resize(action_dim);
}

absl::StatusOr<uint64_t> StepReader::Read(uint64_t from, uint64_t count) {
  ASSIGN_OR_RETURN(const OpenedFile file, OpenedFile::Open(path_));  // not kept open: a run has thousands of members
  first_ = from;
  from = std::min(from, records_);
  count = std::min(count, records_ - from);
  const uint64_t offset = ledger::kStepHeaderBytes + from * bytes_;
  ASSIGN_OR_RETURN(block_, file.Read(offset, offset + count * bytes_));
  return block_.size() / bytes_;
}

absl::StatusOr<const LedgerStep*> StepReader::Step(uint64_t number) {
  const absl::string_view record(block_.data() + (number - first_) * bytes_, bytes_);
  absl::string_view rest = record;
  for (uint32_t* value : {&step_.session, &step_.environment, &step_.episode, &step_.step}) TakeValue(&rest, value);
  TakeValue(&rest, &step_.cost);
  TakeValue(&rest, &step_.check);
  for (float& value : step_.execution) TakeValue(&rest, &value);
  uint32_t crc = 0;
  TakeValue(&rest, &crc);
  if (crc == ledger::RecordChecksum(number, record.substr(0, bytes_ - sizeof crc))) return &step_;
  return absl::DataLossError(absl::StrCat(path_, ", record ", number, ": its checksum is wrong"));
}

absl::StatusOr<std::vector<LedgerStep>> ReadEpisode(const std::string& run_dir, const LedgerViolation& violation) {
  const std::string path = absl::StrCat(run_dir, "/", ledger::StepsPath(violation.member));
  const auto action_dim = static_cast<uint32_t>(violation.executed_action.size());
  ASSIGN_OR_RETURN(const std::unique_ptr<StepReader> reader,
                   StepReader::Open(path, MakeOwner("", violation.member), action_dim));
  std::vector<LedgerStep> steps;
  bool found = false;
  for (uint64_t number = 0, end = 0;; ++number) {
    if (number == end) {
      ASSIGN_OR_RETURN(const uint64_t read, reader->Read(number, kBlockRecords));
      end += read;
    }
    if (number == end) break;
    ASSIGN_OR_RETURN(const LedgerStep* const step, reader->Step(number));
    if (step->session != violation.session || step->environment != violation.environment ||
        step->episode != violation.episode)
      continue;
    if (step->step != steps.size()) {
      return absl::DataLossError(absl::StrCat(path, ", record ", number, ": step ", step->step,
                                              " of its episode instead of step ", steps.size()));
    }
    found = found || (step->step == violation.step && step->cost == violation.cost);
    steps.push_back(*step);
  }
  if (found) return steps;
  return absl::DataLossError(absl::StrCat(path, ": record ", violation.env_steps - 1, " is not violation ",
                                          violation.id, " of violations.csv"));
}

namespace {

bool SameEpisode(const LedgerViolation& a, const LedgerViolation& b) {
  return a.member == b.member && a.session == b.session && a.environment == b.environment && a.episode == b.episode;
}

// The largest violations so far, one of an episode, largest first. An episode that was pushed out by `most` larger ones
// can return only with a larger violation.
class Largest {
 public:
  explicit Largest(size_t most) : most_(most) {}

  void Add(const LedgerViolation& violation) {
    const auto same = std::find_if(kept_.begin(), kept_.end(),
                                   [&](const LedgerViolation& kept) { return SameEpisode(kept, violation); });
    if (same != kept_.end()) {
      if (!(violation.cost > same->cost)) return;
      kept_.erase(same);
    }
    const auto place = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const LedgerViolation& kept) { return violation.cost > kept.cost; });
    kept_.insert(place, violation);
    if (kept_.size() > most_) kept_.pop_back();
  }

  const std::vector<LedgerViolation>& kept() const { return kept_; }

 private:
  const size_t most_;
  std::vector<LedgerViolation> kept_;
};

// INVALID_ARGUMENT, naming a file, unless all files in the folder are of an excerpt. Its steps are of no run.
absl::Status CheckExcerpt(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", name);
    const absl::StatusOr<OpenedFile> file = OpenedFile::Open(path);
    if (file.ok() && path.ends_with(absl::StrCat("/", ledger::kViolationsPath))) continue;
    if (file.ok() && name.ends_with(".steps")) {
      ASSIGN_OR_RETURN(const std::string run_id, file->Read(sizeof(FrameHeader), sizeof(FrameHeader) + 1));
      if (run_id.empty() || run_id[0] == '\0') continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not of an excerpt of violations, and would be lost; name another folder"));
  }
  return absl::OkStatus();
}

// Writes FOLDER/ledger: of each episode the steps up to its violation.
absl::Status WriteExcerpt(const std::vector<LedgerViolation>& kept,
                          const std::vector<std::vector<LedgerStep>>& episodes, uint32_t members,
                          const std::string& folder) {
  const auto action_dim = static_cast<uint32_t>(kept[0].executed_action.size());
  ASSIGN_OR_RETURN(const std::unique_ptr<LedgerWriter> writer,
                   LedgerWriter::Open({folder, members, action_dim, /*run_id=*/""}, {}));
  for (size_t i = 0; i < kept.size(); ++i) {
    for (const LedgerStep& step : episodes[i]) {
      if (step.step <= kept[i].step) RETURN_IF_ERROR(writer->AppendStep(kept[i].member, step));
    }
    RETURN_IF_ERROR(writer->AppendViolation(kept[i]));
  }
  return writer->Flush(/*sync=*/true);
}

}  // namespace

absl::StatusOr<size_t> CopyLargestViolations(const std::string& run_dir, size_t most, const std::string& target) {
  Largest largest(most);
  RETURN_IF_ERROR(VisitViolations(run_dir, [&](const LedgerViolation& violation) { largest.Add(violation); }));
  const std::vector<LedgerViolation>& kept = largest.kept();
  if (kept.empty()) return 0;
  std::error_code error;
  if (std::filesystem::equivalent(run_dir, target, error)) {
    return absl::InvalidArgumentError(absl::StrCat(target, " is the run itself, whose ledger would be lost"));
  }
  RETURN_IF_ERROR(CheckExcerpt(target + "/ledger"));
  std::vector<std::vector<LedgerStep>> episodes;  // read first: a damaged ledger replaces nothing
  uint32_t members = 0;
  for (const LedgerViolation& violation : kept) {
    ASSIGN_OR_RETURN(std::vector<LedgerStep> steps, ReadEpisode(run_dir, violation));
    constexpr uint32_t kMostMembers = 1 << 16;  // of a run; each member up to the largest number gets a file
    if (violation.member >= kMostMembers) {
      return absl::DataLossError(absl::StrCat(run_dir, "/", ledger::kViolationsPath, ": violation ", violation.id,
                                              " is of member ", violation.member, ", which no run has"));
    }
    episodes.push_back(std::move(steps));
    members = std::max(members, violation.member + 1);
  }
  const std::string unfinished = absl::StrCat(target, "/ledger.", ::getpid(), ".tmp");
  std::filesystem::remove_all(unfinished, error);
  absl::Status status = WriteExcerpt(kept, episodes, members, unfinished);
  if (status.ok()) {  // only now: a full disk leaves an earlier excerpt
    std::filesystem::remove_all(target + "/ledger", error);
    std::filesystem::rename(unfinished + "/ledger", target + "/ledger", error);
    if (error) status = ErrnoStatus(error.value(), absl::StrCat("rename to ", target, "/ledger"));
  }
  std::filesystem::remove_all(unfinished, error);
  RETURN_IF_ERROR(status);
  return kept.size();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
