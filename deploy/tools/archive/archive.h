// The archive of a run: its state in another place, from which an empty machine goes on.
//
//   parts/<file>/<offset>-<sum>   bytes of the run's files; an object never changes
//   cuts/<number>-<update>        a framed v1::ArchiveCut: which parts make the run at one moment
//
// A cut is written after all of its parts, so a writer that dies leaves the former cut whole. The two newest cuts are
// kept, with their parts; other objects with such names are deleted. Files of others in the same place stay.
//
// One run folder owns an archive: its file archive/owner has the number of the newest cut's owner. A resume that
// restores the folder elsewhere draws another number and writes it there at once, so that the former owner, should it
// still train, is refused. Not thread-safe; every function blocks on the disk and the network.
#ifndef DATACOM_DEPLOY_TOOLS_ARCHIVE_ARCHIVE_H_
#define DATACOM_DEPLOY_TOOLS_ARCHIVE_ARCHIVE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "datacom/v1/archive.pb.h"

namespace datacom::archive {

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

// The newest cut of which every part is there.
struct Newest {
  uint64_t last = 0;  // the largest number of a cut, also of one that is not whole; 0: the archive is empty
  std::string name;
  v1::ArchiveCut cut;
  std::map<std::string, uint64_t> objects;  // of the archive, with their sizes
};
// DATA_LOSS, naming what is missing, when no cut is whole. `place` is for messages. Uses TemporaryFolder().
absl::StatusOr<Newest> FindNewest(Store* store, const std::string& place);

struct Copied {
  uint64_t update = 0;              // of the newest cut; of an empty archive 0
  uint64_t objects = 0, bytes = 0;  // uploaded now
  uint64_t all_bytes = 0;           // of the run's files
  std::optional<std::string>
      kept;  // why old parts could not be deleted; empty: they are gone; none: there was no new cut
};
struct CopyOptions {
  bool keep_state = false;  // write how it went to the file archive/state of the run folder
  bool only_check = false;  // copy nothing, only look whether this folder may
};
// Copies what changed since the newest cut; waits for another copy of the run folder that is under way.
// FAILED_PRECONDITION: the place holds another run, or another folder owns it; the run has no checkpoint.
// INVALID_ARGUMENT as CheckApart (common/records/archive_place.h). INVALID_ARGUMENT and NOT_FOUND as Store::Open. What
// fails otherwise may be tried again.
absl::StatusOr<Copied> CopyRun(const std::string& run_dir, const std::string& place, const CopyOptions& options);

// Makes the run folder, which must not exist or be empty, as it was at the archive's newest cut. With `own` it becomes
// the owner, before anything else happens, and may be prepared: with an experiment whose run has not begun, and other
// files, which stay. INVALID_ARGUMENT, before anything happens, as CheckApart or when the archive holds a run of
// another experiment (only steps and description may differ). An interrupted call leaves a folder without an experiment
// or, if prepared, without a run_id, which the next one replaces. NOT_FOUND when the archive holds no run; DATA_LOSS
// naming the part whose bytes are wrong; RESOURCE_EXHAUSTED, before anything happens, when the disk is too small;
// FAILED_PRECONDITION while another call works in the folder.
absl::StatusOr<v1::ArchiveCut> Restore(const std::string& place, const std::string& run_dir, bool own);

}  // namespace datacom::archive

#endif  // DATACOM_DEPLOY_TOOLS_ARCHIVE_ARCHIVE_H_
// SPDX-License-Identifier: Apache-2.0
