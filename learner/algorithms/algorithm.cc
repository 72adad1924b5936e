#include "learner/algorithms/algorithm.h"

#include <stdexcept>

namespace datacom::learner {

void ControlAffineBatch::Resize(int members, int batch, const AlgorithmConfig& config) {
  const size_t rows = static_cast<size_t>(members) * batch;
  z.resize(rows * (config.q_dim + config.x_dim));
  f.resize(rows * config.q_dim);
  G.resize(rows * config.q_dim * config.action_dim);
  x_dot.resize(rows * config.x_dim);
}

void Batch::Resize(const AlgorithmConfig& config) {
  const size_t members = config.members.size();
  const size_t rows = members * config.batch_size;
  const size_t failures = members * config.failure_batch_size;
  const size_t z_dim = config.q_dim + config.x_dim;
  observation.resize(rows * config.obs_dim);
  action.resize(rows * config.action_dim);
  reward.resize(rows);
  cost.resize(rows);
  next_observation.resize(rows * config.obs_dim);
  absorbing.resize(rows);
  now.Resize(static_cast<int>(members), config.batch_size, config);
  next.Resize(static_cast<int>(members), config.batch_size, config);
  failure_z.resize(failures * z_dim);
  failure_next_z.resize(failures * z_dim);
  failure_cost.resize(failures);
  failure_absorbing.resize(failures);
  failure_weight.resize(members);
  noise_actor.resize(rows * config.action_dim);
  noise_next.resize(rows * config.action_dim);
}

std::vector<std::string> AlgorithmNames() { return {}; }

std::unique_ptr<Algorithm> MakeAlgorithm(const AlgorithmConfig& config) {
  throw std::invalid_argument("no algorithm is called '" + config.algorithm + "'");
}

}  // namespace datacom::learner
