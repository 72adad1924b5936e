// The tags of an XML text with their places in it. Pure; thread-safe; views into the text. Comments and declarations
// are no tags. XML that MuJoCo would refuse gives any tags.
#ifndef DATACOM_COMMON_TASKS_TEXT_XML_TAGS_H_
#define DATACOM_COMMON_TASKS_TEXT_XML_TAGS_H_

#include <algorithm>
#include <cstddef>
#include <optional>
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
inline std::optional<XmlTag> NextTag(absl::string_view xml, size_t at) {
  const auto within = [&](size_t place) { return std::min(place, xml.size()); };  // npos means the end
  const auto begins = [&](absl::string_view mark) { return xml.substr(at, mark.size()) == mark; };
  while ((at = within(xml.find('<', at))) < xml.size() && (begins("<!") || begins("<?"))) {
    at = within(begins("<!--") ? xml.find("-->", at) : xml.find('>', at));
  }
  if (at == xml.size()) return std::nullopt;
  XmlTag tag;
  size_t next = within(xml.find_first_of(" \t\r\n/>", at + (begins("</") ? 2 : 1)));
  tag.begin = at, tag.name_end = next, tag.name = xml.substr(at + 1, next - at - 1);
  while ((next = within(xml.find_first_not_of(kXmlSpace, next))) < xml.size() && xml[next] != '>') {
    if (xml[next] == '/') {
      tag.whole = true, ++next;
      continue;
    }
    const size_t equals = within(xml.find_first_of("=>", next));
    if (equals == xml.size() || xml[equals] == '>') {
      next = equals;
      break;
    }
    const size_t quote = std::min(xml.find_first_of("\"'", equals), xml.size() - 1);
    const size_t end = within(xml.find(xml[quote], quote + 1));
    const size_t name_end = std::min(xml.find_first_of(" \t\r\n=", next), equals);
    tag.attributes.emplace_back(xml.substr(next, name_end - next), xml.substr(quote + 1, end - quote - 1));
    next = within(end + 1);
  }
  tag.end = within(next + 1);
  return tag;
}

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_XML_TAGS_H_
// SPDX-License-Identifier: Apache-2.0
