// The facts of every algorithm, read from the options of enum Algorithm in proto/datacom/v1/algorithm.proto. The
// learner core registers the code under the same names. Immutable; thread-safe.
#ifndef DATACOM_COMMON_CONFIG_ALGORITHMS_H_
#define DATACOM_COMMON_CONFIG_ALGORITHMS_H_

#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"

namespace datacom {

// The fields of proto AlgorithmInfo, which explains them.
struct AlgorithmInfo {
  std::string name, title, colour, summary, acting_rule, extends;
  bool learns_delta, pretrains, has_budget, new_rows, on_policy, plans, needs_dynamics, test_only;
  int quantiles;
};

const std::vector<AlgorithmInfo>& Algorithms();               // as the schema orders them, without those for tests only
std::vector<std::string> AlgorithmNames();                    // of Algorithms()
const AlgorithmInfo* FindAlgorithm(const std::string& name);  // null when unknown; finds those for tests, too

// Whether the algorithm reads a setting: it has no Rule.used_by, or that names the algorithm or one that it extends.
bool ReadsSetting(const AlgorithmInfo& algorithm, const google::protobuf::FieldDescriptor& setting);
std::vector<std::string> HyperParametersOf(const AlgorithmInfo& algorithm);  // fields of proto Hyper that it reads

}  // namespace datacom

#endif  // DATACOM_COMMON_CONFIG_ALGORITHMS_H_
// SPDX-License-Identifier: Apache-2.0
