// Where an archive is: a folder, or a bucket that the program rclone reaches.
//
//   file:///mnt/run, or a path   a folder
//   s3://BUCKET/PATH             with the credentials that AWS_* name; AWS_ENDPOINT_URL names another store
//   gs://BUCKET/PATH             with the application's default credentials
//   REMOTE:PATH                  a remote of rclone's configuration
//
// Names are relative paths. An object appears whole or not at all. Not thread-safe; every function blocks on the disk
// and the network. Errors name the place: INVALID_ARGUMENT what cannot be a place, NOT_FOUND that rclone is missing,
// UNAVAILABLE with rclone's own words everything else.
#ifndef DATACOM_DEPLOY_TOOLS_ARCHIVE_STORE_H_
#define DATACOM_DEPLOY_TOOLS_ARCHIVE_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace datacom::archive {

class Store {
 public:
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& place);
  virtual ~Store() = default;

  // The sizes of all objects by name; none where nothing was uploaded yet. An interrupted write may leave NAME.tmp.
  virtual absl::StatusOr<std::map<std::string, uint64_t>> List() = 0;
  // Copies every file below `folder` to the object of the same name.
  virtual absl::Status Upload(const std::string& folder) = 0;
  // Copies the objects to files below `folder`.
  virtual absl::Status Download(const std::vector<std::string>& names, const std::string& folder) = 0;
  virtual absl::Status Delete(const std::vector<std::string>& names) = 0;
};

}  // namespace datacom::archive

#endif  // DATACOM_DEPLOY_TOOLS_ARCHIVE_STORE_H_
// SPDX-License-Identifier: Apache-2.0
