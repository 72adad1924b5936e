#include "common/records/tensorboard.h"

#include <array>
#include <cmath>
#include <cstring>

#include "common/base/files.h"
#include "common/base/status.h"
#include "datacom/v1/tensorboard.pb.h"

namespace datacom {
namespace {

constexpr char kFileName[] = "events.out.tfevents.0.datacom";

std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}

template <typename T>
void AppendLittleEndian(T value, std::string* out) {  // the build targets x86-64
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

}  // namespace

uint32_t Crc32c(absl::string_view data) {
  static const std::array<uint32_t, 256> kTable = MakeCrcTable();
  uint32_t crc = 0xffffffffu;
  for (const char c : data) crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ (crc >> 8);
  return crc ^ 0xffffffffu;
}

uint32_t MaskedCrc32c(absl::string_view data) {
  const uint32_t crc = Crc32c(data);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

absl::StatusOr<std::unique_ptr<EventWriter>> EventWriter::Open(const std::string& folder, uint64_t offset) {
  RETURN_IF_ERROR(MakeFolders(folder));
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, AppendFile::Open(folder + "/" + kFileName, offset));
  std::unique_ptr<EventWriter> writer(new EventWriter(std::move(file)));
  if (offset == 0) {
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
  AppendLittleEndian(static_cast<uint64_t>(data.size()), &record);
  AppendLittleEndian(MaskedCrc32c(record), &record);
  record += data;
  AppendLittleEndian(MaskedCrc32c(data), &record);
  return file_->Append(record);
}

}  // namespace datacom
