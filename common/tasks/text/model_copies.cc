#include "common/tasks/text/model_copies.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/tasks/text/xml_tags.h"

namespace datacom::text {
namespace {

// Product of the numbers in the tag's attribute count, each at least 1; 1 without one.
double CountOf(const XmlTag& tag) {
  double product = 1;
  for (const auto& [name, value] : tag.attributes) {
    if (name != "count") continue;
    for (const absl::string_view number : absl::StrSplit(value, absl::ByAnyChar(kXmlSpace), absl::SkipEmpty())) {
      double count = 0;
      if (absl::SimpleAtod(number, &count)) product *= std::max(1.0, count);
    }
  }
  return product;
}

}  // namespace

absl::Status CheckCopies(absl::string_view xml) {
  std::vector<double> around = {1};  // copies that the open replicates make of what is in them
  for (size_t at = 0; const std::optional<XmlTag> tag = NextTag(xml, at); at = tag->end) {
    const absl::string_view name = tag->name;
    if (name == "/replicate" && around.size() > 1) around.pop_back();
    if (name != "replicate" && name != "composite" && name != "flexcomp") continue;
    const double copies = around.back() * CountOf(*tag);
    if (copies > kMostCopies) {
      return absl::InvalidArgumentError(
          absl::StrCat("model: its <", name, "> makes ", copies, " parts; at most ", kMostCopies, " are taken"));
    }
    if (name == "replicate" && !tag->whole) around.push_back(copies);
  }
  return absl::OkStatus();
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
