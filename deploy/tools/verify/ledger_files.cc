#include "deploy/tools/verify/ledger_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/records/ledger_format.h"

namespace datacom::verify {
namespace {

absl::Status ReadAt(int fd, const std::string& path, uint64_t offset, std::string* bytes) {
  size_t done = 0;
  while (done < bytes->size()) {
    const ssize_t count = ::pread(fd, bytes->data() + done, bytes->size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, "read " + path);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  bytes->resize(done);
  return absl::OkStatus();
}

}  // namespace

StepFile::StepFile(std::string path, int fd, uint32_t action_dim)
    : path_(std::move(path)), fd_(fd), bytes_(ledger::StepBytes(action_dim)) {}

StepFile::~StepFile() { ::close(fd_); }

absl::StatusOr<std::unique_ptr<StepFile>> StepFile::Open(const std::string& path, uint32_t member,
                                                         uint32_t action_dim) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  std::unique_ptr<StepFile> file(new StepFile(path, fd, action_dim));
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "stat " + path);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size == 0) return file;  // the learner writes the header with the first records
  std::string header(ledger::kStepHeaderBytes, '\0');
  RETURN_IF_ERROR(ReadAt(fd, path, 0, &header));
  RETURN_IF_ERROR(ledger::CheckStepHeader(path, header, member, action_dim));
  file->records_ = (size - ledger::kStepHeaderBytes) / file->bytes_;
  file->tail_ = (size - ledger::kStepHeaderBytes) % file->bytes_;
  return file;
}

absl::StatusOr<uint64_t> StepFile::Read(uint64_t from, uint64_t count) {
  first_ = from;
  count = std::min(count, records_ - std::min(records_, from));
  buffer_.resize(count * bytes_);
  RETURN_IF_ERROR(ReadAt(fd_, path_, ledger::kStepHeaderBytes + from * bytes_, &buffer_));
  return buffer_.size() / bytes_;
}

StepRecord StepFile::record(uint64_t number) const {
  const absl::string_view bytes(buffer_.data() + (number - first_) * bytes_, bytes_);
  absl::string_view rest = bytes;
  StepRecord record;
  Transition& at = record.transition;
  for (uint32_t* value : {&at.session, &at.environment, &at.episode, &at.step}) TakeValue(&rest, value);
  TakeValue(&rest, &at.cost);
  TakeValue(&rest, &record.check);
  uint32_t crc = 0;
  record.execution = rest.substr(0, rest.size() - sizeof crc);
  rest.remove_prefix(record.execution.size());
  TakeValue(&rest, &crc);
  record.sound = crc == ledger::RecordChecksum(number, bytes.substr(0, bytes.size() - sizeof crc));
  return record;
}

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
