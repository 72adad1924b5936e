// Computes a whole D-ATACOM update (docs/algorithms.md 6) on the cart-pole by autograd in float64, in the
// form of the golden files. The learner core must compute the same. There is no x and one action; bounds are numbers.
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "common/safety/risk.h"
#include "gtest/gtest.h"
#include "learner/nn/named_stream.h"
#include "tests/learner/algorithms/golden.h"

namespace datacom::learner {
namespace {

using nlohmann::json;
using torch::Tensor;

constexpr int kRows = 20, kFailures = 2, kLength = 7;
constexpr double kDiscount = 0.99, kTau = 0.001, kRate = 5e-4, kDeltaRate = 0.05, kGain = 25, kBeta = 3, kEntropy = -1;
constexpr double kRisk = 0.9, kBudget = 1;
constexpr int kHorizon = 50;

json AsJson(const Tensor& x) {
  if (x.dim() == 0) return x.item<double>();
  json list = json::array();
  for (int64_t i = 0; i < x.size(0); ++i) list.push_back(AsJson(x[i]));
  return list;
}

struct Net {
  std::vector<std::string> names;  // "0.weight", "0.bias", "2.weight", ..
  std::vector<Tensor> arrays;      // weights [out, in]
  bool relu = true;

  Tensor operator()(Tensor x) const {
    for (size_t i = 0; i < arrays.size(); i += 2) {
      x = torch::matmul(x, arrays[i].t()) + arrays[i + 1];
      if (i + 2 < arrays.size()) x = relu ? torch::relu(x) : torch::sigmoid(x);
    }
    return x;
  }
};

// PyTorch's Adam on a list of leaves.
struct AdamOf {
  std::vector<Tensor> first, second;
  int step = 0;
  void Step(const std::vector<Tensor>& leaves, const std::vector<Tensor>& gradients, double rate) {
    const torch::NoGradGuard no_grad;
    ++step;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (first.size() <= i)
        first.push_back(torch::zeros_like(leaves[i])), second.push_back(torch::zeros_like(leaves[i]));
      first[i] = 0.9 * first[i] + 0.1 * gradients[i];
      second[i] = 0.999 * second[i] + 0.001 * gradients[i] * gradients[i];
      const Tensor root = torch::sqrt(second[i] / (1 - std::pow(0.999, step)));
      leaves[i].sub_(rate * first[i] / (1 - std::pow(0.9, step)) / (root + 1e-8));
    }
  }
};

class Reference {
 public:
  explicit Reference(bool priced) : priced_(priced) {
    for (const char* name : {"actor_mu", "actor_sigma"}) nets_[name] = NewNet({5, 8, 8, 1}, true, 1);
    for (const char* name : {"critic0", "critic1"}) nets_[name] = NewNet({6, 8, 8, 1}, true, 1);
    for (const char* name : {"mu", "sigma"}) nets_[name] = NewNet({4, 8, 8, 1}, false, 3);
    if (priced) {
      targets_.emplace_back("cost");
      nets_["cost"] = NewNet({6, 8, 8, 1}, true, 1);
    }
    for (const std::string& name : targets_) {
      nets_["target_" + name] = nets_[name];
      for (Tensor& array : nets_["target_" + name].arrays) array = array.detach().clone();
    }
    log_alpha_ = torch::zeros({}, torch::kDouble).requires_grad_();
    delta_raw_ = torch::full({}, 0.55, torch::kDouble).requires_grad_();
  }

  json Record(int updates) {
    json golden = {{"kind", "cartpole"}};
    golden["config"] = {{"gamma", kDiscount},
                        {"horizon", kHorizon},
                        {"tau", kTau},
                        {"lr", kRate},
                        {"lr_alpha", kRate},
                        {"hidden", {8, 8}},
                        {"accepted_risk", kRisk},
                        {"cost_budget", kBudget},
                        {"atacom_lam", kGain},
                        {"atacom_beta", kBeta},
                        {"init_delta", 0.55},
                        {"lr_delta", kDeltaRate},
                        {"target_entropy", kEntropy},
                        {"action_low", -1.0},
                        {"action_high", {1.0}}};
    golden["params_before_first_update"] = Parameters();
    for (int i = 0; i < updates; ++i) golden["updates"].push_back(Update(i == 1));
    return golden;
  }

 private:
  struct Features {
    Tensor z, f, G;  // [rows, 4] each
  };
  struct Sample {
    Tensor action, log_pi;
  };

  Tensor Uniform(const std::vector<int64_t>& shape, double low, double high) {
    const Tensor values = torch::zeros(shape, torch::kFloat);
    for (int64_t i = 0; i < values.numel(); ++i) {
      values.data_ptr<float>()[i] = static_cast<float>(stream_.Uniform(low, high));
    }
    return values.to(torch::kDouble);
  }
  Net NewNet(const std::vector<int64_t>& widths, bool relu, double scale) {
    Net net;
    net.relu = relu;
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      const double bound = scale / std::sqrt(static_cast<double>(widths[i]));
      net.names.push_back(std::to_string(2 * i) + ".weight");
      net.names.push_back(std::to_string(2 * i) + ".bias");
      net.arrays.push_back(Uniform({widths[i + 1], widths[i]}, -bound, bound).requires_grad_());
      net.arrays.push_back(Uniform({widths[i + 1]}, -bound, bound).requires_grad_());
    }
    return net;
  }
  // [position, sin, cos, velocity, rate] of the cart-pole.
  Tensor States(int rows) {
    const Tensor angle = Uniform({rows, 1}, -3, 3);
    const Tensor state =
        torch::cat({Uniform({rows, 1}, -1, 1), torch::sin(angle), torch::cos(angle), Uniform({rows, 2}, -1, 1)}, 1);
    return state.to(torch::kFloat).to(torch::kDouble);
  }
  // The control-affine model of common/tasks/cartpole: M(theta) [v', w'] = force, by a linear solve.
  static Features FeaturesOf(const Tensor& state) {
    const double cart = 0.1, pole = 0.1, l = 0.5, g = 9.81, u = 1.9, inertia = 0.009424592767295598;
    Features features{torch::zeros({state.size(0), 4}, torch::kDouble), {}, {}};
    features.f = torch::zeros_like(features.z), features.G = torch::zeros_like(features.z);
    for (int64_t r = 0; r < state.size(0); ++r) {
      const auto at = [&](int c) { return state[r][c].item<double>(); };
      const double angle = std::atan2(at(1), at(2));
      const double row[4] = {at(0), angle, at(3), at(4)};
      const double coupling = pole * l * std::cos(angle);
      const Tensor mass = torch::tensor({cart + pole, coupling, coupling, pole * l * l + inertia}, torch::kDouble);
      const Tensor force =
          torch::tensor({pole * l * at(4) * at(4) * std::sin(angle), pole * g * l * std::sin(angle)}, torch::kDouble);
      const Tensor inverse = torch::inverse(mass.view({2, 2}));
      for (int c = 0; c < 4; ++c) features.z[r][c] = row[c];
      features.f[r][0] = at(3), features.f[r][1] = at(4);
      features.f[r].narrow(0, 2, 2).copy_(torch::matmul(inverse, force));
      features.G[r].narrow(0, 2, 2).copy_(inverse.select(1, 0) * u);
    }
    return features;
  }
  Tensor Cvar(const Tensor& z) const {
    const Tensor std = torch::exp(torch::clamp(nets_.at("sigma")(z), -20, 2));
    return torch::softplus(nets_.at("mu")(z)) + GaussianRiskMargin(kRisk) * std;
  }
  Tensor DeltaValue() const { return torch::softplus(delta_raw_).detach(); }

  Sample Act(const Tensor& state, const Tensor& noise) const {
    const Tensor log_std = torch::clamp(nets_.at("actor_sigma")(state), -20, 2);
    const Tensor u = torch::tanh(nets_.at("actor_mu")(state) + torch::exp(log_std) * noise);
    const Tensor density = -0.5 * noise * noise - log_std - 0.5 * std::log(2 * std::acos(-1.0));
    return {u, density - torch::log(1 - u * u + 1e-6)};  // one action: nothing to sum
  }
  // docs/safe_map.md 2.4 for one constraint and one action; constants in everything but u.
  static Sample Map(const Sample& sample, const Features& at, const Tensor& k, const Tensor& J) {
    const Tensor mu = torch::clamp_min(-k, 1e-5);
    const Tensor slack = torch::clamp_max(torch::expm1(kBeta * mu), 1e5 - 1);
    const Tensor g = (J * at.G).sum(1, true), norm = torch::sqrt(g * g + slack * slack);
    const Tensor rest = torch::clamp_min((J * at.f).sum(1, true), 0) + kGain * (k + mu);
    const Tensor j = g / norm, j_s = slack / norm;
    const Tensor action = sample.action - j * (j * sample.action / (1 + j_s) + rest / norm);
    const Tensor log_det = torch::clamp_min(torch::log(j_s + 1e-4), kEntropy);
    return {action / torch::clamp_min(action.abs(), 1).detach(), sample.log_pi - log_det};
  }
  static Tensor Both(const Tensor& a, const Tensor& b) { return torch::cat({a, b}, 1); }

  std::vector<Tensor> Leaves(const std::vector<std::string>& names) const {
    std::vector<Tensor> leaves;
    for (const std::string& name : names) {
      const auto& arrays = nets_.at(name).arrays;
      leaves.insert(leaves.end(), arrays.begin(), arrays.end());
    }
    return leaves;
  }
  // One optimiser step on the loss; the gradients with the names of the golden files.
  json Step(const Tensor& loss, const std::vector<std::string>& names, const std::vector<std::string>& prefixes) {
    const std::vector<Tensor> leaves = Leaves(names), gradients = torch::autograd::grad({loss}, leaves, {}, true);
    adam_[names[0]].Step(leaves, gradients, kRate);
    json record;
    size_t next = 0;
    for (size_t n = 0; n < names.size(); ++n) {
      for (const std::string& array : nets_.at(names[n]).names) record[prefixes[n] + array] = AsJson(gradients[next++]);
    }
    return record;
  }
  double StepScalar(const Tensor& loss, const Tensor& leaf, const std::string& name, double rate) {
    const Tensor gradient = torch::autograd::grad({loss}, {leaf})[0];
    adam_[name].Step({leaf}, {gradient}, rate);
    return gradient.item<double>();
  }
  json Parameters() const {
    json record;
    const auto add = [&](const char* group, const std::string& net, const std::string& prefix) {
      const Net& from = nets_.at(net);
      for (size_t i = 0; i < from.arrays.size(); ++i) record[group][prefix + from.names[i]] = AsJson(from.arrays[i]);
    };
    for (const char* net : {"actor_mu", "actor_sigma", "critic0", "critic1", "target_critic0", "target_critic1"}) {
      add(net, net, "trunk.");
    }
    add("fvf", "mu", "_mu_net."), add("fvf", "sigma", "_sigma_net.");
    add("target_fvf", "target_mu", "_mu_net."), add("target_fvf", "target_sigma", "_sigma_net.");
    if (priced_) add("constraint", "cost", "trunk."), add("target_constraint", "target_cost", "trunk.");
    if (priced_) record["multiplier"] = multiplier_;
    record["log_alpha"] = log_alpha_.item<double>();
    record["delta_raw"] = delta_raw_.item<double>();
    return record;
  }

  // docs/algorithms.md 5.4.
  void StepDelta(json* update) {
    const Tensor states = States(kLength + 1);
    const Tensor costs = Uniform({kLength + 1}, -0.5, 1);
    costs[0] = 0;
    (*update)["delta_update"] = {{"episode_states", AsJson(states)}, {"episode_costs", AsJson(costs)}};
    if (priced_) StepMultiplier(torch::clamp_min(costs, 0).sum().item<double>());
    Tensor to_go = torch::zeros({kLength + 1}, torch::kDouble);
    for (int i = kLength; i >= 0; --i) {
      to_go[i] = torch::clamp_min(costs[i], 0);
      if (i < kLength) to_go[i] += kDiscount * to_go[i + 1];
    }
    const Tensor cvar = Cvar(FeaturesOf(states).z).detach().view({-1});
    const Tensor error = to_go - DiscountedBudget(kBudget, kHorizon, kDiscount) - (cvar - torch::softplus(delta_raw_));
    const Tensor loss = torch::smooth_l1_loss(error, torch::zeros_like(error));
    (*update)["grads"]["delta"]["delta_raw"] = StepScalar(loss, delta_raw_, "delta", kDeltaRate);
  }

  // docs/algorithms.md 6.1, after the silent episodes with n = 1, J = 1 and I = 0.3, with the default gains.
  void StepMultiplier(double total) {
    const double share = static_cast<double>(kLength) / kHorizon, weight = (1 - 0.1 * share) + 0.1;
    const double cost = 1 + 0.1 / weight * (total - 1), error = std::clamp((cost - kBudget) / kBudget, -1.0, 1.0);
    const double integral = std::clamp(0.3 + 0.005 * share * error, 0.0, 0.5);
    multiplier_ = std::min(1.0, cost / kBudget) * std::clamp(0.1 * error + integral, 0.0, 0.5);
  }
  // The discounted cost of the actions with a weight that is a constant, so that its gradient has the multiplier's
  // share of the size of the value's.
  Tensor PricedCost(const Tensor& state, const Tensor& action, const Tensor& value) const {
    const Tensor cost = nets_.at("cost")(Both(state, action));
    const auto size = [&action](const Tensor& of) {
      return torch::autograd::grad({of.sum()}, {action}, {}, /*retain_graph=*/true)[0].abs().sum();
    };
    return multiplier_ * size(value) / size(cost) * cost;
  }

  json StepCost(const Tensor& stored, const Tensor& next, const Tensor& cost, const Tensor& absorbing) {
    const Tensor ahead = kDiscount * (1 - absorbing.view({-1, 1})) * nets_.at("target_cost")(next);
    const Tensor target = (torch::clamp_min(cost.view({-1, 1}), 0) + ahead).detach();
    return Step((nets_.at("cost")(stored) - target).pow(2).mean(), {"cost"}, {"trunk."});
  }

  // docs/algorithms.md 3: fit to the Gaussian of the next state's target.
  Tensor ConstraintLoss(const Tensor& z, const Tensor& next_z, const Tensor& signed_cost,
                        const Tensor& absorbing) const {
    const Tensor value = torch::softplus(nets_.at("mu")(z)), std = torch::exp(nets_.at("sigma")(z));
    const Tensor next = torch::softplus(nets_.at("target_mu")(next_z)).detach();
    const Tensor next_std = torch::exp(nets_.at("target_sigma")(next_z)).detach();
    const Tensor cost = torch::clamp_min(signed_cost, 0), ends = absorbing.ne(0), held = value.detach();
    const Tensor y = torch::where(ends, cost, cost + kDiscount * next);
    const Tensor second =
        cost * cost + 2 * kDiscount * cost * next + kDiscount * kDiscount * (next_std * next_std + next * next);
    const Tensor variance = torch::where(ends, (cost - held).pow(2), torch::clamp(second - held * held, 1e-4, 1e8));
    return ((value - y).pow(2) + (std - torch::sqrt(variance)).pow(2)).mean();
  }

  void MoveTargets() {
    const torch::NoGradGuard no_grad;
    for (const std::string& name : targets_) {
      std::vector<Tensor>& targets = nets_["target_" + name].arrays;
      for (size_t i = 0; i < targets.size(); ++i) targets[i].mul_(1 - kTau).add_(kTau * nets_[name].arrays[i]);
    }
  }

  json Update(bool with_episode) {
    json update;
    if (with_episode) StepDelta(&update);
    const Tensor state = States(kRows), next_state = States(kRows), stored = Uniform({kRows, 1}, -1, 1);
    const Tensor reward = Uniform({kRows}, -1, 1), cost = Uniform({kRows}, -1, 1);
    const Tensor absorbing = Uniform({kRows}, 0, 1).gt(0.8).to(torch::kDouble);
    const Tensor noise = Uniform({kRows, 1}, -1.7, 1.7), next_noise = Uniform({kRows, 1}, -1.7, 1.7);
    const Tensor bad = States(kFailures), bad_next = States(kFailures), bad_cost = Uniform({kFailures}, 0, 1);
    const Tensor bad_absorbing = torch::tensor({0.0, 1.0}, torch::kDouble);
    update["batch"] = {{"state", AsJson(state)},   {"action", AsJson(stored)},
                       {"reward", AsJson(reward)}, {"next_state", AsJson(next_state)},
                       {"cost", AsJson(cost)},     {"absorbing", AsJson(absorbing)}};
    update["violation_batch"] = {{"state", AsJson(bad)},
                                 {"next_state", AsJson(bad_next)},
                                 {"cost", AsJson(bad_cost)},
                                 {"absorbing", AsJson(bad_absorbing)}};
    update["noise_actor"] = AsJson(noise);
    update["noise_next"] = AsJson(next_noise);

    const Features now = FeaturesOf(state), next = FeaturesOf(next_state);
    const Tensor z = now.z.clone().requires_grad_(), next_z = next.z.clone().requires_grad_();
    const Tensor k = Cvar(z) - DeltaValue(), k_next = Cvar(next_z) - DeltaValue();
    const Tensor J = torch::autograd::grad({k.sum()}, {z})[0],
                 J_next = torch::autograd::grad({k_next.sum()}, {next_z})[0];
    json& gradients = update["grads"];

    const Sample mapped = Map(Act(state, noise), now, k.detach(), J);
    const Tensor q =
        torch::min(nets_["critic0"](Both(state, mapped.action)), nets_["critic1"](Both(state, mapped.action)));
    const Tensor actor_loss = (log_alpha_.exp().detach() * mapped.log_pi - q).mean();
    update["actor_loss"] = actor_loss.item<double>();
    const Tensor priced = multiplier_ > 0 ? actor_loss + PricedCost(state, mapped.action, q).mean() : actor_loss;
    gradients["actor"] = Step(priced, {"actor_mu", "actor_sigma"}, {"mu.trunk.", "sigma.trunk."});
    const Tensor alpha_loss = -(log_alpha_.exp() * (mapped.log_pi.detach() + kEntropy)).mean();
    gradients["alpha"]["log_alpha"] = StepScalar(alpha_loss, log_alpha_, "alpha", kRate);

    const Sample future = Map(Act(next_state, next_noise), next, k_next.detach(), J_next);
    const Tensor input = Both(next_state, future.action);
    const Tensor soft =
        torch::min(nets_["target_critic0"](input), nets_["target_critic1"](input)) - log_alpha_.exp() * future.log_pi;
    const Tensor y = (reward.view({-1, 1}) + kDiscount * (1 - absorbing.view({-1, 1})) * soft).detach();
    for (const char* critic : {"critic0", "critic1"}) {
      const Tensor loss = (nets_[critic](Both(state, stored)) - y).pow(2).mean();
      update["critic_loss"].push_back(loss.item<double>());
      gradients[critic] = Step(loss, {critic}, {"trunk."});
    }
    if (priced_) gradients["constraint"] = StepCost(Both(state, stored), input, cost, absorbing);
    const auto rows = [](const Tensor& main, const Tensor& failures) {
      return torch::cat({main, failures}).view({-1, 1});
    };
    const Tensor loss =
        ConstraintLoss(torch::cat({now.z, FeaturesOf(bad).z}), torch::cat({next.z, FeaturesOf(bad_next).z}),
                       rows(cost, bad_cost), rows(absorbing, bad_absorbing));
    update["fvf_loss"] = loss.item<double>();
    gradients["fvf"] = Step(loss, {"mu", "sigma"}, {"_mu_net.", "_sigma_net."});
    MoveTargets();
    update["params_after"] = Parameters();
    return update;
  }

  const bool priced_;
  double multiplier_ = priced_ ? 0.3 : 0;
  std::vector<std::string> targets_{"critic0", "critic1", "mu", "sigma"};
  NamedStream stream_{17};
  std::map<std::string, Net> nets_;
  std::map<std::string, AdamOf> adam_;
  Tensor log_alpha_, delta_raw_;
};

class CartPoleUpdate : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(All, CartPoleUpdate, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Priced" : "Plain"; });

TEST_P(CartPoleUpdate, EqualsAutogradInDoublePrecision) {
  const json golden = Reference(GetParam()).Record(/*updates=*/3);
  for (const char* kernels : {"fused", "tensor"}) {
    for (const int members : {1, 4}) {
      const GoldenReport report = CheckUpdates(golden, kernels, members);
      EXPECT_GT(report.checks, 200);
      for (size_t i = 0; i < report.failures.size() && i < 10; ++i) ADD_FAILURE() << report.failures[i];
    }
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
