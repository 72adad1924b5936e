#include <cmath>

#include "learner/nn/torch/torch_impl.h"
#include "tests/learner/toy/toy_kernels.h"

namespace datacom::learner {
namespace {

class ToyTorch : public TorchImpl<ToyKernels> {
 public:
  using TorchImpl::TorchImpl;

  void CostLoss(const FloatView& prediction, const FloatView& cost, const DoubleView& weight,
                const FloatView& d_prediction, const DoubleView& loss) override {
    const at::Tensor error = Of(prediction).to(at::kDouble) - Of(cost).to(at::kDouble), size = at::abs(error);
    Of(loss).copy_(Of(weight) * MeanRows(size + at::log1p(at::exp(-2 * size)) - std::log(2.0)));
    Of(d_prediction).copy_(Of(weight) * at::tanh(error) / prediction.rows);
  }
};

const TorchImpls::Register<ToyKernels, ToyTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
