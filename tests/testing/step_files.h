// Changes the ledger's step files in tests: gives a changed record its checksum again.
#ifndef DATACOM_TESTS_TESTING_STEP_FILES_H_
#define DATACOM_TESTS_TESTING_STEP_FILES_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/checksum.h"
#include "common/records/ledger.h"

namespace datacom::testing {

// Where record `number` begins in a step file with `action_dim` action values.
inline size_t StepOffset(uint64_t number, uint32_t action_dim) { return LedgerStepBytes(number, action_dim); }

inline void SealStep(uint64_t number, uint32_t action_dim, std::string* file) {
  const size_t from = StepOffset(number, action_dim), to = StepOffset(number + 1, action_dim) - sizeof(uint32_t);
  const std::string key(reinterpret_cast<const char*>(&number), sizeof number);
  const uint32_t crc = Crc32c(key + file->substr(from, to - from));
  std::memcpy(&(*file)[to], &crc, sizeof crc);
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_STEP_FILES_H_
// SPDX-License-Identifier: Apache-2.0
