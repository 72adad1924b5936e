// A policy with its safety filter as one ONNX file, and recorded pairs of inputs and outputs beside it.
//
// The pairs come from the acting rule itself, in episodes of the task that the policy plays with noise: whoever moves
// the file to another runtime repeats them there. Functions; thread-safe; block on the disk and, for pairs, while the
// simulator steps.
#ifndef DATACOM_DEPLOY_TOOLS_ONNX_EXPORT_ONNX_H_
#define DATACOM_DEPLOY_TOOLS_ONNX_EXPORT_ONNX_H_

#include <cstdint>
#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "common/acting/policy_file.h"
#include "common/tasks/task.h"
#include "deploy/tools/onnx/rule_graphs.h"

namespace datacom::onnx {

// Writes FILE.onnx and, unless that is no file, FILE.pairs.csv with `pairs` lines, and says on `out` what that has.
// INVALID_ARGUMENT, naming rule, known rows or task, if there is no graph; then nothing is written.
absl::Status WriteOnnx(const Policy& policy, const TaskModel& model, GraphInput input, uint32_t pairs,
                       const std::string& file, std::ostream* out);

}  // namespace datacom::onnx

#endif  // DATACOM_DEPLOY_TOOLS_ONNX_EXPORT_ONNX_H_
// SPDX-License-Identifier: Apache-2.0
