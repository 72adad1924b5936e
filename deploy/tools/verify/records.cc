#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/records/csv.h"
#include "common/records/tensorboard.h"
#include "deploy/tools/verify/learner_files.h"

namespace datacom::verify {
namespace {

constexpr char kProgressFile[] = "progress.csv";

// The message without the path in front, which the report names by itself.
std::string Plain(const VerifiedRun& run, const absl::Status& status) {
  std::string message(status.message());
  const std::string path = run.Path(kProgressFile) + " ";
  return message.rfind(path, 0) == 0 ? message.substr(path.size()) : message;
}

class ProgressPass {
 public:
  ProgressPass(VerifiedRun* run, const std::string& text, Csv csv) : run_(run), text_(text), csv_(std::move(csv)) {}

  bool Go() {
    absl::Status status = CheckCells();
    if (!status.ok()) {
      run_->report->Damage(kProgressFile, Plain(*run_, status));
      return false;
    }
    bool learned = false;
    for (size_t row = 0; row < csv_.rows(); ++row) {
      CheckRow(row);
      learned = learned || Whole(row, "updates") > 0;
    }
    CompareWithCheckpoint();
    return learned;
  }

 private:
  absl::Status CheckCells() const {
    constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
    absl::Status status = csv_.CheckWhole("member", run_->members() - 1);
    for (const char* column : {"seed", "epoch", "updates"}) {
      if (status.ok()) status = csv_.CheckWhole(column, kAny);
    }
    if (status.ok()) status = csv_.CheckWhole("env_steps", run_->updates().env_steps);
    return status.ok() ? csv_.CheckNumbers("status") : status;
  }

  uint64_t Whole(size_t row, const std::string& column) const {
    uint64_t value = 0;
    (void)absl::SimpleAtoi(csv_.Text(row, column), &value);
    return value;
  }

  void Damage(size_t row, const std::string& what) {
    run_->report->Damage(kProgressFile, absl::StrCat("line ", row + 2, ": ", what));
  }

  // An epoch has a row for each member, in their order. When a run was made longer, the epoch that its first end had
  // cut short has rows at both ends.
  void CheckRow(size_t row) {
    const uint64_t member = Whole(row, "member"), epoch = Whole(row, "epoch"), steps = Whole(row, "env_steps");
    if (row % run_->members() == 0) {
      const bool longer = row > 0 && epoch == epoch_ && steps > steps_;
      const uint64_t next = row == 0 ? 0 : epoch_ + 1;
      if (epoch != next && !longer) Damage(row, absl::StrCat("epoch ", epoch, ", epoch ", next, " is expected"));
      epoch_ = epoch;
      steps_ = steps;
    }
    if (member != row % run_->members() || epoch != epoch_ || steps != steps_) {
      Damage(row, absl::StrCat("epoch ", epoch, " of member ", member, " after ", steps, " steps, epoch ", epoch_,
                               " of member ", row % run_->members(), " after ", steps_, " is expected"));
    }
    const uint64_t length = run_->steps_per_epoch;
    if (steps > epoch * length || (epoch > 0 && steps <= (epoch - 1) * length))
      Damage(row, absl::StrCat("epoch ", epoch, " does not end after ", steps, " steps"));
    if (const uint64_t updates = run_->updates().UpdatesAt(steps); updates != Whole(row, "updates"))
      Damage(row, absl::StrCat(csv_.Text(row, "updates"), " updates, ", updates, " belong to ", steps, " steps"));
    if (const uint64_t seed = run_->settings.members[member].seed; seed != Whole(row, "seed"))
      Damage(row, absl::StrCat("seed ", csv_.Text(row, "seed"), ", member ", member, " has ", seed));
    const std::string state = csv_.Text(row, "status");
    if (state != "ok" && state != "diverged" && state != "runaway")
      Damage(row, absl::StrCat("status is \"", state, "\""));
  }

  // Every epoch that the checkpoint has ended has its rows, or waits in the checkpoint for evaluations.
  void CompareWithCheckpoint() {
    const uint64_t kept = run_->KeptLength(kProgressFile);
    if (kept == 0 || kept > text_.size()) return;
    if (text_[kept - 1] != '\n') {
      run_->report->Damage(kProgressFile,
                           absl::StrCat("byte ", kept, ": the newest checkpoint ends here, and no line does"));
      return;
    }
    const auto lines = static_cast<size_t>(std::count(text_.begin(), text_.begin() + static_cast<int64_t>(kept), '\n'));
    std::set<uint64_t> ended;
    for (size_t row = 0; row + 1 < lines; ++row) ended.insert(Whole(row, "epoch"));
    for (const v1::EpochRecord& record : run_->checkpoint->pending()) ended.insert(record.epoch());
    for (uint64_t epoch = 0; epoch < run_->checkpoint->next_epoch(); ++epoch) {
      if (ended.count(epoch) > 0) continue;
      run_->report->Damage(kProgressFile, absl::StrCat("lines 2 to ", lines, ": no row of epoch ", epoch,
                                                       ", which the newest checkpoint has ended"));
    }
  }

  VerifiedRun* const run_;
  const std::string& text_;
  const Csv csv_;
  uint64_t epoch_ = 0, steps_ = 0;
};

// Returns the number of events; reports damage.
uint64_t VerifyEvents(VerifiedRun* run, const std::string& file, absl::string_view content) {
  uint64_t events = 0;
  const size_t all = content.size();
  while (!content.empty()) {
    const size_t from = all - content.size();
    const auto where = [&] { return absl::StrCat("event ", events, " at byte ", from); };
    absl::string_view rest = content;
    uint64_t length = 0;
    uint32_t length_crc = 0, data_crc = 0;
    const bool head = TakeValue(&rest, &length) && TakeValue(&rest, &length_crc);
    if (head && MaskedCrc32c(content.substr(0, sizeof length)) != length_crc) {
      run->report->Damage(file, where() + ": the checksum of its length is wrong");
      return events;
    }
    if (!head || rest.size() < sizeof data_crc || rest.size() - sizeof data_crc < length) {
      if (!run->running) run->report->Damage(file, where() + ": unfinished", CutTail(*run, file, from));
      return events;
    }
    const absl::string_view data = rest.substr(0, length);
    rest.remove_prefix(length);
    TakeValue(&rest, &data_crc);
    if (MaskedCrc32c(data) != data_crc) run->report->Damage(file, where() + ": its checksum is wrong");
    content = rest;
    ++events;
  }
  return events;
}

}  // namespace

bool VerifyProgress(VerifiedRun* run) {
  const absl::StatusOr<std::string> text = ReadFile(run->Path(kProgressFile));
  if (!text.ok()) {
    if (run->KeptLength(kProgressFile) > 0) run->report->Damage(kProgressFile, text.status().message());
    run->report->Part("progress", "not there yet");
    return false;
  }
  const size_t end = text->rfind('\n') == std::string::npos ? 0 : text->rfind('\n') + 1;
  if (end < text->size() && !run->running) {
    run->report->Damage(kProgressFile, "its last line is unfinished", CutTail(*run, kProgressFile, end));
  }
  absl::StatusOr<Csv> csv = Csv::Parse(*text, run->Path(kProgressFile));
  if (!csv.ok()) {
    const bool starting = end == 0 && run->running;
    if (!starting) run->report->Damage(kProgressFile, Plain(*run, csv.status()));
    run->report->Part("progress", "cannot be read");
    return false;
  }
  const uint64_t rows = csv->rows();
  const bool learned = ProgressPass(run, *text, *std::move(csv)).Go();
  run->report->Part("progress", absl::StrCat(Count(rows, "row"), ", ", Count(rows / run->members(), "epoch")));
  return learned;
}

void VerifyTensorboard(VerifiedRun* run) {
  uint64_t files = 0, events = 0;
  for (uint32_t member = 0; member < run->members(); ++member) {
    const std::string folder = absl::StrCat("tensorboard/member_", member);
    const std::string file = absl::StrCat(folder, "/", kEventFile);
    const absl::StatusOr<std::string> content = ReadFile(run->Path(file));
    if (content.ok()) {
      ++files;
      events += VerifyEvents(run, file, *content);
    } else if (run->KeptLength(folder) > 0) {
      run->report->Damage(file, content.status().message());
    }
  }
  run->report->Part("tensorboard", absl::StrCat(Count(files, "file"), ", ", Count(events, "event")));
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
