#include "common/base/log.h"

#include <cstdlib>

#include "spdlog/sinks/stdout_sinks.h"

namespace datacom {

void InitLog(const std::string& role) {
  auto logger = std::make_shared<spdlog::logger>(role, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %n %v", spdlog::pattern_time_type::utc);
  if (const char* level = std::getenv("DATACOM_LOG")) logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
