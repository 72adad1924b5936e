// The bytes of a credit file, as replay/credit_file.h describes them; written a second time for the fuzz targets, so
// that they check the layout. Pure functions.
#ifndef DATACOM_TESTS_FUZZ_CREDIT_BYTES_H_
#define DATACOM_TESTS_FUZZ_CREDIT_BYTES_H_

#include <cstdint>
#include <string>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/ring_bytes.h"

namespace datacom::fuzz {

// Places in the header: slots u32, members u32, run 256 bytes; the newest start, a checked word.
inline constexpr size_t kCreditIdentity = 24, kCreditIdentityBytes = 264, kCreditStart = 320, kCreditWords = 4096;

// Recomputes the checksum of the header. `sample` begins with the frame of a sound credit file.
inline void SealCreditHeader(absl::string_view sample, std::string* file) {
  const std::string frame = FrameLike(sample, file->substr(kCreditIdentity, kCreditIdentityBytes));
  file->replace(0, kCreditIdentity, frame.substr(0, kCreditIdentity));
}

// Recomputes the check of every word that is in use.
inline void SealCreditWords(std::string* file) {
  for (uint64_t word = 0; kCreditWords + 8 * word + 8 <= file->size(); ++word) {
    const size_t at = kCreditWords + 8 * word;
    const uint64_t found = WordAt(*file, at);
    if (found != 0) PutWord(replay::CheckedWord(found & replay::kLargestCheckedNumber, word), at, file);
  }
}

}  // namespace datacom::fuzz

#endif  // DATACOM_TESTS_FUZZ_CREDIT_BYTES_H_
// SPDX-License-Identifier: Apache-2.0
