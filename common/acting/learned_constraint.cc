#include "common/acting/learned_constraint.h"

#include <algorithm>
#include <cmath>

#include "common/acting/gaussian_policy.h"

namespace datacom {
namespace {

constexpr char kMean[] = "constraint.mean", kLogStd[] = "constraint.log_std", kQuantile[] = "constraint.value";

}  // namespace

LearnedConstraint::LearnedConstraint(const Snapshot& snapshot, const SnapshotForm& form, int max_batch)
    : value_(snapshot, form.Net(HasNet(snapshot, kQuantile) ? kQuantile : kMean), max_batch),
      values_(max_batch),
      value_slopes_(max_batch * value_.inputs()) {
  if (HasNet(snapshot, kQuantile)) return;
  log_std_.emplace(snapshot, form.Net(kLogStd), max_batch);
  log_stds_.resize(max_batch);
  log_std_slopes_.resize(max_batch * value_.inputs());
}

void LearnedConstraint::Declare(int inputs, const Snapshot& like, SnapshotForm* form) {
  MlpSpec net{kMean, inputs, 1, Mlp::Hidden::kSigmoid, Mlp::Output::kSoftplus, /*gradient=*/true};
  if (HasNet(like, kQuantile)) {
    net.net = kQuantile;
    net.hidden = Mlp::Hidden::kRelu;
    form->nets.push_back(net);
    return;
  }
  form->nets.push_back(net);
  net.net = kLogStd;
  net.output = Mlp::Output::kLinear;
  form->nets.push_back(net);
  form->scalars.push_back({"risk_margin", /*example=*/0.195});
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
