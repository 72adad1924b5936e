// Places of archives as the command and the tools name them (deploy/tools/archive/archive.h lists their forms).
#ifndef DATACOM_COMMON_RECORDS_ARCHIVE_PLACE_H_
#define DATACOM_COMMON_RECORDS_ARCHIVE_PLACE_H_

#include <string>

#include "absl/status/status.h"

namespace datacom {

// Whether the text names a place by a scheme or a remote, rather than a folder.
bool IsRemote(const std::string& place);

// INVALID_ARGUMENT, naming both, when the place is a folder that is, holds or lies in the run folder. Follows links;
// the folders need not exist. Blocks on the disk.
absl::Status CheckApart(const std::string& place, const std::string& run_dir);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_ARCHIVE_PLACE_H_
// SPDX-License-Identifier: Apache-2.0
