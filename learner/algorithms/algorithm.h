// What a learning algorithm is to the rest of the learner: M members in stacked tensors, updated together from host
// batches.
//
// Neither this header nor its users need LibTorch, protobuf or Abseil (learner/standalone builds the core without the
// last two). Errors are exceptions (std::invalid_argument for wrong configuration or state, naming the thing and the
// value; whatever LibTorch throws), stopped at one boundary in learner/. Not thread-safe: one thread updates. Owns
// parameters, optimiser state and workspaces; steady-state updates allocate nothing on the CPU path. Update blocks
// until the numbers of the step are final on CPU; on CUDA it enqueues, and Stats/Snapshot/Save synchronise.
#ifndef DATACOM_LEARNER_ALGORITHMS_ALGORITHM_H_
#define DATACOM_LEARNER_ALGORITHMS_ALGORITHM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/nn/named_array.h"

namespace datacom::learner {

// One member's numbers (proto Hyper, same names and defaults).
struct MemberHyper {
  uint64_t seed = 0;
  bool delta_fixed = false;  // delta = init_delta, bypassing softplus and update (learner/algorithms/README.md 5.5)
#define DATACOM_HYPER(name, value) double name = value;
#include "learner/algorithms/hyper.inc"
#undef DATACOM_HYPER
};

struct AlgorithmConfig {
  std::string algorithm;
  std::vector<MemberHyper> members;  // M of them
  uint64_t run_seed = 0;             // keys initialisation together with the member's seed
  int obs_dim = 0, action_dim = 0, q_dim = 0, x_dim = 0;
  std::vector<double> action_low, action_high;  // [action_dim]
  std::vector<std::string> known;               // rows of the task's known constraints joined to the learned one
  int horizon = 0;
  std::vector<int> actor_hidden{128, 128}, critic_hidden{128, 128}, constraint_hidden{128, 128};
  int batch_size = 64, failure_batch_size = 6;
  int quantiles = 0;            // levels drawn a row by algorithms of quantiles (QuantilesOf), else 0
  int quantile_embedding = 64;  // cosines of a level
  double discount = 0.99, tau = 0.001;
  int policy_delay = 2;          // TD3: updates of the critics for each of the actor
  uint64_t policy_warmup = 0;    // TD3: updates before critics and actor learn
  std::string device = "cpu";    // or "cuda"
  std::string kernels = "auto";  // "fused" (CPU), "tensor" (plain tensor operations, any device), "auto" by device
};

// Control-affine features of M x B states, float64 except z. All row-major.
struct ControlAffineBatch {
  std::vector<float> z;       // [M, B, q + x]  constraint state, the constraint net's input
  std::vector<double> f;      // [M, B, q]
  std::vector<double> G;      // [M, B, q, action]
  std::vector<double> x_dot;  // [M, B, x]
  std::vector<double> known;  // [M, B, known rows, action + 2]: records of common/safety/safe_map.h
  void Resize(int members, int batch, const AlgorithmConfig& config);
};

// Everything one update of all members reads, noise included. Host memory, reused from update to update.
struct Batch {
  std::vector<float> observation, action, reward, cost, next_observation,
      absorbing;                     // [M, B, d]; cost raw; absorbing 0/1
  std::vector<float> previous_cost;  // [M, B] raw; 0 where no rule stores it
  ControlAffineBatch now, next;      // of observation, next_observation
  std::vector<float> failure_z, failure_next_z, failure_cost, failure_absorbing;  // [M, F, d]
  std::vector<float> failure_weight;           // [M] 1 where the member has a failure batch, else 0
  std::vector<float> noise_actor, noise_next;  // [M, B, action] standard normal
  std::vector<float> level, next_level;  // [M, B + F, quantiles] uniform in [0, 1]: of values and of their targets
  void Resize(const AlgorithmConfig& config);
};

// Over the updates since the last ResetStats; NaN where an algorithm has no such thing. All [M].
struct Stats {
  std::vector<double> policy_loss, critic_loss, constraint_loss, constraint_mean, entropy;  // means
  // Of the critics at the stored actions: mean of both, the smallest value of any row, mean |Q0 - Q1|.
  std::vector<double> q_mean, q_min, q_gap;
  // Means of the Euclidean norms of what the optimisers of a group of nets were given.
  std::vector<double> actor_gradient_norm, critic_gradient_norm, constraint_gradient_norm;
  std::vector<double> alpha, delta, multiplier;  // current
  std::vector<uint64_t> delta_steps;             // optimiser steps delta has taken
  std::vector<uint8_t> diverged;                 // 1: a loss or a gradient was not finite; the member is frozen since
};

// Named raw bytes: everything needed to continue bit-identically (parameters, targets, optimiser, delta, counters,
// statistics).
using State = std::map<std::string, std::string>;

// What a snapshot carries (common/nn/snapshot.h names), one member.
struct ActingParameters {
  std::vector<NamedArray> arrays;
  std::map<std::string, double, std::less<>> scalars;
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual void Update(const Batch& batch) = 0;
  // The part of Update that fits value functions, critics and feasibility, with their targets: policy, temperature,
  // multiplier and delta stay as they are, and so does what is known of their optimisers. Batch as Update's, but that
  // noise_actor is not read.
  virtual void Pretrain(const Batch& batch);  // throws std::invalid_argument where the algorithm cannot
  // A finished episode of one member: one step of delta (learner/algorithms/README.md 5.4). z: [length + 1, q + x]
  // float32, costs: [length + 1] raw with costs[0] = 0. Algorithms without delta ignore it.
  virtual void ApplyEpisode(int member, int length, const float* z, const float* costs) {}
  virtual Stats GetStats() const = 0;
  virtual void ResetStats() = 0;
  virtual ActingParameters GetActingParameters(int member) const = 0;
  virtual State Save() const = 0;
  virtual void Load(const State& state) = 0;  // throws std::invalid_argument naming the entry; then nothing changed
  virtual std::string acting_rule() const = 0;
  virtual bool needs_dynamics() const = 0;  // whether Batch.now/next/failure are read
};

// Throws std::invalid_argument naming the algorithm and those that exist.
std::unique_ptr<Algorithm> MakeAlgorithm(const AlgorithmConfig& config);
std::vector<std::string> AlgorithmNames();
int QuantilesOf(const std::string& algorithm);  // AlgorithmConfig::quantiles as the algorithm is defined

// What computes on the CPU, e.g. "avx512, products by libxsmm 1.17 avx512". Throws std::invalid_argument where
// DATACOM_ISA names what there is not.
std::string CpuArithmetic();
std::string TorchVersion();  // of the LibTorch that an algorithm has loaded; empty where none has
// Before anything that must not happen twice: where products are OpenBLAS's and it chose kernels for another
// instruction set, starts the program again with the right ones. Throws as CpuArithmetic.
void PrepareCpu(char** argv);

// Raw network access for tests: names as in golden files' spirit ("actor.mean.0.weight", "critic.0.1.bias",
// "target_critic.1.2.weight", "constraint.mean.0.weight", "target_constraint...", "log_alpha", "delta_raw",
// "multiplier_raw"),
// [in, out] row-major weights; also gradients of the last Update with prefix "grad."
// (on the fused path of the last member alone).
std::vector<float> GetArray(const Algorithm& algorithm, int member, const std::string& name);
void SetArray(Algorithm* algorithm, int member, const std::string& name, const std::vector<float>& values);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_ALGORITHM_H_
