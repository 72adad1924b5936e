// The loss of the toy algorithm: how well a net predicts the cost of a transition.
#ifndef DATACOM_TESTS_LEARNER_TOY_TOY_KERNELS_H_
#define DATACOM_TESTS_LEARNER_TOY_TOY_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

class ToyKernels : public KernelGroup {
 public:
  // loss [members, 1, 1]: weight times the mean of log(cosh(prediction - cost)) over the rows; d_prediction: its
  // gradient. weight: [members, 1, 1], the others [members, rows, 1].
  virtual void CostLoss(const FloatView& prediction, const FloatView& cost, const DoubleView& weight,
                        const FloatView& d_prediction, const DoubleView& loss) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_LEARNER_TOY_TOY_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
