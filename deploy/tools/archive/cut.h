// A cut: copies of all files of a run, as they were at one moment, while its processes go on.
//
// Nothing stops for it, because the parts are read against the order in which the processes commit them: the newest
// checkpoint, then sessions and credit, then the copies of failures, then the rows. Read so, they are what kill -9 of
// all processes could have left: rows newer than the credit and the checkpoint, never older (replay/tables.cc). If
// sessions begin or end meanwhile, or blocks are overwritten, the cut is taken again. Of a record file it holds what
// the checkpoint names.
//
// Only what the former cut lacks is copied: rings and record files grow by parts, and a part that is not larger than
// what follows it is replaced by one part for both. So N rows have about log N parts and each is copied log N times.
#ifndef DATACOM_DEPLOY_TOOLS_ARCHIVE_CUT_H_
#define DATACOM_DEPLOY_TOOLS_ARCHIVE_CUT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "datacom/v1/archive.pb.h"

namespace datacom::archive {

inline constexpr uint64_t kMostPartBytes = uint64_t{64} << 20;

// The object of a part: parts/<path>/<offset>-<16 digits of its sum>.
std::string ObjectOf(const std::string& path, const v1::ArchivedPart& part);

// Takes a cut of the run and writes the parts that `former` lacks to files below `spool`, named like their objects.
// Nothing when the run has no checkpoint yet. `spool` should be on the run's file system. Blocks on the disk. Errors
// name the file: FAILED_PRECONDITION and DATA_LOSS as for a resume; ABORTED when sessions changed during all attempts;
// RESOURCE_EXHAUSTED when the parts would leave less than 64 MiB of the disk free.
absl::StatusOr<std::optional<v1::ArchiveCut>> TakeCut(const std::string& run_dir, const v1::ArchiveCut& former,
                                                      const std::string& spool);

}  // namespace datacom::archive

#endif  // DATACOM_DEPLOY_TOOLS_ARCHIVE_CUT_H_
// SPDX-License-Identifier: Apache-2.0
