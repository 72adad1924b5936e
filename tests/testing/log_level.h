// Hides messages of the log below a level; at the end the level is as before. Not for tests that change it at the same
// time.
#ifndef DATACOM_TESTS_TESTING_LOG_LEVEL_H_
#define DATACOM_TESTS_TESTING_LOG_LEVEL_H_

#include "spdlog/spdlog.h"

namespace datacom::testing {

class LogLevel {
 public:
  explicit LogLevel(spdlog::level::level_enum level) : before_(spdlog::get_level()) { spdlog::set_level(level); }
  ~LogLevel() { spdlog::set_level(before_); }
  LogLevel(const LogLevel&) = delete;
  LogLevel& operator=(const LogLevel&) = delete;

 private:
  const spdlog::level::level_enum before_;
};

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_LOG_LEVEL_H_
// SPDX-License-Identifier: Apache-2.0
