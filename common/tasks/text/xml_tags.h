// The tags of an XML text with their places in it. Pure; thread-safe; views into the text. Comments and declarations
// are no tags. XML that MuJoCo would refuse gives any tags.
#ifndef DATACOM_COMMON_TASKS_TEXT_XML_TAGS_H_
#define DATACOM_COMMON_TASKS_TEXT_XML_TAGS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace datacom::text {

inline constexpr absl::string_view kXmlSpace = " \t\r\n";

struct XmlTag {
  absl::string_view name;                                                   // "joint"; of an end tag "/joint"
  size_t begin = 0, name_end = 0, end = 0;                                  // of "<", behind the name, behind ">"
  bool whole = false;                                                       // "<joint/>"
  std::vector<std::pair<absl::string_view, absl::string_view>> attributes;  // as written, entities included
};

// The first tag that begins at `at` or behind it.
std::optional<XmlTag> NextTag(absl::string_view xml, size_t at);
// An attribute's value as MuJoCo reads it: with the characters that its entities stand for.
std::string Decoded(absl::string_view value);
// The place of a file that the file `from` names, as MuJoCo reads it: '\' separates folders as '/' does.
std::string PathBeside(const std::string& from, std::string file);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_XML_TAGS_H_
// SPDX-License-Identifier: Apache-2.0
