// The control-affine models of the tasks (common/safety/control_affine.h) as ONNX graphs. Functions; thread-safe.
#ifndef DATACOM_DEPLOY_TOOLS_ONNX_MODELS_H_
#define DATACOM_DEPLOY_TOOLS_ONNX_MODELS_H_

#include "absl/status/statusor.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "deploy/tools/onnx/graph.h"

namespace datacom::onnx {

// Values in float64. x and x_dot are empty if the model has no uncontrollable state.
struct ModelValues {
  Value q;         // [batch, q]
  Value x, x_dot;  // [batch, x]
  Value f;         // [batch, q]
  Value G;         // [batch, q, action] or [q, action]
};

// observation: float64 [batch, obs_dim]. INVALID_ARGUMENT, naming the task and those that have a graph.
absl::StatusOr<ModelValues> AddModel(const TaskModel& model, const v1::TaskOptions& options, const Value& observation,
                                     Graph* graph);

}  // namespace datacom::onnx

#endif  // DATACOM_DEPLOY_TOOLS_ONNX_MODELS_H_
// SPDX-License-Identifier: Apache-2.0
