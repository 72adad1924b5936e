#include "common/records/tensorboard.h"

#include <cmath>

#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "datacom/v1/tensorboard.pb.h"

namespace datacom {

uint32_t MaskedCrc32c(absl::string_view data) {
  const uint32_t crc = Crc32c(data);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

absl::StatusOr<std::unique_ptr<EventWriter>> EventWriter::Open(const std::string& folder, const FileEnd& end) {
  if (end.bytes == 0) RETURN_IF_ERROR(MakeFolders(folder));
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, AppendFile::Open(folder + "/" + kEventFile, end));
  std::unique_ptr<EventWriter> writer(new EventWriter(std::move(file)));
  if (end.bytes == 0) {
    v1::TensorboardEvent event;
    event.set_file_version("brain.Event:2");
    RETURN_IF_ERROR(writer->AppendRecord(event));
  }
  return writer;
}

absl::Status EventWriter::Append(int64_t step, double wall_time,
                                 const std::vector<std::pair<std::string, double>>& scalars) {
  v1::TensorboardEvent event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  for (const auto& [tag, value] : scalars) {
    if (std::isnan(value)) continue;
    v1::TensorboardSummary::Value* scalar = event.mutable_summary()->add_value();
    scalar->set_tag(tag);
    scalar->set_simple_value(static_cast<float>(value));
  }
  return event.has_summary() ? AppendRecord(event) : absl::OkStatus();
}

absl::Status EventWriter::AppendRecord(const v1::TensorboardEvent& event) {
  const std::string data = event.SerializeAsString();
  std::string record;
  PutValue(static_cast<uint64_t>(data.size()), &record);
  PutValue(MaskedCrc32c(record), &record);
  record += data;
  PutValue(MaskedCrc32c(data), &record);
  return file_->Append(record);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
