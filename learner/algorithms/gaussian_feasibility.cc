#include "learner/algorithms/gaussian_feasibility.h"

#include "common/safety/risk.h"
#include "learner/algorithms/population.h"

namespace datacom::learner {

void GaussianFeasibility::Declare(const AlgorithmConfig& config, ParameterLayout* layout) {
  const std::vector<int> widths = Widths(config.q_dim + config.x_dim, config.constraint_hidden, 1);
  first_ = layout->size();
  mean_.online = layout->AddMlp("constraint.mean", widths, Activation::kSigmoid, {1.0});
  log_std_.online = layout->AddMlp("constraint.log_std", widths, Activation::kSigmoid, {1.0});
  size_ = layout->size() - first_;
}

void GaussianFeasibility::MakeWorkspace(const AlgorithmConfig& config, int64_t target_first, int block,
                                        Kernels* kernels) {
  Feasibility::MakeWorkspace(config, target_first, block, kernels);
  gaussian_kernels_ = kernels->Group<GaussianKernels>();
  margin_ =
      NewScalar(config, kernels, [](const v1::Hyper& hyper) { return GaussianRiskMargin(hyper.accepted_risk()); });
  const int B = batch_, loss_rows = batch_ + failures_;
  for (Net* net : {&mean_, &log_std_}) {
    net->target = net->online.Shifted(target_first);
    net->tape = kernels->NewTape(net->online, block, B + loss_rows);
    net->jacobian_rows = net->tape.Rows(0, 2 * B);
    net->loss_rows = net->tape.Rows(B, loss_rows);
    net->target_tape = kernels->NewTape(net->target, block, loss_rows);
    net->jacobian = kernels->NewFloats(block, 2 * B, z_dim_);
    net->d_out = kernels->NewFloats(block, loss_rows, 1);
  }
}

void GaussianFeasibility::Evaluate(const FloatView& parameters, const DoubleView& delta) {
  EachNet([&](const Net& net) {
    kernels_->Forward(parameters, net.online, z_, net.tape);
    kernels_->Adjoint(parameters, net.online, ones_, net.tape);
    kernels_->InputGradient(parameters, net.online, net.jacobian_rows, 0, /*add=*/false, net.jacobian);
  });
  gaussian_kernels_->GaussianRisk(mean_.jacobian_rows.out, log_std_.jacobian_rows.out, mean_.jacobian,
                                  log_std_.jacobian, margin_.Members(member_, parameters.members), delta, k_, J_);
}

void GaussianFeasibility::LossGradient(const FloatView& parameters, const FloatView& targets,
                                       const FloatView& gradients, const DoubleView& loss) {
  EachNet([&](const Net& net) { kernels_->Forward(targets, net.target, next_z_, net.target_tape); });
  const GaussianTarget target{GaussianHead::kFeasibility,
                              mean_.target_tape.out,
                              log_std_.target_tape.out,
                              cost_,
                              absorbing_,
                              failure_weight_,
                              batch_,
                              discount_};
  gaussian_kernels_->GaussianLoss(mean_.loss_rows.out, log_std_.loss_rows.out, target, mean_.d_out, log_std_.d_out,
                                  loss);
  const FloatView z = z_.Rows(batch_, batch_ + failures_);
  EachNet([&](const Net& net) {
    kernels_->ScaleAdjoint(net.d_out, net.loss_rows);
    kernels_->ParameterGradient(net.online, z, net.d_out, net.loss_rows, gradients);
  });
}

void GaussianFeasibility::EvaluateRisk(const FloatView& parameters, int member, int count) {
  const auto part = [count](const auto& view) { return view.Members(0, 1).Rows(0, count); };
  EachNet([&](const Net& net) { kernels_->Forward(parameters, net.online, part(z_), net.tape); });
  gaussian_kernels_->GaussianRisk(part(mean_.tape.out), part(log_std_.tape.out), part(mean_.jacobian),
                                  part(log_std_.jacobian), margin_.Members(member, 1), no_delta_, part(k_), part(J_));
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
