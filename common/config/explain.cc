#include "common/config/explain.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/near_miss.h"
#include "common/config/algorithms.h"
#include "common/config/textproto.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/rule.pb.h"
#include "datacom/v1/sweep.pb.h"
#include "datacom/v1/task.pb.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/message.h"

namespace datacom {

// The .proto files that users write, with their comments: a FileDescriptorSet (embed_comments.cmake).
extern const unsigned char kCommentedFiles[];
extern const size_t kCommentedFilesSize;

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::SourceCodeInfo;

// A comment without the line breaks of its file. Empty lines separate paragraphs. The lines of a table, which are
// indented, stay as they are.
std::string Flow(const std::string& comment) {
  std::string text;
  bool in_table = false;
  for (absl::string_view line : absl::StrSplit(comment, '\n')) {
    absl::ConsumePrefix(&line, " ");  // it follows the slashes
    const absl::string_view words = absl::StripAsciiWhitespace(line);
    const bool table = !words.empty() && absl::StartsWith(line, "  ");
    const bool breaks = words.empty() || table || in_table;
    if (breaks && !text.empty() && !absl::EndsWith(text, "\n")) text += "\n";
    absl::StrAppend(&text, words.empty() || text.empty() || absl::EndsWith(text, "\n") ? "" : " ",
                    table ? absl::StripTrailingAsciiWhitespace(line) : words);
    in_table = table;
  }
  return std::string(absl::StripAsciiWhitespace(text));
}

// The comments of messages and fields by their full names. A comment before a field and one after it on its line are
// one.
using Comments = std::map<std::string, std::string>;

Comments ReadComments() {
  google::protobuf::FileDescriptorSet files;
  files.ParseFromArray(kCommentedFiles, static_cast<int>(kCommentedFilesSize));
  Comments comments;
  for (const FileDescriptorProto& file : files.file()) {
    for (const SourceCodeInfo::Location& location : file.source_code_info().location()) {
      const auto& path = location.path();
      // [4, message] or [4, message, 2, field]; nothing that users write has messages within messages.
      const bool field = path.size() == 4 && path[0] == 4 && path[2] == 2;
      if (!(field || (path.size() == 2 && path[0] == 4))) continue;
      const auto& message = file.message_type(path[1]);
      std::string name = absl::StrCat(file.package(), ".", message.name());
      if (field) absl::StrAppend(&name, ".", message.field(path[3]).name());
      const std::string text =
          Flow(absl::StrCat(location.leading_comments(), field ? "\n" : "", location.trailing_comments()));
      if (!text.empty()) comments[name] = text;
    }
  }
  return comments;
}

const std::string* CommentOf(const std::string& full_name) {
  static const auto* const kComments = new Comments(ReadComments());
  const auto at = kComments->find(full_name);
  return at == kComments->end() ? nullptr : &at->second;
}

std::string TypeOf(const FieldDescriptor& field) {
  static const auto* const kTypes =
      new std::map<FieldDescriptor::CppType, std::string>{{FieldDescriptor::CPPTYPE_BOOL, "true or false"},
                                                          {FieldDescriptor::CPPTYPE_STRING, "text"},
                                                          {FieldDescriptor::CPPTYPE_DOUBLE, "number"},
                                                          {FieldDescriptor::CPPTYPE_FLOAT, "number"},
                                                          {FieldDescriptor::CPPTYPE_MESSAGE, "group"}};
  std::string type;
  if (const google::protobuf::EnumDescriptor* const values = field.enum_type(); values != nullptr) {
    for (int i = 0; i < values->value_count(); ++i)
      absl::StrAppend(&type, i == 0 ? "" : " | ", values->value(i)->name());
    return field.is_repeated() ? absl::StrCat("list of ", type) : type;
  }
  const auto known = kTypes->find(field.cpp_type());
  type = known == kTypes->end() ? "whole number" : known->second;
  return field.is_repeated() ? absl::StrCat("list of ", type, "s") : type;
}

// Numbers have the form of those in RangeOf.
std::string DefaultOf(const FieldDescriptor& field) {
  const bool has_items = field.options().GetExtension(v1::rule).items_size() > 0;
  if (!field.has_default_value() && !has_items) return "";
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) return absl::StrCat(field.default_value_double());
  auto* const factory = google::protobuf::MessageFactory::generated_factory();
  return PrintField(*factory->GetPrototype(field.containing_type()), &field);
}

std::string RangeOf(const v1::Rule& rule) {
  std::vector<std::string> parts;
  if (rule.has_min()) parts.push_back(absl::StrCat("at least ", rule.min()));
  if (rule.has_above()) parts.push_back(absl::StrCat("above ", rule.above()));
  if (rule.has_not_below()) parts.push_back(absl::StrCat("at least ", rule.not_below()));
  if (rule.has_above_field()) parts.push_back(absl::StrCat("above ", rule.above_field()));
  if (rule.has_max()) parts.push_back(absl::StrCat("at most ", rule.max()));
  if (rule.has_below()) parts.push_back(absl::StrCat("below ", rule.below()));
  if (rule.one_of_size() > 0) parts.push_back(absl::StrJoin(rule.one_of(), " | "));
  if (rule.beside_size() > 0) parts.push_back(absl::StrCat("only for ", absl::StrJoin(rule.beside(), " and ")));
  return absl::StrJoin(parts, ", ");
}

// "number, default 5, at least 0, at most 1e+06"
std::string FormOf(const FieldDescriptor& field) {
  const v1::Rule& rule = field.options().GetExtension(v1::rule);
  std::vector<std::string> parts = {TypeOf(field)};
  if (const std::string value = DefaultOf(field); !value.empty()) parts.push_back("default " + value);
  if (rule.required()) parts.emplace_back("required");
  if (const std::string range = RangeOf(rule); !range.empty()) parts.push_back(range);
  return absl::StrJoin(parts, ", ");
}

std::string ReadBy(const FieldDescriptor& field) {
  const v1::Rule& rule = field.options().GetExtension(v1::rule);
  if (rule.used_by().empty()) return "";
  return absl::StrCat("read by ", absl::StrJoin(ReadersOf(field), ", "),
                      rule.read_if().empty() ? "" : ", if " + absl::StrJoin(rule.read_if(), " or "));
}

std::string FirstSentence(const std::string& text) {
  const size_t end = text.find(". "), line = text.find('\n');
  return text.substr(0, std::min(end == std::string::npos ? text.size() : end + 1, line));
}

// The messages that users write, by what paths in them begin with.
struct Root {
  std::string prefix;
  const Descriptor* message;
};
const std::vector<Root>& Roots() {
  static const auto* const kRoots = new std::vector<Root>{{"", v1::Experiment::descriptor()},
                                                          {"sweep", v1::Sweep::descriptor()},
                                                          {"task_file", v1::TaskDefinition::descriptor()}};
  return *kRoots;
}

std::string Below(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

// Every setting and group by its path. A group of a type that is above it already has no fields of its own.
using Paths = std::vector<std::pair<std::string, const FieldDescriptor*>>;
void Collect(const std::string& path, const Descriptor& message, std::set<const Descriptor*> above, Paths* paths) {
  if (!above.insert(&message).second) return;
  for (const FieldDescriptor* const field : ShownFields(message)) {
    const std::string own = Below(path, field->name());
    paths->emplace_back(own, field);
    if (field->message_type() != nullptr) Collect(own, *field->message_type(), above, paths);
  }
}

const Paths& AllPaths() {
  static const auto* const kPaths = [] {
    auto* paths = new Paths;
    for (const Root& root : Roots()) Collect(root.prefix, *root.message, {}, paths);
    return paths;
  }();
  return *kPaths;
}

// "members[1].hyper" is members.hyper here.
std::string WithoutIndices(const std::string& path) {
  std::string bare;
  bool inside = false;
  for (const char letter : path) {
    inside = letter == '[' || (inside && letter != ']');
    if (!inside && letter != ']') bare += letter;
  }
  return bare;
}

// The paths whose last part is nearest to that of `path`. Those of an experiment come first. What a member and the
// experiment have is named once: a member's path needs the member's index.
std::vector<std::string> NearestPaths(const std::string& path) {
  constexpr char kOfMember[] = "members.hyper.";
  Candidates candidates;
  for (const auto& [own, field] : AllPaths()) {
    if (!absl::StartsWith(own, kOfMember)) candidates.emplace_back(field->name(), own);
  }
  return Nearest(path.substr(path.rfind('.') + 1), candidates);
}

std::string DescribeField(const std::string& path, const FieldDescriptor& field) {
  std::string text = absl::StrCat(path, ": ", FormOf(field), "\n");
  for (const std::string& line : {MeaningOf(field), ReadBy(field)}) {
    if (!line.empty()) absl::StrAppend(&text, "  ", absl::StrReplaceAll(line, {{"\n", "\n  "}}), "\n");
  }
  return text;
}

// said: what was said of the group already.
std::string DescribeGroup(const std::string& path, const Descriptor& message, const std::string& said) {
  std::string text;
  const std::string* const comment = CommentOf(message.full_name());
  if (comment != nullptr && *comment != said) absl::StrAppend(&text, *comment, "\n");
  for (const FieldDescriptor* const field : ShownFields(message)) {
    const std::string first = FirstSentence(MeaningOf(*field));
    absl::StrAppend(&text, "  ", Below(path, field->name()), ": ", FormOf(*field), first.empty() ? "" : "; ", first,
                    "\n");
  }
  return text;
}

}  // namespace

std::string MeaningOf(const FieldDescriptor& field) {
  if (const std::string* const own = CommentOf(field.full_name())) return *own;
  const bool group = field.message_type() != nullptr;
  const std::string* const type = group ? CommentOf(field.message_type()->full_name()) : nullptr;
  return type == nullptr ? "" : *type;
}

std::vector<const FieldDescriptor*> ShownFields(const Descriptor& message) {
  std::vector<const FieldDescriptor*> fields;
  for (int i = 0; i < message.field_count(); ++i) {
    if (!ReadersOf(*message.field(i)).empty()) fields.push_back(message.field(i));
  }
  return fields;
}

std::string InWords(const std::string& path, const FieldDescriptor& field) {
  const std::string wanted = WithoutIndices(path);
  std::string shown;
  for (const auto& [own, of] : AllPaths()) {
    if (of != &field) continue;
    const bool same = own == wanted || absl::EndsWith(own, "." + wanted);
    if (same || shown.empty()) shown = own;
    if (same) break;
  }
  if (shown.empty()) return "";
  const std::string meaning = FirstSentence(MeaningOf(field));
  return absl::StrCat(" (datacom explain ", shown, meaning.empty() ? "" : ": ", absl::StripSuffix(meaning, "."), ")");
}

std::string WhereListed(const Descriptor& message) {
  for (const Root& root : Roots()) {
    if (root.message == &message)
      return absl::StrCat(" (datacom explain", root.prefix.empty() ? "" : " ", root.prefix, ")");
  }
  for (const auto& [path, field] : AllPaths()) {
    if (field->message_type() == &message) return absl::StrCat(" (datacom explain ", path, ")");
  }
  return "";
}

absl::StatusOr<std::string> Explain(const std::string& path) {
  const std::string wanted(absl::StripSuffix(WithoutIndices(path), "."));  // "hyper." begins the paths of its settings
  for (const Root& root : Roots()) {
    if (wanted == root.prefix) return DescribeGroup(root.prefix, *root.message, /*said=*/"");
  }
  Paths found;
  for (const auto& one : AllPaths()) {
    if (one.first == wanted) found = {one};
  }
  if (found.empty()) {
    std::set<const FieldDescriptor*> seen;
    for (const auto& one : AllPaths()) {
      if (one.second->name() == wanted && seen.insert(one.second).second) found.push_back(one);
    }
  }
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no setting \"", path, "\"", DidYouMean(path)));
  }
  std::string text;
  for (const auto& [own, field] : found) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", DescribeField(own, *field));
    if (field->message_type() == nullptr) continue;
    absl::StrAppend(&text, DescribeGroup(own, *field->message_type(), MeaningOf(*field)));
  }
  return text;
}

std::string WithComments(const std::string& text) {
  std::string commented;
  std::vector<std::string> groups;
  std::set<std::string> said;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view words = absl::StripAsciiWhitespace(line);
    const std::string name(words.substr(0, words.find_first_of(": {")));
    const std::string path = absl::StrJoin(groups, ".") + (groups.empty() ? "" : ".") + name;
    if (words == "}") {
      groups.pop_back();
    } else if (!words.empty() && said.insert(path).second) {
      for (const auto& [own, field] : AllPaths()) {
        if (own != path) continue;
        const std::string indent(line.size() - absl::StripLeadingAsciiWhitespace(line).size(), ' ');
        for (const absl::string_view part : absl::StrSplit(MeaningOf(*field), '\n')) {
          if (!part.empty()) absl::StrAppend(&commented, indent, "# ", part, "\n");
        }
      }
    }
    if (absl::EndsWith(words, "{")) groups.push_back(name);
    absl::StrAppend(&commented, line, "\n");
  }
  commented.pop_back();  // the text ends with a line break of its own
  return commented;
}

std::string DidYouMean(const std::string& path) { return Suggest(NearestPaths(WithoutIndices(path))); }

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
