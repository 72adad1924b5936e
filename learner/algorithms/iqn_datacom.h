// IQN-ATACOM (learner/algorithms/README.md 7): D-ATACOM whose feasibility value is the quantile of an implicit quantile
// network at 1 - accepted risk. The cost budget is used as a discounted sum, without conversion.
#ifndef DATACOM_LEARNER_ALGORITHMS_IQN_DATACOM_H_
#define DATACOM_LEARNER_ALGORITHMS_IQN_DATACOM_H_

#include "learner/algorithms/datacom.h"

namespace datacom::learner {

class IqnDatacom : public Datacom {
 public:
  explicit IqnDatacom(const AlgorithmConfig& config);

 protected:
  // At one fixed level the network is a perceptron, because the level's embedding can be multiplied into the weights of
  // the next layer. The array is "constraint.value": ReLU hidden, softplus output.
  void AddConstraint(int member, ActingParameters* out) const override;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_IQN_DATACOM_H_
