#include "common/acting/safe_map_rule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/acting/scalars.h"
#include "common/base/status.h"

namespace datacom::safe_map {

using gaussian_policy::GaussianPolicy;
using gaussian_policy::kMaxLogStd;
using gaussian_policy::kMinLogStd;

SafeMapRule::SafeMapRule(GaussianPolicy policy, Mlp mean, Mlp log_std, const Scalars& scalars, const TaskModel& model,
                         int max_batch)
    : policy_(std::move(policy)),
      mean_(std::move(mean)),
      log_std_(std::move(log_std)),
      scalars_(scalars),
      dynamics_(model.dynamics),
      dims_(model.dynamics->dims()),
      map_(SafeMapDims{1, dims_.action, dims_.q, dims_.x}) {
  const int width = dims_.q + dims_.x;
  z_.resize(max_batch * width);
  means_.resize(max_batch);
  log_stds_.resize(max_batch);
  mean_slopes_.resize(max_batch * width);
  log_std_slopes_.resize(max_batch * width);
  f_.resize(max_batch * dims_.q);
  G_.resize(max_batch * dims_.q * dims_.action);
  x_dot_.resize(max_batch * dims_.x);
  observation_.resize(dims_.obs);
  state_.resize(width);
  gradient_.resize(width);
  u_.resize(dims_.action);
  action_.resize(dims_.action);
}

absl::StatusOr<std::unique_ptr<ActingRule>> SafeMapRule::MakeRule(const Snapshot& snapshot, const TaskModel& model,
                                                                  int max_batch) {
  const ControlAffineDims dims = model.dynamics->dims();
  if (dims.action > kMaxSafeMapActions) {
    return absl::InvalidArgumentError(absl::StrCat("task ", model.spec.name, " has ", dims.action,
                                                   " actions, the safe map takes at most ", kMaxSafeMapActions));
  }
  ASSIGN_OR_RETURN(const Scalars scalars, ReadScalars(snapshot));
  ASSIGN_OR_RETURN(GaussianPolicy policy, GaussianPolicy::MakePolicy(snapshot, model.spec, max_batch));
  Mlp::Form form;
  form.inputs = dims.q + dims.x;
  form.outputs = 1;
  form.hidden = Mlp::Hidden::kSigmoid;
  form.gradient = true;
  form.net = "constraint.log_std";
  ASSIGN_OR_RETURN(Mlp log_std, Mlp::Make(snapshot, form, max_batch));
  form.net = "constraint.mean";
  form.output = Mlp::Output::kSoftplus;
  ASSIGN_OR_RETURN(Mlp mean, Mlp::Make(snapshot, form, max_batch));
  return std::unique_ptr<ActingRule>(
      new SafeMapRule(std::move(policy), std::move(mean), std::move(log_std), scalars, model, max_batch));
}

absl::StatusOr<SafeMapRule::Scalars> SafeMapRule::ReadScalars(const Snapshot& snapshot) {
  Scalars scalars;
  ASSIGN_OR_RETURN(scalars.delta, FiniteScalar(snapshot, "delta"));
  ASSIGN_OR_RETURN(scalars.risk_margin, FiniteScalar(snapshot, "risk_margin"));
  ASSIGN_OR_RETURN(scalars.gains, ReadSafeMapGains(snapshot));
  return scalars;
}

absl::Status SafeMapRule::Load(const Snapshot& snapshot) {
  // All is checked before anything changes.
  ASSIGN_OR_RETURN(const Scalars scalars, ReadScalars(snapshot));
  RETURN_IF_ERROR(policy_.Check(snapshot));
  RETURN_IF_ERROR(mean_.Check(snapshot));
  RETURN_IF_ERROR(log_std_.Check(snapshot));
  RETURN_IF_ERROR(policy_.Load(snapshot));
  RETURN_IF_ERROR(mean_.Load(snapshot));
  RETURN_IF_ERROR(log_std_.Load(snapshot));
  scalars_ = scalars;
  return absl::OkStatus();
}

void SafeMapRule::EvaluateModel(int batch, const float* observations) {
  const int width = dims_.q + dims_.x;
  for (int r = 0; r < batch; ++r) {
    std::copy_n(observations + r * dims_.obs, dims_.obs, observation_.data());
    ControlAffineOut out;
    out.q = state_.data();
    out.x = state_.data() + dims_.q;
    out.x_dot = x_dot_.data() + r * dims_.x;
    out.f = f_.data() + r * dims_.q;
    out.G = G_.data() + r * dims_.q * dims_.action;
    dynamics_->Evaluate(observation_.data(), out);
    std::transform(state_.begin(), state_.end(), z_.begin() + r * width,
                   [](double v) { return static_cast<float>(v); });
  }
}

double SafeMapRule::EvaluateConstraint(int r) {
  const int width = dims_.q + dims_.x;
  const float log_std = std::clamp(log_stds_[r], kMinLogStd, kMaxLogStd);
  const double risk = scalars_.risk_margin * std::exp(static_cast<double>(log_std));
  const double slope = log_std == log_stds_[r] ? risk : 0.0;
  for (int i = 0; i < width; ++i) {
    gradient_[i] = mean_slopes_[r * width + i] + slope * log_std_slopes_[r * width + i];
  }
  return means_[r] + risk;
}

void SafeMapRule::Act(int batch, const float* observations, const float* noise, float* actions,
                      const ActingDiagnostics& diagnostics) {
  policy_.Act(batch, observations, noise, actions, {});  // u, replaced by a below
  EvaluateModel(batch, observations);
  mean_.ForwardWithGradient(batch, z_.data(), means_.data(), mean_slopes_.data());
  log_std_.ForwardWithGradient(batch, z_.data(), log_stds_.data(), log_std_slopes_.data());
  const int n = dims_.action;
  for (int r = 0; r < batch; ++r) {
    float* row = actions + r * n;
    const double cvar = EvaluateConstraint(r);
    const double k = cvar - scalars_.delta;
    SafeMapTerms terms;
    terms.k = &k;
    terms.J_k = gradient_.data();
    terms.J_x = gradient_.data() + dims_.q;
    terms.f = f_.data() + r * dims_.q;
    terms.G = G_.data() + r * dims_.q * n;
    terms.x_dot = x_dot_.data() + r * dims_.x;
    map_.Set(terms, scalars_.gains);
    std::copy_n(row, n, u_.data());
    map_.Apply(u_.data(), action_.data());
    double square = 0;
    for (int i = 0; i < n; ++i) {
      row[i] = static_cast<float>(action_[i]);
      square += (row[i] - u_[i]) * (row[i] - u_[i]);
    }
    if (diagnostics.constraint != nullptr) diagnostics.constraint[r] = k;
    if (diagnostics.cvar != nullptr) diagnostics.cvar[r] = cvar;
    if (diagnostics.intervention != nullptr) diagnostics.intervention[r] = std::sqrt(square);
  }
}

absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, const TaskModel& model, int max_batch) {
  return SafeMapRule::MakeRule(snapshot, model, max_batch);
}

std::vector<Column> Columns(uint32_t /*action_dim*/) { return {}; }

}  // namespace datacom::safe_map
