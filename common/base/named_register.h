// Entries that register themselves under a name before main, or while a plug-in is loaded (plugins.h): tasks, acting
// rules, algorithms. A name that is registered twice ends the program. Not thread-safe during Add; thread-safe
// afterwards.
#ifndef DATACOM_COMMON_BASE_NAMED_REGISTER_H_
#define DATACOM_COMMON_BASE_NAMED_REGISTER_H_

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/near_miss.h"
#include "common/base/status.h"

namespace datacom {

template <class Entry>
class NamedRegister {
 public:
  explicit NamedRegister(const char* kind) : kind_(kind) {}  // what an entry is, for messages: "acting rule"

  void Add(const std::string& name, Entry entry) {
    if (entries_.emplace(name, std::move(entry)).second) return;
    std::fprintf(stderr, "two %ss are registered as %s\n", kind_, name.c_str());
    std::_Exit(kExitUsage);
  }

  // Null if there is none. The entry stays where it is.
  const Entry* Find(absl::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }

  std::vector<std::string> Names() const {  // sorted
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }

  // NOT_FOUND, naming what was asked for, what there is, and a near miss.
  absl::Status Unknown(absl::string_view name) const {
    return absl::NotFoundError(absl::StrCat(kind_, " \"", name, "\" does not exist; there are: ",
                                            absl::StrJoin(Names(), ", "), DidYouMean(std::string(name), Names())));
  }

 private:
  const char* const kind_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_NAMED_REGISTER_H_
// SPDX-License-Identifier: Apache-2.0
