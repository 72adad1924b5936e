#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/records/csv.h"
#include "common/records/tensorboard.h"
#include "deploy/tools/verify/run.h"

namespace datacom::verify {
namespace {

constexpr char kProgressFile[] = "progress.csv";

class ProgressPass {
 public:
  ProgressPass(VerifiedRun* run, const RecordFile& file) : run_(run), csv_(file.csv) {}

  // Returns whether the records show updates.
  bool Go() {
    bool learned = false;
    for (size_t row = 0; row < csv_.rows(); ++row) {
      CheckRow(row);
      learned = learned || Whole(row, "updates") > 0;
    }
    return learned;
  }

  // Every epoch that the checkpoint has ended has its rows, or waits in the checkpoint for evaluations. `kept`: rows.
  void CompareWithCheckpoint(size_t kept) {
    std::set<uint64_t> ended;
    for (size_t row = 0; row < kept; ++row) ended.insert(Whole(row, "epoch"));
    for (const v1::EpochRecord& record : run_->checkpoint->pending()) ended.insert(record.epoch());
    ended.insert(run_->checkpoint->next_epoch());
    uint64_t next = 0;
    for (auto epoch = ended.begin(); next < run_->checkpoint->next_epoch(); ++epoch) {
      if (next < *epoch) {
        const std::string others = *epoch - next == 1 ? "" : absl::StrCat(" to ", *epoch - 1);
        run_->report->Damage(kProgressFile, absl::StrCat("lines 2 to ", kept + 1, ": no row of epoch ", next, others,
                                                         ", which the newest checkpoint has ended"));
      }
      next = *epoch + 1;
    }
  }

 private:
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
    const uint64_t length = run_->experiment.run().steps_per_epoch();
    if (steps > epoch * length || (epoch > 0 && steps <= (epoch - 1) * length))
      Damage(row, absl::StrCat("epoch ", epoch, " does not end after ", steps, " steps"));
    if (const uint64_t updates = run_->updates().UpdatesAt(steps); updates != Whole(row, "updates"))
      Damage(row, absl::StrCat(csv_.Text(row, "updates"), " updates, ", updates, " belong to ", steps, " steps"));
    if (const uint64_t seed = run_->settings.members[member].seed; seed != Whole(row, "seed"))
      Damage(row, absl::StrCat("seed ", csv_.Text(row, "seed"), ", member ", member, " has ", seed));
    const std::string state = csv_.Text(row, "status");
    if (state != "ok" && state != "diverged" && state != "runaway" && state != "abandoned" && state != "locked")
      Damage(row, absl::StrCat("status is \"", state, "\""));
  }

  VerifiedRun* const run_;
  const Csv& csv_;
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

std::optional<RecordFile> ReadRecordFile(VerifiedRun* run, const std::string& file,
                                         const std::map<std::string, uint64_t>& whole) {
  const uint64_t kept = run->KeptLength(file);
  const auto damaged = [&](absl::string_view what) -> std::optional<RecordFile> {
    run->report->Damage(file, what);
    return std::nullopt;
  };
  const absl::StatusOr<std::string> text = ReadFile(run->Path(file));
  if (!text.ok()) return kept > 0 ? damaged(text.status().message()) : std::nullopt;
  const size_t end = text->rfind('\n') + 1;  // 0 when no line is finished
  if (end < text->size() && !run->running) {
    run->report->Damage(file, "its last line is unfinished", CutTail(*run, file, end));
  }
  if (end == 0 && (run->running || (text->empty() && kept == 0))) return std::nullopt;
  absl::StatusOr<Csv> csv = Csv::Parse(*text, run->Path(file));
  const absl::Status status = csv.ok() ? CheckRecords(*csv, whole) : csv.status();
  if (!status.ok()) return damaged(status.message());
  RecordFile read{*std::move(csv), std::nullopt};
  if (kept == 0 || kept > text->size()) return read;  // reported with the checkpoints
  if ((*text)[kept - 1] != '\n') {
    run->report->Damage(file, absl::StrCat("byte ", kept, ": the newest checkpoint ends here, and no line does"));
  } else {
    read.kept = static_cast<size_t>(std::count(text->begin(), text->begin() + static_cast<int64_t>(kept), '\n')) - 1;
  }
  return read;
}

bool VerifyProgress(VerifiedRun* run) {
  constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
  const std::optional<RecordFile> file = ReadRecordFile(run, kProgressFile,
                                                        {{"member", run->members() - 1},
                                                         {"seed", kAny},
                                                         {"epoch", kAny},
                                                         {"updates", kAny},
                                                         {"env_steps", run->updates().env_steps}});
  if (!file) {
    run->report->Part("progress", "no rows that can be read");
    return false;
  }
  ProgressPass pass(run, *file);
  const bool learned = pass.Go();
  if (file->kept) pass.CompareWithCheckpoint(*file->kept);
  const uint64_t rows = file->csv.rows();
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
