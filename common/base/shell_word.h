// Words of a shell's command line, for commands that a message shows to be copied. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_BASE_SHELL_WORD_H_
#define DATACOM_COMMON_BASE_SHELL_WORD_H_

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace datacom {

// Whether a shell reads the character as itself.
inline bool IsPlainInShell(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::string_view("_-./,:=@+%").find(c) != absl::string_view::npos;
}

// In single quotes unless it needs none.
inline std::string ShellWord(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsPlainInShell)) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_SHELL_WORD_H_
// SPDX-License-Identifier: Apache-2.0
