#include "common/acting/planner_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace datacom {
namespace {

constexpr char kNet[] = "dynamics.", kInputMean[] = "dynamics.input_mean", kInputStd[] = "dynamics.input_std";
constexpr float kLeastLogVariance = -10, kLargestLogVariance = 0.5f;
constexpr float kLargestState = 100;
constexpr int kLanes = 8;

template <typename Array>
auto Softplus(const Array& x) {
  return x.max(0.0f) + (1.0f + (-x.abs()).exp()).log();
}

float Finite(float value) { return std::isfinite(value) ? value : 0.0f; }

}  // namespace

DynamicsEnsemble::DynamicsEnsemble(const Snapshot& snapshot, const SnapshotForm& form, int obs_dim, int action_dim,
                                   int max_batch)
    : obs_dim_(obs_dim),
      action_dim_(action_dim),
      input_mean_(obs_dim + action_dim),
      input_scale_(obs_dim + action_dim),
      inputs_(max_batch * (obs_dim + action_dim)),
      outputs_(max_batch * 2 * (obs_dim + 1)),
      deviations_(Floats::Zero((max_batch * (obs_dim + 1) + kLanes - 1) / kLanes * kLanes)) {
  for (const MlpSpec& net : form.nets) {
    if (absl::StartsWith(net.net, kNet)) nets_.emplace_back(snapshot, net, max_batch);
  }
}

void DynamicsEnsemble::Declare(int obs_dim, int action_dim, const Snapshot& like, SnapshotForm* form) {
  MlpSpec net{"", obs_dim + action_dim, 2 * (obs_dim + 1), Mlp::Hidden::kSwish};
  int members = 0;
  do {
    net.net = absl::StrCat(kNet, members++);
    form->nets.push_back(net);
  } while (HasNet(like, absl::StrCat(kNet, members)));
  form->vectors.push_back({kInputMean, obs_dim + action_dim});
  form->vectors.push_back({kInputStd, obs_dim + action_dim, /*positive=*/true});
}

void DynamicsEnsemble::Set(const Snapshot& snapshot) {
  for (Mlp& net : nets_) net.Set(snapshot);
  const std::vector<float>& std = snapshot.Find(kInputStd)->values;
  input_mean_.assign(snapshot.Find(kInputMean)->values.begin(), snapshot.Find(kInputMean)->values.end());
  std::transform(std.begin(), std.end(), input_scale_.begin(), [](float value) { return 1 / value; });
}

void DynamicsEnsemble::Step(int member, int batch, const float* actions, const float* normals, float* states,
                            float* rewards) {
  const int inputs = obs_dim_ + action_dim_, width = obs_dim_ + 1;
  for (int r = 0; r < batch; ++r) {
    float* const row = &inputs_[r * inputs];
    std::copy_n(states + r * obs_dim_, obs_dim_, row);
    std::copy_n(actions + r * action_dim_, action_dim_, row + obs_dim_);
    for (int i = 0; i < inputs; ++i) row[i] = (row[i] - input_mean_[i]) * input_scale_[i];
  }
  nets_[member].Forward(batch, inputs_.data(), outputs_.data());
  for (int r = 0; r < batch; ++r) std::copy_n(&outputs_[(2 * r + 1) * width], width, deviations_.data() + r * width);
  for (int i = 0; i < batch * width; i += kLanes) {
    Eigen::Map<Eigen::Array<float, kLanes, 1>> block(deviations_.data() + i);
    block = kLargestLogVariance - Softplus((kLargestLogVariance - block).eval());
    block = kLeastLogVariance + Softplus((block - kLeastLogVariance).eval());
    block = (0.5f * block).exp();
  }
  for (int r = 0; r < batch; ++r) {
    const float *mean = &outputs_[2 * r * width], *deviation = deviations_.data() + r * width;
    const float* const normal = normals + r * width;
    rewards[r] = Finite(mean[0] + deviation[0] * normal[0]);
    float* const state = states + r * obs_dim_;
    for (int i = 0; i < obs_dim_; ++i) {
      const float next = Finite(state[i] + mean[i + 1] + deviation[i + 1] * normal[i + 1]);
      state[i] = std::clamp(next, -kLargestState, kLargestState);
    }
  }
}

namespace {

constexpr double kEpisodeSteps = 1000;
constexpr double kReturnSharpness = 10, kCostSharpness = 100;
constexpr double kLargestVariance = 2;

}  // namespace

PlanScores::PlanScores(const PlanSize& size)
    : size_(size), returns_(size.candidates), costs_(size.candidates), worst_(size.horizon * size.candidates) {}

void PlanScores::Begin() {
  std::fill(returns_.begin(), returns_.end(), 0.0);
  std::fill(worst_.begin(), worst_.end(), -std::numeric_limits<double>::infinity());
}

void PlanScores::Add(int step, const float* rewards, const double* costs) {
  double* const worst = &worst_[step * size_.candidates];
  for (int a = 0; a < size_.candidates; ++a) {
    returns_[a] += rewards[a];
    worst[a] = std::max(worst[a], costs[a]);
  }
}

void PlanScores::AddValues(const float* values) {
  for (int a = 0; a < size_.candidates; ++a) returns_[a] += values[a];
}

void PlanScores::Finish(int particles) {
  const double scale = kEpisodeSteps / size_.horizon;
  for (int a = 0; a < size_.candidates; ++a) {
    returns_[a] *= scale / particles;
    costs_[a] = 0;
    for (int step = 0; step < size_.horizon; ++step) costs_[a] += worst_[step * size_.candidates + a];
    costs_[a] *= scale;
  }
}

int RefitPlan(const PlanSize& size, const PlanWeighing& weighing, const float* actions, const PlanScores& scores,
              double* weights, double* mean, double* variance) {
  const std::vector<double>&costs = scores.costs(), &returns = scores.returns();
  const auto feasible = [&](int a) { return costs[a] <= weighing.cost_limit; };
  int count = 0;
  for (int a = 0; a < size.candidates; ++a) count += feasible(a);
  const bool by_return = count >= weighing.min_feasible;
  // Infeasible candidates are left out; -infinity gives them the weight 0.
  for (int a = 0; a < size.candidates; ++a) {
    weights[a] = !by_return                                         ? -kCostSharpness * costs[a]
                 : feasible(a) || (weighing.repeat_first && a == 0) ? kReturnSharpness * returns[a]
                                                                    : -std::numeric_limits<double>::infinity();
  }
  const double largest = *std::max_element(weights, weights + size.candidates);
  double total = 0;
  for (int a = 0; a < size.candidates; ++a) {
    weights[a] = std::exp(weights[a] - largest);
    if (by_return && weighing.repeat_first && a == 0) weights[a] *= count + feasible(a);
    total += weights[a];
  }
  const int n = size.action_dim;
  for (int i = 0; i < size.horizon * n; ++i) {
    const float* const action = actions + (i / n) * size.candidates * n + i % n;
    mean[i] = variance[i] = 0;
    for (int a = 0; a < size.candidates; ++a) mean[i] += weights[a] / total * action[a * n];
    for (int a = 0; a < size.candidates; ++a) {
      variance[i] += weights[a] / total * (action[a * n] - mean[i]) * (action[a * n] - mean[i]);
    }
    variance[i] = std::min(variance[i], kLargestVariance);
  }
  return count;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
