// Names and layout shared by the ledger's writer and readers (ledger.h explains them). Pure functions.
#ifndef DATACOM_COMMON_RECORDS_LEDGER_FORMAT_H_
#define DATACOM_COMMON_RECORDS_LEDGER_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/records/ledger.h"

namespace datacom::ledger {

inline constexpr char kViolationsPath[] = "ledger/violations.csv";
inline constexpr size_t kStepHeaderBytes = 32;

inline void PutFloats(const float* values, size_t count, std::string* out) {
  out->append(reinterpret_cast<const char*>(values), count * sizeof(float));
}

std::string StepsPath(uint32_t member);                        // below the run folder
std::string StepHeader(uint32_t member, uint32_t action_dim);  // kStepHeaderBytes
// FAILED_PRECONDITION or DATA_LOSS when a step file that begins with `content` is not one of this member and version.
absl::Status CheckStepHeader(const std::string& path, absl::string_view content, uint32_t member, uint32_t action_dim);
constexpr size_t StepBytes(uint32_t action_dim) { return 28 + sizeof(float) * action_dim; }
// The checksum at the end of a record, of its number in the file and the bytes before.
uint32_t RecordChecksum(uint64_t number, absl::string_view bytes);
std::vector<std::string> ViolationColumns(uint32_t action_dim);
// The cells of a violation, in the order of ViolationColumns. Commas, quotes and control characters in the actor's name
// become '_', because readers split rows at commas and line breaks.
std::vector<std::string> ViolationCells(const LedgerViolation& violation);

}  // namespace datacom::ledger

#endif  // DATACOM_COMMON_RECORDS_LEDGER_FORMAT_H_
// SPDX-License-Identifier: Apache-2.0
