// Changes framed files (common/base/framed_file.h) in tests: their header gets the right checksum again. Pure
// functions.
#ifndef DATACOM_TESTS_TESTING_FRAMED_FILES_H_
#define DATACOM_TESTS_TESTING_FRAMED_FILES_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/framed_file.h"

namespace datacom::testing {

inline uint32_t VersionOf(const std::string& content) {
  FrameHeader header{};
  std::memcpy(&header, content.data(), sizeof header);
  return header.version;
}

// The file as a build with another version of its format would have written it.
inline std::string WithVersion(std::string content, uint32_t version) {
  FrameHeader header;
  std::memcpy(&header, content.data(), sizeof header);
  FileFormat format;
  format.magic = absl::string_view(header.magic, sizeof header.magic);
  format.version = version;
  header = MakeFrameHeader(format, absl::string_view(content).substr(sizeof header, header.length));
  return content.replace(0, sizeof header, reinterpret_cast<const char*>(&header), sizeof header);
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_FRAMED_FILES_H_
// SPDX-License-Identifier: Apache-2.0
