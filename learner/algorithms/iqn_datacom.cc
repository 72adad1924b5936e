// IQN-ATACOM (docs/algorithms.md 7): D-ATACOM whose feasibility value is the quantile of an implicit quantile
// network at 1 - accepted risk. The cost budget is used as a discounted sum, without conversion.
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "learner/algorithms/datacom.h"
#include "learner/algorithms/quantile_kernels.h"
#include "learner/algorithms/register_algorithm.h"

namespace datacom::learner {
namespace {

// The feasibility value function as an implicit quantile network (docs/algorithms.md 7): eta(z, tau) is the
// tau-quantile of the discounted future violation. The net is a perceptron on the product of an embedding of z and an
// embedding of tau. The value is the quantile at 1 - accepted risk; the fit uses random levels tau.

// 1 - rho, subtracted in double and rounded once. The released code computes it through a float32 logit of rho, so the
// last bits differ.
float QuantileLevel(double accepted_risk) { return static_cast<float>(1 - accepted_risk); }

class QuantileFeasibility : public Feasibility {
 public:
  // "constraint.base" of z, "constraint.embedding" of tau, "constraint.quantile" of their product.
  void Declare(const AlgorithmConfig& config, ParameterLayout* layout) override {
    if (config.quantiles < 1 || config.quantile_embedding < 1) {
      throw std::invalid_argument("quantiles and quantile_embedding must be positive, not " +
                                  std::to_string(config.quantiles) + " and " +
                                  std::to_string(config.quantile_embedding));
    }
    const auto& hidden = config.network.constraint_hidden();
    const int width = static_cast<int>(*hidden.rbegin());
    std::vector<int> base{config.q_dim + config.x_dim};
    base.insert(base.end(), hidden.begin(), hidden.end());
    first_ = layout->size();
    base_net_ = layout->AddMlp("constraint.base", base, Activation::kRelu, {std::sqrt(2.0)});
    embedding_net_ =
        layout->AddMlp("constraint.embedding", {config.quantile_embedding, width}, Activation::kSigmoid, {});
    quantile_net_ =
        layout->AddMlp("constraint.quantile", {width, width, 1}, Activation::kRelu, {std::sqrt(2.0), /*last_gain=*/1});
    size_ = layout->size() - first_;
  }

  void MakeWorkspace(const AlgorithmConfig& config, int block, Kernels* kernels) override {
    Feasibility::MakeWorkspace(config, block, kernels);
    quantile_kernels_ = kernels->Group<QuantileKernels>();
    const int B = batch_, R = batch_ + failures_, N = config.quantiles, E = config.quantile_embedding;
    const int width = base_net_.out(), members = static_cast<int>(config.members.size());
    base_tape_ = kernels->NewTape(base_net_, block, B + R);
    d_base_ = kernels->NewFloats(block, B + R, width);
    if (base_tape_.adjoint.empty()) base_tape_.adjoint = {d_base_};  // of a net whose only layer is the output
    risk_rows_ = base_tape_.Rows(0, 2 * B);
    loss_rows_ = base_tape_.Rows(B, R);
    target_base_tape_ = kernels->NewTape(base_net_, block, R);

    std::vector<float> levels;
    for (const MemberConfig& member : config.members) levels.push_back(QuantileLevel(member.hyper.accepted_risk()));
    const FloatView level = kernels->NewFloats(members, 1, 1);
    kernels->Upload(levels.data(), level);
    risk_features_ = kernels->NewFloats(members, 1, E);
    quantile_kernels_->LevelFeatures(level, risk_features_);
    risk_embedding_ = kernels->NewTape(embedding_net_, block, 1);
    risk_quantile_ = kernels->NewTape(quantile_net_, block, 2 * B);
    risk_product_ = kernels->NewFloats(block, 2 * B, width);
    d_risk_product_ = kernels->NewFloats(block, 2 * B, width);
    jacobian_ = kernels->NewFloats(block, 2 * B, z_dim_);

    level_ = kernels->NewFloats(block, R, N), next_level_ = kernels->NewFloats(block, R, N);
    const auto rows = [&](int cols) { return kernels->NewFloats(block, R * N, cols); };
    features_ = rows(E), product_ = rows(width), d_product_ = rows(width), y_ = rows(1), d_value_ = rows(1);
    embedding_ = kernels->NewTape(embedding_net_, block, R * N);
    quantile_ = kernels->NewTape(quantile_net_, block, R * N);
    target_quantile_ = quantile_;  // evaluated before the online net, so only the output needs memory of its own
    target_quantile_.out = rows(1);
  }

  void LoadBatch(const Batch& batch, int batch_member) override {
    Feasibility::LoadBatch(batch, batch_member);
    const int64_t levels = static_cast<int64_t>(level_.rows) * level_.cols;
    kernels_->Upload(batch.level.data() + batch_member * levels, level_);
    kernels_->Upload(batch.next_level.data() + batch_member * levels, next_level_);
  }

  void Evaluate(const FloatView& parameters, const DoubleView& delta) override {
    kernels_->Forward(parameters, base_net_, z_, base_tape_);
    PropagateRisk(parameters);

    kernels_->Adjoint(parameters, quantile_net_, ones_.Rows(0, 2 * batch_), risk_quantile_);
    kernels_->InputGradient(parameters, quantile_net_, risk_quantile_, 0, /*add=*/false, d_risk_product_);
    const FloatView d_base = d_base_.Rows(0, 2 * batch_);
    quantile_kernels_->QuantileProductGradient(risk_rows_.out, risk_embedding_.out, d_risk_product_, d_base);
    kernels_->Adjoint(parameters, base_net_, d_base, risk_rows_);
    kernels_->InputGradient(parameters, base_net_, risk_rows_, 0, /*add=*/false, jacobian_);
    quantile_kernels_->QuantileRisk(risk_quantile_.out, jacobian_, delta, k_, J_);
  }

  void LossGradient(const FloatView& parameters, const FloatView& targets, const FloatView& gradients,
                    const DoubleView& loss) override {
    kernels_->Forward(targets, base_net_, next_z_, target_base_tape_);
    Propagate(targets, target_base_tape_.out, next_level_, target_quantile_);
    quantile_kernels_->QuantileTarget(cost_, absorbing_, target_quantile_.out, discount_, y_);

    Propagate(parameters, loss_rows_.out, level_, quantile_);
    quantile_kernels_->QuantileLoss(quantile_.out, y_, level_, row_weight_, d_value_, loss);
    kernels_->Adjoint(parameters, quantile_net_, d_value_, quantile_);
    const FloatView d_base = d_base_.Rows(batch_, batch_ + failures_), z = z_.Rows(batch_, batch_ + failures_);
    const auto quantile_gradient = [&] {
      kernels_->ParameterGradient(quantile_net_, product_, d_value_, quantile_, gradients);
    };
    const auto other_gradients = [&] {
      kernels_->InputGradient(parameters, quantile_net_, quantile_, 0, /*add=*/false, d_product_);
      quantile_kernels_->QuantileProductGradient(loss_rows_.out, embedding_.out, d_product_, d_base);
      kernels_->ParameterGradient(embedding_net_, features_, d_product_, embedding_, gradients);
      kernels_->Adjoint(parameters, base_net_, d_base, loss_rows_);
      kernels_->ParameterGradient(base_net_, z, d_base, loss_rows_, gradients);
    };
    kernels_->Together(quantile_gradient, other_gradients);
  }

  // At one fixed level the network is a perceptron, because the level's embedding can be multiplied into the weights of
  // the next layer. The array is "constraint.value": ReLU hidden, softplus output.
  void Publish(const v1::Hyper& hyper, const HostParameters& parameters, ActingParameters* out) const override {
    const float level = QuantileLevel(hyper.accepted_risk());
    const std::vector<float> weight = parameters.Read("constraint.embedding.0.weight");
    std::vector<float> embedding = parameters.Read("constraint.embedding.0.bias");
    const size_t width = embedding.size();
    for (size_t c = 0; c < width; ++c) {
      double sum = embedding[c];
      for (int i = 0; i < embedding_net_.in(); ++i) {
        sum += std::cos(std::acos(-1.0) * i * static_cast<double>(level)) * static_cast<double>(weight[i * width + c]);
      }
      embedding[c] = static_cast<float>(1 / (1 + std::exp(-sum)));
    }
    ActingParameters nets;
    parameters.AddNet("constraint.base", &nets);
    const size_t behind = nets.arrays.size();
    parameters.AddNet("constraint.quantile", &nets);
    for (size_t i = 0; i < nets.arrays.size(); ++i) {
      NamedArray& array = nets.arrays[i];
      if (i == behind) {  // [width, out]
        const size_t columns = array.shape[1];
        for (size_t j = 0; j < array.values.size(); ++j) array.values[j] *= embedding[j / columns];
      }
      array.name = "constraint.value." + std::to_string(i / 2) + (i % 2 == 0 ? ".weight" : ".bias");
      out->arrays.push_back(std::move(array));
    }
  }

 protected:
  void EvaluateRisk(const FloatView& parameters, const FloatView& z, const DoubleView& k) override {
    kernels_->Forward(parameters, base_net_, z, risk_rows_);
    PropagateRisk(parameters);
    quantile_kernels_->QuantileRisk(risk_quantile_.out, jacobian_, no_delta_, k, J_);
  }

 private:
  // Computes the quantiles of 2B rows at the constraint's level from base's output, into risk_quantile_.out.
  void PropagateRisk(const FloatView& parameters) {
    kernels_->Forward(parameters, embedding_net_, risk_features_.Members(member_, parameters.members), risk_embedding_);
    quantile_kernels_->QuantileProduct(risk_rows_.out, risk_embedding_.out, risk_product_);
    kernels_->Forward(parameters, quantile_net_, risk_product_, risk_quantile_);
  }

  // Computes the quantiles of B + F rows at random levels from base's output, into quantile_tape.out.
  void Propagate(const FloatView& block, const FloatView& base, const FloatView& level, const MlpTape& quantile_tape) {
    quantile_kernels_->LevelFeatures(level, features_);
    kernels_->Forward(block, embedding_net_, features_, embedding_);
    quantile_kernels_->QuantileProduct(base, embedding_.out, product_);
    kernels_->Forward(block, quantile_net_, product_, quantile_tape);
  }

  QuantileKernels* quantile_kernels_ = nullptr;
  MlpLayout base_net_, embedding_net_, quantile_net_;
  MlpTape base_tape_, risk_rows_, loss_rows_, target_base_tape_;
  FloatView d_base_;  // [block, 2B + F, width]

  // Evaluation at the constraint's level.
  FloatView risk_features_;  // [M, 1, embedding]
  MlpTape risk_embedding_, risk_quantile_;
  FloatView risk_product_, d_risk_product_, jacobian_;  // [block, 2B, ..]

  // Evaluation at random levels, (B + F) N rows.
  FloatView level_, next_level_;  // [block, B + F, N]
  FloatView features_, product_, d_product_, y_, d_value_;
  MlpTape embedding_, quantile_, target_quantile_;
};

class IqnDatacom : public Datacom {
 public:
  explicit IqnDatacom(const AlgorithmConfig& config) : Datacom(config, std::make_unique<QuantileFeasibility>()) {}
};

const RegisterAlgorithm<IqnDatacom> kRegistered("iqn_datacom");

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
