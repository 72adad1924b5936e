// IQN-ATACOM (docs/algorithms.md 7): D-ATACOM whose feasibility value is the quantile of an implicit quantile
// network at 1 - accepted risk. The cost budget is used as a discounted sum, without conversion.
#include <cmath>
#include <memory>
#include <string>

#include "learner/algorithms/datacom.h"
#include "learner/algorithms/quantile_feasibility.h"
#include "learner/algorithms/register_algorithm.h"

namespace datacom::learner {
namespace {

class IqnDatacom : public Datacom {
 public:
  explicit IqnDatacom(const AlgorithmConfig& config);

 protected:
  // At one fixed level the network is a perceptron, because the level's embedding can be multiplied into the weights of
  // the next layer. The array is "constraint.value": ReLU hidden, softplus output.
  void AddConstraint(int member, ActingParameters* out) const override;
};

const RegisterAlgorithm<IqnDatacom> kRegistered("iqn_datacom");

}  // namespace

IqnDatacom::IqnDatacom(const AlgorithmConfig& config) : Datacom(config, std::make_unique<QuantileFeasibility>()) {}

void IqnDatacom::AddConstraint(int member, ActingParameters* out) const {
  const float level = QuantileLevel(config_.members[member].hyper.accepted_risk());
  const std::vector<float> weight = ReadArray(member, "constraint.embedding.0.weight");
  std::vector<float> embedding = ReadArray(member, "constraint.embedding.0.bias");
  const size_t width = embedding.size();
  for (size_t c = 0; c < width; ++c) {
    double sum = embedding[c];
    for (int i = 0; i < config_.quantile_embedding; ++i) {
      sum += std::cos(std::acos(-1.0) * i * static_cast<double>(level)) * static_cast<double>(weight[i * width + c]);
    }
    embedding[c] = static_cast<float>(1 / (1 + std::exp(-sum)));
  }
  ActingParameters nets;
  AddActingNet("constraint.base", member, &nets);
  const size_t behind = nets.arrays.size();
  AddActingNet("constraint.quantile", member, &nets);
  for (size_t i = 0; i < nets.arrays.size(); ++i) {
    NamedArray& array = nets.arrays[i];
    if (i == behind) {  // [width, out]
      const size_t columns = array.shape[1];
      for (size_t j = 0; j < array.values.size(); ++j) array.values[j] *= embedding[j / columns];
    }
    array.name = "constraint.value." + std::to_string(i / 2) + (i % 2 == 0 ? ".weight" : ".bias");
    out->arrays.push_back(std::move(array));
  }
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
