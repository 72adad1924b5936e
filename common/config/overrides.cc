#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/config/explain.h"
#include "common/config/rules.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace datacom {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string FieldNames(const google::protobuf::Descriptor* descriptor) {
  std::vector<std::string> names;
  for (const FieldDescriptor* const field : ShownFields(*descriptor)) names.push_back(field->name());
  return absl::StrJoin(names, ", ");
}

// "3000", and also "3e3" if it is whole. The second form ends at 2^53: beyond it doubles skip integers.
bool ParseWhole(const std::string& text, uint64_t max, uint64_t* value) {
  double number = 0;
  if (!absl::SimpleAtoi(text, value)) {
    if (!absl::SimpleAtod(text, &number) || number < 0 || number > 9007199254740992.0 || number != std::floor(number))
      return false;
    *value = static_cast<uint64_t>(number);
  }
  return *value <= max;
}

std::string Expected(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat("a whole number from 0 to ", std::numeric_limits<uint32_t>::max());
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number from 0";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "a boolean: true or false";
    default:
      return absl::StrCat("of type ", field->cpp_type_name());
  }
}

std::string ListExample(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_STRING ? "[one,two], names between brackets"
                                                              : "[64,64], numbers between brackets";
}

// A flag of the commands makes members, not an override.
std::string MembersHint(const std::string& list) {
  return list == "members" ? "; --seeds makes one member per seed" : "";
}

// Sets a singular field, or appends to a repeated one.
absl::Status PutScalar(const std::string& text, const std::string& path, const FieldDescriptor* field,
                       Message* message) {
  const Reflection* reflection = message->GetReflection();
  const bool add = field->is_repeated();
  uint64_t whole = 0;
  double number = 0;
  bool flag = false;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      if (!ParseWhole(text, std::numeric_limits<uint32_t>::max(), &whole)) break;
      add ? reflection->AddUInt32(message, field, static_cast<uint32_t>(whole))
          : reflection->SetUInt32(message, field, static_cast<uint32_t>(whole));
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_UINT64:
      if (!ParseWhole(text, std::numeric_limits<uint64_t>::max(), &whole)) break;
      add ? reflection->AddUInt64(message, field, whole) : reflection->SetUInt64(message, field, whole);
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (!absl::SimpleAtod(text, &number)) break;
      add ? reflection->AddDouble(message, field, number) : reflection->SetDouble(message, field, number);
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_BOOL:
      if (!absl::SimpleAtob(text, &flag)) break;
      add ? reflection->AddBool(message, field, flag) : reflection->SetBool(message, field, flag);
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_STRING: {
      const bool quoted =
          text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
      const std::string bare = quoted ? text.substr(1, text.size() - 2) : text;
      add ? reflection->AddString(message, field, bare) : reflection->SetString(message, field, bare);
      return absl::OkStatus();
    }
    default:
      break;
  }
  return WrongField(path, absl::StrCat("\"", text, "\" is not ", Expected(field)));
}

absl::Status PutList(absl::string_view text, const std::string& path, const FieldDescriptor* field, Message* message) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    return WrongField(path, absl::StrCat("\"", text, "\" is not a list; write it as ", ListExample(field)));
  }
  message->GetReflection()->ClearField(message, field);
  const absl::string_view inside = absl::StripAsciiWhitespace(text.substr(1, text.size() - 2));
  if (inside.empty()) return absl::OkStatus();
  for (const absl::string_view item : absl::StrSplit(inside, ',')) {
    RETURN_IF_ERROR(PutScalar(std::string(absl::StripAsciiWhitespace(item)), path, field, message));
  }
  return absl::OkStatus();
}

struct Step {
  std::string name;
  bool indexed = false;
  uint64_t index = 0;
};

absl::StatusOr<Step> ParseStep(const std::string& text, const std::string& path) {
  Step step;
  const size_t bracket = text.find('[');
  step.name = text.substr(0, bracket);
  if (bracket != std::string::npos) {
    step.indexed = true;
    if (text.back() != ']' || !absl::SimpleAtoi(text.substr(bracket + 1, text.size() - bracket - 2), &step.index)) {
      return WrongField(path, absl::StrCat("\"", text, "\" has no index such as members[1]"));
    }
  }
  if (step.name.empty()) return WrongField(path, "a field name is missing");
  return step;
}

// The submessage of `message` that `step` names.
absl::StatusOr<Message*> Descend(const Step& step, const FieldDescriptor* field, const std::string& path,
                                 Message* message) {
  const Reflection* reflection = message->GetReflection();
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return WrongField(path, absl::StrCat("\"", step.name, "\" is a value and has no fields"));
  }
  if (!field->is_repeated()) {
    if (step.indexed) return WrongField(path, absl::StrCat("\"", step.name, "\" is not a list"));
    return reflection->MutableMessage(message, field);
  }
  const uint64_t size = static_cast<uint64_t>(reflection->FieldSize(*message, field));
  if (!step.indexed)
    return WrongField(
        path, absl::StrCat("\"", step.name, "\" is a list; name one as ", step.name, "[0]", MembersHint(step.name)));
  if (step.index >= size)
    return WrongField(path, absl::StrCat("there are ", size, " ", step.name, ", so none with index ", step.index,
                                         MembersHint(step.name)));
  return reflection->MutableRepeatedMessage(message, field, static_cast<int>(step.index));
}

}  // namespace

absl::Status ApplyOverride(const std::string& assignment, v1::Experiment* experiment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) return WrongField(assignment, "an override is written path=value");
  const std::string path(absl::StripAsciiWhitespace(assignment.substr(0, equals)));
  const std::string value(absl::StripAsciiWhitespace(assignment.substr(equals + 1)));
  const std::vector<std::string> parts = absl::StrSplit(path, '.');
  v1::Experiment changed = *experiment;  // an override that fails leaves the experiment as it was
  Message* message = &changed;
  std::string level = "the experiment";
  for (size_t i = 0; i < parts.size(); ++i) {
    ASSIGN_OR_RETURN(const Step step, ParseStep(parts[i], path));
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(step.name);
    if (field == nullptr) {
      return WrongField(path, absl::StrCat("no field \"", step.name, "\" in ", level,
                                           "; there are: ", FieldNames(message->GetDescriptor()), DidYouMean(path)));
    }
    if (i + 1 < parts.size()) {
      ASSIGN_OR_RETURN(message, Descend(step, field, path, message));
      level = absl::StrJoin(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i) + 1, ".");
      continue;
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return WrongField(path, absl::StrCat("is a group; set one of its fields: ", FieldNames(field->message_type())));
    }
    if (step.indexed) return WrongField(path, absl::StrCat("set the whole list, as ", ListExample(field)));
    RETURN_IF_ERROR(field->is_repeated() ? PutList(value, path, field, message)
                                         : PutScalar(value, path, field, message));
  }
  *experiment = std::move(changed);
  return absl::OkStatus();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
