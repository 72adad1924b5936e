#include "deploy/tools/onnx/rules.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/acting/acting_rule.h"
#include "common/acting/action_scale.h"
#include "common/acting/gaussian_policy.h"
#include "common/acting/map_gains.h"
#include "common/base/status.h"
#include "common/safety/safe_map.h"
#include "deploy/tools/onnx/models.h"

namespace datacom::onnx {
namespace {

constexpr char kSafeMap[] = "safe_map";

struct Context {
  const Snapshot& snapshot;
  const SnapshotForm& form;
  const TaskModel& model;
  const v1::TaskOptions& options;
  Graph* graph;
  Value observation, noise;  // float32; noise is empty if there is none
};

Value Array(const Context& at, const std::string& name) {
  const NamedArray& array = *at.snapshot.Find(name);
  return at.graph->Floats(name, {array.shape.begin(), array.shape.end()}, array.values);
}

// 1 / (1 + exp(-x)), spelt out: ONNX Runtime's Sigmoid is 0 below about -18, and with it a gradient whose direction the
// safe map needs however small it is.
Value Sigmoid(const Value& x, Graph* graph) {
  const Value growth = graph->Apply("Exp", {graph->Apply("Neg", {x})});
  return graph->Divide(graph->Float(1), graph->Add(graph->Float(1), growth));
}

// A net (common/nn/mlp.h): the value of each layer, float32 [batch, width]; the last before its output function.
struct Layers {
  std::vector<Value> weights, values;
};
Layers Forward(const Context& at, const MlpSpec& net, Value x) {
  Layers layers;
  for (int i = 0; at.snapshot.Find(absl::StrCat(net.net, ".", i, ".weight")) != nullptr; ++i) {
    layers.weights.push_back(Array(at, absl::StrCat(net.net, ".", i, ".weight")));
    x = at.graph->Apply("Gemm", {x, layers.weights.back(), Array(at, absl::StrCat(net.net, ".", i, ".bias"))});
    const bool last = at.snapshot.Find(absl::StrCat(net.net, ".", i + 1, ".weight")) == nullptr;
    if (!last) {
      switch (net.hidden) {
        case Mlp::Hidden::kRelu:
          x = at.graph->Apply("Relu", {x});
          break;
        case Mlp::Hidden::kSigmoid:
          x = Sigmoid(x, at.graph);
          break;
        case Mlp::Hidden::kTanh:
          x = at.graph->Apply("Tanh", {x});
          break;
        case Mlp::Hidden::kSwish:
          x = at.graph->Multiply(x, Sigmoid(x, at.graph));
          break;
      }
    }
    layers.values.push_back(x);
  }
  return layers;
}

// The value of a net with one output, float32 [batch, 1], and its gradient by the input, [batch, inputs].
std::pair<Value, Value> ValueAndGradient(const Context& at, const MlpSpec& net, const Value& z) {
  Graph* const graph = at.graph;
  const Layers layers = Forward(at, net, z);
  const Value raw = layers.values.back();
  const bool softplus = net.output == Mlp::Output::kSoftplus;
  const Value value = softplus ? graph->Apply("Softplus", {raw}) : raw;
  Value slope;  // of the output by the last layer's values; without softplus it is 1
  if (softplus) slope = Sigmoid(raw, graph);
  for (size_t i = layers.weights.size(); i-- > 0;) {
    const Value weight = layers.weights[i];
    slope = slope.empty()
                // ones [batch, 1] times the transposed weight
                ? graph->Apply("MatMul", {graph->Apply("Exp", {graph->Multiply(raw, graph->Float(0))}),
                                          graph->Apply("Transpose", {weight})})
                : graph->Apply("Gemm", {slope, weight}, {{"transB", 1}});
    if (i == 0) break;
    const Value h = layers.values[i - 1];
    if (net.hidden == Mlp::Hidden::kRelu) {
      slope = graph->Apply("Where", {graph->Apply("Greater", {h, graph->Float(0)}), slope, graph->Float(0)});
    } else {
      slope = graph->Multiply(slope, graph->Multiply(h, graph->Subtract(graph->Float(1), h)));
    }
  }
  return {value, slope};
}

Value Scaled(const Context& at, const Value& squashed) {
  const int n = at.model.spec.action_dim;
  std::vector<float> half_range(n), centre(n);
  const ActionScale scale(at.model.spec);
  for (int i = 0; i < n; ++i) {
    centre[i] = scale.Scale(i, 0);
    half_range[i] = static_cast<float>((at.model.spec.action_high[i] - at.model.spec.action_low[i]) / 2);
  }
  return at.graph->Add(at.graph->Multiply(squashed, at.graph->Floats("", {1, n}, half_range)),
                       at.graph->Floats("", {1, n}, centre));
}

Value Seen(const Context& at) {
  const int seen = at.model.spec.seen_dim();
  if (ObservationColumns(at.snapshot, at.model.spec) == seen) return at.observation;
  return at.graph->Columns(at.observation, 0, seen);
}

// mean + exp(log_std) * noise.
Value Sample(const Context& at, const Value& mean, const Value& log_std) {
  return at.graph->Add(mean, at.graph->Multiply(at.graph->Apply("Exp", {log_std}), at.noise));
}

// common/acting/gaussian_policy.h.
Value GaussianAction(const Context& at) {
  const Value seen = Seen(at);
  Value raw = Forward(at, at.form.Net("actor.mean"), seen).values.back();
  if (!at.noise.empty()) {
    const Value log_std = Forward(at, at.form.Net("actor.log_std"), seen).values.back();
    raw = Sample(at, raw, at.graph->Apply("Clip", {log_std, at.graph->Float(kMinLogStd), at.graph->Float(kMaxLogStd)}));
  }
  return Scaled(at, at.graph->Apply("Tanh", {raw}));
}

void OutputAction(const Context& at, const Value& action) {
  at.graph->Output("action", action, at.model.spec.action_dim,
                   "the action to execute, units of the task, not clipped to its bounds");
}

absl::Status AddGaussian(const Context& at) {
  OutputAction(at, GaussianAction(at));
  return absl::OkStatus();
}

// common/acting/normalised_gaussian.cc.
absl::Status AddNormalised(const Context& at) {
  Graph* const graph = at.graph;
  const auto limit = static_cast<float>(ScalarOf(at.snapshot, "observation_limit"));
  const Value centred = graph->Subtract(Seen(at), Array(at, "observation.mean"));
  const Value x = graph->Apply(
      "Clip", {graph->Divide(centred, Array(at, "observation.std")), graph->Float(-limit), graph->Float(limit)});
  Value action = Forward(at, at.form.Net("actor.mean"), x).values.back();
  if (!at.noise.empty()) action = Sample(at, action, Array(at, "actor.log_std"));
  OutputAction(at, Scaled(at, action));
  return absl::OkStatus();
}

// CVaR of the learned constraint (common/acting/learned_constraint.h) at z, and its gradient; float64.
std::pair<Value, Value> LearnedCvar(const Context& at, const Value& z) {
  Graph* const graph = at.graph;
  const bool quantile = HasNet(at.snapshot, "constraint.value");
  auto [value, gradient] = ValueAndGradient(at, at.form.Net(quantile ? "constraint.value" : "constraint.mean"), z);
  value = graph->ToDouble(value);
  gradient = graph->ToDouble(gradient);
  if (quantile) return {value, gradient};
  const auto [raw, slope] = ValueAndGradient(at, at.form.Net("constraint.log_std"), z);
  const Value log_std = graph->Apply("Clip", {raw, graph->Float(kMinLogStd), graph->Float(kMaxLogStd)});
  const Value spread = graph->Multiply(graph->Double(ScalarOf(at.snapshot, "risk_margin")),
                                       graph->Apply("Exp", {graph->ToDouble(log_std)}));
  const Value inside = graph->Apply("Equal", {log_std, raw});
  const Value factor = graph->Apply("Where", {inside, spread, graph->Double(0)});
  return {graph->Add(value, spread), graph->Add(gradient, graph->Multiply(factor, graph->ToDouble(slope)))};
}

// One row of the safe map (common/safety/safe_map.h), J_G [batch, n], k and drift [batch, 1]: a for u, float64.
Value MappedAction(const Value& k, const Value& J_G, const Value& drift, const SafeMapGains& gains, int n,
                   const Value& u, Graph* graph) {
  const auto number = [&](double value) { return graph->Double(value); };
  const Value slack = graph->Apply("Max", {graph->Apply("Neg", {k}), number(kMinSlack)});
  const Value growth = graph->Apply("Exp", {graph->Multiply(number(gains.beta), slack)});
  const Value slope = graph->Apply("Min", {graph->Subtract(growth, number(1)), number(1e5 - 1)});
  const Value residual = graph->Add(drift, graph->Multiply(number(gains.lambda), graph->Add(k, slack)));
  const Value norm =
      graph->Apply("Sqrt", {graph->Add(graph->Multiply(slope, slope), graph->Sum(graph->Multiply(J_G, J_G)))});
  const Value j_s = graph->Divide(slope, norm), j_a = graph->Divide(J_G, norm);
  const Value clipped = graph->Apply("Clip", {u, number(-1), number(1)});
  const Value offset = graph->Divide(graph->Multiply(j_a, residual), norm);
  const Value along = graph->Divide(graph->Sum(graph->Multiply(j_a, clipped)), graph->Add(number(1), j_s));
  const Value tangent = n == 1 ? graph->Multiply(j_s, clipped) : graph->Subtract(clipped, graph->Multiply(j_a, along));
  const Value raw = graph->Subtract(tangent, offset);
  const Value sizes = graph->Apply("Abs", {raw});
  std::vector<Value> largest = {number(1)};
  for (int i = 0; i < n; ++i) largest.push_back(graph->Columns(sizes, i, 1));
  return graph->Divide(raw, graph->Apply("Max", largest));
}

// common/acting/safe_map_rule.cc without known rows.
absl::Status AddSafeMap(const Context& at) {
  const std::vector<std::string> known = KnownConstraintNames(at.snapshot);
  if (!known.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the safe map joins the known rows ", absl::StrJoin(known, ", "),
                                                   ", and only a map with the learned row alone has an ONNX graph"));
  }
  Graph* const graph = at.graph;
  const ControlAffineDims dims = at.model.dynamics->dims();
  ASSIGN_OR_RETURN(const ModelValues m, AddModel(at.model, at.options, graph->ToDouble(at.observation), graph));
  const Value u = graph->ToDouble(GaussianAction(at));
  const auto [cvar, gradient] = LearnedCvar(at, graph->ToFloat(dims.x > 0 ? graph->Join({m.q, m.x}) : m.q));
  const Value k = graph->Subtract(cvar, graph->Double(ScalarOf(at.snapshot, "delta")));
  const Value J_q = graph->Columns(gradient, 0, dims.q);
  const Value row = graph->Apply("MatMul", {graph->Apply("Unsqueeze", {J_q, graph->Indices({1})}), m.G});
  const Value J_G = graph->Apply("Squeeze", {row, graph->Indices({1})});
  Value drift = graph->Apply("Max", {graph->Sum(graph->Multiply(J_q, m.f)), graph->Double(0)});
  if (dims.x > 0) {
    drift = graph->Add(drift, graph->Sum(graph->Multiply(graph->Columns(gradient, dims.q, dims.x), m.x_dot)));
  }
  const Value action = graph->ToFloat(MappedAction(k, J_G, drift, GainsOf(at.snapshot), dims.action, u, graph));
  OutputAction(at, action);
  graph->Output("constraint", graph->ToFloat(k), 0, "cvar - delta; above 0 the state is judged unsafe");
  graph->Output("cvar", graph->ToFloat(cvar), 0, "conditional value at risk of the future discounted cost");
  const Value change = graph->Subtract(graph->ToDouble(action), u);
  graph->Output("intervention", graph->ToFloat(graph->Apply("Sqrt", {graph->Sum(graph->Multiply(change, change))})), 0,
                "norm of the filter's change to the policy's action");
  return absl::OkStatus();
}

struct RuleGraph {
  const char* rule;
  absl::Status (*add)(const Context& at);
};
constexpr RuleGraph kGraphs[] = {
    {"gaussian_policy", &AddGaussian}, {"normalised_gaussian", &AddNormalised}, {kSafeMap, &AddSafeMap}};

}  // namespace

int ObservationColumns(const Snapshot& snapshot, const TaskSpec& spec) {
  return snapshot.acting_rule == kSafeMap ? spec.obs_dim : spec.seen_dim();
}

absl::Status AddRule(const Snapshot& snapshot, const TaskModel& model, const v1::TaskOptions& options, bool noise,
                     Graph* graph) {
  std::vector<std::string> names;
  for (const RuleGraph& entry : kGraphs) {
    names.emplace_back(entry.rule);
    if (names.back() != snapshot.acting_rule) continue;
    ASSIGN_OR_RETURN(const SnapshotForm form, ActingRuleForm(snapshot.acting_rule, SnapshotDims::Of(model), snapshot));
    Context at{snapshot, form, model, options, graph, "", ""};
    at.observation = graph->Input("observation", ObservationColumns(snapshot, model.spec),
                                  "numbers as in the property observation_names");
    if (noise) at.noise = graph->Input("noise", model.spec.action_dim, "standard normal numbers");
    return entry.add(at);
  }
  return absl::InvalidArgumentError(absl::StrCat("acting rule ", snapshot.acting_rule,
                                                 " has no ONNX graph; rules with one: ", absl::StrJoin(names, ", ")));
}

}  // namespace datacom::onnx
// SPDX-License-Identifier: Apache-2.0
