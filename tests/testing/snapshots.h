// Snapshots with random parameters, for tests.
#ifndef DATACOM_TESTS_TESTING_SNAPSHOTS_H_
#define DATACOM_TESTS_TESTING_SNAPSHOTS_H_

#include <cmath>
#include <string>
#include <vector>

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

// A D-ATACOM member's snapshot: two policy nets, two constraint nets, the map's scalars.
inline Snapshot SafeMapSnapshot(int obs, int action, int state, const std::vector<int>& hidden, uint64_t seed) {
  const auto widths = [&hidden](int in, int out) { return NetWidths(in, hidden, out); };
  Snapshot snapshot;
  snapshot.acting_rule = "safe_map";
  AddNet("actor.mean", widths(obs, action), seed, &snapshot);
  AddNet("actor.log_std", widths(obs, action), seed, &snapshot);
  AddNet("constraint.mean", widths(state, 1), seed, &snapshot);
  AddNet("constraint.log_std", widths(state, 1), seed, &snapshot);
  snapshot.scalars = {{"delta", 0.8}, {"risk_margin", 0.195}, {"atacom_gain", 60}, {"slack_beta", 3}};
  return snapshot;
}

// An IQN-ATACOM member's: one constraint net.
inline Snapshot QuantileSnapshot(int obs, int action, int state, const std::vector<int>& hidden, uint64_t seed) {
  Snapshot snapshot = SafeMapSnapshot(obs, action, state, hidden, seed);
  snapshot.arrays.resize(snapshot.arrays.size() / 2);  // the policy's
  AddNet("constraint.value", NetWidths(state, hidden, 1), seed, &snapshot);
  snapshot.scalars.erase("risk_margin");
  return snapshot;
}

// A SafeLayerTD3 member's: a deterministic policy and a linear model of the next cost.
inline Snapshot SafeLayerSnapshot(int obs, int action, const std::vector<int>& hidden, uint64_t seed) {
  Snapshot snapshot;
  snapshot.acting_rule = "safe_layer";
  AddNet("actor", NetWidths(obs, hidden, action), seed, &snapshot);
  AddNet("safety_model", NetWidths(obs, hidden, action), seed, &snapshot);
  snapshot.scalars = {{"exploration_noise", 0.5}, {"projection_threshold", 1e-6}};
  return snapshot;
}

// A PPOLag or RCPO member's: a Gaussian over normalised observations.
inline Snapshot NormalisedGaussianSnapshot(int obs, int action, const std::vector<int>& hidden, uint64_t seed) {
  Snapshot snapshot;
  snapshot.acting_rule = "normalised_gaussian";
  AddNet("actor.mean", NetWidths(obs, hidden, action), seed, &snapshot);
  const auto add = [&](const char* name, int size, float scale, float shift) {
    NamedArray array{name, {static_cast<uint32_t>(size)}, std::vector<float>(size)};
    FillNormal(StreamKey(name, {seed}), array.values.data(), size);
    for (float& value : array.values) value = value * scale + shift;
    snapshot.arrays.push_back(array);
  };
  add("actor.log_std", action, 0.1f, -0.5f);
  add("observation.mean", obs, 0.5f, 0);
  add("observation.std", obs, 0.02f, 0.5f);
  snapshot.scalars = {{"observation_limit", 5}};
  return snapshot;
}

// A SafeLOOP member's: actor, critic, three dynamics nets; plans small enough for tests.
inline Snapshot PlannerSnapshot(int obs, int action, const std::vector<int>& hidden, uint64_t seed) {
  Snapshot snapshot;
  snapshot.acting_rule = "planner";
  AddNet("actor", NetWidths(obs, hidden, 2 * action), seed, &snapshot);
  AddNet("critic.0", NetWidths(obs + action, hidden, 1), seed, &snapshot);
  for (const char* net : {"dynamics.0", "dynamics.1", "dynamics.2"}) {
    AddNet(net, NetWidths(obs + action, hidden, 2 * (obs + 1)), seed, &snapshot);
  }
  const auto inputs = static_cast<uint32_t>(obs + action);
  snapshot.arrays.push_back({"dynamics.input_mean", {inputs}, std::vector<float>(inputs, 0.1f)});
  snapshot.arrays.push_back({"dynamics.input_std", {inputs}, std::vector<float>(inputs, 1.5f)});
  snapshot.scalars = {
      {"random_actions", 0}, {"cost_limit", 1}, {"plan_samples", 20}, {"plan_particles", 2}, {"plan_iterations", 3}};
  return snapshot;
}

// A snapshot for the rule of this name.
inline Snapshot SnapshotForRule(const std::string& rule, int obs, int action, int state, const std::vector<int>& hidden,
                                uint64_t seed) {
  if (rule == "safe_layer") return SafeLayerSnapshot(obs, action, hidden, seed);
  if (rule == "normalised_gaussian") return NormalisedGaussianSnapshot(obs, action, hidden, seed);
  if (rule == "planner") return PlannerSnapshot(obs, action, hidden, seed);
  Snapshot snapshot = SafeMapSnapshot(obs, action, state, hidden, seed);
  snapshot.acting_rule = rule;
  if (rule == "cbf_qp") {
    snapshot.arrays.resize(snapshot.arrays.size() / 2);  // the policy's
    AddNet("barrier", NetWidths(state, hidden, 1), seed, &snapshot);
    snapshot.scalars = {{"barrier_decay", 0.7}, {"relaxation_penalty", 200}};
  }
  return snapshot;
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_SNAPSHOTS_H_
