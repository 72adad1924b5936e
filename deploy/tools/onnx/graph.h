// Builds an ONNX graph: nodes, constants, inputs and outputs. A value is the name of a tensor; most tensors are
// [batch, columns].
//
// Operators are those of set 13, for which ONNX Runtime's processor backend has the types used here. Not thread-safe.
#ifndef DATACOM_DEPLOY_TOOLS_ONNX_GRAPH_H_
#define DATACOM_DEPLOY_TOOLS_ONNX_GRAPH_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "datacom/v1/onnx.pb.h"

namespace datacom::onnx {

inline constexpr int kOperatorSet = 13;

using Value = std::string;
using Type = v1::OnnxTensor;
using Attributes = std::vector<std::pair<std::string, int64_t>>;

class Graph {
 public:
  // float32 [batch, columns].
  Value Input(const std::string& name, int columns, const std::string& about);
  // Names `value`, float32 [batch, columns], or [batch] if columns is 0, as the graph's next output.
  void Output(const std::string& name, const Value& value, int columns, const std::string& about);

  Value Apply(const std::string& operation, std::vector<Value> inputs, const Attributes& attributes = {});
  Value Floats(const std::string& name, const std::vector<int64_t>& shape, const std::vector<float>& numbers);
  Value Doubles(const std::vector<int64_t>& shape, const std::vector<double>& numbers);
  Value Indices(const std::vector<int64_t>& numbers);
  Value Float(float number) { return Floats("", {}, {number}); }
  Value Double(double number) { return Doubles({}, {number}); }

  Value Add(const Value& a, const Value& b) { return Apply("Add", {a, b}); }
  Value Subtract(const Value& a, const Value& b) { return Apply("Sub", {a, b}); }
  Value Multiply(const Value& a, const Value& b) { return Apply("Mul", {a, b}); }
  Value Divide(const Value& a, const Value& b) { return Apply("Div", {a, b}); }
  Value ToDouble(const Value& value) { return Apply("Cast", {value}, {{"to", Type::DOUBLE}}); }
  Value ToFloat(const Value& value) { return Apply("Cast", {value}, {{"to", Type::FLOAT}}); }
  Value Join(const std::vector<Value>& columns) { return Apply("Concat", columns, {{"axis", 1}}); }
  Value Columns(const Value& value, const std::vector<int64_t>& columns);
  Value Columns(const Value& value, int first, int count);
  Value Sum(const Value& value);  // [batch, columns] -> [batch, 1]

  const v1::OnnxGraph& proto() const { return graph_; }
  v1::OnnxGraph* mutable_proto() { return &graph_; }

 private:
  template <class Number>
  Value Constant(const std::string& name, Type::Type type, const std::vector<int64_t>& shape,
                 const std::vector<Number>& numbers);

  v1::OnnxGraph graph_;
  std::map<std::string, Value> constants_;  // by type, shape and content: a constant is stored once
};

}  // namespace datacom::onnx

#endif  // DATACOM_DEPLOY_TOOLS_ONNX_GRAPH_H_
// SPDX-License-Identifier: Apache-2.0
