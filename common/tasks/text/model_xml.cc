#include "common/tasks/text/model_xml.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"

namespace datacom::text {
namespace {

constexpr absl::string_view kSpace = " \t\r\n";

size_t AtMost(size_t at, size_t most) { return std::min(at, most); }  // npos means the end

// Walks one file and, in place of an <include>, the file that it names.
class Walk {
 public:
  explicit Walk(const v1::TextTask& task) : task_(task) {}

  void File(int file, std::vector<std::string> path, int parent) {
    if (!visited_.insert(file).second) return;  // MuJoCo refuses a file that is included twice
    const absl::string_view xml = task_.file(file).content();
    std::vector<Open> open;  // the elements that have begun
    for (size_t at = 0; (at = xml.find('<', at)) != absl::string_view::npos;) {
      const absl::string_view rest = xml.substr(at);
      if (absl::StartsWith(rest, "<!--")) {
        at = AtMost(xml.find("-->", at), xml.size());
      } else if (absl::StartsWith(rest, "<?") || absl::StartsWith(rest, "<!")) {
        at = AtMost(xml.find('>', at), xml.size());
      } else if (absl::StartsWith(rest, "</")) {
        at = AtMost(xml.find('>', at), xml.size());
        if (open.empty()) return;
        Close(open.back(), AtMost(at + 1, xml.size()), &path, &parent);
        open.pop_back();
      } else {
        Begin(file, xml, &at, &path, &parent, &open);
      }
    }
  }

  std::vector<XmlElement> elements;

 private:
  struct Open {
    int element = -1;  // -1: the root, or an include
    int parent = -1;   // what `parent` was before
  };

  void Close(const Open& open, size_t end, std::vector<std::string>* path, int* parent) {
    *parent = open.parent;
    if (open.element < 0) return;
    elements[open.element].end = end;
    path->pop_back();
  }

  // Reads a tag that begins at `at`; `at` is behind it then.
  void Begin(int file, absl::string_view xml, size_t* at, std::vector<std::string>* path, int* parent,
             std::vector<Open>* open) {
    XmlElement element;
    element.file = file, element.begin = *at, element.parent = *parent, element.path = *path;
    size_t next = AtMost(xml.find_first_of(" \t\r\n/>", *at), xml.size());
    element.name = std::string(xml.substr(*at + 1, next - *at - 1));
    element.name_end = next;
    bool whole = false;  // "<joint/>"
    while ((next = AtMost(xml.find_first_not_of(kSpace, next), xml.size())) < xml.size() && xml[next] != '>') {
      if (xml[next] == '/') {
        whole = true, ++next;
        continue;
      }
      const size_t equals = xml.find_first_of("=>", next);
      if (equals == absl::string_view::npos || xml[equals] == '>') {
        next = AtMost(equals, xml.size());
        break;
      }
      const size_t quote = AtMost(xml.find_first_of("\"'", equals), xml.size() - 1);
      const size_t end = AtMost(xml.find(xml[quote], quote + 1), xml.size());
      const size_t name_end = AtMost(xml.find_first_of(" \t\r\n=", next), equals);
      element.attributes.emplace_back(xml.substr(next, name_end - next), xml.substr(quote + 1, end - quote - 1));
      next = AtMost(end + 1, xml.size());
    }
    *at = AtMost(next + 1, xml.size());
    element.end = *at;
    const bool root = open->empty(), include = element.name == "include";
    if (include) Include(element, *path, *parent);
    if (whole) {
      if (!root && !include) elements.push_back(element);
      return;
    }
    open->push_back({root || include ? -1 : static_cast<int>(elements.size()), *parent});
    if (root || include) return;
    *parent = static_cast<int>(elements.size());
    path->push_back(element.name);
    elements.push_back(std::move(element));
  }

  void Include(const XmlElement& element, const std::vector<std::string>& path, int parent) {
    const std::string* const name = element.Find("file");
    for (int i = 0; name != nullptr && i < task_.file_size(); ++i) {
      if (task_.file(i).name() == *name) File(i, path, parent);
    }
  }

  const v1::TextTask& task_;
  std::set<int> visited_;
};

}  // namespace

const std::string* XmlElement::Find(absl::string_view attribute) const {
  for (const auto& [key, value] : attributes) {
    if (key == attribute) return &value;
  }
  return nullptr;
}

std::vector<XmlElement> ModelElements(const v1::TextTask& task) {
  Walk walk(task);
  if (task.file_size() > 0) walk.File(0, {}, -1);
  return std::move(walk.elements);
}

void ModelEdits::Apply(v1::TextTask* task) const {
  size_t removed_to = 0;  // what lies in an element that is removed is not edited
  std::map<std::pair<int, size_t>, std::pair<size_t, std::string>> kept;
  int file = -1;
  for (const auto& [place, edit] : edits_) {
    if (place.first != file) file = place.first, removed_to = 0;
    if (place.second < removed_to) continue;
    removed_to = edit.first;
    kept.insert({place, edit});
  }
  for (auto each = kept.rbegin(); each != kept.rend(); ++each) {
    const auto& [place, edit] = *each;
    task->mutable_file(place.first)->mutable_content()->replace(place.second, edit.first - place.second, edit.second);
  }
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
