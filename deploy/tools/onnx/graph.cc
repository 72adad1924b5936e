#include "deploy/tools/onnx/rule_graphs.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace datacom::onnx {
namespace {

// float32 [batch, columns], or [batch] if columns is 0.
void Describe(const std::string& name, int columns, const std::string& about, v1::OnnxValue* value) {
  value->set_name(name);
  value->set_doc_string(about);
  v1::OnnxTensorType* const type = value->mutable_type()->mutable_tensor_type();
  type->set_elem_type(Type::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_param("batch");
  if (columns > 0) type->mutable_shape()->add_dim()->set_dim_value(columns);
}

}  // namespace

Value Graph::Input(const std::string& name, int columns, const std::string& about) {
  Describe(name, columns, about, graph_.add_input());
  return {this, name};
}

void Graph::Output(const std::string& name, const Value& value, int columns, const std::string& about) {
  v1::OnnxNode* const node = graph_.add_node();
  node->set_name(name);
  if (columns > 0) {
    node->set_op_type("Identity");
    node->add_input(value.name);
  } else {
    node->set_op_type("Squeeze");
    node->add_input(value.name);
    node->add_input(Indices({1}).name);
  }
  node->add_output(name);
  Describe(name, columns, about, graph_.add_output());
}

template <class Number>
Value Graph::Constant(const std::string& name, Type::Type type, const std::vector<int64_t>& shape,
                      const std::vector<Number>& numbers) {
  const std::string data(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number));
  const std::string key = absl::StrCat(name, " ", type, " ", absl::StrJoin(shape, ","), " ", data);
  const auto [found, added] = constants_.try_emplace(key, name);
  if (!added) return {this, found->second};
  if (name.empty()) found->second = absl::StrCat("constant_", constants_.size());
  v1::OnnxTensor* const tensor = graph_.add_initializer();
  tensor->set_name(found->second);
  tensor->set_data_type(type);
  for (const int64_t extent : shape) tensor->add_dims(extent);
  tensor->set_raw_data(data);
  return {this, found->second};
}

Value Graph::Floats(const std::string& name, const std::vector<int64_t>& shape, const std::vector<float>& numbers) {
  return Constant(name, Type::FLOAT, shape, numbers);
}

Value Graph::Doubles(const std::vector<int64_t>& shape, const std::vector<double>& numbers) {
  return Constant("", Type::DOUBLE, shape, numbers);
}

Value Graph::Indices(const std::vector<int64_t>& numbers) {
  return Constant("", Type::INT64, {static_cast<int64_t>(numbers.size())}, numbers);
}

Value Apply(const std::string& operation, const std::vector<Value>& inputs, const Attributes& attributes) {
  Graph* const graph = inputs.front().empty() ? inputs.back().graph : inputs.front().graph;
  const std::string name = absl::StrCat(operation, "_", graph->proto().node_size());
  v1::OnnxNode* const node = graph->mutable_proto()->add_node();
  node->set_name(name);
  node->set_op_type(operation);
  for (const Value& input : inputs) {
    node->add_input(!input.empty() ? input.name
                    : input.single ? graph->Floats("", {}, {static_cast<float>(input.number)}).name
                                   : graph->Doubles({}, {input.number}).name);
  }
  node->add_output(name);
  for (const auto& [key, number] : attributes) {
    v1::OnnxAttribute* const attribute = node->add_attribute();
    attribute->set_name(key);
    attribute->set_type(v1::OnnxAttribute::INT);
    attribute->set_i(number);
  }
  return {graph, name};
}

Value Columns(const Value& value, const std::vector<int64_t>& columns) {
  return Apply("Gather", {value, value.graph->Indices(columns)}, {{"axis", 1}});
}

Value Columns(const Value& value, int first, int count) {
  std::vector<int64_t> columns(count);
  std::iota(columns.begin(), columns.end(), first);
  return Columns(value, columns);
}

Value Sum(const Value& value) { return Apply("ReduceSum", {value, value.graph->Indices({1})}, {{"keepdims", 1}}); }

}  // namespace datacom::onnx
// SPDX-License-Identifier: Apache-2.0
