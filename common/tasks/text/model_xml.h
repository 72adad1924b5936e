// The elements of a model's XML text with their places in it, so that a copy of a model can be edited without changing
// anything else. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_TASKS_TEXT_MODEL_XML_H_
#define DATACOM_COMMON_TASKS_TEXT_MODEL_XML_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "datacom/v1/task.pb.h"

namespace datacom::text {

struct XmlElement {
  int file = 0;                   // index among the task's files
  std::string name;               // "joint"
  std::vector<std::string> path;  // elements around it, the outermost first; without the root and without includes
  int parent = -1;                // index of the element that it is in; -1 below the root
  size_t begin = 0, end = 0;      // of the whole element with what is in it
  size_t name_end = 0;            // behind "<joint"
  std::vector<std::pair<std::string, std::string>> attributes;  // as written, entities included
  // Null if there is none.
  const std::string* Find(absl::string_view attribute) const;
  bool In(absl::string_view section) const { return !path.empty() && path.front() == section; }
};

// The elements below the root of the task's first file in the text's order, with those of the included files in place
// of the <include>. XML that MuJoCo would refuse gives any part of them.
std::vector<XmlElement> ModelElements(const v1::TextTask& task);

// Changes of the task's files, applied together.
class ModelEdits {
 public:
  void Insert(int file, size_t at, const std::string& text) { edits_[{file, at}] = {at, text}; }
  void Remove(const XmlElement& element) { edits_[{element.file, element.begin}] = {element.end, ""}; }
  void Apply(v1::TextTask* task) const;

 private:
  // By file and place: where what is replaced ends, and by what.
  std::map<std::pair<int, size_t>, std::pair<size_t, std::string>> edits_;
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MODEL_XML_H_
// SPDX-License-Identifier: Apache-2.0
