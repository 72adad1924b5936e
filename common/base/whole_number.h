// Range check for whole numbers in flags: CLI11's own conversion takes -1 as 2^64 - 1.
#ifndef DATACOM_COMMON_BASE_WHOLE_NUMBER_H_
#define DATACOM_COMMON_BASE_WHOLE_NUMBER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace datacom {

// For CLI::Option::check: returns an empty string when the text is a whole number from `least` to the largest T, else
// an error message.
template <typename T>
std::function<std::string(const std::string&)> WholeNumber(T least) {
  return [least](const std::string& text) {
    constexpr T kMost = std::numeric_limits<T>::max();
    uint64_t value = 0;
    if (absl::SimpleAtoi(text, &value) && value >= static_cast<uint64_t>(least) &&
        value <= static_cast<uint64_t>(kMost))
      return std::string();
    return absl::StrCat("must be a whole number from ", least, " to ", kMost, ", not ", text);
  };
}

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_WHOLE_NUMBER_H_
// SPDX-License-Identifier: Apache-2.0
