#include "common/config/textproto.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/near_miss.h"
#include "common/config/explain.h"
#include "datacom/v1/rule.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"

namespace datacom {
namespace {

constexpr char kSuffix[] = ".textproto";

// The parser's words for a field that a message does not have, with a near miss; any other message as it is.
std::string NameUnknownField(const std::string& message) {
  absl::string_view rest = message;
  if (!absl::ConsumePrefix(&rest, "Message type \"") || !absl::ConsumeSuffix(&rest, "\".")) return message;
  const std::vector<std::string> parts = absl::StrSplit(rest, "\" has no field named \"");
  const google::protobuf::Descriptor* const type =
      parts.size() == 2 ? google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(parts[0]) : nullptr;
  if (type == nullptr) return message;
  std::vector<std::string> fields;
  for (const google::protobuf::FieldDescriptor* const field : ShownFields(*type)) fields.push_back(field->name());
  return absl::StrCat("no field named \"", parts[1], "\" in ", type->name(), DidYouMean(parts[1], fields),
                      WhereListed(*type));
}

// Keeps the first error and its position.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(std::string where) : where_(std::move(where)) {}
  void AddError(int line, int column, const std::string& message) override {
    if (message_.empty())
      message_ = absl::StrCat(where_, ":", line + 1, ":", column + 1, ": ", NameUnknownField(message));
  }
  void AddWarning(int, int, const std::string&) override {}
  const std::string& message() const { return message_; }

 private:
  std::string where_, message_;
};

}  // namespace

absl::Status ParseTextproto(const std::string& text, const std::string& where, google::protobuf::Message* message) {
  google::protobuf::TextFormat::Parser parser;
  FirstError error(where);
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(std::string(WithoutByteOrderMark(text)), message)) return absl::OkStatus();
  return absl::InvalidArgumentError(error.message().empty()
                                        ? absl::StrCat(where, ": not a ", message->GetTypeName(), " in text format")
                                        : error.message());
}

absl::StatusOr<std::string> FindTextproto(const std::string& kind, const std::string& name_or_path,
                                          const std::string& folder) {
  if (name_or_path.empty()) return absl::InvalidArgumentError(absl::StrCat("no ", kind, " named"));
  std::error_code ignored;
  if (name_or_path.find('.') != std::string::npos || std::filesystem::is_regular_file(name_or_path, ignored)) {
    return name_or_path;
  }
  const std::string path = absl::StrCat(folder, "/", name_or_path, kSuffix);
  if (std::filesystem::is_regular_file(path, ignored)) return path;
  if (std::filesystem::is_directory(absl::StrCat(folder, "/", name_or_path), ignored)) {
    std::vector<std::string> own = ListTextprotos(folder);
    std::erase_if(own, [&](const std::string& name) { return !absl::StartsWith(name, name_or_path + "/"); });
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name_or_path, "\" is a task; its ", kind, "s are: ", absl::StrJoin(own, ", "),
                     kind == "experiment" ? "; --algorithm NAME takes a method with its defaults" : ""));
  }
  const std::vector<std::string> names = ListTextprotos(folder);
  if (names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("unknown ", kind, " \"", name_or_path, "\"; there is none in ",
                                                   folder,
                                                   "; DATACOM_EXPERIMENTS names the folder of the experiments"));
  }
  if (const std::string near = DidYouMean(name_or_path, names); !near.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown ", kind, " \"", name_or_path, "\"", near, " `datacom list ", kind, "s` names all"));
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown ", kind, " \"", name_or_path, "\"; those in ", folder,
                                                 " are: ", absl::StrJoin(names, ", ")));
}

std::vector<std::string> ListTextprotos(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(folder, error), end;
  while (!error && it != end) {
    if (it->path().extension() == kSuffix) {
      names.push_back(it->path().lexically_relative(folder).replace_extension().string());
    }
    it.increment(error);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string PrintTextproto(const google::protobuf::Message& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  printer.PrintToString(message, &text);
  return text;
}

std::string DifferenceOf(const google::protobuf::Message& from, const google::protobuf::Message& to) {
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  differencer.Compare(from, to);
  return std::string(absl::StripTrailingAsciiWhitespace(difference));
}

std::string PrintField(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field) {
  std::string text;
  if (!field->is_repeated()) {
    google::protobuf::TextFormat::PrintFieldValueToString(message, field, -1, &text);
    return text;
  }
  std::vector<std::string> items;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    google::protobuf::TextFormat::PrintFieldValueToString(message, field, i, &items.emplace_back());
  }
  const v1::Rule& rule = field->options().GetExtension(v1::rule);
  return absl::StrCat("[", items.empty() ? absl::StrJoin(rule.items(), ",") : absl::StrJoin(items, ","), "]");
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
