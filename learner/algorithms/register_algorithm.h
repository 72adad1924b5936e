// Registers an algorithm's constructor under its name in an experiment. The algorithm's .cc file has one line:
//
//   const RegisterAlgorithm<Sac> kRegistered("sac");
//
// It runs before main; a name that is registered twice ends the program with std::logic_error. The linker must keep the
// file: it is linked as an object, not from an archive. common/config/algorithms.cc describes the same names to all
// programs.
#ifndef DATACOM_LEARNER_ALGORITHMS_REGISTER_ALGORITHM_H_
#define DATACOM_LEARNER_ALGORITHMS_REGISTER_ALGORITHM_H_

#include <memory>
#include <string>

#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

struct RegisteredAlgorithm {
  std::unique_ptr<Algorithm> (*make)(const AlgorithmConfig& config);
  int quantiles;  // levels drawn per row (QuantilesOf)
};
void AddAlgorithm(const std::string& name, const RegisteredAlgorithm& algorithm);

template <class A>
class RegisterAlgorithm {
 public:
  explicit RegisterAlgorithm(const std::string& name, int quantiles = 0) {
    const auto make = [](const AlgorithmConfig& config) -> std::unique_ptr<Algorithm> {
      return std::make_unique<A>(config);
    };
    AddAlgorithm(name, {make, quantiles});
  }
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_REGISTER_ALGORITHM_H_
