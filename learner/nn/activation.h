// What a perceptron's hidden units compute. Apart from mlp.h for the units that share no header with others
// (loops_kernel.h).
#ifndef DATACOM_LEARNER_NN_ACTIVATION_H_
#define DATACOM_LEARNER_NN_ACTIVATION_H_

namespace datacom::learner {

enum class Activation { kRelu, kSigmoid };

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_ACTIVATION_H_
