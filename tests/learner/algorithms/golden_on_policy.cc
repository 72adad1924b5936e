// Golden cases of PPOLag and RCPO: the multiplier, the advantages, and one whole update.
#include <algorithm>
#include <cmath>
#include <memory>

#include "learner/algorithms/on_policy.h"
#include "learner/algorithms/on_policy_kernels.h"
#include "learner/algorithms/ppo_lag.h"
#include "learner/algorithms/rcpo.h"
#include "tests/learner/algorithms/arrays.h"
#include "tests/learner/algorithms/golden.h"
#include "tests/learner/test_device.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom::learner {
namespace {

using ::datacom::testing::LargerOrNan;
using nlohmann::json;

// Learns from recorded advantages and targets, which belong to no rewards.
template <class A>
class WithAdvantages : public A {
 public:
  WithAdvantages(const AlgorithmConfig& config, const json& data) : A(config), data_(data) {}

 protected:
  void EstimateAdvantages() override {
    Put("adv_r", this->reward_advantage_);
    Put("adv_c", this->cost_advantage_);
    Put("target_value_r", this->TargetOf(this->rows_));
    Put("target_value_c", this->CostTargetOf(this->rows_));
  }

 private:
  void Put(const char* name, const FloatView& column) {
    const std::vector<float> values = Floats(data_.at(name));
    for (int m = 0; m < column.members; ++m) this->kernels_->Upload(values.data(), column.Members(m, 1));
  }
  const json data_;
};

// "reward_critic.critic_0.2.weight" -> "critic.1.weight".
std::string OurName(std::string name) {
  const auto replace = [&name](const std::string& from, const std::string& to) {
    const size_t at = name.find(from);
    if (at != std::string::npos) name.replace(at, from.size(), to);
  };
  replace("reward_critic.critic_0", "critic");
  replace("cost_critic.critic_0", "cost_critic");
  replace(".2.", ".1.");
  replace(".4.", ".2.");
  return name;
}

AlgorithmConfig ConfigOf(const std::string& algorithm, const json& golden, const std::string& kernels, int members) {
  const json &c = golden.at("cfg"), &data = golden.at("data");
  AlgorithmConfig config;
  config.algorithm = algorithm;
  config.learner.set_kernels(kernels);
  config.learner.set_device(TestDevice(kernels));
  v1::Hyper hyper;
  const double rate = golden.at("lr");
  hyper.set_actor_lr(rate), hyper.set_critic_lr(rate), hyper.set_constraint_lr(rate);
  hyper.set_multiplier_lr(0.035);
  hyper.set_cost_budget(golden.at("cost_limit"));
  hyper.set_critic_decay(c.at("critic_norm_coef"));
  hyper.set_gradient_clip(c.at("max_grad_norm"));
  hyper.set_target_kl(c.at("target_kl"));
  hyper.set_clip_ratio(c.at("clip"));
  hyper.set_fisher_damping(c.at("cg_damping"));
  for (int m = 0; m < members; ++m) config.members.push_back({static_cast<uint64_t>(m), hyper});
  config.obs_dim = static_cast<int>(data.at("obs")[0].size());
  config.action_dim = static_cast<int>(data.at("act")[0].size());
  config.action_low.assign(config.action_dim, -1), config.action_high.assign(config.action_dim, 1);
  config.horizon = 100;
  config.network.mutable_actor_hidden()->Resize(2, 8);
  config.network.mutable_critic_hidden()->Resize(2, 8);
  config.epoch_rows = static_cast<int>(data.at("obs").size());
  config.learner.set_batch_size(c.at("batch_size"));
  config.learner.set_passes(c.at("update_iters"));
  config.epochs = 10;
  return config;
}

std::vector<float> Repeated(const std::vector<float>& one, int members) {
  std::vector<float> all;
  for (int m = 0; m < members; ++m) all.insert(all.end(), one.begin(), one.end());
  return all;
}

void CompareParameters(const Algorithm& algorithm, int member, const json& after, const std::string& label,
                       GoldenReport* report) {
  for (const auto& array : after.items()) {
    const std::vector<float> golden = AsStored(array.value());
    const std::vector<float> ours = GetArray(algorithm, member, OurName(array.key()));
    double worst = ours.size() == golden.size() ? 0 : 1;
    for (size_t i = 0; i < ours.size() && i < golden.size(); ++i) {
      worst = LargerOrNan(std::abs(static_cast<double>(ours[i]) - golden[i]), worst);
    }
    report->worst_parameter = LargerOrNan(worst, report->worst_parameter);
    report->Check(worst <= 1e-6, label + ": " + array.key() + " is off by " + std::to_string(worst * 1e6) + "e-6");
  }
}

}  // namespace

GoldenReport CheckEpochMultiplier(const json& cases) {
  GoldenReport report;
  for (const json& c : cases) {
    AlgorithmConfig config;
    config.members.resize(1);
    config.members[0].hyper.set_cost_budget(c.at("cost_limit"));
    config.members[0].hyper.set_multiplier_lr(c.at("lr"));
    CostMultiplier multiplier(config);
    multiplier.set_value(0, c.at("init"));
    int number = 0;
    for (const json& step : c.at("steps")) {
      const float cost = step.at("mean_episode_cost").get<float>();
      for (int i = 0; i < CostMultiplier::kWindow; ++i) multiplier.AddEpisode(0, 1, &cost);
      multiplier.Propose(0);
      multiplier.Keep(0);
      const double error = std::abs(multiplier.value(0) - step.at("multiplier_after").get<double>());
      report.worst_parameter = LargerOrNan(error, report.worst_parameter);
      report.Check(error <= 1e-6, "case " + c.at("id").dump() + ", step " + std::to_string(number++) + " is off by " +
                                      std::to_string(error * 1e6) + "e-6");
    }
  }
  return report;
}

GoldenReport CheckAdvantages(const json& golden, const std::string& kind) {
  GoldenReport report;
  const std::unique_ptr<Kernels> kernels = MakeKernels(kind, TestDevice(kind));
  OnPolicyKernels* const group = kernels->Group<OnPolicyKernels>();
  const int rows = static_cast<int>(golden.at("reward").size());
  const auto column = [&](const std::vector<float>& values) {
    const FloatView view = kernels->NewFloats(1, rows, 1);
    kernels->Upload(values.data(), view);
    return view;
  };
  const auto compare = [&](const FloatView& view, const char* name) {
    std::vector<float> ours(rows);
    kernels->Download(view, ours.data());
    const std::vector<float> wanted = Floats(golden.at(name));
    for (int r = 0; r < rows; ++r) {
      const double error = std::abs(static_cast<double>(ours[r]) - wanted[r]);
      report.worst_parameter = LargerOrNan(error, report.worst_parameter);
      report.Check(error <= 2e-6 * (1 + std::abs(wanted[r])), kind + ": " + name + " of row " + std::to_string(r));
    }
  };
  const DoubleView lambda = kernels->NewDoubles(1, 1, 1);
  const double lam = golden.at("lam");
  kernels->Upload(&lam, lambda);
  for (const bool cost : {false, true}) {
    const std::string kind_of = cost ? "c" : "r";
    std::vector<float> absorbing(rows), end(rows), next(rows);
    for (const json& path : golden.at("path_ends")) {
      const int at = path.at("index");
      end[at] = 1;
      absorbing[at] = path.at("kind") == "terminated" ? 1 : 0;
      next[at] = path.at("bootstrap_" + kind_of);
    }
    const FloatView advantage = column(next), target = column(next);
    group->Advantages({column(Floats(golden.at(cost ? "cost" : "reward"))), column(absorbing), column(end),
                       column(Floats(golden.at("value_" + kind_of))), column(next)},
                      /*least=*/cost ? 0 : -1e30, golden.at("gamma"), lambda, advantage, target);
    compare(advantage, cost ? "adv_c_raw" : "adv_r_raw");
    compare(target, cost ? "target_value_c" : "target_value_r");
    if (cost) {
      group->Centre(advantage);
    } else {
      group->Standardise(advantage);
    }
    compare(advantage, cost ? "adv_c" : "adv_r");
  }
  return report;
}

GoldenReport CheckEpochUpdate(const json& golden, const std::string& algorithm, const std::string& kernels,
                              int members) {
  GoldenReport report;
  const AlgorithmConfig config = ConfigOf(algorithm, golden, kernels, members);
  const json& data = golden.at("data");
  std::unique_ptr<Algorithm> population;
  if (algorithm == "ppo_lag") population = std::make_unique<WithAdvantages<PpoLag>>(config, data);
  if (algorithm == "rcpo") population = std::make_unique<WithAdvantages<Rcpo>>(config, data);
  const std::vector<float> costs{0, golden.at("mean_episode_cost").get<float>()};
  for (int m = 0; m < members; ++m) {
    for (const auto& array : golden.at("params_before").items()) {
      SetArray(population.get(), m, OurName(array.key()), AsStored(array.value()));
    }
    SetArray(population.get(), m, "multiplier", Floats(golden.at("multiplier_before")));
    population->ApplyEpisodes({{m, 1, nullptr, costs.data()}});
  }
  Batch batch;
  batch.Resize(config);
  batch.observation = Repeated(Floats(data.at("obs")), members);
  batch.action = Repeated(Floats(data.at("act")), members);
  batch.columns[0] = Repeated(Floats(data.at("logp")), members);
  population->Update(batch);
  const Stats stats = population->GetStats();
  for (int m = 0; m < members; ++m) {
    std::string label = algorithm;
    label.append(", ").append(kernels).append(", member ").append(std::to_string(m));
    CompareParameters(*population, m, golden.at("params_after"), label, &report);
    report.Check(std::abs(stats[m].multiplier() - golden.at("multiplier_after").get<double>()) <= 1e-6,
                 label + ": multiplier is " + std::to_string(stats[m].multiplier()));
    const json& log = golden.at("log");
    if (!log.contains("Misc/gradient_norm")) continue;
    const double norm = log.at("Misc/gradient_norm");
    report.Check(std::abs(stats[m].actor_gradient_norm() - norm) <= 1e-5 * norm,
                 label + ": norm of the policy's gradient is " + std::to_string(stats[m].actor_gradient_norm()));
  }
  return report;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
