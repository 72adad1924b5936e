#include "deploy/tools/onnx/rule_graphs.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/acting/acting_rule.h"
#include "common/acting/gaussian_policy.h"
#include "common/acting/map_parts.h"
#include "common/acting/rule_parts.h"
#include "common/base/status.h"
#include "common/safety/safe_map.h"
#include "common/tasks/air_hockey/dynamics.h"
#include "common/tasks/cartpole/dynamics.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/python_task.pb.h"

namespace datacom::onnx {
namespace {

using text::RowLayout;

// A control-affine model (common/safety/control_affine.h), float64. x and x_dot are empty if there is no uncontrollable
// state.
struct ModelValues {
  Value q;         // [batch, q]
  Value x, x_dot;  // [batch, x]
  Value f;         // [batch, q]
  Value G;         // [batch, q, action] or [q, action]
};

// A matrix [rows, columns], row-major, zeros at first.
struct Matrix {
  Matrix(int rows, int columns) : rows(rows), columns(columns), numbers(rows * columns) {}
  double& at(int row, int column) { return numbers[row * columns + column]; }
  Value AddTo(Graph* graph) const { return graph->Doubles({rows, columns}, numbers); }
  int rows, columns;
  std::vector<double> numbers;
};

// An angle given by its sine and cosine, which observations round.
struct Turn {
  Value angle;         // as exact as a float32 arc tangent: ONNX Runtime has no float64 one
  Value sine, cosine;  // of the angle, float64
};

Turn AngleOf(const Value& y, const Value& x) {
  const Value length = Apply("Sqrt", {y * y + x * x});
  const Value sine = y / length, cosine = x / length;
  // tan(angle / 2) = sine / (1 + cosine) where cosine >= 0, else (1 - cosine) / sine.
  const Value right = sine / (1.0 + cosine), left = (1.0 - cosine) / sine;
  const Value half_tangent = Apply("Where", {Apply("Less", {cosine, 0.0}), left, right});
  return {2.0 * ToDouble(Apply("Atan", {ToFloat(half_tangent)})), sine, cosine};
}

// common/tasks/cartpole/dynamics.cc: [m11, m12; m12, m22] of cart and pole, solved in closed form.
ModelValues CartPole(const Value& obs) {
  using namespace cartpole;  // NOLINT(google-build-using-namespace): its constants
  Graph* const graph = obs.graph;
  const auto column = [&](int i) { return Columns(obs, i, 1); };
  const auto [theta, sine, cosine] = AngleOf(column(1), column(2));
  const Value x_dot = column(3), theta_dot = column(4);
  const Value m11 = graph->Doubles({}, {kCartMass + kPoleMass}), m12 = kPoleMass * kHalfLength * cosine;
  const Value m22 = graph->Doubles({}, {kPoleMass * kHalfLength * kHalfLength + kPoleInertia});
  const Value determinant = m11 * m22 - m12 * m12;
  const Value b0 = kPoleMass * kHalfLength * (theta_dot * theta_dot * sine);
  const Value b1 = kPoleMass * kGravity * kHalfLength * sine;
  const Value f2 = (m22 * b0 - m12 * b1) / determinant, f3 = (m11 * b1 - m12 * b0) / determinant;
  const Value g2 = kInputGain * m22 / determinant, g3 = -kInputGain * m12 / determinant;
  ModelValues values;
  values.q = Join({column(0), theta, x_dot, theta_dot});
  values.f = Join({x_dot, theta_dot, f2, f3});
  Matrix last_two(2, 4);
  last_two.at(0, 2) = last_two.at(1, 3) = 1;
  const Value G = Apply("MatMul", {Join({g2, g3}), last_two.AddTo(graph)});
  values.G = Apply("Unsqueeze", {G, graph->Indices({2})});
  return values;
}

ModelValues AirHockey(const Value& obs) {
  using air_hockey::kJointPosition;
  using air_hockey::kJointVelocity;
  Matrix f(air_hockey::kObservation, 6), G(6, 3);
  for (int i = 0; i < 3; ++i) {
    f.at(kJointVelocity + i, i) = 1;
    G.at(3 + i, i) = 1;
  }
  ModelValues values;
  values.q = Columns(obs, kJointPosition, 6);
  values.f = Apply("MatMul", {obs, f.AddTo(obs.graph)});
  values.G = G.AddTo(obs.graph);
  return values;
}

// Entries as in common/tasks/navigation/observation.h.
ModelValues Navigation(const Value& obs) {
  Graph* const graph = obs.graph;
  const auto column = [&](int i) { return Columns(obs, i, 1); };
  const auto [heading, sine, cosine] = AngleOf(column(5), column(4));
  ModelValues values;
  values.q = Join({column(2), column(3), heading});
  values.x = Join({column(9), column(10), AngleOf(column(12), column(11)).angle, column(18), column(19)});
  values.x_dot = Columns(obs, {13, 14, 15, 20, 21});
  values.f = graph->Doubles({1, 3}, {0, 0, 0});
  Matrix places(2, 6);  // G = [cos, 0; sin, 0; 0, 1], row-major
  places.at(0, 0) = places.at(1, 2) = 1;
  const Value turns = Join({cosine, sine});
  const Value rows = Apply("MatMul", {turns, places.AddTo(graph)}) + graph->Doubles({1, 6}, {0, 0, 0, 0, 0, 1});
  values.G = Apply("Reshape", {rows, graph->Indices({-1, 3, 2})});
  return values;
}

// f of a task that is a text file: linear in the observation, but for the rates of quaternions, which are sums of
// products q_i w_j / 2 (common/tasks/text/row_model.cc).
Value TextDrift(const RowLayout& layout, const v1::ResolvedTask& resolved, const Value& obs) {
  using Kind = v1::ConstraintJoint;
  Matrix linear(layout.size, layout.q);
  std::vector<int64_t> left, right;  // entries of the observation whose products count
  std::vector<std::pair<int, double>> places;
  int position = 0, velocity = layout.q_at + layout.positions;
  for (const Kind::Kind joint : layout.first_order ? std::vector<Kind::Kind>{} : layout.joints) {
    const int linear_count = joint == Kind::BALL ? 0 : joint == Kind::FREE ? 3 : 1;
    for (int i = 0; i < linear_count; ++i) linear.at(velocity++, position++) = 1;
    if (joint != Kind::BALL && joint != Kind::FREE) continue;
    // q (0, w) / 2: for each of the four numbers, {index of q, index of w, sign} three times.
    constexpr int kTerms[4][3][3] = {{{1, 0, -1}, {2, 1, -1}, {3, 2, -1}},
                                     {{0, 0, 1}, {2, 2, 1}, {3, 1, -1}},
                                     {{0, 1, 1}, {3, 0, 1}, {1, 2, -1}},
                                     {{0, 2, 1}, {1, 1, 1}, {2, 0, -1}}};
    for (int row = 0; row < 4; ++row) {
      for (const auto& term : kTerms[row]) {
        left.push_back(layout.q_at + position + term[0]);
        right.push_back(velocity + term[1]);
        places.emplace_back(position + row, 0.5 * term[2]);
      }
    }
    position += 4, velocity += 3;
  }
  for (int i = 0; layout.evaluated && i < layout.velocities; ++i) {
    linear.at(layout.drift_at + i, layout.driven_at() + i) = 1;
  }
  std::vector<double> constant(layout.q);
  for (const v1::DirectDrive& drive : resolved.drive()) {
    const int dof = static_cast<int>(drive.dof()), driven = layout.driven_at() + dof;
    constant[driven] = drive.drift();
    if (drive.from_position() != 0) linear.at(layout.q_at + dof, driven) = drive.from_position();
  }
  Graph* const graph = obs.graph;
  const Value sum = Apply("MatMul", {obs, linear.AddTo(graph)}) + graph->Doubles({1, layout.q}, constant);
  if (left.empty()) return sum;
  Matrix gathered(static_cast<int>(places.size()), layout.q);
  for (size_t i = 0; i < places.size(); ++i) gathered.at(static_cast<int>(i), places[i].first) = places[i].second;
  const Value products = Columns(obs, left) * Columns(obs, right);
  return sum + Apply("MatMul", {products, gathered.AddTo(graph)});
}

ModelValues Text(const v1::TextTask& task, const Value& obs) {
  Graph* const graph = obs.graph;
  const RowLayout layout = RowLayout::Of(task);
  ModelValues values;
  values.q = Columns(obs, layout.q_at, layout.q);
  if (layout.x > 0) {
    values.x = Columns(obs, layout.x_at, layout.x);
    values.x_dot = Columns(obs, layout.x_dot_at, layout.x);
  }
  values.f = TextDrift(layout, task.resolved(), obs);
  if (layout.evaluated) {
    Matrix place(layout.q, layout.velocities);
    for (int i = 0; i < layout.velocities; ++i) place.at(layout.driven_at() + i, i) = 1;
    const Value gains = Apply("Reshape", {Columns(obs, layout.gain_at, layout.velocities * layout.action),
                                          graph->Indices({-1, layout.velocities, layout.action})});
    values.G = Apply("MatMul", {place.AddTo(graph), gains});
    return values;
  }
  Matrix G(layout.q, layout.action);
  for (int i = 0; i < task.resolved().drive_size(); ++i) {
    const v1::DirectDrive& drive = task.resolved().drive(i);
    G.at(layout.driven_at() + static_cast<int>(drive.dof()), i) = drive.gain();
  }
  values.G = G.AddTo(graph);
  return values;
}

// The environment has put all terms into the observation (common/tasks/python/python_model.h).
ModelValues Python(const v1::PythonTask& task, const Value& obs) {
  const int q = static_cast<int>(task.q()), x = static_cast<int>(task.x()), n = task.action_low_size();
  int at = static_cast<int>(task.observation());
  const auto take = [&](int count) { return Columns(obs, std::exchange(at, at + count), count); };
  ModelValues values;
  values.q = take(q);
  if (x > 0) {
    values.x = take(x);
    values.x_dot = take(x);
  }
  values.f = take(q);
  values.G = Apply("Reshape", {take(q * n), obs.graph->Indices({-1, q, n})});
  return values;
}

// observation: float64 [batch, obs_dim]. INVALID_ARGUMENT, naming the task and those that have a graph.
absl::StatusOr<ModelValues> AddModel(const TaskModel& model, const v1::TaskOptions& options, const Value& observation) {
  if (options.HasExtension(v1::text_task)) return Text(options.GetExtension(v1::text_task), observation);
  if (options.HasExtension(v1::python_task)) return Python(options.GetExtension(v1::python_task), observation);
  const std::string& name = model.spec.name;
  if (name == "cartpole") return CartPole(observation);
  if (name == "air_hockey") return AirHockey(observation);
  if (name == "navigation") return Navigation(observation);
  return absl::InvalidArgumentError(
      absl::StrCat("task ", name, ": its control-affine model has no ONNX graph; there are ",
                   "graphs of cartpole, air_hockey, navigation, text tasks and Python environments"));
}

constexpr char kSafeMap[] = "safe_map";

struct Context {
  const Snapshot& snapshot;
  const SnapshotForm& form;
  const TaskModel& model;
  const v1::TaskOptions& options;
  Graph* graph;
  Value observation, noise, proposed;  // float32; the last two are empty if there are none
};

Value Array(const Context& at, const std::string& name) {
  const NamedArray& array = *at.snapshot.Find(name);
  return at.graph->Floats(name, {array.shape.begin(), array.shape.end()}, array.values);
}

// 1 / (1 + exp(-x)), spelt out: ONNX Runtime's Sigmoid is 0 below about -18, and with it a gradient whose direction the
// safe map needs however small it is.
Value Sigmoid(const Value& x) { return 1.0f / (1.0f + Apply("Exp", {Apply("Neg", {x})})); }

// A net (common/nn/mlp.h): the value of each layer, float32 [batch, width]; the last before its output function.
struct Layers {
  std::vector<Value> weights, values;
};
Layers Forward(const Context& at, const MlpSpec& net, Value x) {
  Layers layers;
  for (int i = 0; at.snapshot.Find(absl::StrCat(net.net, ".", i, ".weight")) != nullptr; ++i) {
    layers.weights.push_back(Array(at, absl::StrCat(net.net, ".", i, ".weight")));
    x = Apply("Gemm", {x, layers.weights.back(), Array(at, absl::StrCat(net.net, ".", i, ".bias"))});
    const bool last = at.snapshot.Find(absl::StrCat(net.net, ".", i + 1, ".weight")) == nullptr;
    if (!last) {
      switch (net.hidden) {
        case Mlp::Hidden::kRelu:
          x = Apply("Relu", {x});
          break;
        case Mlp::Hidden::kSigmoid:
          x = Sigmoid(x);
          break;
        case Mlp::Hidden::kTanh:
          x = Apply("Tanh", {x});
          break;
        case Mlp::Hidden::kSwish:
          x = x * Sigmoid(x);
          break;
      }
    }
    layers.values.push_back(x);
  }
  return layers;
}

// The value of a net with one output, float32 [batch, 1], and its gradient by the input, [batch, inputs].
std::pair<Value, Value> ValueAndGradient(const Context& at, const MlpSpec& net, const Value& z) {
  const Layers layers = Forward(at, net, z);
  const Value raw = layers.values.back();
  const bool softplus = net.output == Mlp::Output::kSoftplus;
  const Value value = softplus ? Apply("Softplus", {raw}) : raw;
  Value slope;  // of the output by the last layer's values; without softplus it is 1
  if (softplus) slope = Sigmoid(raw);
  for (size_t i = layers.weights.size(); i-- > 0;) {
    const Value weight = layers.weights[i];
    slope = slope.empty()
                // ones [batch, 1] times the transposed weight
                ? Apply("MatMul", {Apply("Exp", {raw * 0.0f}), Apply("Transpose", {weight})})
                : Apply("Gemm", {slope, weight}, {{"transB", 1}});
    if (i == 0) break;
    const Value h = layers.values[i - 1];
    if (net.hidden == Mlp::Hidden::kRelu) {
      slope = Apply("Where", {Apply("Greater", {h, 0.0f}), slope, 0.0f});
    } else {
      slope = slope * (h * (1.0f - h));
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
  return squashed * at.graph->Floats("", {1, n}, half_range) + at.graph->Floats("", {1, n}, centre);
}

Value Seen(const Context& at) {
  const int seen = at.model.spec.seen_dim();
  if (ObservationColumns(at.snapshot, at.model.spec) == seen) return at.observation;
  return Columns(at.observation, 0, seen);
}

// mean + exp(log_std) * noise.
Value Sample(const Context& at, const Value& mean, const Value& log_std) {
  return mean + Apply("Exp", {log_std}) * at.noise;
}

// Somebody else's action, within the task's bounds.
Value ProposedAction(const Context& at) {
  const TaskSpec& spec = at.model.spec;
  const std::vector<float> low(spec.action_low.begin(), spec.action_low.end());
  const std::vector<float> high(spec.action_high.begin(), spec.action_high.end());
  const Value least = Apply("Max", {at.proposed, at.graph->Floats("", {1, spec.action_dim}, low)});
  return Apply("Min", {least, at.graph->Floats("", {1, spec.action_dim}, high)});
}

// common/acting/gaussian_policy.h.
Value GaussianAction(const Context& at) {
  if (!at.proposed.empty()) return ProposedAction(at);
  const Value seen = Seen(at);
  Value raw = Forward(at, at.form.Net("actor.mean"), seen).values.back();
  if (!at.noise.empty()) {
    const Value log_std = Forward(at, at.form.Net("actor.log_std"), seen).values.back();
    raw = Sample(at, raw, Apply("Clip", {log_std, kMinLogStd, kMaxLogStd}));
  }
  return Scaled(at, Apply("Tanh", {raw}));
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
  const auto limit = static_cast<float>(ScalarOf(at.snapshot, "observation_limit"));
  const Value centred = Seen(at) - Array(at, "observation.mean");
  const Value x = Apply("Clip", {centred / Array(at, "observation.std"), -limit, limit});
  Value action = Forward(at, at.form.Net("actor.mean"), x).values.back();
  if (!at.noise.empty()) action = Sample(at, action, Array(at, "actor.log_std"));
  OutputAction(at, Scaled(at, action));
  return absl::OkStatus();
}

// CVaR of the learned constraint (common/acting/learned_constraint.h) at z, and its gradient; float64.
std::pair<Value, Value> LearnedCvar(const Context& at, const Value& z) {
  const bool quantile = HasNet(at.snapshot, "constraint.value");
  auto [value, gradient] = ValueAndGradient(at, at.form.Net(quantile ? "constraint.value" : "constraint.mean"), z);
  value = ToDouble(value);
  gradient = ToDouble(gradient);
  if (quantile) return {value, gradient};
  const auto [raw, slope] = ValueAndGradient(at, at.form.Net("constraint.log_std"), z);
  const Value log_std = Apply("Clip", {raw, kMinLogStd, kMaxLogStd});
  const Value spread = ScalarOf(at.snapshot, "risk_margin") * Apply("Exp", {ToDouble(log_std)});
  const Value factor = Apply("Where", {Apply("Equal", {log_std, raw}), spread, 0.0});
  return {value + spread, gradient + factor * ToDouble(slope)};
}

// One row of the safe map (common/safety/safe_map.h), J_G [batch, n], k and drift [batch, 1]: a for u, float64.
Value MappedAction(const Value& k, const Value& J_G, const Value& drift, const SafeMapGains& gains, int n,
                   const Value& u) {
  const Value slack = Apply("Max", {Apply("Neg", {k}), kMinSlack});
  const Value slope = Apply("Min", {Apply("Exp", {gains.beta * slack}) - 1.0, 1e5 - 1});
  const Value residual = drift + gains.lambda * (k + slack);
  const Value norm = Apply("Sqrt", {slope * slope + Sum(J_G * J_G)});
  const Value j_s = slope / norm, j_a = J_G / norm;
  const Value clipped = Apply("Clip", {u, -1.0, 1.0});
  const Value offset = j_a * residual / norm;
  const Value along = Sum(j_a * clipped) / (1.0 + j_s);
  const Value raw = (n == 1 ? j_s * clipped : clipped - j_a * along) - offset;
  const Value sizes = Apply("Abs", {raw});
  std::vector<Value> largest = {1.0};
  for (int i = 0; i < n; ++i) largest.push_back(Columns(sizes, i, 1));
  return raw / Apply("Max", largest);
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
  ASSIGN_OR_RETURN(const ModelValues m, AddModel(at.model, at.options, ToDouble(at.observation)));
  const Value u = ToDouble(GaussianAction(at));
  const auto [cvar, gradient] = LearnedCvar(at, ToFloat(dims.x > 0 ? Join({m.q, m.x}) : m.q));
  const Value k = cvar - ScalarOf(at.snapshot, "delta");
  const Value J_q = Columns(gradient, 0, dims.q);
  const Value row = Apply("MatMul", {Apply("Unsqueeze", {J_q, graph->Indices({1})}), m.G});
  const Value J_G = Apply("Squeeze", {row, graph->Indices({1})});
  Value drift = Apply("Max", {Sum(J_q * m.f), 0.0});
  if (dims.x > 0) drift = drift + Sum(Columns(gradient, dims.q, dims.x) * m.x_dot);
  const Value action = ToFloat(MappedAction(k, J_G, drift, GainsOf(at.snapshot), dims.action, u));
  OutputAction(at, action);
  graph->Output("constraint", ToFloat(k), 0, "cvar - delta; above 0 the state is judged unsafe");
  graph->Output("cvar", ToFloat(cvar), 0, "conditional value at risk of the future discounted cost");
  const Value change = ToDouble(action) - u;
  graph->Output("intervention", ToFloat(Apply("Sqrt", {Sum(change * change)})), 0,
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

absl::Status AddRule(const Snapshot& snapshot, const TaskModel& model, const v1::TaskOptions& options, GraphInput input,
                     Graph* graph) {
  std::vector<std::string> names;
  for (const RuleGraph& entry : kGraphs) {
    names.emplace_back(entry.rule);
    if (names.back() != snapshot.acting_rule) continue;
    ASSIGN_OR_RETURN(const SnapshotForm form, ActingRuleForm(snapshot.acting_rule, SnapshotDims::Of(model), snapshot));
    if (input == GraphInput::kProposed && names.back() != kSafeMap) {
      return absl::InvalidArgumentError(absl::StrCat("acting rule ", snapshot.acting_rule, " has no filter"));
    }
    Context at{snapshot, form, model, options, graph, {}, {}, {}};
    at.observation = graph->Input("observation", ObservationColumns(snapshot, model.spec),
                                  "numbers as in the property observation_names");
    const int n = model.spec.action_dim;
    if (input == GraphInput::kNoise) at.noise = graph->Input("noise", n, "standard normal numbers");
    if (input == GraphInput::kProposed) at.proposed = graph->Input("proposed", n, "the action that is filtered");
    return entry.add(at);
  }
  return absl::InvalidArgumentError(absl::StrCat("acting rule ", snapshot.acting_rule,
                                                 " has no ONNX graph; rules with one: ", absl::StrJoin(names, ", ")));
}

}  // namespace datacom::onnx
// SPDX-License-Identifier: Apache-2.0
