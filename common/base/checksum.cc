#include "common/base/checksum.h"

#include <isa-l/crc.h>

namespace datacom {

uint32_t Crc32c(absl::string_view data, uint32_t before) {
  // ISA-L takes the data as non-const and at most 2 GiB at once, and leaves out the inversions at both ends.
  constexpr size_t kPiece = size_t{1} << 30;
  while (data.size() > kPiece) {
    before = Crc32c(data.substr(0, kPiece), before);
    data.remove_prefix(kPiece);
  }
  auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
  return ~crc32_iscsi(bytes, static_cast<int>(data.size()), ~before);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
