// Encoded snapshots for the fuzz targets, with the checksum of common/nn/snapshot.h computed apart from it.
#ifndef DATACOM_TESTS_FUZZ_SNAPSHOT_INPUTS_H_
#define DATACOM_TESTS_FUZZ_SNAPSHOT_INPUTS_H_

#include <string>

#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/nn/snapshot_proto.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "tests/fuzz/fuzz_target.h"

namespace datacom::fuzz {

inline std::string SerializeSorted(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

// Sets size and checksum of the manifest to those that `data` has.
inline void SealManifest(absl::string_view data, v1::SnapshotManifest* manifest) {
  manifest->set_data_bytes(data.size());
  manifest->clear_crc32c();
  manifest->set_crc32c(Crc32c(data, Crc32c(SerializeSorted(*manifest))));
}

// A manifest (Input::Text) and data, as an encoded snapshot with the right size and checksum; empty when the manifest
// cannot be parsed.
inline std::string SealedSnapshot(Input* input) {
  const absl::string_view bytes = input->Text(), data = input->Rest();
  v1::SnapshotManifest manifest;
  if (!manifest.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return "";
  SealManifest(data, &manifest);
  std::string encoded;
  PutSized(SerializeSorted(manifest), &encoded);
  return encoded.append(data.data(), data.size());
}

// The input of SealedSnapshot for a snapshot.
inline std::string OpenSnapshot(const Snapshot& snapshot) {
  std::string data;
  const v1::SnapshotManifest manifest = MakeManifest(snapshot, &data);
  return Text(SerializeSorted(manifest)) + data;
}

inline Snapshot SmallSnapshot() {
  Snapshot snapshot;
  snapshot.run_id = "run";
  snapshot.run_seed = 5;
  snapshot.member = 1;
  snapshot.member_seed = 9;
  snapshot.version = {2, 300};
  snapshot.task = "cartpole";
  snapshot.acting_rule = "safe_map";
  snapshot.arrays = {{"actor.mean.0.weight", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"actor.mean.0.bias", {3}, {-1, 0, 0.5f}}};
  snapshot.scalars = {{"delta", 0.8}, {"slack_beta", 3}};
  return snapshot;
}

// A decoded snapshot has a value for every element of its shapes, and encodes to bytes that decode to it.
inline void CheckSnapshot(const Snapshot& snapshot) {
  for (const NamedArray& array : snapshot.arrays) {
    uint64_t count = 1;
    for (const uint32_t extent : array.shape) count *= extent;
    MUST(!array.name.empty() && !array.shape.empty() && count == array.values.size());
    MUST(snapshot.Find(array.name) == &array);
  }
  const std::string encoded = EncodeSnapshot(snapshot);
  const auto again = DecodeSnapshot(encoded);
  MustAccept(again.status());
  MUST(EncodeSnapshot(*again) == encoded);
}

}  // namespace datacom::fuzz

#endif  // DATACOM_TESTS_FUZZ_SNAPSHOT_INPUTS_H_
// SPDX-License-Identifier: Apache-2.0
