// Snapshots with random parameters, for tests.
#ifndef DATACOM_TESTS_TESTING_SNAPSHOTS_H_
#define DATACOM_TESTS_TESTING_SNAPSHOTS_H_

#include <cmath>
#include <string>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/base/random.h"
#include "common/nn/snapshot.h"

namespace datacom::testing {

// Layers widths[0] -> widths[1] -> ... with random values of standard deviation 1 / sqrt(fan in).
inline void AddNet(const std::string& net, const std::vector<int>& widths, uint64_t seed, Snapshot* snapshot) {
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const auto in = static_cast<uint32_t>(widths[i]), out = static_cast<uint32_t>(widths[i + 1]);
    const std::string prefix = net + "." + std::to_string(i);
    NamedArray weight{prefix + ".weight", {in, out}, std::vector<float>(in * out)};
    NamedArray bias{prefix + ".bias", {out}, std::vector<float>(out)};
    FillNormal(StreamKey(weight.name, {seed}), weight.values.data(), in * out);
    FillNormal(StreamKey(bias.name, {seed}), bias.values.data(), out);
    for (std::vector<float>* values : {&weight.values, &bias.values}) {
      for (float& v : *values) v /= std::sqrt(static_cast<float>(in));
    }
    snapshot->arrays.push_back(weight);
    snapshot->arrays.push_back(bias);
  }
}

// The widths in, hidden.., out.
inline std::vector<int> NetWidths(int in, const std::vector<int>& hidden, int out) {
  std::vector<int> all{in};
  all.insert(all.end(), hidden.begin(), hidden.end());
  all.push_back(out);
  return all;
}

// A snapshot of the form that the rule declares (common/acting/snapshot_form.h), with its example scalars. `like`
// chooses between a rule's alternatives.
inline Snapshot SnapshotForRule(const std::string& rule, int obs, int action, int state, const std::vector<int>& hidden,
                                uint64_t seed, const Snapshot& like = {}) {
  const SnapshotForm form = ActingRuleForm(rule, {obs, action, state}, like).value();
  Snapshot snapshot;
  snapshot.acting_rule = rule;
  for (const MlpSpec& net : form.nets) AddNet(net.net, NetWidths(net.inputs, hidden, net.outputs), seed, &snapshot);
  for (const SnapshotForm::Vector& vector : form.vectors) {
    NamedArray array{vector.name, {static_cast<uint32_t>(vector.size)}, std::vector<float>(vector.size)};
    FillNormal(StreamKey(array.name, {seed}), array.values.data(), vector.size);
    for (float& value : array.values) value = vector.positive ? 0.5f + 0.02f * value : 0.1f * value;
    snapshot.arrays.push_back(array);
  }
  for (const SnapshotForm::Scalar& scalar : form.scalars) snapshot.scalars[scalar.name] = scalar.example;
  return snapshot;
}

inline Snapshot SafeMapSnapshot(int obs, int action, int state, const std::vector<int>& hidden, uint64_t seed) {
  return SnapshotForRule("safe_map", obs, action, state, hidden, seed);
}

// An IQN-ATACOM member's: one constraint net.
inline Snapshot QuantileSnapshot(int obs, int action, int state, const std::vector<int>& hidden, uint64_t seed) {
  Snapshot like;
  like.arrays.push_back({"constraint.value.0.weight", {}, {}});
  return SnapshotForRule("safe_map", obs, action, state, hidden, seed, like);
}

// A SafeLOOP member's, with three dynamics nets; plans small enough for tests.
inline Snapshot PlannerSnapshot(int obs, int action, const std::vector<int>& hidden, uint64_t seed) {
  Snapshot like;
  for (const char* net : {"dynamics.0", "dynamics.1", "dynamics.2"}) {
    like.arrays.push_back({std::string(net) + ".0.weight", {}, {}});
  }
  return SnapshotForRule("planner", obs, action, /*state=*/0, hidden, seed, like);
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_SNAPSHOTS_H_
// SPDX-License-Identifier: Apache-2.0
