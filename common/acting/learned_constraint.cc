#include "common/acting/learned_constraint.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/acting/gaussian_policy.h"
#include "common/acting/scalars.h"
#include "common/base/status.h"

namespace datacom {

using gaussian_policy::kMaxLogStd;
using gaussian_policy::kMinLogStd;

LearnedConstraint::LearnedConstraint(Mlp value, int max_batch)
    : value_(std::move(value)), values_(max_batch), value_slopes_(max_batch * value_.inputs()) {}

absl::StatusOr<LearnedConstraint> LearnedConstraint::Make(const Snapshot& snapshot, int inputs, int max_batch) {
  const bool quantile = snapshot.Find("constraint.value.0.weight") != nullptr;
  Mlp::Form form;
  form.net = quantile ? "constraint.value" : "constraint.mean";
  form.inputs = inputs;
  form.outputs = 1;
  form.hidden = quantile ? Mlp::Hidden::kRelu : Mlp::Hidden::kSigmoid;
  form.output = Mlp::Output::kSoftplus;
  form.gradient = true;
  ASSIGN_OR_RETURN(Mlp value, Mlp::Make(snapshot, form, max_batch));
  LearnedConstraint constraint(std::move(value), max_batch);
  if (quantile) return constraint;
  form.net = "constraint.log_std";
  form.output = Mlp::Output::kLinear;
  ASSIGN_OR_RETURN(Mlp log_std, Mlp::Make(snapshot, form, max_batch));
  constraint.log_std_ = std::move(log_std);
  constraint.log_stds_.resize(max_batch);
  constraint.log_std_slopes_.resize(max_batch * inputs);
  ASSIGN_OR_RETURN(constraint.margin_, constraint.ReadMargin(snapshot));
  return constraint;
}

absl::StatusOr<double> LearnedConstraint::ReadMargin(const Snapshot& snapshot) const {
  if (!log_std_.has_value()) return 0.0;
  return FiniteScalar(snapshot, "risk_margin");
}

absl::Status LearnedConstraint::Check(const Snapshot& snapshot) const {
  RETURN_IF_ERROR(ReadMargin(snapshot).status());
  RETURN_IF_ERROR(value_.Check(snapshot));
  return log_std_.has_value() ? log_std_->Check(snapshot) : absl::OkStatus();
}

absl::Status LearnedConstraint::Load(const Snapshot& snapshot) {
  RETURN_IF_ERROR(Check(snapshot));
  ASSIGN_OR_RETURN(margin_, ReadMargin(snapshot));
  RETURN_IF_ERROR(value_.Load(snapshot));
  return log_std_.has_value() ? log_std_->Load(snapshot) : absl::OkStatus();
}

void LearnedConstraint::Evaluate(int batch, const float* z) {
  value_.ForwardWithGradient(batch, z, values_.data(), value_slopes_.data());
  if (log_std_.has_value()) log_std_->ForwardWithGradient(batch, z, log_stds_.data(), log_std_slopes_.data());
}

double LearnedConstraint::Row(int r, double* gradient) const {
  const int width = value_.inputs();
  const float* const slopes = value_slopes_.data() + r * width;
  if (!log_std_.has_value()) {
    std::copy_n(slopes, width, gradient);
    return values_[r];
  }
  const float log_std = std::clamp(log_stds_[r], kMinLogStd, kMaxLogStd);
  const double spread = margin_ * std::exp(static_cast<double>(log_std));
  const double slope = log_std == log_stds_[r] ? spread : 0.0;
  for (int i = 0; i < width; ++i) gradient[i] = slopes[i] + slope * log_std_slopes_[r * width + i];
  return values_[r] + spread;
}

}  // namespace datacom
