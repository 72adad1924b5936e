// Registers an algorithm's constructor under its name in an experiment. The algorithm's .cc file has one line:
//
//   const RegisterAlgorithm<Sac> kRegistered("sac");
//
// It runs before main; a name that is registered twice ends the program. The linker must keep the file: it is linked as
// an object, not from an archive. Enum Algorithm in proto/datacom/v1/algorithm.proto states the facts of the same names
// for all programs.
#ifndef DATACOM_LEARNER_ALGORITHMS_REGISTER_ALGORITHM_H_
#define DATACOM_LEARNER_ALGORITHMS_REGISTER_ALGORITHM_H_

#include <memory>
#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

struct AlgorithmEntry {
  std::unique_ptr<Algorithm> (*make)(const AlgorithmConfig& config);
  std::vector<RuleColumn> (*columns)(const AlgorithmConfig& config);
};
void AddAlgorithm(const std::string& name, const AlgorithmEntry& entry);

template <class A>
class RegisterAlgorithm {
 public:
  explicit RegisterAlgorithm(const std::string& name) {
    AddAlgorithm(
        name, {[](const AlgorithmConfig& config) -> std::unique_ptr<Algorithm> { return std::make_unique<A>(config); },
               &A::Columns});
  }
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_REGISTER_ALGORITHM_H_
// SPDX-License-Identifier: Apache-2.0
