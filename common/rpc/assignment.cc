#include "common/rpc/assignment.h"

#include "absl/strings/str_cat.h"

namespace datacom {
namespace {

std::string Ranges(const v1::Assignment& assignment, bool leaving) {
  std::string ranges;
  const auto& members = assignment.members();
  const auto counts = [&](int i) { return i < members.size() && (members[i].lanes() == 0) == leaving; };
  for (int i = 0; i < members.size(); ++i) {
    if (!counts(i)) continue;
    const uint32_t first = members[i].member();
    uint32_t last = first;
    while (counts(i + 1) && members[i + 1].member() == last + 1) ++i, ++last;
    absl::StrAppend(&ranges, ranges.empty() ? "" : ",", first, last > first ? absl::StrCat("-", last) : "");
  }
  return ranges;
}

}  // namespace

std::string DescribeMembers(const v1::Assignment& assignment) {
  const std::string acting = Ranges(assignment, false), leaving = Ranges(assignment, true);
  return absl::StrCat(acting.empty() ? "none" : acting, leaving.empty() ? "" : ", leaving: ", leaving);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
