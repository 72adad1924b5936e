// Files that come with the programs: experiments, sweeps, examples, fonts, the plotting library. They lie in deploy/ of
// a checkout and in share/datacom/ of an installation, which are looked for from the running program's folder upwards.
// Functions; thread-safe; they block on the file system.
#ifndef DATACOM_COMMON_BASE_SHARED_FILES_H_
#define DATACOM_COMMON_BASE_SHARED_FILES_H_

#include <string>

namespace datacom {

// The path of the file or folder `name`, for example "experiments"; `otherwise` when there is none.
std::string FindSharedFile(const std::string& name, const std::string& otherwise);

// The same path as a message names it: relative to the working folder where it lies below, as deploy/NAME in a
// checkout; deploy/NAME also where there is none.
std::string SharedPath(const std::string& name);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_SHARED_FILES_H_
// SPDX-License-Identifier: Apache-2.0
