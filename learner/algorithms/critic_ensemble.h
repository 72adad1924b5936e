// Perceptrons of one shape on [s, a] with targets (algorithms.md 1.3). SAC's twin critics, LagSAC's cost critic, and
// mean and standard deviation of WCSAC's are one ensemble each: what they are trained on is the algorithm's business.
//
// A part of an algorithm, not one itself: works on arrays of the algorithm's block. Every net sees the actions the
// policy would execute and the stored ones in one pass; then d_out is filled twice, for the gradient that the executed
// actions get, and for the parameters' from the stored rows.
#ifndef DATACOM_LEARNER_ALGORITHMS_CRITIC_ENSEMBLE_H_
#define DATACOM_LEARNER_ALGORITHMS_CRITIC_ENSEMBLE_H_

#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"
#include "learner/nn/kernels.h"

namespace datacom::learner {

// What all critics of an algorithm read.
struct CriticInput {
  FloatView rows;  // [block, 2B, obs + action]: [s, executed], then [s, stored]
  FloatView next;  // [block, B, obs + action]: [s', executed']
};

class CriticEnsemble {
 public:
  void Declare(const std::vector<std::string>& names, const AlgorithmConfig& config, ParameterLayout* layout);
  int64_t first() const { return first_; }
  int64_t size() const { return size_; }
  void MakeWorkspace(const AlgorithmConfig& config, int64_t target_first, int block, Kernels* kernels);

  void Evaluate(const FloatView& parameters, const CriticInput& input);
  void EvaluateTargets(const FloatView& targets, const CriticInput& input);
  // Linear outputs of net i, [block, B, 1].
  const FloatView& executed(int i) const { return nets_[i].executed.out; }
  const FloatView& stored(int i) const { return nets_[i].stored.out; }
  const FloatView& next(int i) const { return nets_[i].target_tape.out; }

  // Gradient of an objective for the output of net i, [block, B, 1]: set before either of the following.
  const FloatView& d_out(int i) const { return nets_[i].d_out; }
  // Gradient for the executed actions, summed over the nets; added to d_action where `add`.
  void ActionGradient(const FloatView& parameters, bool add, const FloatView& d_action);
  // Gradients for the parameters from the stored rows.
  void ParameterGradient(const FloatView& parameters, const CriticInput& input, const FloatView& gradients);

 private:
  struct Net {
    Mlp online, target;
    MlpTape tape, executed, stored, target_tape;
    FloatView d_out;
  };
  int64_t first_ = 0, size_ = 0;
  int batch_ = 0, obs_dim_ = 0;
  Kernels* kernels_ = nullptr;
  std::vector<Net> nets_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_CRITIC_ENSEMBLE_H_
