#include "learner/algorithms/critic_ensemble.h"

#include <cmath>

namespace datacom::learner {

void CriticEnsemble::Declare(const std::vector<std::string>& names, const AlgorithmConfig& config,
                             ParameterLayout* layout) {
  const std::vector<int> widths = Widths(config.obs_dim + config.action_dim, config.critic_hidden, 1);
  first_ = layout->size();
  for (const std::string& name : names) {
    nets_.emplace_back();
    nets_.back().online = layout->AddMlp(name, widths, Activation::kRelu, {std::sqrt(2.0)});
  }
  size_ = layout->size() - first_;
}

void CriticEnsemble::MakeWorkspace(const AlgorithmConfig& config, int64_t target_first, int block, Kernels* kernels) {
  kernels_ = kernels;
  batch_ = config.batch_size, obs_dim_ = config.obs_dim;
  for (Net& net : nets_) {
    net.target = net.online.Shifted(target_first);
    net.tape = kernels->NewTape(net.online, block, 2 * batch_);
    net.executed = net.tape.Rows(0, batch_);
    net.stored = net.tape.Rows(batch_, batch_);
    net.target_tape = kernels->NewTape(net.target, block, batch_);
    net.d_out = kernels->NewFloats(block, batch_, 1);
  }
}

void CriticEnsemble::Evaluate(const FloatView& parameters, const CriticInput& input) {
  for (const Net& net : nets_) kernels_->Forward(parameters, net.online, input.rows, net.tape);
}

void CriticEnsemble::EvaluateTargets(const FloatView& targets, const CriticInput& input) {
  for (const Net& net : nets_) kernels_->Forward(targets, net.target, input.next, net.target_tape);
}

void CriticEnsemble::ActionGradient(const FloatView& parameters, bool add, const FloatView& d_action) {
  for (const Net& net : nets_) {
    kernels_->Adjoint(parameters, net.online, net.d_out, net.executed);
    kernels_->InputGradient(parameters, net.online, net.executed, obs_dim_, add, d_action);
    add = true;
  }
}

void CriticEnsemble::ParameterGradient(const FloatView& parameters, const CriticInput& input,
                                       const FloatView& gradients) {
  const FloatView stored = input.rows.Rows(batch_, batch_);
  for (const Net& net : nets_) {
    kernels_->Adjoint(parameters, net.online, net.d_out, net.stored);
    kernels_->ParameterGradient(net.online, stored, net.d_out, net.stored, gradients);
  }
}

}  // namespace datacom::learner
