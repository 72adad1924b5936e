// CRC-32C (Castagnoli), by ISA-L, which uses the processor's instruction. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_BASE_CHECKSUM_H_
#define DATACOM_COMMON_BASE_CHECKSUM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace datacom {

// `before`: the checksum of the preceding data, 0 when there is none.
uint32_t Crc32c(absl::string_view data, uint32_t before = 0);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_CHECKSUM_H_
// SPDX-License-Identifier: Apache-2.0
