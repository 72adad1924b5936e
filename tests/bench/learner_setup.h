// What the benchmarks of the learner share: configurations, random batches, times.
#ifndef DATACOM_TESTS_BENCH_LEARNER_SETUP_H_
#define DATACOM_TESTS_BENCH_LEARNER_SETUP_H_

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "common/config/algorithms.h"
#include "learner/algorithms/algorithm.h"
#include "learner/nn/named_stream.h"

namespace datacom::learner {

struct Shape {
  const char* name;
  int obs, action, q;
  int known = 0;  // known rows added to the learned constraint
  bool critic_layer_norm = false, normalise_observations = false;
  int hidden = 128, batch = 64;  // of all nets and of SAC's family
  bool multiplier = false;       // D-ATACOM's policy pays for its cost
};

// An update is an epoch of 20,000 rows.
inline bool IsOnPolicy(const std::string& algorithm) { return FindAlgorithm(algorithm)->on_policy; }

inline AlgorithmConfig ConfigOf(const std::string& algorithm, const Shape& shape, int members) {
  AlgorithmConfig config;
  config.algorithm = algorithm;
  config.members.resize(members);
  for (int m = 0; m < members; ++m) {
    config.members[m].seed = m;
    if (shape.multiplier) config.members[m].hyper.set_multiplier_mode("pi");
  }
  config.obs_dim = shape.obs, config.action_dim = shape.action, config.q_dim = shape.q;
  config.action_low.assign(shape.action, -1), config.action_high.assign(shape.action, 1);
  config.horizon = 300;
  config.known.assign(shape.known, "row");
  config.network.set_critic_layer_norm(shape.critic_layer_norm);
  config.learner.set_normalise_observations(shape.normalise_observations);
  v1::Network& net = config.network;
  for (auto* const widths :
       {net.mutable_actor_hidden(), net.mutable_critic_hidden(), net.mutable_constraint_hidden()}) {
    widths->Resize(2, shape.hidden);
  }
  config.learner.set_batch_size(shape.batch);
  config.quantiles = FindAlgorithm(algorithm)->quantiles;
  if (config.quantiles > 0) net.mutable_constraint_hidden()->Resize(3, 128);
  if (IsOnPolicy(algorithm)) {
    config.epoch_rows = 20000, config.epochs = 100;
    config.learner.set_passes(algorithm == "rcpo" ? 10 : 40),
        config.learner.set_batch_size(algorithm == "rcpo" ? 128 : 64);
  }
  if (FindAlgorithm(algorithm)->plans) {
    config.learner.set_batch_size(256);
    config.epoch_rows = config.memory_rows = 2000;
    config.planning.set_random_rows(0);
    config.planning.set_policy_period(2000), config.planning.set_model_period(2000);
    config.planning.mutable_hidden()->Resize(4, 200);
  }
  return config;
}

// For timing: every update of an algorithm takes the same number of steps.
inline AlgorithmConfig TimedConfigOf(const std::string& algorithm, const Shape& shape, int members) {
  AlgorithmConfig config = ConfigOf(algorithm, shape, members);
  for (MemberConfig& member : config.members) {
    if (IsOnPolicy(algorithm)) member.hyper.set_actor_lr(0);  // the policy never diverges: all passes are made
    if (FindAlgorithm(algorithm)->plans) member.hyper.set_constraint_lr(0);  // nothing improves: seven passes are made
  }
  return config;
}

// An update takes long, and in a population members make theirs one after the other: measured with one. That of
// safe_loop is one training of the ensemble on 2,000 rows in seven passes, and 50 steps of actor and critics.
inline bool IsLong(const std::string& algorithm) { return FindAlgorithm(algorithm)->new_rows; }

template <class T>
void Fill(std::vector<T>* values, NamedStream* stream) {  // variance 1, like standardised inputs
  for (T& value : *values) value = static_cast<T>(stream->Uniform(-1.7, 1.7));
}

inline Batch RandomBatch(const AlgorithmConfig& config) {
  Batch batch;
  batch.Resize(config);
  NamedStream stream(1);
  for (auto* values : {&batch.observation, &batch.action, &batch.reward, &batch.cost, &batch.next_observation,
                       &batch.now.z, &batch.next.z, &batch.failure_z, &batch.failure_next_z, &batch.failure_cost,
                       &batch.noise_actor, &batch.noise_next}) {
    Fill(values, &stream);
  }
  for (auto* values : {&batch.level, &batch.next_level}) {
    for (float& value : *values) value = static_cast<float>(stream.Uniform());
  }
  for (auto* values : {&batch.now.f, &batch.now.G, &batch.next.f, &batch.next.G, &batch.now.known, &batch.next.known}) {
    Fill(values, &stream);
  }
  std::fill(batch.failure_weight.begin(), batch.failure_weight.end(), 1.0f);
  for (std::vector<float>& column : batch.columns) Fill(&column, &stream);
  return batch;
}

template <class F>
double Seconds(const F& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Result {
  std::string name;
  double value = 0, floor = 0, ratio = 0;
  const char* unit = "updates/s";
  double update_gflops = 0;  // of the floor's products, per second of the update
};

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_BENCH_LEARNER_SETUP_H_
// SPDX-License-Identifier: Apache-2.0
