// Sets or unsets an environment variable, which is as before at the end. No other thread may use the environment.
#ifndef DATACOM_TESTS_TESTING_ENVIRONMENT_VARIABLE_H_
#define DATACOM_TESTS_TESTING_ENVIRONMENT_VARIABLE_H_

#include <stdlib.h>

#include <optional>
#include <string>
#include <utility>

namespace datacom::testing {

class EnvironmentVariable {
 public:
  // std::nullopt unsets it.
  EnvironmentVariable(std::string name, const std::optional<std::string>& value) : name_(std::move(name)) {
    if (const char* const before = ::getenv(name_.c_str()); before != nullptr) before_ = before;
    Set(value);
  }
  ~EnvironmentVariable() { Set(before_); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  void Set(const std::optional<std::string>& value) {
    if (value.has_value()) {
      ::setenv(name_.c_str(), value->c_str(), /*overwrite=*/1);
    } else {
      ::unsetenv(name_.c_str());
    }
  }

  const std::string name_;
  std::optional<std::string> before_;
};

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_ENVIRONMENT_VARIABLE_H_
// SPDX-License-Identifier: Apache-2.0
