// The facts of every algorithm, read from the options of enum Algorithm in proto/datacom/v1/algorithm.proto, and of
// those that plug-ins add. The learner core registers the code under the same names. Immutable; thread-safe.
#ifndef DATACOM_COMMON_CONFIG_ALGORITHMS_H_
#define DATACOM_COMMON_CONFIG_ALGORITHMS_H_

#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/repeated_field.h"

namespace datacom {
namespace v1 {
class Hyper;
}

struct AlgorithmInfo {
  // The fields of proto AlgorithmInfo, which explains them.
  std::string name, title, colour, summary, acting_rule, extends, defaults;
  bool new_rows = false, on_policy = false, needs_dynamics = false, test_only = false, discounted_budget = false;
  int quantiles = 0;

  // What follows from the settings that it reads.
  bool learns_delta = false;  // hyper.delta_lr: episodes carry observations and costs if ReadsEpisodes
  bool has_budget = false;    // hyper.cost_budget: keeps the cost of an episode within it
  bool plans = false;         // planning: needs the task's cost function
};

// Adds an algorithm of a plug-in, from a proto AlgorithmInfo as text. It reads the settings that the algorithm reads
// which it extends. Ends the program if the text is wrong or the name is taken.
struct RegisterAlgorithmFacts {
  explicit RegisterAlgorithmFacts(const std::string& text);
};

const std::vector<AlgorithmInfo>& Algorithms();  // in the schema's order, without algorithms for tests only
std::vector<std::string> AlgorithmNames();       // names of Algorithms()
const AlgorithmInfo* FindAlgorithm(const std::string& name);  // null when unknown; finds algorithms for tests, too

// True if `users` (Rule.used_by, Statistic.used_by) is empty or names the algorithm or one that it extends.
bool Covers(const google::protobuf::RepeatedPtrField<std::string>& users, const AlgorithmInfo& algorithm);
// True if the algorithm reads the setting: its Rule.used_by covers the algorithm.
bool ReadsSetting(const AlgorithmInfo& algorithm, const google::protobuf::FieldDescriptor& setting);
// The names of those of Algorithms() that read the setting.
std::vector<std::string> ReadersOf(const google::protobuf::FieldDescriptor& setting);
// Whether an experiment may give the setting although its algorithm does not read it (Rule.noted).
bool MayBeUnread(const google::protobuf::FieldDescriptor& setting);
std::vector<std::string> HyperParametersOf(const AlgorithmInfo& algorithm);  // fields of proto Hyper that it reads

enum class DeltaMode { kLearned, kFixed, kPeak };
DeltaMode DeltaModeOf(const v1::Hyper& hyper);  // REQUIRES a delta_mode that its Rule allows
// Whether delta or the multiplier of an algorithm that learns delta follows the episodes.
bool ReadsEpisodes(const v1::Hyper& hyper);

}  // namespace datacom

#endif  // DATACOM_COMMON_CONFIG_ALGORITHMS_H_
// SPDX-License-Identifier: Apache-2.0
