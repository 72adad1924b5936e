// What settings mean: the comments, defaults and rules of the messages that users write (experiment.proto, sweep.proto,
// task.proto). The comments come from the .proto files at build time. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_CONFIG_EXPLAIN_H_
#define DATACOM_COMMON_CONFIG_EXPLAIN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"

namespace datacom {

// Of a path in an experiment ("hyper.cost_budget", "learner"), of one in a sweep or a task.textproto ("sweep.axes",
// "task_file.cost.value"), or of a field's bare name, if no other field has it. A setting has a line with type, default
// and range, its meaning, and who reads it; a group the first sentence of each of its fields. "": the groups of an
// experiment. NOT_FOUND, naming the nearest paths.
absl::StatusOr<std::string> Explain(const std::string& path);

// The text of an experiment (PrintExperiment) with the meaning of every setting above it, as comments.
std::string WithComments(const std::string& text);

// "; did you mean hyper.cost_budget?" for a path with a field that does not exist; else nothing.
std::string DidYouMean(const std::string& path);

// The comment of a field; of a group without one, that of its message. Lines of a table stay lines.
std::string MeaningOf(const google::protobuf::FieldDescriptor& field);
// The fields of a message that users see: without those that only algorithms for tests read.
std::vector<const google::protobuf::FieldDescriptor*> ShownFields(const google::protobuf::Descriptor& message);

// " (datacom explain hyper.accepted_risk: rho = 1 - alpha of the paper)", for a refusal of the field at `path`, whose
// first part may be left out. Nothing for a field that no user writes.
std::string InWords(const std::string& path, const google::protobuf::FieldDescriptor& field);
// " (datacom explain hyper)", which lists the fields of the message; nothing for a message that no user writes.
std::string WhereListed(const google::protobuf::Descriptor& message);

}  // namespace datacom

#endif  // DATACOM_COMMON_CONFIG_EXPLAIN_H_
// SPDX-License-Identifier: Apache-2.0
