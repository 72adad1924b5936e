// IQN-ATACOM (learner/algorithms/README.md 7): D-ATACOM whose feasibility value is the quantile of an implicit quantile
// network at 1 - accepted risk. Its cost budget is already a discounted sum.
#ifndef DATACOM_LEARNER_ALGORITHMS_IQN_DATACOM_H_
#define DATACOM_LEARNER_ALGORITHMS_IQN_DATACOM_H_

#include "learner/algorithms/datacom.h"

namespace datacom::learner {

class IqnDatacom : public Datacom {
 public:
  explicit IqnDatacom(const AlgorithmConfig& config);

 protected:
  // At its one level the network is a perceptron: the level's embedding goes into the weights behind the product.
  // "constraint.value": ReLU hidden, softplus output.
  void AddConstraint(int member, ActingParameters* out) const override;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_IQN_DATACOM_H_
