// What the machine is, for records that people compare, and what it grants this process. Thread-safe; reads /proc and
// /sys.
#ifndef DATACOM_COMMON_BASE_MACHINE_H_
#define DATACOM_COMMON_BASE_MACHINE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace datacom {

// The processor's model; "unknown" when the kernel does not name it.
std::string ProcessorName();
// The name of this host; in a container or pod its own.
std::string HostName();
// Raises the soft limit of open files to the hard limit and returns it. The usual soft limit of 1024 is too low for a
// learner, which keeps two files per member open. Call it first in main; a limit that cannot be raised stays.
uint64_t RaiseOpenFileLimit();

// RESOURCE_EXHAUSTED, naming the limit and its value, when this process may have fewer than kLeastOpenFiles files open,
// or may not write a file of `largest_file` bytes.
inline constexpr uint64_t kLeastOpenFiles = 64;
absl::Status CheckProcessLimits(uint64_t largest_file = 0);

// From here on an allocation that fails ends this process with a line on stderr and this exit code.
void EndWithoutMemory(int exit_code);

// Makes the memory of large messages return to the system when they are freed: malloc maps each block of
// `threshold_bytes` or more by itself. The threshold is fixed, because glibc otherwise raises it whenever a mapped
// block is freed, and there are two arenas instead of several per processor. Call it first in main.
void ReturnLargeBlocks(int threshold_bytes);

// Processors that this process may use: by its affinity, and by the CPU quota of its control group and of all groups
// above it, rounded down. At least 1. The quota is read below `root`, which tests set.
int UsableProcessors(const std::string& root = "");
// Bytes of memory that are free for this process: of the machine, and of its control group and of all groups above it.
// UINT64_MAX when none says so.
uint64_t AvailableMemory(const std::string& root = "");

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_MACHINE_H_
// SPDX-License-Identifier: Apache-2.0
