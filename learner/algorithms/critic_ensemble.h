// Perceptrons of one shape on [s, a], with targets (docs/algorithms.md 1.3). The twin critics of SAC and TD3,
// LagSAC's cost critic, and mean and standard deviation of WCSAC's cost critic are one ensemble each. The algorithm
// decides what they are trained on.
//
// Works on arrays of the algorithm's block. Each net evaluates the actions that the policy would execute and the stored
// ones, in one pass if both are known. d_out is then filled twice: first for the gradient of the executed actions, then
// for the parameters' gradient from the stored rows.
#ifndef DATACOM_LEARNER_ALGORITHMS_CRITIC_ENSEMBLE_H_
#define DATACOM_LEARNER_ALGORITHMS_CRITIC_ENSEMBLE_H_

#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/critic_kernels.h"
#include "learner/nn/kernels.h"

namespace datacom::learner {

// The inputs of all critics of an algorithm.
struct CriticInput {
  FloatView rows;               // [block, 2B, obs + action]: [s, executed], then [s, stored]
  FloatView next;               // [block, B, obs + action]: [s', executed']
  FloatView reward, absorbing;  // [block, B, 1]

  void Make(const AlgorithmConfig& config, int block, Kernels* kernels);
  // Copies everything but the actions, for the block that starts at this member of the batch.
  void Load(const Batch& batch, const AlgorithmConfig& config, int batch_member, Kernels* kernels) const;
};

// How twin critics are trained: settings of the members, [M, 1, 1].
struct CriticSettings {
  FloatView larger;            // (1 - critic_pessimism) / 2, as in TwinValues
  DoubleView reward_scale;     // divides the critics' values in statistics
  FloatView scale, low, high;  // of targets: reward_scale, and what it makes of return_floor and return_ceiling
  static CriticSettings Make(const AlgorithmConfig& config, Kernels* kernels);
  CriticSettings Members(int first, int count) const;
  TargetStep Step(const CriticInput& input, double discount) const {
    return {input.reward, input.absorbing, scale, low, high, discount};
  }
};

enum class CriticKind {
  kPlain,        // SAC's: the first layer reads state and action
  kDefault,      // SafeLOOP's: like kPlain, but weights start within +-1/sqrt(fan_in)
  kActionTwice,  // TD3's: the second layer reads the action again
};

class CriticEnsemble {
 public:
  void Declare(const std::vector<std::string>& names, CriticKind kind, const AlgorithmConfig& config,
               ParameterLayout* layout, bool layer_norm = false);
  int64_t first() const { return first_; }
  int64_t size() const { return size_; }
  int nets() const { return static_cast<int>(nets_.size()); }
  void MakeWorkspace(const AlgorithmConfig& config, int block, Kernels* kernels);

  void Evaluate(const FloatView& parameters, const CriticInput& input);  // executed and stored actions
  void EvaluateStored(const FloatView& parameters, const CriticInput& input);
  void EvaluateExecuted(const FloatView& parameters, const CriticInput& input, int nets);  // of the first `nets`
  void EvaluateTargets(const FloatView& targets, const CriticInput& input);
  // Linear outputs of net i, [block, B, 1].
  const FloatView& executed(int i) const { return nets_[i].executed.out; }
  const FloatView& stored(int i) const { return nets_[i].stored.out; }
  const FloatView& next(int i) const { return nets_[i].target_tape.out; }
  FloatView stored() const { return outputs_.Cols(batch_, batch_); }  // of all nets, [block, nets, B]
  // Values of the first two nets as a pair.
  TwinValues ExecutedTwins(const CriticSettings& block) const { return {executed(0), executed(1), block.larger}; }
  TwinValues NextTwins(const CriticSettings& block) const { return {next(0), next(1), block.larger}; }

  // Gradient of an objective for the output of net i, [block, B, 1]; filled before the two calls below. Each of them is
  // made at most once after its rows were evaluated (Kernels::Adjoint).
  const FloatView& d_out(int i) const { return nets_[i].d_out; }
  // Gradient for the executed actions, summed over the first `nets`; added to d_action if `add`.
  void ActionGradient(const FloatView& parameters, int nets, bool add, const FloatView& d_action);
  // Gradients for the parameters from the stored rows.
  void ParameterGradient(const FloatView& parameters, const CriticInput& input, const FloatView& gradients);
  // Regression on y [block, B, 1] at the stored rows: loss is the mean squared error over rows and nets; each net gets
  // the gradient of its own mean.
  void Regress(const FloatView& parameters, const CriticInput& input, const FloatView& y, const FloatView& gradients,
               const DoubleView& loss);

 private:
  struct Net {
    MlpLayout layout;
    MlpTape tape, executed, stored, target_tape;
    FloatView d_out;
  };
  int64_t first_ = 0, size_ = 0;
  int batch_ = 0, obs_dim_ = 0;
  Kernels* kernels_ = nullptr;
  CriticKernels* critic_kernels_ = nullptr;
  std::vector<Net> nets_;
  // The nets' outputs and the gradients for them, side by side, so that one kernel call serves all nets.
  FloatView outputs_;    // [block, nets, 2B]: executed and stored actions
  FloatView d_outputs_;  // [block, nets, B]
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_CRITIC_ENSEMBLE_H_
// SPDX-License-Identifier: Apache-2.0
