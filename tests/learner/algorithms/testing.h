// Small populations with random batches for tests of the learner core.
#ifndef DATACOM_TESTS_LEARNER_ALGORITHMS_TESTING_H_
#define DATACOM_TESTS_LEARNER_ALGORITHMS_TESTING_H_

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/config/algorithms.h"
#include "google/protobuf/descriptor.h"
#include "learner/algorithms/algorithm.h"
#include "learner/nn/named_stream.h"
#include "tests/learner/algorithms/arrays.h"
#include "tests/learner/test_device.h"

namespace datacom::learner {

// A field of all members.
template <typename Value>
std::vector<Value> OfMembers(const Stats& stats, Value (v1::MemberEpoch::*field)() const) {
  std::vector<Value> values;
  for (const v1::MemberEpoch& member : stats) values.push_back((member.*field)());
  return values;
}
inline std::vector<bool> Diverged(const Algorithm& algorithm) {
  return OfMembers(algorithm.GetStats(), &v1::MemberEpoch::diverged);
}
// Equal texts: equal bits.
inline std::vector<std::string> BitsOf(const Stats& stats) {
  std::vector<std::string> bits;
  for (const v1::MemberEpoch& member : stats) bits.push_back(member.SerializeAsString());
  return bits;
}

// Names of the entries that differ; empty if the states are equal.
inline std::string Differing(const State& a, const State& b) {
  std::string names = a.size() == b.size() ? "" : "other entries ";
  for (const auto& [name, bytes] : a) {
    if (b.count(name) == 0 || b.at(name) != bytes) names += name + " ";
  }
  return names;
}

// "datacom_known" is datacom with joined known rows, "datacom_peak" datacom with that delta_mode, "datacom_priced"
// datacom with a multiplier of the cost, "datacom_robust" datacom with a scale of rewards, less pessimism, normalised
// observations and imitation, "datacom_layer_norm" datacom with normalised critics, "datacom_bf16" datacom with that
// precision.
inline std::string AlgorithmOf(const std::string& name) {
  return name.substr(0, std::min({name.find("_known"), name.find("_peak"), name.find("_priced"), name.find("_robust"),
                                  name.find("_layer_norm"), name.find("_bf16")}));
}
inline const AlgorithmInfo& InfoOf(const std::string& name) { return *FindAlgorithm(AlgorithmOf(name)); }

// By the name of the message, so that not every test of the core depends on the experiment.
inline bool Pretrains(const AlgorithmInfo& info) {
  const auto* const pool = google::protobuf::DescriptorPool::generated_pool();
  return ReadsSetting(info, *pool->FindMessageTypeByName("datacom.v1.Experiment")->FindFieldByName("pretrain"));
}

// The registered algorithms that can be pre-trained.
inline std::vector<std::string> PretrainedNames() {
  std::vector<std::string> names;
  for (const std::string& name : RegisteredAlgorithms()) {
    if (Pretrains(InfoOf(name))) names.push_back(name);
  }
  return names;
}

// Learns from whole epochs (docs/algorithms.md 18).
inline bool IsOnPolicy(const std::string& name) { return InfoOf(name).on_policy; }

// Takes the rows since its last update instead of samples.
inline bool TakesNewRows(const std::string& name) { return InfoOf(name).new_rows; }

inline void SetHidden(const std::vector<uint32_t>& widths, google::protobuf::RepeatedField<uint32_t>* hidden) {
  hidden->Assign(widths.begin(), widths.end());
}

inline void SetAllHidden(const std::vector<uint32_t>& widths, AlgorithmConfig* config) {
  SetHidden(widths, config->network.mutable_actor_hidden());
  SetHidden(widths, config->network.mutable_critic_hidden());
  SetHidden(widths, config->network.mutable_constraint_hidden());
}

inline AlgorithmConfig SmallConfig(const std::string& name, int members, const std::string& kernels = "fused") {
  const std::string algorithm = AlgorithmOf(name);
  AlgorithmConfig config;
  config.algorithm = algorithm;
  if (name.find("_known") != std::string::npos) config.known = {"wall", "floor", "speed"};
  config.network.set_critic_layer_norm(name.find("_layer_norm") != std::string::npos);
  config.learner.set_kernels(kernels);
  if (name.find("_bf16") != std::string::npos) config.learner.set_precision("bf16");
  config.learner.set_device(TestDevice(kernels));
  config.run_seed = 7;
  config.members.resize(members);
  for (int m = 0; m < members; ++m) {
    config.members[m].seed = 100 + m;
    config.members[m].hyper.set_actor_lr(1e-3 * (m + 1));
    if (name.find("_peak") != std::string::npos) config.members[m].hyper.set_delta_mode("peak");
    if (name.find("_priced") != std::string::npos) {
      config.members[m].hyper.set_multiplier_mode("pi");
      config.members[m].hyper.set_cost_budget(1);  // the episodes below cost more
    }
  }
  config.obs_dim = 5, config.action_dim = 2, config.q_dim = 3, config.x_dim = 1;
  config.action_low = {-1, -2}, config.action_high = {1, 2};
  config.horizon = 50;
  SetHidden({16, 24}, config.network.mutable_actor_hidden());
  SetHidden({24, 16}, config.network.mutable_critic_hidden());
  SetHidden({16, 16}, config.network.mutable_constraint_hidden());
  config.learner.set_batch_size(12), config.learner.set_failure_batch_size(3);
  if (algorithm == "cbf_sac") config.x_dim = 0;  // it refuses others
  if (FindAlgorithm(algorithm)->quantiles > 0) config.quantiles = 5, config.quantile_embedding = 7;
  config.learner.set_tau(0.01);
  if (name.find("_robust") != std::string::npos) {
    config.learner.set_normalise_observations(true);
    config.network.set_initial_log_std(-1);
    config.imitation = {[](const double*, double*) {}, 1, 1};
    for (MemberConfig& member : config.members) {
      member.hyper.set_reward_scale(2);
      member.hyper.set_critic_pessimism(0.3);
    }
  }
  if (IsOnPolicy(algorithm)) {
    config.epoch_rows = 40, config.learner.set_passes(3), config.epochs = 8;  // minibatches of 12, 12, 12 and 4 rows
    for (MemberConfig& member : config.members) member.hyper.set_multiplier_lr(0.035);
  }
  if (FindAlgorithm(algorithm)->plans) {  // every update trains everything
    config.epoch_rows = 40;
    config.memory_rows = 100;
    v1::Planning& planning = config.planning;
    planning.set_random_rows(0), planning.set_policy_period(40), planning.set_policy_updates(3);
    planning.set_model_period(40), planning.set_ensemble(2);
    planning.set_samples(20), planning.set_particles(2), planning.set_iterations(3);
    SetHidden({16, 12}, planning.mutable_hidden());
    // So slow that the held-out error never falls by the share that would prolong the training.
    for (MemberConfig& member : config.members) member.hyper.set_constraint_lr(1e-5);
  }
  return config;
}

// Paths of 1 to 9 rows, of which every third is terminated, and log-densities of a standard normal policy.
inline void MakePaths(const AlgorithmConfig& config, NamedStream* stream, Batch* batch) {
  const int rows = BatchRows(config), n = config.action_dim;
  std::fill(batch->absorbing.begin(), batch->absorbing.end(), 0.0f);
  for (size_t first = 0; first < batch->path_end.size(); first += rows) {
    for (int last = -1, path = 0; last < rows - 1; ++path) {
      last = std::min(last + 1 + static_cast<int>(stream->Uniform() * 9), rows - 1);
      batch->path_end[first + last] = 1;
      if (path % 3 == 0) batch->absorbing[first + last] = 1;
    }
  }
  std::vector<float>& log_prob = batch->columns.at(0);
  for (size_t r = 0; r < log_prob.size(); ++r) {
    log_prob[r] = -0.918938533f * static_cast<float>(n);
    for (int i = 0; i < n; ++i) log_prob[r] -= 0.5f * batch->action[r * n + i] * batch->action[r * n + i];
  }
}

inline Batch RandomBatch(const AlgorithmConfig& config, uint64_t seed) {
  Batch batch;
  batch.Resize(config);
  NamedStream stream(NamedKey("test.batch", {seed}));
  // A number for each row of the columns that the algorithm reads, drawn for all, so that the rest does not depend on
  // it.
  std::vector<float> column(config.epoch_rows > 0 ? 0 : batch.reward.size());
  for (auto* values :
       {&batch.observation, &batch.reward, &batch.cost, &batch.next_observation, &column, &batch.now.z, &batch.next.z,
        &batch.failure_z, &batch.failure_next_z, &batch.failure_cost, &batch.noise_actor, &batch.noise_next}) {
    for (float& value : *values) value = static_cast<float>(stream.Uniform(-2, 2));
  }
  for (float& value : batch.command) value = static_cast<float>(stream.Uniform(-1, 1));
  for (double& value : batch.imitation) value = stream.Uniform(0.1, 1);
  for (float& value : batch.action) value = static_cast<float>(stream.Uniform(-1, 1));
  for (float& value : batch.absorbing) value = stream.Uniform() < 0.1 ? 1.0f : 0.0f;
  for (std::vector<float>& values : batch.columns) {
    for (size_t i = 0; !column.empty() && i < values.size(); ++i) values[i] = column[i % column.size()];
  }
  if (IsOnPolicy(config.algorithm)) MakePaths(config, &stream, &batch);
  if (config.epoch_rows > 0) {
    for (float& value : batch.last) value = stream.Uniform() < 0.1 ? 1.0f : 0.0f;
  }
  for (float& value : batch.failure_weight) value = 1;
  for (auto* values : {&batch.level, &batch.next_level}) {
    for (float& value : *values) value = static_cast<float>(stream.Uniform());
  }
  for (auto* values : {&batch.now.f, &batch.now.G, &batch.now.x_dot, &batch.next.f, &batch.next.G, &batch.next.x_dot,
                       &batch.now.known, &batch.next.known}) {
    for (double& value : *values) value = stream.Uniform(-2, 2);
  }
  return batch;
}

// The values of one member.
template <class T>
std::vector<T> PartOf(const std::vector<T>& values, int members, int member) {
  const size_t size = values.size() / members;
  return std::vector<T>(values.begin() + size * member, values.begin() + size * (member + 1));
}

inline ControlAffineBatch MemberOf(const ControlAffineBatch& b, int members, int m) {
  return {PartOf(b.z, members, m), PartOf(b.f, members, m), PartOf(b.G, members, m), PartOf(b.x_dot, members, m),
          b.known.empty() ? b.known : PartOf(b.known, members, m)};
}

inline Batch MemberOf(const Batch& b, int members, int m) {
  const auto part = [members, m](const std::vector<float>& values) { return PartOf(values, members, m); };
  std::vector<std::vector<float>> columns;
  for (const std::vector<float>& column : b.columns) columns.push_back(part(column));
  return {part(b.observation),
          part(b.action),
          part(b.reward),
          part(b.cost),
          part(b.next_observation),
          part(b.absorbing),
          part(b.last),
          columns,
          MemberOf(b.now, members, m),
          MemberOf(b.next, members, m),
          part(b.failure_z),
          part(b.failure_next_z),
          part(b.failure_cost),
          part(b.failure_absorbing),
          part(b.failure_weight),
          part(b.noise_actor),
          part(b.noise_next),
          part(b.level),
          part(b.next_level),
          part(b.path_end),
          part(b.command),
          PartOf(b.imitation, members, m)};
}

// Names of all arrays of a member that an update may change, including targets.
inline std::vector<std::string> ArrayNames(const Algorithm& algorithm) {
  std::vector<std::string> names;
  std::istringstream signature(algorithm.Save().at("signature"));  // the algorithm, its members, then name:shape
  std::string word;
  for (int i = 0; signature >> word; ++i) {
    if (i < 2) continue;
    const std::string name = word.substr(0, word.find(':'));
    names.push_back(name);
    try {
      GetArray(algorithm, 0, "target_" + name);
      names.push_back("target_" + name);
    } catch (const std::invalid_argument&) {  // there is none
    }
  }
  return names;
}

inline std::vector<float> AllValues(const Algorithm& algorithm, int member) {
  std::vector<float> all;
  for (const std::string& name : ArrayNames(algorithm)) {
    const std::vector<float> part = GetArray(algorithm, member, name);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// One finished episode of every member, or as many as end the silence of a multiplier.
inline void ApplyEpisodes(Algorithm* algorithm, const AlgorithmConfig& config, uint64_t seed) {
  NamedStream stream(seed);
  const int length = 30;
  std::vector<float> z((length + 1) * (config.q_dim + config.x_dim)), costs(length + 1);
  for (float& value : z) value = static_cast<float>(stream.Uniform(-2, 2));
  for (float& value : costs) value = static_cast<float>(stream.Uniform(-2, 1));
  costs[0] = 0;
  std::vector<EpisodeCosts> all;
  for (size_t m = 0; m < config.members.size(); ++m) {
    const bool silent = InfoOf(config.algorithm).learns_delta && config.members[m].hyper.multiplier_mode() == "pi";
    const int episodes = silent ? 50 * config.horizon / length + 1 : 1;
    all.insert(all.end(), episodes, {static_cast<int>(m), length, z.data(), costs.data()});
  }
  algorithm->ApplyEpisodes(all);
}

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_LEARNER_ALGORITHMS_TESTING_H_
// SPDX-License-Identifier: Apache-2.0
