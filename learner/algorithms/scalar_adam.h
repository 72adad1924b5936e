// Adam on one number in host memory, in float64, with the constants of nn/kernels.h. Plain data.
#ifndef DATACOM_LEARNER_ALGORITHMS_SCALAR_ADAM_H_
#define DATACOM_LEARNER_ALGORITHMS_SCALAR_ADAM_H_

#include <cmath>

namespace datacom::learner {

struct ScalarAdam {
  double value = 0, first = 0, second = 0, steps = 0;

  void Step(double gradient, double rate) {
    steps += 1;
    first = 0.9 * first + 0.1 * gradient;
    second = 0.999 * second + 0.001 * gradient * gradient;
    const double root = std::sqrt(second / (1 - std::pow(0.999, steps)));
    value -= rate / (1 - std::pow(0.9, steps)) * first / (root + 1e-8);
  }
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SCALAR_ADAM_H_
// SPDX-License-Identifier: Apache-2.0
