// Encoded snapshot: manifest (protobuf, its length u64 in front), data. File: a frame around u32 count, then every
// snapshot with its length u64 in front.
#include "common/nn/snapshot.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/framed_file.h"
#include "common/base/status.h"
#include "common/nn/snapshot_proto.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace datacom {
namespace {

constexpr FileFormat kFormat = {"snapshot file", "DCSNAPSH", 2, "; use the build that wrote it"};

// The same message always gives the same bytes (map fields are sorted).
std::string SerializeDeterministically(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

uint32_t ChecksumOf(v1::SnapshotManifest manifest, absl::string_view data) {
  manifest.clear_crc32c();
  return Crc32c(data, Crc32c(SerializeDeterministically(manifest)));
}

// Number of values of `spec`; DATA_LOSS when their bytes exceed `limit` (so that no product overflows).
absl::StatusOr<uint64_t> CountValues(const v1::ArraySpec& spec, uint64_t limit) {
  if (spec.name().empty() || spec.shape().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot array \"", spec.name(), "\" lacks a name or a shape"));
  }
  uint64_t count = 1;
  for (const uint32_t extent : spec.shape()) {
    if (extent == 0)
      return absl::InvalidArgumentError(absl::StrCat("snapshot array ", spec.name(), " has an extent of 0"));
    if (count > limit / sizeof(float) / extent) {
      return absl::DataLossError(absl::StrCat("snapshot array ", spec.name(), " of shape [",
                                              absl::StrJoin(spec.shape(), ", "), "] exceeds the ", limit,
                                              " bytes of data"));
    }
    count *= extent;
  }
  return count;
}

}  // namespace

const NamedArray* Snapshot::Find(absl::string_view name) const {
  for (const NamedArray& array : arrays) {
    if (name == absl::string_view(array.name)) return &array;
  }
  return nullptr;
}

size_t Snapshot::data_bytes() const {
  size_t bytes = 0;
  for (const NamedArray& array : arrays) bytes += array.values.size() * sizeof(float);
  return bytes;
}

absl::Status Snapshot::CheckFinite() const {
  for (const NamedArray& array : arrays) {
    const auto bad =
        std::find_if_not(array.values.begin(), array.values.end(), [](float v) { return std::isfinite(v); });
    if (bad == array.values.end()) continue;
    return absl::DataLossError(absl::StrCat("member ", member, ": array ", array.name, " holds ", *bad));
  }
  return absl::OkStatus();
}

v1::SnapshotManifest MakeManifest(const Snapshot& snapshot, std::string* data) {
  v1::SnapshotManifest manifest;
  manifest.set_run_id(snapshot.run_id);
  manifest.set_run_seed(snapshot.run_seed);
  manifest.set_member(snapshot.member);
  manifest.set_member_seed(snapshot.member_seed);
  manifest.mutable_version()->set_incarnation(snapshot.version.incarnation);
  manifest.mutable_version()->set_update(snapshot.version.update);
  manifest.set_task(snapshot.task);
  manifest.set_acting_rule(snapshot.acting_rule);
  data->clear();
  data->reserve(snapshot.data_bytes());
  for (const NamedArray& array : snapshot.arrays) {
    v1::ArraySpec* spec = manifest.add_arrays();
    spec->set_name(array.name);
    for (const uint32_t extent : array.shape) spec->add_shape(extent);
    data->append(reinterpret_cast<const char*>(array.values.data()), array.values.size() * sizeof(float));
  }
  for (const auto& [name, value] : snapshot.scalars) (*manifest.mutable_scalars())[name] = value;
  manifest.set_data_bytes(data->size());
  manifest.set_crc32c(ChecksumOf(manifest, *data));
  return manifest;
}

absl::StatusOr<Snapshot> SnapshotFromManifest(const v1::SnapshotManifest& manifest, absl::string_view data) {
  if (manifest.data_bytes() != data.size()) {
    return absl::DataLossError(
        absl::StrCat("snapshot data has ", data.size(), " bytes, its manifest states ", manifest.data_bytes()));
  }
  const uint32_t crc = ChecksumOf(manifest, data);
  Snapshot snapshot;
  snapshot.run_id = manifest.run_id();
  snapshot.run_seed = manifest.run_seed();
  snapshot.member = manifest.member();
  snapshot.member_seed = manifest.member_seed();
  snapshot.version = {manifest.version().incarnation(), manifest.version().update()};
  snapshot.task = manifest.task();
  snapshot.acting_rule = manifest.acting_rule();
  std::set<std::string> names;
  for (const v1::ArraySpec& spec : manifest.arrays()) {
    if (!names.insert(spec.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat("snapshot array ", spec.name(), " appears twice"));
    }
    ASSIGN_OR_RETURN(const uint64_t count, CountValues(spec, data.size()));
    NamedArray array;
    array.name = spec.name();
    array.shape.assign(spec.shape().begin(), spec.shape().end());
    array.values.resize(count);
    std::memcpy(array.values.data(), data.data(), count * sizeof(float));
    data.remove_prefix(count * sizeof(float));
    snapshot.arrays.push_back(std::move(array));
  }
  if (!data.empty())
    return absl::DataLossError(absl::StrCat("snapshot data has ", data.size(), " bytes beyond its arrays"));
  for (const auto& [name, value] : manifest.scalars()) snapshot.scalars[name] = value;
  if (crc != manifest.crc32c()) {
    return absl::DataLossError(absl::StrCat("snapshot of member ", manifest.member(), " has checksum ", absl::Hex(crc),
                                            ", its manifest states ", absl::Hex(manifest.crc32c())));
  }
  return snapshot;
}

std::string EncodeSnapshot(const Snapshot& snapshot) {
  std::string data;
  const std::string manifest = SerializeDeterministically(MakeManifest(snapshot, &data));
  std::string encoded;
  encoded.reserve(sizeof(uint64_t) + manifest.size() + data.size());
  PutSized(manifest, &encoded);
  return encoded.append(data);
}

absl::StatusOr<Snapshot> DecodeSnapshot(absl::string_view encoded) {
  const size_t total = encoded.size();
  absl::string_view bytes;
  if (!TakeSized(&encoded, &bytes))
    return absl::DataLossError(absl::StrCat("snapshot of ", total, " bytes ends inside its manifest"));
  v1::SnapshotManifest manifest;
  if (bytes.size() > INT32_MAX || !manifest.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return absl::DataLossError(absl::StrCat("snapshot manifest of ", bytes.size(), " bytes cannot be parsed"));
  return SnapshotFromManifest(manifest, encoded);
}

absl::Status WriteSnapshotFile(const std::string& path, const std::vector<Snapshot>& snapshots) {
  std::string content;
  PutValue(static_cast<uint32_t>(snapshots.size()), &content);
  for (const Snapshot& snapshot : snapshots) PutSized(EncodeSnapshot(snapshot), &content);
  return WriteFramedFile(kFormat, path, content);
}

absl::StatusOr<std::vector<Snapshot>> ReadSnapshotFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFramedFile(kFormat, path));
  absl::string_view rest = content;
  uint32_t count = 0;
  if (!TakeValue(&rest, &count)) return absl::DataLossError(absl::StrCat(path, " ends inside its header"));
  std::vector<Snapshot> snapshots;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string where = absl::StrCat(path, ", snapshot ", i, " of ", count);
    absl::string_view encoded;
    if (!TakeSized(&rest, &encoded)) return absl::DataLossError(absl::StrCat(where, ": the file ends inside it"));
    ASSIGN_OR_RETURN(Snapshot snapshot, Annotate(DecodeSnapshot(encoded), where));
    snapshots.push_back(std::move(snapshot));
  }
  if (!rest.empty())
    return absl::DataLossError(absl::StrCat(path, " has ", rest.size(), " bytes after its last snapshot"));
  return snapshots;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
