#include <cmath>

#include "learner/nn/cpu/cpu_impl.h"
#include "tests/learner/toy/toy_kernels.h"

namespace datacom::learner {
namespace {

class ToyCpu : public CpuImpl<ToyKernels> {
 public:
  void CostLoss(const FloatView& prediction, const FloatView& cost, const DoubleView& weight,
                const FloatView& d_prediction, const DoubleView& loss) override {
    for (int m = 0; m < prediction.members; ++m) {
      double sum = 0;
      for (int r = 0; r < prediction.rows; ++r) {
        const double error = static_cast<double>(prediction.at(m, r)) - static_cast<double>(cost.at(m, r));
        const double size = std::abs(error);
        sum += size + std::log1p(std::exp(-2 * size)) - std::log(2.0);  // log(cosh(error)) without overflow
        d_prediction.at(m, r) = static_cast<float>(weight.at(m) * std::tanh(error) / prediction.rows);
      }
      loss.at(m) = weight.at(m) * sum / prediction.rows;
    }
  }
};

const CpuImpls::Register<ToyKernels, ToyCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
