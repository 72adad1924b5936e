// A message as JSON for programs: {"field_name": value}, every field that is not a message, with its default where it
// is not set and has no presence. A number that is not finite, and an optional field that is not set, is null. 64-bit
// numbers are numbers. Pure; thread-safe.
#ifndef DATACOM_COMMON_RECORDS_MESSAGE_JSON_H_
#define DATACOM_COMMON_RECORDS_MESSAGE_JSON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"

namespace datacom {

nlohmann::json MessageJson(const google::protobuf::Message& message);

// One line, or lines with this indent, whatever bytes its strings have: what is no UTF-8 is replaced.
std::string JsonText(const nlohmann::json& json, int indent = -1);

// {"error": TEXT, "code": EXIT CODE} with a line break: how a command that prints JSON says that it has failed.
std::string ErrorJson(absl::string_view text, int exit_code);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_MESSAGE_JSON_H_
// SPDX-License-Identifier: Apache-2.0
