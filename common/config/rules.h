// Checks the rules of configuration fields (datacom/v1/rule.proto). Pure functions; thread-safe.
#ifndef DATACOM_COMMON_CONFIG_RULES_H_
#define DATACOM_COMMON_CONFIG_RULES_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace datacom {

// INVALID_ARGUMENT: "PATH: WHY".
absl::Status WrongField(const std::string& path, const std::string& why);

// Checks every Rule of a message and its submessages, except used_by and read_if. Errors name the field path, which
// begins with `prefix`.
absl::Status CheckRules(const google::protobuf::Message& message, const std::string& prefix = "");

}  // namespace datacom

#endif  // DATACOM_COMMON_CONFIG_RULES_H_
// SPDX-License-Identifier: Apache-2.0
