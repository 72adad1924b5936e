// Scalars as TensorBoard events: a TFRecord file of Event messages, one folder per member.
//
// Not thread-safe. Append blocks only when a buffer is full; Flush blocks on the disk.
// The format: each record is {length u64, masked CRC-32C of the length, data, masked CRC-32C of the data},
// little-endian; data is a message of proto/datacom/v1/tensorboard.proto.
#ifndef DATACOM_COMMON_RECORDS_TENSORBOARD_H_
#define DATACOM_COMMON_RECORDS_TENSORBOARD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/records/append_file.h"

namespace datacom {

namespace v1 {
class TensorboardEvent;
}

class EventWriter {
 public:
  // Creates the folder if needed; the file in it has a fixed name, so that a resumed run continues the same file.
  // Continues after `end` (an earlier end()); starts an empty file if that is empty. The errors of AppendFile::Open.
  static absl::StatusOr<std::unique_ptr<EventWriter>> Open(const std::string& folder, const FileEnd& end = {});

  // Appends one event of several scalars, e.g. {"eval/discounted_return", 3.5}. Omits NaN. wall_time: Unix seconds.
  absl::Status Append(int64_t step, double wall_time, const std::vector<std::pair<std::string, double>>& scalars);
  absl::Status Flush(bool sync) { return file_->Flush(sync); }
  FileEnd end() const { return file_->end(); }
  const std::string& path() const { return file_->path(); }

 private:
  explicit EventWriter(std::unique_ptr<AppendFile> file) : file_(std::move(file)) {}
  absl::Status AppendRecord(const v1::TensorboardEvent& event);

  std::unique_ptr<AppendFile> file_;
};

inline constexpr char kEventFile[] = "events.out.tfevents.0.datacom";  // its name in the folder
uint32_t MaskedCrc32c(absl::string_view data);                         // as TFRecord stores it

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_TENSORBOARD_H_
// SPDX-License-Identifier: Apache-2.0
