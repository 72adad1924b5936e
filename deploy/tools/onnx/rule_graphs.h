// Acting rules (common/acting/acting_rule.h) as ONNX graphs. Functions; thread-safe.
//
//   inputs   observation [batch, columns] float32; on request noise [batch, action_dim] float32, standard normal, as
//            in training and evaluation (without it the action is the deterministic one), or proposed [batch,
//            action_dim] float32, somebody else's action, which is limited to the task's bounds and filtered
//   outputs  action [batch, action_dim] float32, the one to execute; for safe_map also constraint (CVaR - delta), cvar
//            and intervention |a - u|, float32 [batch]
#ifndef DATACOM_DEPLOY_TOOLS_ONNX_RULE_GRAPHS_H_
#define DATACOM_DEPLOY_TOOLS_ONNX_RULE_GRAPHS_H_

#include "absl/status/status.h"
#include "common/nn/snapshot.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "deploy/tools/onnx/graph.h"

namespace datacom::onnx {

// How many numbers of an observation, from its first on, the graph of a rule takes.
int ObservationColumns(const Snapshot& snapshot, const TaskSpec& spec);

// What a graph takes beside the observation.
enum class GraphInput { kNothing, kNoise, kProposed };

// The snapshot has been checked (MakeActingRule). INVALID_ARGUMENT, naming the rule, the known rows or the task that
// has no graph, or the rule that filters no proposed action.
absl::Status AddRule(const Snapshot& snapshot, const TaskModel& model, const v1::TaskOptions& options, GraphInput input,
                     Graph* graph);

}  // namespace datacom::onnx

#endif  // DATACOM_DEPLOY_TOOLS_ONNX_RULE_GRAPHS_H_
// SPDX-License-Identifier: Apache-2.0
