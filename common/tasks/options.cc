#include "common/tasks/options.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"

namespace datacom {

absl::Status RejectOtherOptions(absl::string_view task, const v1::TaskOptions& options,
                                std::initializer_list<absl::string_view> own) {
  std::vector<std::string> has = {"horizon", "randomisation", "action_repeat"};
  for (const absl::string_view name : own) has.emplace_back(name);
  std::vector<const google::protobuf::FieldDescriptor*> set;
  options.GetReflection()->ListFields(options, &set);
  for (const google::protobuf::FieldDescriptor* field : set) {
    if (std::find(has.begin(), has.end(), field->name()) != has.end()) continue;
    if (field->full_name() == "datacom.v1.plugin") continue;  // MakeTaskModel checks it
    return absl::InvalidArgumentError(absl::StrCat("task_options.", field->name(), ": task ", task,
                                                   " has no such option; it has: ", absl::StrJoin(has, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
