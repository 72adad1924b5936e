#include "common/config/rules.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/name.h"
#include "common/base/near_miss.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/config/explain.h"
#include "datacom/v1/rule.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"

namespace datacom {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// `text`: the value with all of its digits.
absl::Status CheckNumber(const std::string& path, const std::string& text, double value, const v1::Rule& rule) {
  if (!std::isfinite(value)) return WrongField(path, text + " is not finite");
  if (rule.has_min() && value < rule.min()) return WrongField(path, absl::StrCat(text, " is below ", rule.min()));
  if (rule.has_max() && value > rule.max()) return WrongField(path, absl::StrCat(text, " is above ", rule.max()));
  if (rule.has_above() && value <= rule.above())
    return WrongField(path, absl::StrCat(text, " is not above ", rule.above()));
  if (rule.has_below() && value >= rule.below())
    return WrongField(path, absl::StrCat(text, " is not below ", rule.below()));
  return absl::OkStatus();
}

absl::Status CheckWord(const std::string& path, const std::string& value, const v1::Rule& rule) {
  if (!IsUtf8(value)) return WrongField(path, absl::StrCat("\"", value, "\" is not UTF-8; write it in UTF-8"));
  if (rule.identifier() && !IsIdentifier(value)) {
    return WrongField(path, "letters, digits and _ only, not first a digit");
  }
  if (rule.one_of().empty() || std::find(rule.one_of().begin(), rule.one_of().end(), value) != rule.one_of().end()) {
    return absl::OkStatus();
  }
  return WrongField(path, absl::StrCat("\"", value, "\" is not one of ", absl::StrJoin(rule.one_of(), ", "),
                                       DidYouMean(value, {rule.one_of().begin(), rule.one_of().end()})));
}

// One scalar against its rule; `index` < 0 for a singular field.
absl::Status CheckValue(const std::string& path, const Message& message, const FieldDescriptor* field, int index,
                        const v1::Rule& rule) {
  const Reflection* reflection = message.GetReflection();
  const bool list = index >= 0;
  std::string text;
  double number = 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      google::protobuf::TextFormat::PrintFieldValueToString(message, field, index, &text);
      return absl::SimpleAtod(text, &number) ? CheckNumber(path, text, number, rule) : WrongField(path, text);
    case FieldDescriptor::CPPTYPE_STRING:
      if (field->type() == FieldDescriptor::TYPE_BYTES) return absl::OkStatus();
      return CheckWord(
          path, list ? reflection->GetRepeatedString(message, field, index) : reflection->GetString(message, field),
          rule);
    default:
      return absl::OkStatus();
  }
}

// The same; the refusal says what the field means.
absl::Status CheckScalar(const std::string& path, const Message& message, const FieldDescriptor* field, int index,
                         const v1::Rule& rule) {
  const absl::Status status = CheckValue(path, message, field, index, rule);
  return status.ok() ? status : absl::InvalidArgumentError(absl::StrCat(status.message(), InWords(path, *field)));
}

// A number against another one of its message.
absl::Status CheckOrder(const std::string& path, const Message& message, const FieldDescriptor* field,
                        const v1::Rule& rule) {
  const bool above = rule.has_above_field();
  const std::string& other = above ? rule.above_field() : rule.not_below();
  if (other.empty()) return absl::OkStatus();
  const Reflection& fields = *message.GetReflection();
  const double low = fields.GetDouble(message, message.GetDescriptor()->FindFieldByName(other));
  const double value = fields.GetDouble(message, field);
  if (above ? value > low : value >= low) return absl::OkStatus();
  return WrongField(path, absl::StrCat(value, above ? " is not above " : " is below ", other, ", ", low));
}

absl::Status CheckField(const std::string& path, const Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  const v1::Rule& rule = field->options().GetExtension(v1::rule);
  if (field->is_repeated()) {
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      const std::string item = absl::StrCat(path, "[", i, "]");
      RETURN_IF_ERROR(is_message ? CheckRules(reflection->GetRepeatedMessage(message, field, i), item + ".")
                                 : CheckScalar(item, message, field, i, rule));
    }
    return absl::OkStatus();
  }
  if (!reflection->HasField(message, field)) {
    return rule.required() ? WrongField(path, "must be set") : absl::OkStatus();
  }
  const auto has = [&message, reflection](const std::string& name) {
    return reflection->HasField(message, message.GetDescriptor()->FindFieldByName(name));
  };
  if (!rule.beside().empty() && std::none_of(rule.beside().begin(), rule.beside().end(), has)) {
    return WrongField(path, absl::StrCat("is only for ", absl::StrJoin(rule.beside(), " and ")));
  }
  if (is_message) {
    const Message& part = reflection->GetMessage(message, field);
    RETURN_IF_ERROR(CheckRules(part, path + "."));
    if (!rule.has_min() && !rule.has_above()) return absl::OkStatus();
    return CheckScalar(path + ".low", part, part.GetDescriptor()->FindFieldByName("low"), -1, rule);
  }
  if (rule.required() && field->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
      reflection->GetString(message, field).empty()) {
    return WrongField(path, "must not be empty");
  }
  RETURN_IF_ERROR(CheckScalar(path, message, field, -1, rule));
  return CheckOrder(path, message, field, rule);
}

}  // namespace

absl::Status WrongField(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

absl::Status CheckRules(const Message& message, const std::string& prefix) {
  const google::protobuf::Descriptor* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    RETURN_IF_ERROR(CheckField(prefix + descriptor->field(i)->name(), message, descriptor->field(i)));
  }
  std::vector<const FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    if (field->is_extension()) RETURN_IF_ERROR(CheckField(prefix + field->name(), message, field));
  }
  return absl::OkStatus();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
