// Acting rules (common/acting/acting_rule.h) as ONNX graphs. Functions; thread-safe.
//
//   inputs   observation [batch, columns] float32; on request noise [batch, action_dim] float32, standard normal, as
//            in training and evaluation (without it the action is the deterministic one), or proposed [batch,
//            action_dim] float32, somebody else's action, which is limited to the task's bounds and filtered
//   outputs  action [batch, action_dim] float32, the one to execute; for safe_map also constraint (CVaR - delta), cvar
//            and intervention |a - u|, float32 [batch]
#ifndef DATACOM_DEPLOY_TOOLS_ONNX_RULE_GRAPHS_H_
#define DATACOM_DEPLOY_TOOLS_ONNX_RULE_GRAPHS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/nn/snapshot.h"
#include "common/tasks/task.h"
#include "datacom/v1/onnx.pb.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::onnx {

// Graph builds an ONNX graph: nodes, constants, inputs and outputs. Formulas of values add nodes.
//
// Operators are those of set 13, for which ONNX Runtime's processor backend has the types used here. Not thread-safe.
inline constexpr int kOperatorSet = 13;

using Type = v1::OnnxTensor;
using Attributes = std::vector<std::pair<std::string, int64_t>>;

class Graph;

// A tensor of a graph, which outlives it; most are [batch, columns]. Or a number, for operations with a tensor.
struct Value {
  Value() = default;
  Value(Graph* graph, const std::string& name) : graph(graph), name(name) {}
  Value(double number) : number(number) {}               // NOLINT(google-explicit-constructor)
  Value(float number) : number(number), single(true) {}  // NOLINT(google-explicit-constructor)
  bool empty() const { return graph == nullptr; }        // also of a number

  Graph* graph = nullptr;
  std::string name;
  double number = 0;
  bool single = false;  // whether the number is a float
};

class Graph {
 public:
  // float32 [batch, columns].
  Value Input(const std::string& name, int columns, const std::string& about);
  // Names `value`, float32 [batch, columns], or [batch] if columns is 0, as the graph's next output.
  void Output(const std::string& name, const Value& value, int columns, const std::string& about);

  Value Floats(const std::string& name, const std::vector<int64_t>& shape, const std::vector<float>& numbers);
  Value Doubles(const std::vector<int64_t>& shape, const std::vector<double>& numbers);
  Value Indices(const std::vector<int64_t>& numbers);

  const v1::OnnxGraph& proto() const { return graph_; }
  v1::OnnxGraph* mutable_proto() { return &graph_; }

 private:
  template <class Number>
  Value Constant(const std::string& name, Type::Type type, const std::vector<int64_t>& shape,
                 const std::vector<Number>& numbers);

  v1::OnnxGraph graph_;
  std::map<std::string, std::string> constants_;  // by type, shape and content: a constant is stored once
};

// Adds a node. The first or the last input is a tensor.
Value Apply(const std::string& operation, const std::vector<Value>& inputs, const Attributes& attributes = {});
inline Value operator+(const Value& a, const Value& b) { return Apply("Add", {a, b}); }
inline Value operator-(const Value& a, const Value& b) { return Apply("Sub", {a, b}); }
inline Value operator*(const Value& a, const Value& b) { return Apply("Mul", {a, b}); }
inline Value operator/(const Value& a, const Value& b) { return Apply("Div", {a, b}); }
inline Value ToDouble(const Value& value) { return Apply("Cast", {value}, {{"to", Type::DOUBLE}}); }
inline Value ToFloat(const Value& value) { return Apply("Cast", {value}, {{"to", Type::FLOAT}}); }
inline Value Join(const std::vector<Value>& columns) { return Apply("Concat", columns, {{"axis", 1}}); }
Value Columns(const Value& value, const std::vector<int64_t>& columns);
Value Columns(const Value& value, int first, int count);
Value Sum(const Value& value);  // [batch, columns] -> [batch, 1]

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
