#include "learner/algorithms/algorithm.h"

#include <stdexcept>
#include <utility>

#include "common/base/named_register.h"
#include "common/config/algorithms.h"
#include "common/safety/safe_map.h"
#include "learner/algorithms/register_algorithm.h"
#include "learner/algorithms/slices.h"
#include "learner/nn/cpu/gemm.h"
#include "learner/nn/cpu/instruction_set.h"
#include "learner/nn/kernels.h"
#include "learner/nn/torch_library.h"

namespace datacom::learner {

void ControlAffineBatch::Resize(int members, int batch, const AlgorithmConfig& config) {
  const size_t rows = static_cast<size_t>(members) * batch;
  z.resize(rows * (config.q_dim + config.x_dim));
  f.resize(rows * config.q_dim);
  G.resize(rows * config.q_dim * config.action_dim);
  x_dot.resize(rows * config.x_dim);
  known.resize(rows * config.known.size() * JoinedRowSize(config.action_dim));
}

void Algorithm::Pretrain(const Batch&) { throw std::invalid_argument("this algorithm cannot be pre-trained"); }

void Batch::Resize(const AlgorithmConfig& config) {
  const size_t members = config.members.size();
  const bool new_rows = config.epoch_rows > 0;
  const size_t rows = members * BatchRows(config);
  const size_t failures = new_rows ? 0 : members * FailureRows(config);
  const size_t z_dim = config.q_dim + config.x_dim;
  observation.resize(rows * config.obs_dim);
  action.resize(rows * config.action_dim);
  reward.resize(rows);
  cost.resize(rows);
  next_observation.resize(rows * config.obs_dim);
  absorbing.resize(rows);
  failure_weight.resize(members);
  last.resize(rows);
  columns.clear();
  for (const RuleColumn& column : ColumnsOf(config)) columns.emplace_back(rows * column.width);
  path_end.resize(new_rows ? rows : 0);
  const size_t others = new_rows ? 0 : rows;
  now.Resize(static_cast<int>(members), new_rows ? 0 : BatchSize(config), config);
  next.Resize(static_cast<int>(members), new_rows ? 0 : BatchSize(config), config);
  failure_z.resize(failures * z_dim);
  failure_next_z.resize(failures * z_dim);
  failure_cost.resize(failures);
  failure_absorbing.resize(failures);
  noise_actor.resize(others * config.action_dim);
  noise_next.resize(others * config.action_dim);
  const bool imitates = !new_rows && config.imitation.controller != nullptr;
  command.resize(imitates ? rows * config.action_dim : 0);
  imitation.resize(imitates ? members : 0);
  level.resize((others + failures) * config.quantiles);
  next_level.resize((others + failures) * config.quantiles);
}

namespace {

NamedRegister<AlgorithmEntry>& Registered() {
  static NamedRegister<AlgorithmEntry> registered("algorithm");
  return registered;
}

void Check(bool good, const std::string& message) {
  if (!good) throw std::invalid_argument(message);
}

void CheckConfig(const AlgorithmConfig& config) {
  const auto positive = [](const char* name, double value) {
    Check(value > 0, std::string(name) + " must be positive, not " + std::to_string(value));
  };
  positive("members", static_cast<double>(config.members.size()));
  positive("obs_dim", config.obs_dim);
  positive("action_dim", config.action_dim);
  positive("horizon", config.horizon);
  positive("batch_size", BatchSize(config));
  positive("policy_delay", config.policy_delay);
  Check(config.epoch_rows >= 0, "epoch_rows must not be negative");
  Check(config.x_dim >= 0 && config.q_dim >= 0, "q_dim and x_dim must not be negative");
  const std::pair<const char*, const google::protobuf::RepeatedField<uint32_t>*> nets[] = {
      {"actor_hidden", &config.network.actor_hidden()},
      {"critic_hidden", &config.network.critic_hidden()},
      {"constraint_hidden", &config.network.constraint_hidden()}};
  for (const auto& net : nets) {
    Check(!net.second->empty(), std::string(net.first) + " needs at least one layer");
    for (const uint32_t width : *net.second) positive(net.first, width);
  }
  for (const MemberConfig& member : config.members) {
    Check(member.hyper.accepted_risk() > 0 && member.hyper.accepted_risk() < 1,
          "accepted_risk must lie between 0 and 1, not " + std::to_string(member.hyper.accepted_risk()));
  }
  const size_t n = static_cast<size_t>(config.action_dim);
  Check(config.action_low.size() == n && config.action_high.size() == n,
        "action_low and action_high need " + std::to_string(n) + " entries, not " +
            std::to_string(config.action_low.size()) + " and " + std::to_string(config.action_high.size()));
}

}  // namespace

void AddAlgorithm(const std::string& name, const AlgorithmEntry& entry) { Registered().Add(name, entry); }

std::vector<RuleColumn> ColumnsOf(const AlgorithmConfig& config) {
  const AlgorithmEntry* const entry = Registered().Find(config.algorithm);
  return entry != nullptr ? entry->columns(config) : std::vector<RuleColumn>();
}

std::vector<std::string> RegisteredAlgorithms() { return Registered().Names(); }

std::string TorchVersion() { return LoadedTorchVersion(); }

std::string CpuArithmetic() { return NameOf(ChosenInstructionSet()); }

std::unique_ptr<Algorithm> MakeAlgorithm(const AlgorithmConfig& config) {
  const AlgorithmEntry* const entry = Registered().Find(config.algorithm);
  if (entry == nullptr) throw std::invalid_argument(std::string(Registered().Unknown(config.algorithm).message()));
  const AlgorithmInfo* const info = FindAlgorithm(config.algorithm);
  if (info == nullptr) {
    throw std::logic_error("algorithm '" + config.algorithm + "' is not in enum Algorithm of algorithm.proto");
  }
  CheckConfig(config);
  Check(!info->needs_dynamics || config.q_dim > 0, info->name + " needs a constraint state: q_dim is 0");
  Check(info->needs_dynamics || config.known.empty(),
        info->name + " learns no constraint, so known ones cannot be joined to it");
  const bool divided = config.team != nullptr && UsesCpuKernels(config.learner.kernels(), config.learner.device());
  try {
    if (divided) return std::make_unique<Slices>(config, entry->make);
    return entry->make(config);
  } catch (const MissingKernels& missing) {
    const bool cpu = UsesCpuKernels(config.learner.kernels(), config.learner.device());
    throw std::invalid_argument("algorithm '" + info->name + "' has no implementation for " +
                                (cpu ? "the CPU" : "LibTorch: use learner.device=cpu and learner.kernels=auto") +
                                " (missing: " + missing.what() + ")");
  }
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
