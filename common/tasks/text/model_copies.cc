#include "common/tasks/text/model_copies.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace datacom::text {
namespace {

constexpr absl::string_view kSpace = " \t\r\n";

// The tag that begins at `at`, without its brackets; ends behind it. Quoted values may hold brackets.
absl::string_view TakeTag(absl::string_view xml, size_t* at) {
  const size_t begin = *at + 1;
  char quote = 0;
  for (*at = begin; *at < xml.size(); ++*at) {
    const char c = xml[*at];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '>') {
      break;
    }
  }
  return xml.substr(begin, *at - begin);
}

// Product of the numbers in the tag's attribute count, each at least 1; 1 without one.
double CountOf(absl::string_view tag) {
  for (size_t at = 0; (at = tag.find("count", at)) != absl::string_view::npos; ++at) {
    if (at == 0 || kSpace.find(tag[at - 1]) == absl::string_view::npos) continue;
    const size_t equals = tag.find_first_not_of(kSpace, at + 5);
    if (equals == absl::string_view::npos || tag[equals] != '=') continue;
    const size_t quote = tag.find_first_not_of(kSpace, equals + 1);
    if (quote == absl::string_view::npos) return 1;
    const absl::string_view value = tag.substr(quote + 1, tag.find(tag[quote], quote + 1) - quote - 1);
    double product = 1;
    for (const absl::string_view number : absl::StrSplit(value, absl::ByAnyChar(kSpace), absl::SkipEmpty())) {
      double count = 0;
      if (absl::SimpleAtod(number, &count)) product *= std::max(1.0, count);
    }
    return product;
  }
  return 1;
}

}  // namespace

absl::Status CheckCopies(absl::string_view xml) {
  std::vector<double> around = {1};  // copies that the open replicates make of what is in them
  for (size_t at = 0; (at = xml.find('<', at)) != absl::string_view::npos;) {
    if (absl::StartsWith(xml.substr(at), "<!--")) {
      at = std::min(xml.find("-->", at), xml.size());
      continue;
    }
    const absl::string_view tag = TakeTag(xml, &at);
    const absl::string_view name = tag.substr(0, tag.find_first_of(" \t\r\n/", 1));
    if (name == "/replicate" && around.size() > 1) around.pop_back();
    if (name != "replicate" && name != "composite" && name != "flexcomp") continue;
    const double copies = around.back() * CountOf(tag);
    if (copies > kMostCopies) {
      return absl::InvalidArgumentError(
          absl::StrCat("model: its <", name, "> makes ", copies, " parts; at most ", kMostCopies, " are taken"));
    }
    if (name == "replicate" && !absl::EndsWith(tag, "/")) around.push_back(copies);
  }
  return absl::OkStatus();
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
