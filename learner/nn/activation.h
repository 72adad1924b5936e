// The activation of a perceptron's hidden units. A header of its own, for the translation units that may share no
// header with inline functions (loops_kernel.h).
#ifndef DATACOM_LEARNER_NN_ACTIVATION_H_
#define DATACOM_LEARNER_NN_ACTIVATION_H_

namespace datacom::learner {

// Swish is x sigmoid(x).
enum class Activation { kRelu, kSigmoid, kTanh, kSwish };

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_ACTIVATION_H_
// SPDX-License-Identifier: Apache-2.0
