#include "learner/algorithms/critic_ensemble.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "learner/algorithms/population.h"

namespace datacom::learner {

void CriticInput::Make(const AlgorithmConfig& config, int block, Kernels* kernels) {
  const int B = BatchSize(config), width = config.obs_dim + config.action_dim;
  rows = kernels->NewFloats(block, 2 * B, width);
  next = kernels->NewFloats(block, B, width);
  reward = kernels->NewFloats(block, B, 1);
  absorbing = kernels->NewFloats(block, B, 1);
}

void CriticInput::Load(const Batch& batch, const AlgorithmConfig& config, int batch_member, Kernels* kernels) const {
  const int B = BatchSize(config), obs = config.obs_dim;
  const int64_t first = static_cast<int64_t>(batch_member) * B;
  const float* observation = batch.observation.data() + first * obs;
  kernels->Upload(observation, rows.Rows(0, B).Cols(0, obs));
  kernels->Upload(observation, rows.Rows(B, B).Cols(0, obs));
  kernels->Upload(batch.next_observation.data() + first * obs, next.Cols(0, obs));
  kernels->Upload(batch.reward.data() + first, reward);
  kernels->Upload(batch.absorbing.data() + first, absorbing);
}

CriticSettings CriticSettings::Make(const AlgorithmConfig& config, Kernels* kernels) {
  // The defaults are no bounds, so that a target that overflows is not hidden.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const v1::Hyper& none = v1::Hyper::default_instance();
  const auto low = [&](const v1::Hyper& own) {
    return own.return_floor() == none.return_floor() ? -kInfinity : own.reward_scale() * own.return_floor();
  };
  const auto high = [&](const v1::Hyper& own) {
    return own.return_ceiling() == none.return_ceiling() ? kInfinity : own.reward_scale() * own.return_ceiling();
  };
  const auto larger = [](const v1::Hyper& own) { return (1 - own.critic_pessimism()) / 2; };
  return {NewFloatScalar(config, kernels, larger), NewScalar(config, kernels, &v1::Hyper::reward_scale),
          NewFloatScalar(config, kernels, &v1::Hyper::reward_scale), NewFloatScalar(config, kernels, low),
          NewFloatScalar(config, kernels, high)};
}

CriticSettings CriticSettings::Members(int first, int count) const {
  return {larger.Members(first, count), reward_scale.Members(first, count), scale.Members(first, count),
          low.Members(first, count), high.Members(first, count)};
}

void CriticEnsemble::Declare(const std::vector<std::string>& names, CriticKind kind, const AlgorithmConfig& config,
                             ParameterLayout* layout, bool layer_norm) {
  const bool twice = kind == CriticKind::kActionTwice;
  WeightInit init;
  if (kind == CriticKind::kPlain) init.xavier_gain = std::sqrt(2.0);
  if (twice) init.last_bound = 3e-3;
  if (twice && config.network.critic_hidden_size() < 2) {
    throw std::invalid_argument(
        "network.critic_hidden: the critics of " + config.algorithm + " read the action in their second " +
        "layer, so they need at least two hidden layers, not " + std::to_string(config.network.critic_hidden_size()));
  }
  const std::vector<int> widths = Widths(config.obs_dim + config.action_dim, config.network.critic_hidden(), 1);
  first_ = layout->size();
  for (const std::string& name : names) {
    nets_.emplace_back();
    nets_.back().layout = layout->AddMlp(name, widths, Activation::kRelu, init, twice ? config.action_dim : 0);
    nets_.back().layout.layer_norm = layer_norm;
  }
  size_ = layout->size() - first_;
}

void CriticEnsemble::MakeWorkspace(const AlgorithmConfig& config, int block, Kernels* kernels) {
  kernels_ = kernels;
  critic_kernels_ = kernels->Group<CriticKernels>();
  batch_ = BatchSize(config), obs_dim_ = config.obs_dim;
  outputs_ = kernels->NewFloats(block, nets(), 2 * batch_);
  d_outputs_ = kernels->NewFloats(block, nets(), batch_);
  for (int i = 0; i < nets(); ++i) {
    Net& net = nets_[i];
    net.tape = kernels->NewTape(net.layout, block, 2 * batch_);
    net.tape.out = outputs_.Rows(i, 1).AsColumn();
    net.executed = net.tape.Rows(0, batch_);
    net.stored = net.tape.Rows(batch_, batch_);
    net.target_tape = kernels->NewTape(net.layout, block, batch_);
    net.d_out = d_outputs_.Rows(i, 1).AsColumn();
  }
}

void CriticEnsemble::Evaluate(const FloatView& parameters, const CriticInput& input) {
  kernels_->Each(nets(), [&](int i) { kernels_->Forward(parameters, nets_[i].layout, input.rows, nets_[i].tape); });
}

void CriticEnsemble::EvaluateStored(const FloatView& parameters, const CriticInput& input) {
  const FloatView rows = input.rows.Rows(batch_, batch_);
  kernels_->Each(nets(), [&](int i) { kernels_->Forward(parameters, nets_[i].layout, rows, nets_[i].stored); });
}

void CriticEnsemble::EvaluateExecuted(const FloatView& parameters, const CriticInput& input, int nets) {
  const FloatView rows = input.rows.Rows(0, batch_);
  kernels_->Each(nets, [&](int i) { kernels_->Forward(parameters, nets_[i].layout, rows, nets_[i].executed); });
}

void CriticEnsemble::EvaluateTargets(const FloatView& targets, const CriticInput& input) {
  kernels_->Each(nets(), [&](int i) { kernels_->Forward(targets, nets_[i].layout, input.next, nets_[i].target_tape); });
}

void CriticEnsemble::ActionGradient(const FloatView& parameters, int nets, bool add, const FloatView& d_action) {
  kernels_->Each(nets,
                 [&](int i) { kernels_->Adjoint(parameters, nets_[i].layout, nets_[i].d_out, nets_[i].executed); });
  for (int i = 0; i < nets; ++i) {
    kernels_->InputGradient(parameters, nets_[i].layout, nets_[i].executed, obs_dim_, add || i > 0, d_action);
  }
}

void CriticEnsemble::ParameterGradient(const FloatView& parameters, const CriticInput& input,
                                       const FloatView& gradients) {
  const FloatView stored = input.rows.Rows(batch_, batch_);
  kernels_->Each(nets(), [&](int i) {
    const Net& net = nets_[i];
    kernels_->Adjoint(parameters, net.layout, net.d_out, net.stored);
    kernels_->ParameterGradient(net.layout, stored, net.d_out, net.stored, gradients);
  });
}

void CriticEnsemble::Regress(const FloatView& parameters, const CriticInput& input, const FloatView& y,
                             const FloatView& gradients, const DoubleView& loss) {
  critic_kernels_->SquaredLoss(stored(), y, d_outputs_, loss);
  ParameterGradient(parameters, input, gradients);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
