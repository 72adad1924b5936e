// Version, revision and simulator of this build. The revision comes from git, read by CMake and by ./datacom before
// each build.
#ifndef DATACOM_COMMON_BASE_VERSION_H_
#define DATACOM_COMMON_BASE_VERSION_H_

#include <cstdint>
#include <string>

namespace datacom {

// Incremented whenever a message or a stored layout changes in a way that old code would misread.
inline constexpr uint32_t kProtocolVersion = 4;

std::string Version();    // of the release, for example "0.1.0"
std::string Revision();   // git revision, with "-dirty" when the tree had changes
std::string Simulator();  // "MuJoCo 4.0.0", which the actors of this build link; the other roles link none
std::string BuildName();  // version, revision and simulator
// Returns whether `build`, a BuildName, has another version of the simulator: the same actions then give slightly
// different rows. False for builds that name none.
bool HasOtherSimulator(const std::string& build);
// False, with a message for people, when the processor lacks the build's instruction set; call first in main.
bool CheckProcessor(std::string* message);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_VERSION_H_
// SPDX-License-Identifier: Apache-2.0
