#include "common/records/message_json.h"

#include <cmath>

namespace datacom {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using nlohmann::json;

json Number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

// The value of a field; of a repeated one its element `i`.
json ValueOf(const Message& message, const FieldDescriptor& field, int i) {
  const google::protobuf::Reflection& of = *message.GetReflection();
  const bool list = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return list ? of.GetRepeatedBool(message, &field, i) : of.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_INT32:
      return list ? of.GetRepeatedInt32(message, &field, i) : of.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return list ? of.GetRepeatedInt64(message, &field, i) : of.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return list ? of.GetRepeatedUInt32(message, &field, i) : of.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return list ? of.GetRepeatedUInt64(message, &field, i) : of.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Number(list ? of.GetRepeatedFloat(message, &field, i) : of.GetFloat(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Number(list ? of.GetRepeatedDouble(message, &field, i) : of.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return (list ? of.GetRepeatedEnum(message, &field, i) : of.GetEnum(message, &field))->name();
    default:
      return list ? of.GetRepeatedString(message, &field, i) : of.GetString(message, &field);
  }
}

}  // namespace

json MessageJson(const Message& message) {
  json object = json::object();
  const google::protobuf::Reflection& of = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) continue;
    json& value = object[field.name()];
    if (field.is_repeated()) {
      value = json::array();
      for (int k = 0; k < of.FieldSize(message, &field); ++k) value.push_back(ValueOf(message, field, k));
    } else if (!field.has_presence() || of.HasField(message, &field)) {
      value = ValueOf(message, field, 0);
    }
  }
  return object;
}

std::string ErrorJson(absl::string_view text, int exit_code) {
  return JsonText({{"error", std::string(text)}, {"code", exit_code}}) + "\n";
}

std::string JsonText(const json& object, int indent) {
  return object.dump(indent, ' ', false, json::error_handler_t::replace);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
