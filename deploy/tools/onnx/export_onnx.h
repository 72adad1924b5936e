// A policy with its safety filter as one ONNX file, and recorded pairs of inputs and outputs beside it.
//
// The pairs come from the acting rule itself, in episodes of the task that the policy plays with noise: whoever moves
// the file to another runtime repeats them there. Functions; thread-safe; block on the disk and, for pairs, while the
// simulator steps.
#ifndef DATACOM_DEPLOY_TOOLS_ONNX_EXPORT_ONNX_H_
#define DATACOM_DEPLOY_TOOLS_ONNX_EXPORT_ONNX_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/acting/policy_file.h"
#include "common/tasks/task.h"
#include "deploy/tools/onnx/rule_graphs.h"

namespace datacom::onnx {

// FILE.onnx -> FILE.pairs.csv; another name gets .pairs.csv at its end.
std::string PairsFile(const std::string& path);

// The model in binary form: graph (rules.h) and metadata_props (docs/python.md).
// INVALID_ARGUMENT, naming rule, known rows or task, if there is no graph.
absl::StatusOr<std::string> EncodeOnnx(const Policy& policy, const TaskModel& model, GraphInput input);

// Columns: observation_I and, on request, noise_I or proposed_I, the inputs; action_I, cvar, constraint and
// intervention, the outputs, those that the graph has. `pairs` lines; the same for the same policy.
absl::StatusOr<std::string> RecordPairs(const Policy& policy, const TaskModel& model, GraphInput input, uint32_t pairs);

}  // namespace datacom::onnx

#endif  // DATACOM_DEPLOY_TOOLS_ONNX_EXPORT_ONNX_H_
// SPDX-License-Identifier: Apache-2.0
