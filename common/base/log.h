// Structured logging: one line per record, "time level role key=value..." on stderr (logs/<role>.log under `train`).
// Use spdlog's functions after InitLog: spdlog::info("replay listening address={}", address). Thread-safe.
#ifndef DATACOM_COMMON_BASE_LOG_H_
#define DATACOM_COMMON_BASE_LOG_H_

#include <string>

#include "spdlog/spdlog.h"

namespace datacom {

// Adds `role` to every line. The level comes from the environment variable DATACOM_LOG (debug, info, warn, error).
void InitLog(const std::string& role);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_LOG_H_
// SPDX-License-Identifier: Apache-2.0
