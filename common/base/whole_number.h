// What a typed number must be, for the flags of the binaries: a library's own conversion takes -1 for 2^64 - 1.
#ifndef DATACOM_COMMON_BASE_WHOLE_NUMBER_H_
#define DATACOM_COMMON_BASE_WHOLE_NUMBER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace datacom {

// For CLI::Option::check: empty when the text is a whole number of at least `least`, else a sentence that says so.
inline std::function<std::string(const std::string&)> WholeNumber(uint64_t least) {
  return [least](const std::string& text) {
    uint64_t value = 0;
    if (absl::SimpleAtoi(text, &value) && value >= least) return std::string();
    return absl::StrCat("must be a whole number of at least ", least, ", not ", text);
  };
}

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_WHOLE_NUMBER_H_
