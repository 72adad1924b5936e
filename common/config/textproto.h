// Files and messages in protobuf text format.
// Pure functions; thread-safe; those that name a folder block on the disk. Errors are INVALID_ARGUMENT and name file,
// line and column.
#ifndef DATACOM_COMMON_CONFIG_TEXTPROTO_H_
#define DATACOM_COMMON_CONFIG_TEXTPROTO_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "google/protobuf/message.h"

namespace datacom {

// The file of a name: "cartpole/datacom" -> <folder>/cartpole/datacom.textproto. A name with a dot, or of a file that
// exists, is the path itself. The error for an unknown name suggests a near one, or else lists all; `kind` is the
// message's word for them.
absl::StatusOr<std::string> FindTextproto(const std::string& kind, const std::string& name_or_path,
                                          const std::string& folder);
// A text without the byte order mark with which some editors and spreadsheets begin a file.
inline absl::string_view WithoutByteOrderMark(absl::string_view text) {
  return absl::StripPrefix(text, "\xEF\xBB\xBF");
}
// INVALID_ARGUMENT, naming `where`, line and column.
absl::Status ParseTextproto(const std::string& text, const std::string& where, google::protobuf::Message* message);
// Text format in a stable order.
std::string PrintTextproto(const google::protobuf::Message& message);
// How two messages differ, in lines; empty if they are equal.
std::string DifferenceOf(const google::protobuf::Message& from, const google::protobuf::Message& to);
// The value of a field, or its default where the message does not have it; of a list "[64,64]".
std::string PrintField(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field);
// Names of the .textproto files in a folder and its subfolders, sorted, without the extension.
std::vector<std::string> ListTextprotos(const std::string& folder);

}  // namespace datacom

#endif  // DATACOM_COMMON_CONFIG_TEXTPROTO_H_
// SPDX-License-Identifier: Apache-2.0
