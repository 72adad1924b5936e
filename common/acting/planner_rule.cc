#include "common/acting/planner_rule.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/acting/gaussian_policy.h"
#include "common/acting/scalars.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/nn/normals.h"

namespace datacom::planner {
namespace {

constexpr double kStartVariance = 0.075, kEndVariance = 1e-3;
constexpr double kKeptVariance = 0.1;   // share of the variance that a fit keeps
constexpr int kSamplesPerCopy = 20;     // of the actor's rollout
constexpr int kLeastFeasibleShare = 5;  // of the samples

int Candidates(int samples) { return samples + std::max(samples / kSamplesPerCopy, 1); }

absl::StatusOr<int> SizeScalar(const Snapshot& snapshot, const char* name, int most) {
  ASSIGN_OR_RETURN(const double value, FiniteScalar(snapshot, name));
  if (!(value >= 1 && value <= most) || value != std::floor(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot scalar ", name, " = ", value, ", must be a whole number from 1 to ", most));
  }
  return static_cast<int>(value);
}

// Two numbers of the decision's noise name all streams that the rule draws from.
uint64_t DecisionKey(const float* noise) {
  uint64_t bits = 0;
  std::memcpy(&bits, noise, sizeof bits);
  return StreamKey("planner.decision", {bits});
}

}  // namespace

bool PlannerRule::Scalars::SameSizes(const Scalars& other) const {
  return samples == other.samples && particles == other.particles;
}

PlannerRule::PlannerRule(Nets nets, const Scalars& scalars, const TaskModel& model)
    : nets_(std::move(nets)),
      scalars_(scalars),
      cost_(model.cost),
      obs_dim_(model.spec.obs_dim),
      scale_(model.spec),
      size_{kHorizon, Candidates(scalars.samples), model.spec.action_dim},
      scores_(size_) {
  const int n = size_.action_dim, plan = size_.horizon * n;
  for (std::vector<double>* values : {&plan_, &variance_, &fitted_variance_}) values->resize(plan);
  weights_.resize(size_.candidates);
  costs_.resize(size_.candidates);
  wide_state_.resize(obs_dim_);
  rollout_.resize(plan);
  candidates_.resize(plan * size_.candidates);
  executed_.resize(plan * size_.candidates);
  states_.resize(size_.candidates * obs_dim_);
  rewards_.resize(size_.candidates);
  inputs_.resize(size_.candidates * (obs_dim_ + n));
  values_.resize(size_.candidates);
  policy_.resize(2 * n);
  normals_.resize(std::max(plan * scalars.samples, size_.candidates * nets_.dynamics.normals_per_row()) + n);
}

absl::StatusOr<std::unique_ptr<ActingRule>> PlannerRule::MakeRule(const Snapshot& snapshot, const TaskModel& model) {
  if (!model.cost) {
    return absl::InvalidArgumentError(absl::StrCat("acting rule ", snapshot.acting_rule, ": task ", model.spec.name,
                                                   " has no known cost of an observation"));
  }
  ASSIGN_OR_RETURN(const Scalars scalars, ReadScalars(snapshot));
  const int obs = model.spec.obs_dim, n = model.spec.action_dim, candidates = Candidates(scalars.samples);
  Mlp::Form form;
  form.net = "actor";
  form.inputs = obs;
  form.outputs = 2 * n;
  ASSIGN_OR_RETURN(Mlp actor, Mlp::Make(snapshot, form, 1));
  form.net = "critic.0";
  form.inputs = obs + n;
  form.outputs = 1;
  ASSIGN_OR_RETURN(Mlp critic, Mlp::Make(snapshot, form, candidates));
  ASSIGN_OR_RETURN(DynamicsEnsemble dynamics, DynamicsEnsemble::Make(snapshot, obs, n, candidates));
  Nets nets{std::move(actor), std::move(critic), std::move(dynamics)};
  return std::unique_ptr<ActingRule>(new PlannerRule(std::move(nets), scalars, model));
}

absl::StatusOr<PlannerRule::Scalars> PlannerRule::ReadScalars(const Snapshot& snapshot) {
  if (snapshot.acting_rule != "planner") {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot is for acting rule \"", snapshot.acting_rule, "\", this one is \"planner\""));
  }
  Scalars scalars;
  ASSIGN_OR_RETURN(const double random_actions, FiniteScalar(snapshot, "random_actions"));
  scalars.random_actions = random_actions != 0;
  ASSIGN_OR_RETURN(scalars.cost_limit, FiniteScalar(snapshot, "cost_limit"));
  ASSIGN_OR_RETURN(scalars.samples, SizeScalar(snapshot, "plan_samples", 1000));
  ASSIGN_OR_RETURN(scalars.particles, SizeScalar(snapshot, "plan_particles", 100));
  ASSIGN_OR_RETURN(scalars.iterations, SizeScalar(snapshot, "plan_iterations", 100));
  return scalars;
}

absl::Status PlannerRule::Load(const Snapshot& snapshot) {
  ASSIGN_OR_RETURN(const Scalars scalars, ReadScalars(snapshot));
  if (!scalars.SameSizes(scalars_)) {
    return absl::InvalidArgumentError("snapshot has plans of another size than the snapshot before");
  }
  RETURN_IF_ERROR(nets_.actor.Check(snapshot));
  RETURN_IF_ERROR(nets_.critic.Check(snapshot));
  RETURN_IF_ERROR(nets_.dynamics.Check(snapshot));
  RETURN_IF_ERROR(nets_.actor.Load(snapshot));
  RETURN_IF_ERROR(nets_.critic.Load(snapshot));
  RETURN_IF_ERROR(nets_.dynamics.Load(snapshot));
  scalars_ = scalars;
  return absl::OkStatus();
}

void PlannerRule::Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& /*diagnostics*/) {
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
    for (int i = 0; i < n; ++i) actions[r * n + i] = scale_.Scale(i, static_cast<float>(plan_[i]));
  }
}

void PlannerRule::Plan(uint64_t key, const float* observation) {
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

void PlannerRule::ImagineActor(uint64_t key, const float* observation) {
  const int n = size_.action_dim, per_row = nets_.dynamics.normals_per_row();
  std::copy_n(observation, obs_dim_, states_.data());
  for (int step = 0; step < size_.horizon; ++step) {
    FillNormalsFast(StreamKey("planner.actor.step", {key, static_cast<uint64_t>(step)}), normals_.data(), per_row + n);
    nets_.actor.Forward(1, states_.data(), policy_.data());
    for (int i = 0; i < n; ++i) {
      const float log_std = std::clamp(policy_[n + i], gaussian_policy::kMinLogStd, gaussian_policy::kMaxLogStd);
      const float action = std::tanh(policy_[i] + std::exp(log_std) * normals_[per_row + i]);
      rollout_[step * n + i] = action;
      policy_[i] = scale_.Scale(i, action);
    }
    nets_.dynamics.Step(0, 1, policy_.data(), normals_.data(), states_.data(), rewards_.data());
  }
}

void PlannerRule::DrawCandidates(uint64_t key) {
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

void PlannerRule::Imagine(uint64_t key, const float* observation) {
  scores_.Begin();
  for (int member = 0; member < nets_.dynamics.members(); ++member) {
    for (int particle = 0; particle < scalars_.particles; ++particle) {
      const uint64_t parts[] = {static_cast<uint64_t>(member), static_cast<uint64_t>(particle)};
      ImagineParticle(member, StreamKey("planner.particle", {key, parts[0], parts[1]}), observation);
    }
  }
  scores_.Finish(nets_.dynamics.members() * scalars_.particles);
}

void PlannerRule::ImagineParticle(int member, uint64_t key, const float* observation) {
  const int n = size_.action_dim, count = size_.candidates, inputs = obs_dim_ + n;
  for (int a = 0; a < count; ++a) std::copy_n(observation, obs_dim_, &states_[a * obs_dim_]);
  const float* actions = nullptr;
  for (int step = 0; step < size_.horizon; ++step) {
    actions = &executed_[step * count * n];
    FillNormalsFast(StreamKey("planner.particle.step", {key, static_cast<uint64_t>(step)}), normals_.data(),
                    count * nets_.dynamics.normals_per_row());
    nets_.dynamics.Step(member, count, actions, normals_.data(), states_.data(), rewards_.data());
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
  nets_.critic.Forward(count, inputs_.data(), values_.data());
  for (float& value : values_) value = std::isfinite(value) ? value : 0.0f;
  scores_.AddValues(values_.data());
}

absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, const TaskModel& model, int /*max_batch*/) {
  return PlannerRule::MakeRule(snapshot, model);
}

std::vector<Column> Columns(uint32_t action_dim) { return {MemoryColumn(kHorizon * action_dim)}; }

}  // namespace datacom::planner
