// Acting rule planner (SafeLOOP, docs/algorithms.md 19.3): plans by imagined episodes in a learned ensemble
// of dynamics and executes the first action of the plan.
//
// The actor's net gives mean and log_std of a squashed Gaussian from one trunk, "critic.0" is of [s, a], and the
// ensemble is planner_parts.h's. random_actions, if not 0, stands for uniform actions without planning;
// plan_particles counts for each member of the ensemble.
//
// A decision: the mean starts as the previous plan, shifted by one step; the variance starts at 0.075. In each
// iteration plan_samples plans are drawn from that Gaussian and clipped, plan_samples / 20 copies of one imagined
// rollout of the actor are added, all are imagined by every particle of every ensemble member, and the Gaussian is
// fitted again (planner_parts.h). It ends after plan_iterations, or when no variance is above 1e-3. The cost of an
// imagined state is the task's known cost (TaskModel::cost).
//
// Memory, and the column memory: the plan, [kHorizon, action] in units of the half action range.
// Random numbers: two normals of the caller name the decision's streams, from which the rule draws all others.
//
// Not thread-safe; owns nets and workspace; Load and Act neither allocate nor block.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/acting/gaussian_policy.h"
#include "common/acting/planner_parts.h"
#include "common/acting/register_rule.h"
#include "common/acting/rule_parts.h"
#include "common/base/random.h"
#include "common/nn/normals.h"

namespace datacom {
namespace {

constexpr int kHorizon = 7;  // actions of a plan
constexpr double kStartVariance = 0.075, kEndVariance = 1e-3;
constexpr double kKeptVariance = 0.1;   // share of the variance that a fit keeps
constexpr int kSamplesPerCopy = 20;     // samples per copy of the actor's rollout
constexpr int kLeastFeasibleShare = 5;  // samples per feasible plan; with fewer, costs decide

int Candidates(int samples) { return samples + std::max(samples / kSamplesPerCopy, 1); }

// Two numbers of the decision's noise name all streams that the rule draws from.
uint64_t DecisionKey(const float* noise) {
  uint64_t bits = 0;
  std::memcpy(&bits, noise, sizeof bits);
  return StreamKey("planner.decision", {bits});
}

class PlannerRule : public SnapshotRule {
 public:
  PlannerRule(const Snapshot& snapshot, const SnapshotForm& form, const TaskModel& model, int /*max_batch*/)
      : scalars_(ScalarsOf(snapshot)),
        cost_(model.cost),
        obs_dim_(model.spec.obs_dim),
        scale_(model.spec),
        size_{kHorizon, Candidates(scalars_.samples), model.spec.action_dim},
        actor_(snapshot, form.Net("actor"), 1),
        critic_(snapshot, form.Net("critic.0"), size_.candidates),
        dynamics_(snapshot, form, obs_dim_, size_.action_dim, size_.candidates),
        scores_(size_) {
    const int n = size_.action_dim, plan = size_.horizon * n;
    for (std::vector<double>* values : {&plan_, &variance_, &fitted_variance_}) values->resize(plan);
    for (std::vector<double>* values : {&weights_, &costs_}) values->resize(size_.candidates);
    for (std::vector<float>* values : {&rewards_, &values_}) values->resize(size_.candidates);
    for (std::vector<float>* values : {&candidates_, &executed_}) values->resize(plan * size_.candidates);
    wide_state_.resize(obs_dim_);
    rollout_.resize(plan);
    states_.resize(size_.candidates * obs_dim_);
    inputs_.resize(size_.candidates * (obs_dim_ + n));
    policy_.resize(2 * n);
    normals_.resize(std::max(plan * scalars_.samples, size_.candidates * dynamics_.normals_per_row()) + n);
  }

  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& /*diagnostics*/) override {
    const int n = size_.action_dim;
    for (int r = 0; r < batch; ++r) {
      const uint64_t key = DecisionKey(inputs.noise + 2 * r);
      float* const memory = inputs.memory != nullptr ? inputs.memory + r * memory_dim() : nullptr;
      if (scalars_.random_actions) {
        RandomStream stream(StreamKey("planner.random", {key}));
        for (int i = 0; i < n; ++i) plan_[i] = stream.Uniform(-1, 1);
      } else {
        if (memory != nullptr) {
          std::copy_n(memory, plan_.size(), plan_.begin());
        } else {
          std::fill(plan_.begin(), plan_.end(), 0.0);
        }
        Plan(key, inputs.observations + r * obs_dim_);
        if (memory != nullptr) std::copy(plan_.begin(), plan_.end(), memory);
      }
      if (memory != nullptr) std::copy_n(memory, memory_dim(), column(0) + r * memory_dim());
      for (int i = 0; i < n; ++i) actions[r * n + i] = scale_.Scale(i, static_cast<float>(plan_[i]));
    }
  }

  int noise_dim() const override { return 2; }
  int memory_dim() const override { return size_.horizon * size_.action_dim; }

 protected:
  void Set(const Snapshot& snapshot) override {
    actor_.Set(snapshot);
    critic_.Set(snapshot);
    dynamics_.Set(snapshot);
    scalars_ = ScalarsOf(snapshot);
  }

 private:
  struct Scalars {
    bool random_actions = false;
    double cost_limit = 0;
    int samples = 0, particles = 0, iterations = 0;
  };

  static Scalars ScalarsOf(const Snapshot& snapshot) {
    const auto size = [&](const char* name) { return static_cast<int>(ScalarOf(snapshot, name)); };
    return {ScalarOf(snapshot, "random_actions") != 0, ScalarOf(snapshot, "cost_limit"), size("plan_samples"),
            size("plan_particles"), size("plan_iterations")};
  }

  // Replaces plan_ [horizon, action] by the next one.
  void Plan(uint64_t key, const float* observation) {
    std::copy(plan_.begin() + size_.action_dim, plan_.end(), plan_.begin());  // the last action stays
    std::fill(variance_.begin(), variance_.end(), kStartVariance);
    ImagineActor(StreamKey("planner.actor", {key}), observation);
    const PlanWeighing weighing{scalars_.cost_limit, std::max(scalars_.samples / kLeastFeasibleShare, 1)};
    for (int i = 0; i < scalars_.iterations; ++i) {
      if (*std::max_element(variance_.begin(), variance_.end()) <= kEndVariance) break;
      const auto iteration = static_cast<uint64_t>(i);
      DrawCandidates(StreamKey("planner.candidates", {key, iteration}));
      Imagine(StreamKey("planner.particles", {key, iteration}), observation);
      RefitPlan(size_, weighing, candidates_.data(), scores_, weights_.data(), plan_.data(), fitted_variance_.data());
      for (size_t j = 0; j < variance_.size(); ++j) {
        variance_[j] = kKeptVariance * variance_[j] + (1 - kKeptVariance) * fitted_variance_[j];
      }
    }
  }

  void ImagineActor(uint64_t key, const float* observation) {
    const int n = size_.action_dim, per_row = dynamics_.normals_per_row();
    std::copy_n(observation, obs_dim_, states_.data());
    for (int step = 0; step < size_.horizon; ++step) {
      FillNormalsFast(StreamKey("planner.actor.step", {key, static_cast<uint64_t>(step)}), normals_.data(),
                      per_row + n);
      actor_.Forward(1, states_.data(), policy_.data());
      for (int i = 0; i < n; ++i) {
        const float log_std = std::clamp(policy_[n + i], kMinLogStd, kMaxLogStd);
        const float action = std::tanh(policy_[i] + std::exp(log_std) * normals_[per_row + i]);
        rollout_[step * n + i] = action;
        policy_[i] = scale_.Scale(i, action);
      }
      dynamics_.Step(0, 1, policy_.data(), normals_.data(), states_.data(), rewards_.data());
    }
  }

  void DrawCandidates(uint64_t key) {
    const int n = size_.action_dim, drawn = scalars_.samples;
    FillNormalsFast(key, normals_.data(), size_.horizon * drawn * n);
    for (int at = 0; at < size_.horizon * n; ++at) {
      const int step = at / n, i = at % n;
      const auto mean = static_cast<float>(plan_[at]), deviation = static_cast<float>(std::sqrt(variance_[at]));
      for (int a = 0; a < size_.candidates; ++a) {
        const int to = (step * size_.candidates + a) * n + i;
        candidates_[to] =
            a < drawn ? std::clamp(mean + deviation * normals_[(step * drawn + a) * n + i], -1.0f, 1.0f) : rollout_[at];
        executed_[to] = scale_.Scale(i, candidates_[to]);
      }
    }
  }

  // Scores all candidates.
  void Imagine(uint64_t key, const float* observation) {
    scores_.Begin();
    for (int member = 0; member < dynamics_.members(); ++member) {
      for (int particle = 0; particle < scalars_.particles; ++particle) {
        const uint64_t parts[] = {static_cast<uint64_t>(member), static_cast<uint64_t>(particle)};
        ImagineParticle(member, StreamKey("planner.particle", {key, parts[0], parts[1]}), observation);
      }
    }
    scores_.Finish(dynamics_.members() * scalars_.particles);
  }

  void ImagineParticle(int member, uint64_t key, const float* observation) {
    const int n = size_.action_dim, count = size_.candidates, inputs = obs_dim_ + n;
    for (int a = 0; a < count; ++a) std::copy_n(observation, obs_dim_, &states_[a * obs_dim_]);
    const float* actions = nullptr;
    for (int step = 0; step < size_.horizon; ++step) {
      actions = &executed_[step * count * n];
      FillNormalsFast(StreamKey("planner.particle.step", {key, static_cast<uint64_t>(step)}), normals_.data(),
                      count * dynamics_.normals_per_row());
      dynamics_.Step(member, count, actions, normals_.data(), states_.data(), rewards_.data());
      for (int a = 0; a < count; ++a) {
        std::copy_n(&states_[a * obs_dim_], obs_dim_, wide_state_.begin());
        costs_[a] = cost_(wide_state_.data());
      }
      scores_.Add(step, rewards_.data(), costs_.data());
    }
    for (int a = 0; a < count; ++a) {  // as released: the last state with the action that led to it
      std::copy_n(&states_[a * obs_dim_], obs_dim_, &inputs_[a * inputs]);
      std::copy_n(actions + a * n, n, &inputs_[a * inputs + obs_dim_]);
    }
    critic_.Forward(count, inputs_.data(), values_.data());
    for (float& value : values_) value = std::isfinite(value) ? value : 0.0f;
    scores_.AddValues(values_.data());
  }

  Scalars scalars_;
  const std::function<double(const double*)> cost_;
  const int obs_dim_;
  const ActionScale scale_;
  PlanSize size_;
  Mlp actor_, critic_;
  DynamicsEnsemble dynamics_;
  PlanScores scores_;
  std::vector<double> plan_, variance_, fitted_variance_;  // [horizon, action]
  std::vector<double> weights_, costs_;                    // [candidates]
  std::vector<double> wide_state_;                         // [obs]
  std::vector<float> rollout_;                             // [horizon, action]: the actor's
  std::vector<float> candidates_, executed_;  // [horizon, candidates, action], in half ranges and as executed
  std::vector<float> states_, rewards_;       // [candidates, obs], [candidates]
  std::vector<float> inputs_, values_;        // the critic's: [candidates, obs + action], [candidates]
  std::vector<float> policy_;                 // [2, action]: the actor's output
  std::vector<float> normals_;                // for one step of a particle, or for the candidates
};

SnapshotForm Form(const SnapshotDims& dims, const Snapshot& like) {
  SnapshotForm form;
  form.nets = {{"actor", dims.observation, 2 * dims.action}, {"critic.0", dims.observation + dims.action, 1}};
  DynamicsEnsemble::Declare(dims.observation, dims.action, like, &form);
  form.scalars = {{"random_actions", /*example=*/0}, {"cost_limit", /*example=*/1}};
  const auto size = [&](const char* name, double example, double most, bool fixed) {
    form.scalars.push_back({name, example, /*above=*/0, most, /*whole=*/true, fixed});
  };
  size("plan_samples", 20, 1000, /*fixed=*/true);
  size("plan_particles", 2, 100, /*fixed=*/true);
  size("plan_iterations", 3, 100, /*fixed=*/false);
  return form;
}

std::vector<Column> Columns(uint32_t action_dim) {
  return {{kMemory, ColumnType::kFloat32, kHorizon * action_dim, false}};
}

absl::Status CheckTask(const TaskModel& model) {
  if (model.cost) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("task ", model.spec.name, " has no known cost of an observation"));
}

const RegisterActingRule kRegistered("planner", {&Form, &NewRule<PlannerRule>, &Columns, &CheckTask});

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
