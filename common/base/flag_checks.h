// Checks of values on the command line, for CLI::Option::check: each returns an empty string for a good value, else an
// error message. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_BASE_FLAG_CHECKS_H_
#define DATACOM_COMMON_BASE_FLAG_CHECKS_H_

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace datacom {

using FlagCheck = std::function<std::string(const std::string&)>;

// A whole number from `least` to the largest T. CLI11's own conversion takes -1 as 2^64 - 1.
template <typename T>
FlagCheck WholeNumber(T least) {
  return [least](const std::string& text) {
    constexpr T kMost = std::numeric_limits<T>::max();
    uint64_t value = 0;
    if (absl::SimpleAtoi(text, &value) && value >= static_cast<uint64_t>(least) &&
        value <= static_cast<uint64_t>(kMost))
      return std::string();
    return absl::StrCat("must be a whole number from ", least, " to ", kMost, ", not ", text);
  };
}

// A finite number above 0.
inline std::string AboveZero(const std::string& text) {
  double value = 0;
  if (absl::SimpleAtod(text, &value) && value > 0 && std::isfinite(value)) return "";
  return absl::StrCat("must be a number above 0, not ", text);
}

// What a script means by "$PLACE" while PLACE is not set would be a default.
inline std::string NotEmpty(const std::string& text) { return text.empty() ? "must not be empty" : ""; }

// "HOST:PORT" with a port from `lowest` to 65535, or an empty text (not given). Host names are not resolved.
inline FlagCheck Address(int lowest) {
  return [lowest](const std::string& text) {
    const size_t colon = text.rfind(':');
    int port = -1;
    if (text.empty()) return std::string();
    if (colon != std::string::npos && colon > 0 && absl::SimpleAtoi(text.substr(colon + 1), &port) && port >= lowest &&
        port <= 65535) {
      return std::string();
    }
    return absl::StrCat("must be an address HOST:PORT with a port from ", lowest, " to 65535, not ", text);
  };
}

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_FLAG_CHECKS_H_
// SPDX-License-Identifier: Apache-2.0
