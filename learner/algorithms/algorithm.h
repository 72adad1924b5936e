// The interface between a learning algorithm and the rest of the learner: M members in stacked arrays, updated together
// from batches in host memory.
//
// Errors are exceptions: std::invalid_argument for a wrong configuration or state, naming the thing and the value, and
// LibTorch's exceptions. learner/checked_algorithm.h turns them into a Status. Not thread-safe: one thread calls it. A
// team divides the work of its calls; all numbers have the same bits as with one thread. An algorithm owns parameters,
// optimiser state and workspaces. On the CPU an update allocates nothing after the first (but each thread of a team
// allocates its scratch memory once) and blocks until its numbers are final. On CUDA it only enqueues; GetStats,
// GetActingParameters and Save wait for the device.
#ifndef DATACOM_LEARNER_ALGORITHMS_ALGORITHM_H_
#define DATACOM_LEARNER_ALGORITHMS_ALGORITHM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/team.h"
#include "common/metrics/statistics.h"
#include "common/nn/named_array.h"
#include "datacom/v1/algorithm.pb.h"

namespace datacom::learner {

struct MemberConfig {
  uint64_t seed = 0;
  v1::Hyper hyper;
};

// A controller whose commands the policy imitates (docs/algorithms.md 17). The decoder of batches calls it
// and knows until when; algorithms read Batch::command and Batch::imitation.
struct Imitation {
  // Writes the command [action_dim] for a whole row's observation, of which networks may see only the first obs_dim
  // numbers. Pure; thread-safe; allocates nothing. Null: no imitation.
  std::function<void(const double* observation, double* command)> controller;
  double weight = 0;
  uint64_t until_update = 0;  // later updates have the weight 0
};

struct AlgorithmConfig {
  std::string algorithm;
  std::vector<MemberConfig> members;  // M of them
  uint64_t run_seed = 0;              // keys initialisation together with the member's seed
  int obs_dim = 0, action_dim = 0, q_dim = 0, x_dim = 0;
  std::vector<double> action_low, action_high;  // [action_dim]
  std::vector<std::string> known;               // known constraints joined to the learned one
  int known_equalities = 0;                     // how many of them are equations; their records come last
  int horizon = 0;
  v1::Network network;         // resolved: it names all widths
  v1::LearnerOptions learner;  // its `kernels` may also be "fused"; device and threads: see `team`
  // On-policy algorithms: rows of one update per member, and updates of the whole run, over which the actor's rate
  // decays. For other algorithms epoch_rows is 0.
  int epoch_rows = 0;
  uint64_t epochs = 0;
  // safe_loop, whose epoch_rows are the rows of one update. It keeps the newest memory_rows rows.
  v1::Planning planning;
  int memory_rows = 200000;
  int quantiles = 0;            // levels drawn per row (AlgorithmInfo)
  int quantile_embedding = 64;  // cosines of a level
  Imitation imitation;          // SAC's family
  int policy_delay = 2;         // TD3: updates of the critics per update of the actor
  uint64_t policy_warmup = 0;   // TD3: updates before critics and actor learn
  std::shared_ptr<Team> team;   // divides the work of the CPU's kernels; null: one thread does it
  std::function<void()> alive;  // called now and then during an update that takes seconds, by any thread; may be null
  // Set only by slices.h: `members` are those of a larger population from `slice_first` on, and a batch has all of it.
  int slice_first = 0;
  std::vector<MemberConfig> population;  // all members of the larger one; empty: there is none
};

// All members of the population, also where the algorithm has a slice of them.
inline const std::vector<MemberConfig>& PopulationOf(const AlgorithmConfig& config) {
  return config.population.empty() ? config.members : config.population;
}

// Control-affine features of M x B states, float64 except z. All row-major.
struct ControlAffineBatch {
  std::vector<float> z;       // [M, B, q + x]  constraint state, the constraint net's input
  std::vector<double> f;      // [M, B, q]
  std::vector<double> G;      // [M, B, q, action]
  std::vector<double> x_dot;  // [M, B, x]
  std::vector<double> known;  // [M, B, known rows, action + 2]: records of common/safety/safe_map.h
  void Resize(int members, int batch, const AlgorithmConfig& config);
};

// Rows that nets see at once, of all rows and of failures.
inline int BatchSize(const AlgorithmConfig& config) { return static_cast<int>(config.learner.batch_size()); }
inline int FailureRows(const AlgorithmConfig& config) { return static_cast<int>(config.learner.failure_batch_size()); }

// Rows per member in a batch, B below.
inline int BatchRows(const AlgorithmConfig& config) {
  return config.epoch_rows > 0 ? config.epoch_rows : BatchSize(config);
}

// A column that an acting rule adds to rows, float32, and that draws send to the learner.
struct RuleColumn {
  std::string name;
  int width = 1;  // numbers per row
};
// The columns that the configuration's algorithm reads (Algorithm::Columns); none if it is not registered.
std::vector<RuleColumn> ColumnsOf(const AlgorithmConfig& config);

// Everything that one update of all members reads, including noise. Host memory, reused from update to update.
//
// The batch of an on-policy algorithm holds all rows of the member's epoch, made by the policy that the last update
// left: in the order of time, one lane after the other. It fills the columns of rows and path_end; the others stay
// empty. `action` is the policy's Gaussian sample, before it is scaled to the action box. A path is a lane's rows of
// one episode within the epoch. Its last row has path_end 1 and is of one of three kinds: terminated (absorbing 1), at
// the time limit, or cut by the end of the epoch (absorbing 0). Only the last row's next_observation counts, which is
// the final observation of the episode or the newest one of the lane; in other rows it must be finite.
//
// The batch of safe_loop has the rows since the last update, in the same order.
struct Batch {
  // Columns of rows, [M, B, d]. cost: raw; absorbing: 0/1; last: 0/1, terminated or at the time limit.
  std::vector<float> observation, action, reward, cost, next_observation, absorbing, last;
  std::vector<std::vector<float>> columns;  // [M, B, width] each, those of ColumnsOf
  ControlAffineBatch now, next;             // features of observation and next_observation
  std::vector<float> failure_z, failure_next_z, failure_cost, failure_absorbing;  // [M, F, d]
  std::vector<float> failure_weight;           // [M] 1 where the member has a failure batch, else 0
  std::vector<float> noise_actor, noise_next;  // [M, B, action] standard normal
  std::vector<float> level, next_level;        // [M, B + F, quantiles] uniform in [0, 1]
  std::vector<float> path_end;                 // [M, B] 0/1
  std::vector<float> command;                  // [M, B, action] of the controller to imitate; empty without one
  std::vector<double> imitation;               // [M] weight of the distance to `command`
  void Resize(const AlgorithmConfig& config);
};

// [M] statistics of the updates since the last ResetStats: of MemberEpoch only diverged, delta_steps and the statistics
// that come from updates (EpochStatistic::from_updates). NaN where an algorithm does not have the quantity.
using Stats = std::vector<v1::MemberEpoch>;

// Everything that is needed to continue with the same bits, as named raw bytes: parameters, targets, optimisers, delta,
// counters, statistics. An entry holds the members' bytes one after another, in equal parts, unless shared_entries()
// names it.
using State = std::map<std::string, std::string>;

// The content of a member's snapshot, in the form of its acting rule (common/acting/snapshot_form.h).
struct ActingParameters {
  std::vector<NamedArray> arrays;
  std::map<std::string, double, std::less<>> scalars;
};

// What an algorithm reads of an episode. z: [length + 1, q + x] float32, may be null where it is not read; costs:
// [length + 1] raw with costs[0] = 0.
struct EpisodeCosts {
  int member = 0, length = 0;
  const float *z = nullptr, *costs = nullptr;
};

class Algorithm {
 public:
  // The columns of its acting rule that the algorithm reads, in the order of Batch::columns. An algorithm that reads
  // some has a function of this name.
  static std::vector<RuleColumn> Columns(const AlgorithmConfig& /*config*/) { return {}; }
  virtual ~Algorithm() = default;
  virtual void Update(const Batch& batch) = 0;
  // The part of Update that fits value functions (critics, feasibility) and their targets. Policy, temperature,
  // multiplier, delta and their optimisers do not change. It takes the batch of Update; noise_actor is not read.
  virtual void Pretrain(const Batch& batch);  // throws std::invalid_argument if the algorithm cannot
  // The episodes that end between two updates, before the first update that sees their last rows; a member's own in
  // order. Algorithms with delta make a step of each (docs/algorithms.md 5.4). On-policy algorithms keep the sum of its
  // costs for their multiplier (18.4); they do not read z. The others ignore them.
  virtual void ApplyEpisodes(const std::vector<EpisodeCosts>& /*episodes*/) {}
  virtual Stats GetStats() const = 0;
  virtual void ResetStats() = 0;
  virtual std::vector<ActingParameters> GetActingParameters() const = 0;  // [M]
  virtual State Save() const = 0;
  virtual void Load(const State& state) = 0;  // throws std::invalid_argument naming the entry, and changes nothing
  // The entries of its State that hold one value of the whole population. Sorted.
  virtual std::vector<std::string> shared_entries() const { return {"signature"}; }
};

// Throws std::invalid_argument naming the unknown algorithm and those that exist, or what is wrong with the
// configuration.
std::unique_ptr<Algorithm> MakeAlgorithm(const AlgorithmConfig& config);
std::vector<std::string> RegisteredAlgorithms();  // names, sorted (register_algorithm.h)

// The instruction set of the kernels on the CPU, e.g. "avx512". Throws std::invalid_argument if DATACOM_ISA names one
// that does not exist or that the processor lacks.
std::string CpuArithmetic();
std::string TorchVersion();  // of the LibTorch that an algorithm has loaded, or empty

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_ALGORITHM_H_
// SPDX-License-Identifier: Apache-2.0
