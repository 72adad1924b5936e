// A snapshot in messages: manifest and data bytes (learner.proto, SnapshotManifest).
#ifndef DATACOM_COMMON_NN_SNAPSHOT_PROTO_H_
#define DATACOM_COMMON_NN_SNAPSHOT_PROTO_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/nn/snapshot.h"
#include "datacom/v1/learner.pb.h"

namespace datacom {

// `data` becomes the arrays' values, row-major, one array after the other.
v1::SnapshotManifest MakeManifest(const Snapshot& snapshot, std::string* data);

// INVALID_ARGUMENT, naming the array, for an invalid manifest; DATA_LOSS, naming sizes or checksums, when the data does
// not match it. Allocates no more than the data's size, whatever the manifest claims.
absl::StatusOr<Snapshot> SnapshotFromManifest(const v1::SnapshotManifest& manifest, absl::string_view data);

}  // namespace datacom

#endif  // DATACOM_COMMON_NN_SNAPSHOT_PROTO_H_
// SPDX-License-Identifier: Apache-2.0
