// Every way in which tests damage a file: flipped bits, and missing, repeated, exchanged, erased or added pieces. Pure
// functions, but WriteInPlace blocks on the disk.
#ifndef DATACOM_TESTS_TESTING_CHANGED_FILES_H_
#define DATACOM_TESTS_TESTING_CHANGED_FILES_H_

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace datacom::testing {

// Gives the file this content in place, or makes it.
inline void WriteInPlace(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

struct ChangedFile {
  std::string change, content;
};

inline void AddPieces(const std::string& content, size_t at, size_t to, size_t bytes,
                      std::vector<ChangedFile>* changed) {
  const std::string piece = content.substr(at, bytes), other = content.substr(to, bytes);
  const auto add = [&](const std::string& change, std::string result) {
    changed->push_back({absl::StrCat(change, " (", bytes, " bytes at ", at, " and ", to, ")"), std::move(result)});
  };
  add("cut off", content.substr(0, at));
  add("missing", content.substr(0, at) + content.substr(at + bytes));
  add("twice", content.substr(0, at) + piece + content.substr(at));
  add("erased", std::string(content).replace(at, bytes, bytes, '\0'));
  add("copied", std::string(content).replace(to, bytes, piece));
  add("exchanged", std::string(content).replace(to, bytes, piece).replace(at, bytes, other));
  add("at the end again", content + piece);
}

// One bit of each of the first `dense` bytes is flipped, then of every `stride`-th byte. Changes that leave the file as
// it is are left out. Files that are mapped end with reserved zeros, of which only the first are changed.
inline std::vector<ChangedFile> ChangesOf(const std::string& content, size_t dense, size_t stride) {
  const size_t used = content.find_last_not_of('\0') + 1;
  std::vector<ChangedFile> changed = {{"empty", ""},
                                      {"a byte shorter", content.substr(0, content.size() - 1)},
                                      {"zeros at the end", content + std::string(100, '\0')},
                                      {"text at the end", content + "text"},
                                      {"twice", content + content}};
  for (const size_t bytes : {size_t{8}, used / 8}) {
    for (size_t part = 0; part < 4; ++part)
      AddPieces(content, part * used / 8, (part + 4) * used / 8, std::min(bytes, used / 8), &changed);
  }
  for (size_t at = 0; at < used; at += at < dense ? 1 : stride) {
    changed.push_back({absl::StrCat("a flipped bit of byte ", at), content});
    changed.back().content[at] = static_cast<char>(content[at] ^ (1 << (at % 8)));
  }
  changed.erase(
      std::remove_if(changed.begin(), changed.end(), [&](const ChangedFile& file) { return file.content == content; }),
      changed.end());
  return changed;
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_CHANGED_FILES_H_
// SPDX-License-Identifier: Apache-2.0
