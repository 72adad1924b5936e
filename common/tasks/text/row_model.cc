#include "common/tasks/text/row_model.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/tasks/register_task.h"

namespace datacom::text {
namespace {

using Kind = v1::ConstraintJoint;

constexpr int kMostNumbers = 65536, kMostParts = 4096;  // far more than a robot has; keep products small

// Derivative of a quaternion whose body turns with the angular velocity w, given in the body's frame: q (0, w) / 2.
void QuaternionRate(const double* q, const double* w, double* rate) {
  rate[0] = -0.5 * (q[1] * w[0] + q[2] * w[1] + q[3] * w[2]);
  rate[1] = 0.5 * (q[0] * w[0] + q[2] * w[2] - q[3] * w[1]);
  rate[2] = 0.5 * (q[0] * w[1] + q[3] * w[0] - q[1] * w[2]);
  rate[3] = 0.5 * (q[0] * w[2] + q[1] * w[1] - q[2] * w[0]);
}

// A resolved task arrives in files and messages: its parts must fit together before anything is computed from them.
absl::Status CheckResolved(const v1::TextTask& task) {
  const v1::ResolvedTask& resolved = task.resolved();
  const auto wrong = [&](const char* part) {
    return absl::InvalidArgumentError(absl::StrCat("task ", task.definition().name(), ": resolved.", part,
                                                   " does not fit the rest; load the task file again"));
  };
  const std::tuple<const char*, int, int> counts[] = {{"observation", resolved.observation_size(), kMostNumbers},
                                                      {"control.actuator", resolved.action_size(), kMostParts},
                                                      {"constraint_state.joint", resolved.joint_size(), kMostParts},
                                                      {"cost", task.definition().cost_size(), kMostParts},
                                                      {"log", task.definition().log_size(), kMostParts},
                                                      {"known", resolved.known_size(), kMostParts}};
  for (const auto& [part, count, most] : counts) {
    if (count <= most) continue;
    return absl::InvalidArgumentError(absl::StrCat(part, ": these are ", count, "; at most ", most, " are possible"));
  }
  if (resolved.observation().empty()) return wrong("observation");
  if (resolved.action().empty()) return wrong("action");
  if (resolved.joint().empty()) return wrong("joint");
  if (resolved.uncontrolled() > static_cast<uint32_t>(kMostNumbers)) return wrong("uncontrolled");
  if (!(resolved.control_dt() > 0)) return wrong("control_dt");
  const RowLayout layout = RowLayout::Of(task);
  if (resolved.state_size() != layout.q + layout.x) return wrong("state");
  if (resolved.start_state_size() != layout.q + layout.x) return wrong("start_state");
  const v1::Control& control = task.definition().control();
  const bool plain = control.actuator_mode().empty() && control.dynamics() == "instantaneous";
  const bool has_map = resolved.without_map().empty();
  if (has_map && plain && layout.evaluated != (control.mode() == "torque")) return wrong("drive");
  if (has_map && !layout.evaluated && resolved.drive_size() != layout.action) return wrong("drive");
  for (const v1::DirectDrive& drive : resolved.drive()) {
    if (drive.dof() >= static_cast<uint32_t>(layout.velocities)) return wrong("drive");
  }
  const bool scalar = layout.positions == layout.velocities;
  if ((layout.first_order || !resolved.drive().empty()) && !scalar) return wrong("joint");
  for (const v1::KnownRow& row : resolved.known()) {
    if (row.entry() >= static_cast<uint32_t>(layout.q)) return wrong("known");
    if (row.viability_gain() == 0) continue;
    const bool second_order =
        row.evaluated() ? !layout.first_order : layout.VelocityOf(static_cast<int>(row.entry())) >= 0;
    if (!second_order) return wrong("known");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> FindState(const v1::ResolvedTask& resolved, const std::string& field, const v1::SliceAxis& axis) {
  const auto& names = resolved.state();
  const auto found = std::find(names.begin(), names.end(), axis.of());
  if (found == names.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".of: \"", axis.of(),
                     "\" is no number of the constraint state; there are: ", absl::StrJoin(names, ", ")));
  }
  return static_cast<int>(found - names.begin());
}

absl::StatusOr<ObservationSlice> MakeSlice(const std::string& field, const v1::Slice& slice, const v1::TextTask& task,
                                           const RowLayout& layout) {
  ASSIGN_OR_RETURN(const int x, FindState(task.resolved(), field + ".x", slice.x()));
  ASSIGN_OR_RETURN(const int y, FindState(task.resolved(), field + ".y", slice.y()));
  if (x == y) return absl::InvalidArgumentError(absl::StrCat(field, ".y.of: both axes are ", slice.y().of()));
  ObservationSlice made;
  made.name = slice.name();
  made.title = slice.has_title() ? slice.title() : "the rest as at the start";
  made.x_label = slice.x().has_label() ? slice.x().label() : slice.x().of();
  made.y_label = slice.y().has_label() ? slice.y().label() : slice.y().of();
  made.x_low = slice.x().low(), made.x_high = slice.x().high();
  made.y_low = slice.y().low(), made.y_high = slice.y().high();
  const std::vector<double> start(task.resolved().start_state().begin(), task.resolved().start_state().end());
  // Only q and x: the learned constraint reads nothing else. The rest of the observation is 0.
  made.at = [layout, start, x, y](double at_x, double at_y, double* observation) {
    std::fill_n(observation, layout.size, 0.0);
    std::copy(start.begin(), start.end(), observation + layout.q_at);
    observation[layout.q_at + x] = at_x;
    observation[layout.q_at + y] = at_y;
    return true;
  };
  return made;
}

// Names of an observation's numbers; those of the model columns say what the control-affine model reads.
std::vector<std::string> ObservationNames(const v1::TextTask& task, const RowLayout& layout) {
  const v1::ResolvedTask& resolved = task.resolved();
  std::vector<std::string> names(resolved.observation().begin(), resolved.observation().end());
  for (const std::string& state : resolved.state()) names.push_back(absl::StrCat("state ", state));
  for (int i = 0; i < layout.x; ++i) names.push_back(absl::StrCat("rate of ", resolved.state(layout.q + i)));
  const std::string rate = layout.first_order ? "velocity " : "acceleration ";
  const int evaluated = layout.evaluated ? layout.velocities : 0;
  for (int i = 0; i < evaluated; ++i) names.push_back(absl::StrCat(rate, i, " without action"));
  for (int i = 0; i < evaluated * layout.action; ++i) {
    names.push_back(absl::StrCat(rate, i / layout.action, " by ", resolved.action(i % layout.action)));
  }
  for (int i = 0; i < layout.costs; ++i) names.push_back(absl::StrCat("cost ", task.definition().cost(i).name()));
  for (const v1::Log& log : task.definition().log()) names.push_back(absl::StrCat("log ", log.name()));
  for (int i = layout.known_at; i < layout.size; ++i)
    names.push_back(absl::StrCat("known row column ", i - layout.known_at));
  return names;
}

}  // namespace

RowLayout RowLayout::Of(const v1::TextTask& task) {
  const v1::ResolvedTask& resolved = task.resolved();
  RowLayout layout;
  layout.first_order =
      resolved.has_first_order() ? resolved.first_order() : task.definition().control().mode() == "velocity";
  layout.evaluated = resolved.drive().empty() && resolved.without_map().empty();
  for (const v1::ConstraintJoint& joint : resolved.joint()) {
    layout.joints.push_back(joint.kind());
    layout.positions += JointSize(joint.kind()).positions;
    layout.velocities += JointSize(joint.kind()).velocities;
  }
  layout.action = resolved.action_size();
  layout.q = layout.positions + (layout.first_order ? 0 : layout.velocities);
  layout.x = static_cast<int>(resolved.uncontrolled());
  layout.costs = task.definition().cost_size() > 1 ? task.definition().cost_size() : 0;
  layout.policy = resolved.observation_size();
  layout.q_at = layout.policy;
  layout.x_at = layout.q_at + layout.q;
  layout.x_dot_at = layout.x_at + layout.x;
  layout.drift_at = layout.x_dot_at + layout.x;
  layout.gain_at = layout.drift_at + (layout.evaluated ? layout.velocities : 0);
  layout.costs_at = layout.gain_at + (layout.evaluated ? layout.velocities * layout.action : 0);
  layout.logs = task.definition().log_size();
  layout.logs_at = layout.costs_at + layout.costs;
  layout.known_at = layout.logs_at + layout.logs;
  for (const v1::KnownRow& row : resolved.known()) layout.known += row.evaluated() ? 1 : 0;
  layout.known_width = layout.velocities + (layout.first_order ? 2 : 4);
  layout.size = layout.known_at + layout.known * layout.known_width;
  return layout;
}

int RowLayout::VelocityOf(int entry) const {
  if (first_order) return -1;
  int position = 0, velocity = positions;
  for (const Kind::Kind joint : joints) {
    const JointSize size(joint);
    if (entry >= position && entry < position + size.linear) return velocity + entry - position;
    position += size.positions;
    velocity += size.velocities;
  }
  return -1;
}

void RowDynamics::Evaluate(const double* obs, const ControlAffineOut& out) const {
  if (out.q != nullptr) std::copy_n(obs + layout_.q_at, layout_.q, out.q);
  if (out.x != nullptr) std::copy_n(obs + layout_.x_at, layout_.x, out.x);
  if (out.x_dot != nullptr) std::copy_n(obs + layout_.x_dot_at, layout_.x, out.x_dot);
  if (out.f != nullptr) Drift(obs, out.f);
  if (out.G != nullptr) Gain(obs, out.G);
}

void RowDynamics::Drift(const double* obs, double* f) const {
  std::fill_n(f, layout_.q, 0.0);
  const double* position = obs + layout_.q_at;
  const double* velocity = position + layout_.positions;
  double* rate = f;
  for (const Kind::Kind joint : layout_.joints) {
    if (layout_.first_order) break;
    const JointSize size(joint);
    rate = std::copy_n(velocity, size.linear, rate);
    position += size.linear, velocity += size.linear;
    if (!size.turns()) continue;
    QuaternionRate(position, velocity, rate);
    position += 4, velocity += 3, rate += 4;
  }
  double* const driven = f + layout_.driven_at();
  if (layout_.evaluated) std::copy_n(obs + layout_.drift_at, layout_.velocities, driven);
  for (const v1::DirectDrive& drive : drives_) {
    driven[drive.dof()] = drive.drift() + drive.from_position() * obs[layout_.q_at + drive.dof()];
  }
}

void RowDynamics::Gain(const double* obs, double* G) const {
  const int n = layout_.action;
  std::fill_n(G, layout_.q * n, 0.0);
  const int first = layout_.driven_at();
  if (layout_.evaluated) std::copy_n(obs + layout_.gain_at, layout_.velocities * n, G + first * n);
  for (int i = 0; i < drives_.size(); ++i) G[(first + static_cast<int>(drives_[i].dof())) * n + i] = drives_[i].gain();
}

RowConstraints::RowConstraints(const v1::TextTask& task) : layout_(RowLayout::Of(task)) {
  int column = layout_.known_at;
  for (const v1::KnownRow& row : task.resolved().known()) {
    rows_.push_back({row.evaluated() ? column : -1, static_cast<int>(row.entry()), row.sign(), row.bound()});
    column += row.evaluated() ? layout_.known_width : 0;
    Add(row.group(), row.name(), row.viability_gain(), row.equality());
  }
}

void RowConstraints::Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const {
  const size_t K = rows_.size();
  if (out.J_q != nullptr) std::fill_n(out.J_q, K * layout_.q, 0.0);
  if (out.J_x != nullptr) std::fill_n(out.J_x, K * layout_.x, 0.0);
  if (out.J_v != nullptr) std::fill_n(out.J_v, K * layout_.q, 0.0);
  for (double* const zero : {out.rate, out.own_acceleration, out.acceleration}) {
    if (zero != nullptr) std::fill_n(zero, K, 0.0);
  }
  for (size_t i = 0; i < K; ++i) {
    const int index = static_cast<int>(i);
    rows_[i].column < 0 ? EvaluateLimit(rows_[i], index, at, out) : EvaluateColumns(rows_[i], index, at, out);
  }
}

void RowConstraints::EvaluateLimit(const Row& row, int index, const KnownConstraintsState& at,
                                   const KnownConstraintsOut& out) const {
  if (out.k != nullptr) out.k[index] = row.sign * at.q[row.entry] - row.bound;
  if (out.J_q != nullptr) out.J_q[index * layout_.q + row.entry] = row.sign;
  if (out.J_v == nullptr || viability_gains()[index] == 0) return;
  out.J_v[index * layout_.q + layout_.VelocityOf(row.entry)] = row.sign;
}

void RowConstraints::EvaluateColumns(const Row& row, int index, const KnownConstraintsState& at,
                                     const KnownConstraintsOut& out) const {
  const double* const columns = at.observation + row.column;
  const double* const rate = columns + 1 + layout_.velocities;
  if (out.k != nullptr) out.k[index] = columns[0];
  if (out.rate != nullptr) out.rate[index] = rate[0];
  if (out.J_q != nullptr) {
    double* J = out.J_q + index * layout_.q;
    const double* gradient = columns + 1;
    const double* position = at.q;
    for (const Kind::Kind joint : layout_.joints) {
      const JointSize size(joint);
      J = std::copy_n(gradient, size.linear, J);
      gradient += size.linear, position += size.linear;
      if (!size.turns()) continue;
      // The map from w to the quaternion's rate has orthogonal columns of length 1/2, so this J has J rate(w) =
      // gradient w.
      QuaternionRate(position, gradient, J);
      for (int i = 0; i < 4; ++i) J[i] *= 4;
      gradient += 3, position += 4, J += 4;
    }
  }
  if (viability_gains()[index] == 0) return;
  if (out.J_v != nullptr) {
    std::copy_n(columns + 1, layout_.velocities, out.J_v + index * layout_.q + layout_.positions);
  }
  if (out.own_acceleration != nullptr) out.own_acceleration[index] = rate[1];
  if (out.acceleration != nullptr) out.acceleration[index] = rate[2];
}

absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options) {
  const v1::TextTask& task = options.GetExtension(v1::text_task);
  const v1::TaskDefinition& definition = task.definition();
  if (!task.has_resolved()) {
    return absl::FailedPreconditionError(absl::StrCat("task ", definition.name(), ": its model has not been compiled"));
  }
  RETURN_IF_ERROR(RejectOtherOptions(definition.name(), options, {"text_task"}));
  RETURN_IF_ERROR(CheckResolved(task));
  const RowLayout layout = RowLayout::Of(task);
  TaskModel model;
  TaskSpec& spec = model.spec;
  spec.name = definition.name();
  spec.summary = definition.has_summary() ? definition.summary() : absl::StrCat("A task of ", definition.model(), ".");
  spec.obs_dim = layout.size;
  spec.model_dim = layout.size - layout.policy;
  for (int i = 0; i < layout.costs; ++i) spec.cost_names.push_back(definition.cost(i).name());
  spec.costs_at = layout.costs_at;
  if (layout.costs == 0) spec.only_cost = definition.cost(0).name();
  for (const v1::Log& log : definition.log()) spec.log_names.push_back(log.name());
  spec.logs_at = layout.logs_at;
  spec.observation_names = ObservationNames(task, layout);
  spec.action_names.assign(task.resolved().action().begin(), task.resolved().action().end());
  spec.action_dim = layout.action;
  spec.action_low.assign(layout.action, -1.0);
  spec.action_high.assign(layout.action, 1.0);
  spec.horizon = static_cast<int>(options.has_horizon() ? options.horizon() : definition.horizon());
  spec.control_dt = task.resolved().control_dt();
  spec.init_keys.assign(task.resolved().start_key().begin(), task.resolved().start_key().end());
  if (definition.has_absorbing()) {
    spec.absorbing = definition.has_absorbing_noun() ? definition.absorbing_noun() : "the task's condition";
  }
  if (definition.has_reward_range()) {
    const double low = definition.reward_range().low(), high = definition.reward_range().high();
    spec.rewards = RewardRange{low, high, low, high};
  }
  model.dynamics = std::make_shared<RowDynamics>(task);
  model.without_map = task.resolved().without_map();
  if (task.resolved().known_size() > 0) model.known_constraints = std::make_shared<RowConstraints>(task);
  for (int i = 0; i < definition.slice_size(); ++i) {
    ASSIGN_OR_RETURN(ObservationSlice slice,
                     MakeSlice(absl::StrCat("slice[", i, "]"), definition.slice(i), task, layout));
    model.slices.push_back(std::move(slice));
  }
  return model;
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
