#include "deploy/tools/verify/findings.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace datacom::verify {
namespace {

constexpr uint64_t kMostPerFile = 100;
constexpr std::chrono::seconds kInterval{2};

// Damaged files hold any bytes.
std::string Printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

void Report::Keep(Repair repair) {
  if (repair != nullptr) repairs_.push_back(std::move(repair));
}

void Report::Part(absl::string_view kind, absl::string_view counts) {
  absl::StrAppendFormat(&parts_, "%-12s %s\n", kind, counts);
}

void Report::Note(absl::string_view text, Repair repair) {
  absl::StrAppend(&notes_, "note: ", text, "\n");
  Keep(std::move(repair));
}

void Report::Damage(const std::string& file, absl::string_view what, Repair repair) {
  Keep(std::move(repair));
  if (++by_file_[file] <= kMostPerFile) {
    damages_.push_back(
        absl::StrCat("damage: ", file, ": ", Printable(absl::StrReplaceAll(what, {{folder_, ""}})), "\n"));
  }
}

std::string Report::Text() const {
  std::string text = parts_ + notes_;
  uint64_t count = 0;
  for (const std::string& damage : damages_) text += damage;
  for (const auto& [file, findings] : by_file_) {
    count += findings;
    if (findings > kMostPerFile)
      absl::StrAppend(&text, "damage: ", file, ": ", findings - kMostPerFile, " more findings\n");
  }
  if (count == 0) return text + "sound: no damage was found\n";
  return absl::StrCat(text, "damaged: ", count, count == 1 ? " finding\n" : " findings\n");
}

void Progress::Tell(absl::string_view what, uint64_t done, uint64_t all) {
  const Clock::Time now = Clock::Real().Now();
  if (now - told_ < kInterval) return;
  told_ = now;
  const std::string line = absl::StrCat("verify: ", what, ", ", all == 0 ? 0 : 100 * done / all, " %\n");
  std::fputs(line.c_str(), stderr);
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
