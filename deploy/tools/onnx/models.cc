#include "deploy/tools/onnx/models.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/tasks/air_hockey/dynamics.h"
#include "common/tasks/cartpole/dynamics.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/python_task.pb.h"

namespace datacom::onnx {
namespace {

using text::RowLayout;

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

Turn AngleOf(const Value& y, const Value& x, Graph* graph) {
  const Value length = graph->Apply("Sqrt", {graph->Add(graph->Multiply(y, y), graph->Multiply(x, x))});
  const Value sine = graph->Divide(y, length), cosine = graph->Divide(x, length), one = graph->Double(1);
  // tan(angle / 2) = sine / (1 + cosine) where cosine >= 0, else (1 - cosine) / sine.
  const Value right = graph->Divide(sine, graph->Add(one, cosine));
  const Value left = graph->Divide(graph->Subtract(one, cosine), sine);
  const Value half_tangent = graph->Apply("Where", {graph->Apply("Less", {cosine, graph->Double(0)}), left, right});
  const Value half = graph->ToDouble(graph->Apply("Atan", {graph->ToFloat(half_tangent)}));
  return {graph->Multiply(graph->Double(2), half), sine, cosine};
}

// common/tasks/cartpole/dynamics.cc: [m11, m12; m12, m22] of cart and pole, solved in closed form.
ModelValues CartPole(const Value& obs, Graph* graph) {
  using namespace cartpole;  // NOLINT(google-build-using-namespace): its constants
  const auto column = [&](int i) { return graph->Columns(obs, i, 1); };
  const auto number = [&](double n) { return graph->Double(n); };
  const auto [theta, sine, cosine] = AngleOf(column(1), column(2), graph);
  const Value x_dot = column(3), theta_dot = column(4);
  const Value m11 = number(kCartMass + kPoleMass);
  const Value m12 = graph->Multiply(number(kPoleMass * kHalfLength), cosine);
  const Value m22 = number(kPoleMass * kHalfLength * kHalfLength + kPoleInertia);
  const Value determinant = graph->Subtract(graph->Multiply(m11, m22), graph->Multiply(m12, m12));
  const Value b0 =
      graph->Multiply(number(kPoleMass * kHalfLength), graph->Multiply(graph->Multiply(theta_dot, theta_dot), sine));
  const Value b1 = graph->Multiply(number(kPoleMass * kGravity * kHalfLength), sine);
  const Value f2 = graph->Divide(graph->Subtract(graph->Multiply(m22, b0), graph->Multiply(m12, b1)), determinant);
  const Value f3 = graph->Divide(graph->Subtract(graph->Multiply(m11, b1), graph->Multiply(m12, b0)), determinant);
  const Value g2 = graph->Divide(graph->Multiply(number(kInputGain), m22), determinant);
  const Value g3 = graph->Divide(graph->Multiply(number(-kInputGain), m12), determinant);
  ModelValues values;
  values.q = graph->Join({column(0), theta, x_dot, theta_dot});
  values.f = graph->Join({x_dot, theta_dot, f2, f3});
  Matrix last_two(2, 4);
  last_two.at(0, 2) = last_two.at(1, 3) = 1;
  const Value G = graph->Apply("MatMul", {graph->Join({g2, g3}), last_two.AddTo(graph)});
  values.G = graph->Apply("Unsqueeze", {G, graph->Indices({2})});
  return values;
}

ModelValues AirHockey(const Value& obs, Graph* graph) {
  using air_hockey::kJointPosition;
  using air_hockey::kJointVelocity;
  Matrix f(air_hockey::kObservation, 6), G(6, 3);
  for (int i = 0; i < 3; ++i) {
    f.at(kJointVelocity + i, i) = 1;
    G.at(3 + i, i) = 1;
  }
  ModelValues values;
  values.q = graph->Columns(obs, kJointPosition, 6);
  values.f = graph->Apply("MatMul", {obs, f.AddTo(graph)});
  values.G = G.AddTo(graph);
  return values;
}

// Entries as in common/tasks/navigation/observation.h.
ModelValues Navigation(const Value& obs, Graph* graph) {
  const auto column = [&](int i) { return graph->Columns(obs, i, 1); };
  const auto [heading, sine, cosine] = AngleOf(column(5), column(4), graph);
  ModelValues values;
  values.q = graph->Join({column(2), column(3), heading});
  values.x = graph->Join({column(9), column(10), AngleOf(column(12), column(11), graph).angle, column(18), column(19)});
  values.x_dot = graph->Columns(obs, {13, 14, 15, 20, 21});
  values.f = graph->Doubles({1, 3}, {0, 0, 0});
  Matrix places(2, 6);  // G = [cos, 0; sin, 0; 0, 1], row-major
  places.at(0, 0) = places.at(1, 2) = 1;
  const Value turns = graph->Join({cosine, sine});
  const Value rows =
      graph->Add(graph->Apply("MatMul", {turns, places.AddTo(graph)}), graph->Doubles({1, 6}, {0, 0, 0, 0, 0, 1}));
  values.G = graph->Apply("Reshape", {rows, graph->Indices({-1, 3, 2})});
  return values;
}

// f of a task that is a text file: linear in the observation, but for the rates of quaternions, which are sums of
// products q_i w_j / 2 (common/tasks/text/row_model.cc).
Value TextDrift(const RowLayout& layout, const v1::ResolvedTask& resolved, const Value& obs, Graph* graph) {
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
  const Value sum =
      graph->Add(graph->Apply("MatMul", {obs, linear.AddTo(graph)}), graph->Doubles({1, layout.q}, constant));
  if (left.empty()) return sum;
  Matrix gathered(static_cast<int>(places.size()), layout.q);
  for (size_t i = 0; i < places.size(); ++i) gathered.at(static_cast<int>(i), places[i].first) = places[i].second;
  const Value products = graph->Multiply(graph->Columns(obs, left), graph->Columns(obs, right));
  return graph->Add(sum, graph->Apply("MatMul", {products, gathered.AddTo(graph)}));
}

ModelValues Text(const v1::TextTask& task, const Value& obs, Graph* graph) {
  const RowLayout layout = RowLayout::Of(task);
  ModelValues values;
  values.q = graph->Columns(obs, layout.q_at, layout.q);
  if (layout.x > 0) {
    values.x = graph->Columns(obs, layout.x_at, layout.x);
    values.x_dot = graph->Columns(obs, layout.x_dot_at, layout.x);
  }
  values.f = TextDrift(layout, task.resolved(), obs, graph);
  if (layout.evaluated) {
    Matrix place(layout.q, layout.velocities);
    for (int i = 0; i < layout.velocities; ++i) place.at(layout.driven_at() + i, i) = 1;
    const Value gains = graph->Apply("Reshape", {graph->Columns(obs, layout.gain_at, layout.velocities * layout.action),
                                                 graph->Indices({-1, layout.velocities, layout.action})});
    values.G = graph->Apply("MatMul", {place.AddTo(graph), gains});
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
ModelValues Python(const v1::PythonTask& task, const Value& obs, Graph* graph) {
  const int q = static_cast<int>(task.q()), x = static_cast<int>(task.x()), n = task.action_low_size();
  int at = static_cast<int>(task.observation());
  const auto take = [&](int count) { return graph->Columns(obs, std::exchange(at, at + count), count); };
  ModelValues values;
  values.q = take(q);
  if (x > 0) {
    values.x = take(x);
    values.x_dot = take(x);
  }
  values.f = take(q);
  values.G = graph->Apply("Reshape", {take(q * n), graph->Indices({-1, q, n})});
  return values;
}

}  // namespace

absl::StatusOr<ModelValues> AddModel(const TaskModel& model, const v1::TaskOptions& options, const Value& observation,
                                     Graph* graph) {
  if (options.HasExtension(v1::text_task)) return Text(options.GetExtension(v1::text_task), observation, graph);
  if (options.HasExtension(v1::python_task)) return Python(options.GetExtension(v1::python_task), observation, graph);
  const std::string& name = model.spec.name;
  if (name == "cartpole") return CartPole(observation, graph);
  if (name == "air_hockey") return AirHockey(observation, graph);
  if (name == "navigation") return Navigation(observation, graph);
  return absl::InvalidArgumentError(
      absl::StrCat("task ", name, ": its control-affine model has no ONNX graph; there are ",
                   "graphs of cartpole, air_hockey, navigation, text tasks and Python environments"));
}

}  // namespace datacom::onnx
// SPDX-License-Identifier: Apache-2.0
