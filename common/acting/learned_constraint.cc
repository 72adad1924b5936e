#include "common/acting/learned_constraint.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/acting/gaussian_policy.h"
#include "common/base/status.h"

namespace datacom {

LearnedConstraint::LearnedConstraint(Mlp value, int max_batch)
    : value_(std::move(value)), values_(max_batch), value_slopes_(max_batch * value_.inputs()) {}

void LearnedConstraint::Declare(int inputs, const Snapshot& like, SnapshotForm* form) {
  MlpSpec net{"constraint.mean", inputs, 1, Mlp::Hidden::kSigmoid, Mlp::Output::kSoftplus, /*gradient=*/true};
  if (HasNet(like, "constraint.value")) {
    net.net = "constraint.value";
    net.hidden = Mlp::Hidden::kRelu;
    form->nets.push_back(net);
    return;
  }
  form->nets.push_back(net);
  net.net = "constraint.log_std";
  net.output = Mlp::Output::kLinear;
  form->nets.push_back(net);
  form->scalars.push_back({"risk_margin", /*example=*/0.195});
}

absl::StatusOr<LearnedConstraint> LearnedConstraint::Make(const Snapshot& snapshot, const SnapshotForm& form,
                                                          int max_batch) {
  const bool quantile = HasNet(snapshot, "constraint.value");
  const MlpSpec& net = form.Net(quantile ? "constraint.value" : "constraint.mean");
  ASSIGN_OR_RETURN(Mlp value, Mlp::Make(snapshot, net, max_batch));
  LearnedConstraint constraint(std::move(value), max_batch);
  if (quantile) return constraint;
  ASSIGN_OR_RETURN(Mlp log_std, Mlp::Make(snapshot, form.Net("constraint.log_std"), max_batch));
  constraint.log_std_ = std::move(log_std);
  constraint.log_stds_.resize(max_batch);
  constraint.log_std_slopes_.resize(max_batch * net.inputs);
  return constraint;
}

void LearnedConstraint::Set(const Snapshot& snapshot) {
  value_.Set(snapshot);
  if (!log_std_.has_value()) return;
  log_std_->Set(snapshot);
  margin_ = ScalarOf(snapshot, "risk_margin");
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
// SPDX-License-Identifier: Apache-2.0
