// A small ledger with the largest violations of another one, which results keep instead of the whole. It has the same
// files (common/records/ledger.h), so its violations are read and simulated again like those of a run.
//
//   violations.csv    the violations, the largest cost first; ids are new, all other columns as they were
//   member_<m>.steps  the steps of their episodes up to the violation
//
// Function; thread-safe for different targets; blocks on the disk.
#ifndef DATACOM_COMMON_RECORDS_LEDGER_EXCERPT_H_
#define DATACOM_COMMON_RECORDS_LEDGER_EXCERPT_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace datacom {

// Copies the `most` violations with the largest cost, at most one of each episode (of equal ones the first), from
// run_dir/ledger to target/ledger, which is replaced. Returns their number; with 0 nothing is written. INVALID_ARGUMENT
// if both are one folder; the errors of ReadViolation, ReadEpisode and LedgerWriter.
absl::StatusOr<size_t> CopyLargestViolations(const std::string& run_dir, size_t most, const std::string& target);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_LEDGER_EXCERPT_H_
// SPDX-License-Identifier: Apache-2.0
