#include "learner/algorithms/quantile_feasibility.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace datacom::learner {

float QuantileLevel(double accepted_risk) { return static_cast<float>(1 - accepted_risk); }

void QuantileFeasibility::Declare(const AlgorithmConfig& config, ParameterLayout* layout) {
  if (config.quantiles < 1 || config.quantile_embedding < 1) {
    throw std::invalid_argument("quantiles and quantile_embedding must be positive, not " +
                                std::to_string(config.quantiles) + " and " + std::to_string(config.quantile_embedding));
  }
  const int width = config.constraint_hidden.back();
  std::vector<int> base{config.q_dim + config.x_dim};
  base.insert(base.end(), config.constraint_hidden.begin(), config.constraint_hidden.end());
  first_ = layout->size();
  online_.base = layout->AddMlp("constraint.base", base, Activation::kRelu, {std::sqrt(2.0)});
  online_.embedding =
      layout->AddMlp("constraint.embedding", {config.quantile_embedding, width}, Activation::kSigmoid, {});
  online_.quantile =
      layout->AddMlp("constraint.quantile", {width, width, 1}, Activation::kRelu, {std::sqrt(2.0), /*last_gain=*/1});
  size_ = layout->size() - first_;
}

void QuantileFeasibility::MakeWorkspace(const AlgorithmConfig& config, int64_t target_first, int block,
                                        Kernels* kernels) {
  Feasibility::MakeWorkspace(config, target_first, block, kernels);
  quantile_kernels_ = kernels->Group<QuantileKernels>();
  target_ = {online_.base.Shifted(target_first), online_.embedding.Shifted(target_first),
             online_.quantile.Shifted(target_first)};
  const int B = batch_, R = batch_ + failures_, N = config.quantiles, E = config.quantile_embedding;
  const int width = online_.base.out(), members = static_cast<int>(config.members.size());
  base_tape_ = kernels->NewTape(online_.base, block, B + R);
  risk_rows_ = base_tape_.Rows(0, 2 * B);
  loss_rows_ = base_tape_.Rows(B, R);
  target_base_tape_ = kernels->NewTape(target_.base, block, R);
  d_base_ = kernels->NewFloats(block, B + R, width);

  std::vector<float> levels;
  for (const MemberConfig& member : config.members) levels.push_back(QuantileLevel(member.hyper.accepted_risk()));
  const FloatView level = kernels->NewFloats(members, 1, 1);
  kernels->Upload(levels.data(), level);
  risk_features_ = kernels->NewFloats(members, 1, E);
  quantile_kernels_->LevelFeatures(level, risk_features_);
  risk_embedding_ = kernels->NewTape(online_.embedding, block, 1);
  risk_quantile_ = kernels->NewTape(online_.quantile, block, 2 * B);
  risk_product_ = kernels->NewFloats(block, 2 * B, width);
  d_risk_product_ = kernels->NewFloats(block, 2 * B, width);
  jacobian_ = kernels->NewFloats(block, 2 * B, z_dim_);

  level_ = kernels->NewFloats(block, R, N), next_level_ = kernels->NewFloats(block, R, N);
  const auto rows = [&](int cols) { return kernels->NewFloats(block, R * N, cols); };
  features_ = rows(E), product_ = rows(width), d_product_ = rows(width), y_ = rows(1), d_value_ = rows(1);
  embedding_ = kernels->NewTape(online_.embedding, block, R * N);
  quantile_ = kernels->NewTape(online_.quantile, block, R * N);
  target_quantile_ = quantile_;  // evaluated before the online net, so only the output needs memory of its own
  target_quantile_.out = rows(1);
}

void QuantileFeasibility::LoadBatch(const Batch& batch, int batch_member) {
  Feasibility::LoadBatch(batch, batch_member);
  const int64_t levels = static_cast<int64_t>(level_.rows) * level_.cols;
  kernels_->Upload(batch.level.data() + batch_member * levels, level_);
  kernels_->Upload(batch.next_level.data() + batch_member * levels, next_level_);
}

void QuantileFeasibility::Evaluate(const FloatView& parameters, const DoubleView& delta) {
  kernels_->Forward(parameters, online_.base, z_, base_tape_);
  kernels_->Forward(parameters, online_.embedding, risk_features_.Members(member_, parameters.members),
                    risk_embedding_);
  quantile_kernels_->QuantileProduct(risk_rows_.out, risk_embedding_.out, risk_product_);
  kernels_->Forward(parameters, online_.quantile, risk_product_, risk_quantile_);

  kernels_->Adjoint(parameters, online_.quantile, ones_.Rows(0, 2 * batch_), risk_quantile_);
  kernels_->InputGradient(parameters, online_.quantile, risk_quantile_, 0, /*add=*/false, d_risk_product_);
  const FloatView d_base = d_base_.Rows(0, 2 * batch_);
  quantile_kernels_->QuantileProductGradient(risk_rows_.out, risk_embedding_.out, d_risk_product_, d_base);
  kernels_->Adjoint(parameters, online_.base, d_base, risk_rows_);
  kernels_->InputGradient(parameters, online_.base, risk_rows_, 0, /*add=*/false, jacobian_);
  quantile_kernels_->QuantileRisk(risk_quantile_.out, jacobian_, delta, k_, J_);
}

void QuantileFeasibility::Propagate(const FloatView& block, const Net& net, const FloatView& base,
                                    const FloatView& level, const MlpTape& quantile_tape) {
  quantile_kernels_->LevelFeatures(level, features_);
  kernels_->Forward(block, net.embedding, features_, embedding_);
  quantile_kernels_->QuantileProduct(base, embedding_.out, product_);
  kernels_->Forward(block, net.quantile, product_, quantile_tape);
}

void QuantileFeasibility::LossGradient(const FloatView& parameters, const FloatView& targets,
                                       const FloatView& gradients, const DoubleView& loss) {
  kernels_->Forward(targets, target_.base, next_z_, target_base_tape_);
  Propagate(targets, target_, target_base_tape_.out, next_level_, target_quantile_);
  quantile_kernels_->QuantileTarget(cost_, absorbing_, target_quantile_.out, discount_, y_);

  Propagate(parameters, online_, loss_rows_.out, level_, quantile_);
  quantile_kernels_->QuantileLoss(quantile_.out, y_, level_, failure_weight_, batch_, d_value_, loss);
  kernels_->Adjoint(parameters, online_.quantile, d_value_, quantile_);
  const FloatView d_base = d_base_.Rows(batch_, batch_ + failures_), z = z_.Rows(batch_, batch_ + failures_);
  const auto quantile_gradient = [&] {
    kernels_->ParameterGradient(online_.quantile, product_, d_value_, quantile_, gradients);
  };
  const auto other_gradients = [&] {
    kernels_->InputGradient(parameters, online_.quantile, quantile_, 0, /*add=*/false, d_product_);
    quantile_kernels_->QuantileProductGradient(loss_rows_.out, embedding_.out, d_product_, d_base);
    kernels_->ParameterGradient(online_.embedding, features_, d_product_, embedding_, gradients);
    kernels_->Adjoint(parameters, online_.base, d_base, loss_rows_);
    kernels_->ParameterGradient(online_.base, z, d_base, loss_rows_, gradients);
  };
  kernels_->Together(quantile_gradient, other_gradients);
}

void QuantileFeasibility::EvaluateRisk(const FloatView& parameters, int member, int count) {
  const auto part = [count](const auto& view) { return view.Members(0, 1).Rows(0, count); };
  kernels_->Forward(parameters, online_.base, part(z_), base_tape_);
  kernels_->Forward(parameters, online_.embedding, risk_features_.Members(member, 1), risk_embedding_);
  quantile_kernels_->QuantileProduct(part(base_tape_.out), risk_embedding_.out.Members(0, 1), part(risk_product_));
  kernels_->Forward(parameters, online_.quantile, part(risk_product_), risk_quantile_);
  quantile_kernels_->QuantileRisk(part(risk_quantile_.out), part(jacobian_), no_delta_, part(k_), part(J_));
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
