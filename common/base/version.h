// What this build is: single-sourced from git, asked when configuring and by ./datacom before each build.
#ifndef DATACOM_COMMON_BASE_VERSION_H_
#define DATACOM_COMMON_BASE_VERSION_H_

#include <cstdint>
#include <string>

namespace datacom {

// Bumped whenever a message or a stored layout changes in a way old code would misread.
inline constexpr uint32_t kProtocolVersion = 2;

std::string Version();   // "0.1.0"
std::string Revision();  // git revision, "-dirty" where the tree was changed
// A readable error when the processor lacks the instruction set the build targets; call first in main.
bool CheckProcessor(std::string* message);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_VERSION_H_
