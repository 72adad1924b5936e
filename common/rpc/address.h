// Checks addresses on the command line.
#ifndef DATACOM_COMMON_RPC_ADDRESS_H_
#define DATACOM_COMMON_RPC_ADDRESS_H_

#include <functional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace datacom {

// For CLI::Option::check: returns an empty string for "HOST:PORT" with a port from `lowest` to 65535, or an
// empty text (not given), else an error message. Host names are not resolved.
inline std::function<std::string(const std::string&)> Address(int lowest) {
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

#endif  // DATACOM_COMMON_RPC_ADDRESS_H_
// SPDX-License-Identifier: Apache-2.0
