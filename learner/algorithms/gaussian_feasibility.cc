#include "learner/algorithms/gaussian_feasibility.h"

#include <algorithm>

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
  kernels_ = kernels;
  batch_ = config.batch_size, failures_ = config.failure_batch_size, z_dim_ = config.q_dim + config.x_dim;
  discount_ = config.discount;
  const int B = batch_, loss_rows = batch_ + failures_;
  z_ = kernels->NewFloats(block, B + loss_rows, z_dim_);
  next_z_ = kernels->NewFloats(block, loss_rows, z_dim_);
  cost_ = kernels->NewFloats(block, loss_rows, 1);
  absorbing_ = kernels->NewFloats(block, loss_rows, 1);
  failure_weight_ = kernels->NewDoubles(block, 1, 1);
  no_delta_ = kernels->NewDoubles(1, 1, 1);
  ones_ = kernels->NewFloats(block, B + loss_rows, 1);
  const std::vector<float> ones(static_cast<size_t>(block) * (B + loss_rows), 1.0f);
  kernels->Upload(ones.data(), ones_);
  k_ = kernels->NewDoubles(block, 2 * B, 1), J_ = kernels->NewDoubles(block, 2 * B, z_dim_);
  k_next_ = k_.Rows(0, B), J_next_ = J_.Rows(0, B), k_now_ = k_.Rows(B, B), J_now_ = J_.Rows(B, B);
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

void GaussianFeasibility::LoadBatch(const Batch& batch, int member) {
  const int B = batch_, F = failures_, z = z_dim_;
  const auto rows = [member](const auto& values, int64_t per_member) { return values.data() + member * per_member; };
  kernels_->Upload(rows(batch.next.z, B * z), z_.Rows(0, B));
  kernels_->Upload(rows(batch.now.z, B * z), z_.Rows(B, B));
  kernels_->Upload(rows(batch.failure_z, F * z), z_.Rows(2 * B, F));
  kernels_->Upload(rows(batch.next.z, B * z), next_z_.Rows(0, B));
  kernels_->Upload(rows(batch.failure_next_z, F * z), next_z_.Rows(B, F));
  kernels_->Upload(rows(batch.cost, B), cost_.Rows(0, B));
  kernels_->Upload(rows(batch.failure_cost, F), cost_.Rows(B, F));
  kernels_->Upload(rows(batch.absorbing, B), absorbing_.Rows(0, B));
  kernels_->Upload(rows(batch.failure_absorbing, F), absorbing_.Rows(B, F));
  for (int m = 0; m < failure_weight_.members; ++m) {
    const double weight = batch.failure_weight[member + m];
    kernels_->Upload(&weight, failure_weight_.Members(m, 1));
  }
}

void GaussianFeasibility::Evaluate(const FloatView& parameters, const DoubleView& margin, const DoubleView& delta) {
  for (Net* net : {&mean_, &log_std_}) {
    kernels_->Forward(parameters, net->online, z_, net->tape);
    kernels_->Adjoint(parameters, net->online, ones_, net->tape);
    kernels_->InputGradient(parameters, net->online, net->jacobian_rows, 0, /*add=*/false, net->jacobian);
  }
  kernels_->GaussianRisk(mean_.jacobian_rows.out, log_std_.jacobian_rows.out, mean_.jacobian, log_std_.jacobian, margin,
                         delta, k_, J_);
}

void GaussianFeasibility::LossGradient(const FloatView& targets, const FloatView& gradients, const DoubleView& loss) {
  for (Net* net : {&mean_, &log_std_}) kernels_->Forward(targets, net->target, next_z_, net->target_tape);
  const GaussianTarget target{GaussianHead::kFeasibility,
                              mean_.target_tape.out,
                              log_std_.target_tape.out,
                              cost_,
                              absorbing_,
                              failure_weight_,
                              batch_,
                              discount_};
  kernels_->GaussianLoss(mean_.loss_rows.out, log_std_.loss_rows.out, target, mean_.d_out, log_std_.d_out, loss);
  const FloatView z = z_.Rows(batch_, batch_ + failures_);
  for (Net* net : {&mean_, &log_std_}) {
    kernels_->ScaleAdjoint(net->d_out, net->loss_rows);
    kernels_->ParameterGradient(net->online, z, net->d_out, net->loss_rows, gradients);
  }
}

void GaussianFeasibility::Risk(const FloatView& parameters, const DoubleView& margin, const float* z, int rows,
                               double* cvar) {
  const int chunk = 2 * batch_;
  for (int first = 0; first < rows; first += chunk) {
    const int count = std::min(chunk, rows - first);
    const FloatView input = z_.Members(0, 1).Rows(0, count);
    kernels_->Upload(z + static_cast<int64_t>(first) * z_dim_, input);
    for (Net* net : {&mean_, &log_std_}) kernels_->Forward(parameters, net->online, input, net->tape);
    const auto part = [count](const FloatView& view) { return view.Members(0, 1).Rows(0, count); };
    const DoubleView k = k_.Members(0, 1).Rows(0, count), J = J_.Members(0, 1).Rows(0, count);
    kernels_->GaussianRisk(part(mean_.tape.out), part(log_std_.tape.out), part(mean_.jacobian), part(log_std_.jacobian),
                           margin, no_delta_, k, J);
    kernels_->Download(k, cvar + first);
  }
}

}  // namespace datacom::learner
