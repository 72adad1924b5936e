#include "common/records/tensorboard.h"

#include <array>
#include <cmath>
#include <cstring>

#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr char kFileName[] = "events.out.tfevents.0.datacom";

// Protobuf wire types (protobuf.dev, "Encoding").
constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

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

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendTag(int field, int wire_type, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field << 3 | wire_type), out);
}

void AppendBytes(int field, const std::string& bytes, std::string* out) {
  AppendTag(field, kBytes, out);
  AppendVarint(bytes.size(), out);
  *out += bytes;
}

std::string EventHead(double wall_time, int64_t step) {
  std::string event;
  AppendTag(1, kFixed64, &event);
  AppendLittleEndian(wall_time, &event);
  AppendTag(2, kVarint, &event);
  AppendVarint(static_cast<uint64_t>(step), &event);
  return event;
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
    std::string event = EventHead(0, 0);
    AppendBytes(3, "brain.Event:2", &event);
    RETURN_IF_ERROR(writer->AppendRecord(event));
  }
  return writer;
}

absl::Status EventWriter::Append(int64_t step, double wall_time,
                                 const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    if (std::isnan(value)) continue;
    std::string scalar;
    AppendBytes(1, tag, &scalar);
    AppendTag(2, kFixed32, &scalar);
    AppendLittleEndian(static_cast<float>(value), &scalar);
    AppendBytes(1, scalar, &summary);
  }
  if (summary.empty()) return absl::OkStatus();
  std::string event = EventHead(wall_time, step);
  AppendBytes(5, summary, &event);
  return AppendRecord(event);
}

absl::Status EventWriter::AppendRecord(const std::string& data) {
  std::string record;
  AppendLittleEndian(static_cast<uint64_t>(data.size()), &record);
  AppendLittleEndian(MaskedCrc32c(record), &record);
  record += data;
  AppendLittleEndian(MaskedCrc32c(data), &record);
  return file_->Append(record);
}

}  // namespace datacom
