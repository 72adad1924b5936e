#include "common/tasks/text/xml_tags.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace datacom::text {
namespace {

void AppendUtf8(uint32_t code, std::string* text) {
  const auto byte = [text](uint32_t value) { text->push_back(static_cast<char>(value)); };
  const auto rest = [&](int shift) { byte(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return byte(code);
  const int size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  byte(((0xf00u >> size) & 0xf0) | (code >> (6 * (size - 1))));
  for (int shift = 6 * (size - 2); shift >= 0; shift -= 6) rest(shift);
}

// The character that "&name;" stands for; nothing if it stands for none.
std::optional<uint32_t> CharacterOf(absl::string_view name) {
  static constexpr std::pair<absl::string_view, char> kNames[] = {
      {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [known, character] : kNames) {
    if (name == known) return static_cast<uint32_t>(character);
  }
  uint32_t code = 0;
  if (absl::ConsumePrefix(&name, "#x")) return absl::SimpleHexAtoi(name, &code) ? std::optional(code) : std::nullopt;
  return absl::ConsumePrefix(&name, "#") && absl::SimpleAtoi(name, &code) ? std::optional(code) : std::nullopt;
}

}  // namespace

std::optional<XmlTag> NextTag(absl::string_view xml, size_t at) {
  const auto within = [&](size_t place) { return std::min(place, xml.size()); };  // npos means the end
  const auto begins = [&](absl::string_view mark) { return xml.substr(at, mark.size()) == mark; };
  while ((at = within(xml.find('<', at))) < xml.size() && (begins("<!") || begins("<?"))) {
    at = within(xml.find(begins("<!--") ? "-->" : begins("<![CDATA[") ? "]]>" : ">", at));
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

std::string Decoded(absl::string_view value) {
  std::string text;
  for (size_t at = 0; at < value.size(); ++at) {
    const size_t end = value[at] == '&' ? value.find(';', at) : absl::string_view::npos;
    const auto code = end == absl::string_view::npos ? std::nullopt : CharacterOf(value.substr(at + 1, end - at - 1));
    if (code) AppendUtf8(*code, &text), at = end;
    if (!code) text.push_back(value[at]);
  }
  return text;
}

std::string PathBeside(const std::string& from, std::string file) {
  std::replace(file.begin(), file.end(), '\\', '/');
  return (std::filesystem::path(from).parent_path() / file).lexically_normal().string();
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
