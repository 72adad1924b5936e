#include "tests/learner/algorithms/golden.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "tests/learner/algorithms/arrays.h"
#include "tests/learner/test_device.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom::learner {

using ::datacom::testing::LargerOrNan;
using nlohmann::json;

std::vector<float> Floats(const json& nested) {
  std::vector<float> values;
  if (nested.is_array()) {
    for (const json& entry : nested) {
      const std::vector<float> part = Floats(entry);
      values.insert(values.end(), part.begin(), part.end());
    }
  } else if (nested.is_boolean()) {
    values.push_back(nested.get<bool>() ? 1.0f : 0.0f);
  } else {
    values.push_back(static_cast<float>(nested.get<double>()));
  }
  return values;
}

std::vector<float> AsStored(const json& array) {
  std::vector<float> values = Floats(array);
  if (!array.is_array() || array.empty() || !array[0].is_array()) return values;
  const size_t out = array.size(), in = array[0].size();
  std::vector<float> transposed(values.size());
  for (size_t o = 0; o < out; ++o) {
    for (size_t i = 0; i < in; ++i) transposed[i * out + o] = values[o * in + i];
  }
  return transposed;
}

namespace {

// Arrays of TD3's nets: "_h3.bias" -> "2.bias". "_h2_a.weight" are the second layer's weights for the action.
std::string Td3Array(const std::string& inner) {
  const std::string layer(1, static_cast<char>(inner[2] - 1));
  return layer + (inner == "_h2_a.weight" ? ".input_weight" : inner.substr(inner.rfind('.')));
}

// The released code calls three nets "constraint": a cost critic on [s, a], the implicit quantile network, and TD3's
// safety model.
std::string ConstraintNet(const std::string& inner, bool td3) {
  if (td3) return "safety_model";
  const std::pair<const char*, const char*> nets[] = {{"trunk", "cost_critic"},
                                                      {"_mu_net", "cost_critic.mean"},
                                                      {"_sigma_net", "cost_critic.std"},
                                                      {"base_net", "constraint.base"},
                                                      {"embedding_net", "constraint.embedding"},
                                                      {"quantile_net", "constraint.quantile"}};
  for (const auto& net : nets) {
    if (inner.rfind(net.first, 0) == 0) return net.second;
  }
  throw std::invalid_argument("no array of ours is the golden constraint." + inner);
}

// ("fvf", "_mu_net.2.weight") -> "constraint.mean.1.weight"; ("actor", "mu.trunk.0.bias") -> "actor.mean.0.bias".
std::string OurName(const std::string& group, const std::string& inner, bool td3) {
  if (inner.rfind("_h", 0) == 0) {
    const bool critic = group.find("critic") != std::string::npos;
    const std::string net = critic ? group.substr(0, group.size() - 1) + "." + group.back() : group;
    return net + "." + Td3Array(inner);
  }
  const bool sigma = group == "actor_sigma" || inner.find("sigma") != std::string::npos;
  std::string net;
  if (group == "actor_mu" || group == "actor_sigma" || group == "actor") net = sigma ? "actor.log_std" : "actor.mean";
  if (group == "fvf") net = sigma ? "constraint.log_std" : "constraint.mean";
  if (group == "target_fvf") net = sigma ? "target_constraint.log_std" : "target_constraint.mean";
  if (group == "constraint") net = ConstraintNet(inner, td3);
  if (group == "target_constraint") net = "target_" + ConstraintNet(inner, td3);
  if (group.find("critic") != std::string::npos) net = group.substr(0, group.size() - 1) + "." + group.back();
  const size_t dot = inner.rfind('.');
  const size_t before = inner.rfind('.', dot - 1);
  const int index = std::stoi(inner.substr(before == std::string::npos ? 0 : before + 1, dot)) / 2;
  return net + "." + std::to_string(index) + inner.substr(dot);
}

// Our name of a golden scalar, or empty.
std::string ScalarName(const std::string& golden) {
  if (golden == "log_alpha" || golden == "delta_raw" || golden == "multiplier") return golden;
  return golden == "beta_raw" ? "multiplier_raw" : "";
}

// Arrays of a golden parameter or gradient dictionary by our names, grouped by the golden group.
std::map<std::string, std::map<std::string, std::vector<float>>> Groups(const json& dictionary) {
  std::map<std::string, std::map<std::string, std::vector<float>>> groups;
  const bool td3 = dictionary.contains("critic0") && dictionary.at("critic0").contains("_h1.weight");
  for (const auto& group : dictionary.items()) {
    if (group.value().is_number()) {
      const std::string name = ScalarName(group.key());
      if (!name.empty()) groups[name][name] = Floats(group.value());
      continue;
    }
    for (const auto& array : group.value().items()) {
      const std::string scalar = ScalarName(array.key());
      groups[group.key()][scalar.empty() ? OurName(group.key(), array.key(), td3) : scalar] = AsStored(array.value());
    }
  }
  return groups;
}

std::string AlgorithmOf(const json& golden) {
  const std::string name = golden.value("alg", std::string("datacom"));
  const std::map<std::string, std::string> ours{
      {"lag", "lag_sac"}, {"wc", "wcsac"}, {"iqn", "iqn_datacom"}, {"safelayer", "safe_layer_td3"}};
  return ours.count(name) > 0 ? ours.at(name) : name;
}

// The control-affine system, or nothing if the algorithm uses none.
std::string SystemNameOf(const json& golden) {
  return golden.value("kind", AlgorithmOf(golden) == "iqn_datacom" ? std::string("toy2") : std::string());
}

// One number or a list.
std::vector<double> Bounds(const json& config, const char* name, int count, double otherwise) {
  if (!config.contains(name)) return std::vector<double>(count, otherwise);
  const std::vector<float> values = Floats(config.at(name));
  if (values.size() == 1) return std::vector<double>(count, values[0]);
  return std::vector<double>(values.begin(), values.end());
}

AlgorithmConfig ConfigOf(const json& golden, const std::string& kernels, int members, const std::string& precision) {
  const json& c = golden.at("config");
  AlgorithmConfig config;
  const json& batch = golden.at("updates")[0].at("batch");
  config.obs_dim = static_cast<int>(batch.at("state")[0].size());
  config.action_dim = static_cast<int>(batch.at("action")[0].size());
  v1::Hyper hyper;
  const double rate = c.at("lr");
  hyper.set_actor_lr(rate), hyper.set_critic_lr(rate), hyper.set_constraint_lr(rate);
  hyper.set_alpha_lr(c.value("lr_alpha", hyper.alpha_lr()));
  hyper.set_target_entropy(c.value("target_entropy", hyper.target_entropy()));
  hyper.set_target_noise(c.value("noise_std", hyper.target_noise()));
  hyper.set_target_noise_clip(c.value("noise_clip", hyper.target_noise_clip()));
  config.algorithm = AlgorithmOf(golden);
  if (!SystemNameOf(golden).empty()) {
    const GoldenSystem system = SystemOf(SystemNameOf(golden));
    config.q_dim = system.q, config.x_dim = system.x;
    hyper.set_accepted_risk(c.at("accepted_risk"));
    hyper.set_cost_budget(c.at("cost_budget"));
    hyper.set_atacom_gain(c.at("atacom_lam"));
    hyper.set_slack_beta(c.at("atacom_beta"));
    hyper.set_delta_lr(c.value("lr_delta", hyper.delta_lr()));
    hyper.set_init_delta(c.value("init_delta", hyper.init_delta()));
  }
  if (golden.at("params_before_first_update").contains("multiplier")) hyper.set_multiplier_mode("pi");
  if (c.contains("cost_limit")) {
    hyper.set_cost_budget(c.at("cost_limit"));
    hyper.set_multiplier_lr(c.at("lr_beta"));
    hyper.set_cost_damping(c.at("damp_scale"));
    hyper.set_accepted_risk(c.value("accepted_risk", hyper.accepted_risk()));
  }
  for (int m = 0; m < members; ++m) config.members.push_back({static_cast<uint64_t>(m), hyper});
  config.action_low = Bounds(c, "action_low", config.action_dim, -1);
  config.action_high = Bounds(c, "action_high", config.action_dim, 1);
  config.horizon = c.at("horizon");
  std::vector<uint32_t> hidden = c.at("hidden");
  config.network.mutable_actor_hidden()->Assign(hidden.begin(), hidden.end());
  config.network.mutable_critic_hidden()->Assign(hidden.begin(), hidden.end());
  if (c.contains("n_tau")) {
    config.quantiles = c.at("n_tau"), config.quantile_embedding = c.at("embedding");
    hidden.push_back(hidden.back());  // the released code's base net has three layers
  }
  config.network.mutable_constraint_hidden()->Assign(hidden.begin(), hidden.end());
  config.policy_delay = c.value("policy_delay", config.policy_delay);
  config.learner.set_batch_size(static_cast<int>(batch.at("state").size()));
  config.learner.set_failure_batch_size(BatchSize(config) / 10);
  config.learner.set_discount(c.at("gamma"));
  config.learner.set_tau(c.at("tau"));
  config.learner.set_kernels(kernels);
  config.learner.set_precision(precision);
  config.learner.set_device(TestDevice(kernels));
  return config;
}

void AppendFeatures(const std::string& kind, const json& states, ControlAffineBatch* to) {
  const GoldenSystem system = SystemOf(kind);
  for (const json& state : states) {
    std::vector<double> obs;
    for (float value : Floats(state)) obs.push_back(value);
    std::vector<float> z(system.q + system.x);
    std::vector<double> f(system.q), G(system.q * system.action), x_dot(system.x);
    Features(kind, obs.data(), z.data(), f.data(), G.data(), x_dot.data());
    to->z.insert(to->z.end(), z.begin(), z.end());
    to->f.insert(to->f.end(), f.begin(), f.end());
    to->G.insert(to->G.end(), G.begin(), G.end());
    to->x_dot.insert(to->x_dot.end(), x_dot.begin(), x_dot.end());
  }
}

// The update's batch for one member.
Batch BatchOf(const json& golden, const json& update, const AlgorithmConfig& config) {
  Batch batch;
  batch.Resize(config);
  const json& b = update.at("batch");
  batch.observation = Floats(b.at("state"));
  batch.action = Floats(b.at("action"));
  batch.reward = Floats(b.at("reward"));
  batch.next_observation = Floats(b.at("next_state"));
  batch.absorbing = Floats(b.at("absorbing"));
  if (b.contains("cost")) batch.cost = Floats(b.at("cost"));
  if (b.contains("prev_cost")) {  // the recorded smoothing noise is already scaled
    batch.columns = {Floats(b.at("prev_cost"))};
    batch.noise_next = Floats(update.at("extra_random")[0].at("value"));
    for (float& value : batch.noise_next) value /= static_cast<float>(config.members[0].hyper.target_noise());
    return batch;
  }
  batch.noise_actor = Floats(update.at("noise_actor"));
  batch.noise_next = Floats(update.at("noise_next"));
  if (config.q_dim == 0) return batch;
  if (config.quantiles > 0) {
    batch.next_level = Floats(update.at("extra_random")[0].at("value"));
    batch.level = Floats(update.at("extra_random")[1].at("value"));
  }
  const std::string kind = SystemNameOf(golden);
  batch.now = batch.next = ControlAffineBatch();
  AppendFeatures(kind, b.at("state"), &batch.now);
  AppendFeatures(kind, b.at("next_state"), &batch.next);
  const bool failures = update.contains("violation_batch") && update.at("violation_batch").is_object();
  batch.failure_weight.assign(1, failures ? 1.0f : 0.0f);
  if (!failures) return batch;
  const json& v = update.at("violation_batch");
  ControlAffineBatch now, next;
  AppendFeatures(kind, v.at("state"), &now);
  AppendFeatures(kind, v.at("next_state"), &next);
  batch.failure_z = now.z;
  batch.failure_next_z = next.z;
  batch.failure_cost = Floats(v.at("cost"));
  batch.failure_absorbing = Floats(v.at("absorbing"));
  return batch;
}

template <class T>
void Repeat(std::vector<T>* values, int members) {
  const std::vector<T> one = *values;
  for (int m = 1; m < members; ++m) values->insert(values->end(), one.begin(), one.end());
}

Batch Repeated(Batch batch, int members) {
  for (auto* values : {&batch.observation, &batch.action, &batch.reward, &batch.cost, &batch.next_observation,
                       &batch.absorbing, &batch.now.z, &batch.next.z, &batch.failure_z, &batch.failure_next_z,
                       &batch.failure_cost, &batch.failure_absorbing, &batch.failure_weight, &batch.noise_actor,
                       &batch.noise_next, &batch.level, &batch.next_level}) {
    Repeat(values, members);
  }
  for (std::vector<float>& column : batch.columns) Repeat(&column, members);
  for (auto* values : {&batch.now.f, &batch.now.G, &batch.now.x_dot, &batch.next.f, &batch.next.G, &batch.next.x_dot}) {
    Repeat(values, members);
  }
  return batch;
}

// Sets the golden start, perturbed by a few per cent if `perturbation` > 0.
void SetStart(Algorithm* algorithm, int member, int perturbation, const json& parameters) {
  for (const auto& group : Groups(parameters)) {
    for (const auto& array : group.second) {
      std::vector<float> values = array.second;
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] *= 1 + 0.05f * static_cast<float>(perturbation) * std::sin(static_cast<float>(i));
      }
      SetArray(algorithm, member, array.first, values);
    }
  }
}

void ApplyGoldenEpisode(Algorithm* algorithm, int members, const json& golden, const json& update) {
  if (!update.contains("delta_update") || !update.at("delta_update").is_object()) return;
  const json& episode = update.at("delta_update");
  ControlAffineBatch features;
  AppendFeatures(SystemNameOf(golden), episode.at("episode_states"), &features);
  const std::vector<float> costs = Floats(episode.at("episode_costs"));
  for (int m = 0; m < members; ++m) {
    algorithm->ApplyEpisodes({{m, static_cast<int>(costs.size()) - 1, features.z.data(), costs.data()}});
  }
}

// Golden gradients and ours are float32 sums over a batch. The worst array (a bias whose summands cancel) differs
// by 2.5e-5 of its largest entry, all others by at most 1e-5. The tolerance is 4 times the worst.
constexpr double kGradientTolerance = 1e-4;

// Compares one array's gradients relative to its largest entry, so that small layers count as much as large ones.
// `small` collects the entries that are so small that Adam turns their rounding errors into steps.
void CompareGradient(const std::vector<float>& ours, const std::vector<float>& golden, const std::string& label,
                     std::set<size_t>* small, GoldenReport* report) {
  report->Check(ours.size() == golden.size(), label + " has another size");
  if (ours.size() != golden.size()) return;
  double largest = 0, worst = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    largest = LargerOrNan(std::abs(static_cast<double>(golden[i])), largest);
    worst = LargerOrNan(std::abs(static_cast<double>(ours[i]) - golden[i]), worst);
  }
  for (size_t i = 0; i < golden.size(); ++i) {
    if (std::abs(golden[i]) < std::min(1e-6, 1e-2 * largest)) small->insert(i);
    const double size = golden[i], error = ours[i] - size;
    report->gradient_size += size * size, report->gradient_error += error * error;
  }
  const double relative = largest > 0 ? worst / largest : worst;
  report->worst_gradient = LargerOrNan(relative, report->worst_gradient);
  report->Check(relative <= kGradientTolerance, label + " is off by " + std::to_string(relative) + " of its largest");
}

// Compares one member's update with the golden record. small: per array, the entries whose gradient was ever small.
void CompareUpdate(const Algorithm& algorithm, int member, const json& update, const std::string& label,
                   std::map<std::string, std::set<size_t>>* small, GoldenReport* report) {
  for (const auto& group : Groups(update.at("grads"))) {
    for (const auto& array : group.second) {
      CompareGradient(GetArray(algorithm, member, "grad." + array.first), array.second,
                      label + ": gradient of " + array.first, &(*small)[array.first], report);
    }
  }
  for (const auto& group : Groups(update.at("params_after"))) {
    for (const auto& array : group.second) {
      const std::vector<float> ours = GetArray(algorithm, member, array.first);
      const std::set<size_t>& skipped = (*small)[array.first];
      report->Check(ours.size() == array.second.size() && skipped.size() < ours.size(),
                    label + ": parameters " + array.first + " have another size or none to compare");
      if (ours.size() != array.second.size()) continue;
      double worst = 0;
      for (size_t i = 0; i < ours.size(); ++i) {
        if (skipped.count(i) == 0) worst = LargerOrNan(std::abs(static_cast<double>(ours[i]) - array.second[i]), worst);
      }
      report->worst_parameter = LargerOrNan(worst, report->worst_parameter);
      report->Check(worst <= 2e-6,
                    label + ": parameters " + array.first + " are off by " + std::to_string(worst * 1e6) + "e-6");
    }
  }
}

void CompareLosses(const Stats& stats, int member, const json& update, const std::string& label, GoldenReport* report) {
  const auto close = [&](const char* name, double ours, double golden) {
    report->Check(std::abs(ours - golden) <= 1e-4 * (1 + std::abs(golden)),
                  label + ": " + name + " is " + std::to_string(ours) + ", golden " + std::to_string(golden));
  };
  if (update.contains("actor_loss") && update.at("actor_loss").is_number()) {
    close("actor loss", stats[member].policy_loss(), update.at("actor_loss"));
  } else {
    report->Check(std::isnan(stats[member].policy_loss()), label + ": the actor moved");
  }
  const json& critics = update.at("critic_loss");
  close("critic loss", stats[member].critic_loss(), (critics[0].get<double>() + critics[1].get<double>()) / 2);
  for (const char* name : {"fvf_loss", "constraint_loss"}) {
    if (update.contains(name)) close("constraint loss", stats[member].constraint_loss(), update.at(name));
  }
}

double LargestDifference(const Algorithm& a, int member_a, const Algorithm& b, int member_b, const json& parameters) {
  double worst = 0;
  for (const auto& group : Groups(parameters)) {
    for (const auto& array : group.second) {
      const std::vector<float> x = GetArray(a, member_a, array.first), y = GetArray(b, member_b, array.first);
      for (size_t i = 0; i < x.size(); ++i) worst = LargerOrNan(std::abs(static_cast<double>(x[i]) - y[i]), worst);
    }
  }
  return worst;
}

}  // namespace

void GoldenReport::Check(bool good, const std::string& sentence) {
  ++checks;
  if (!good) failures.push_back(sentence);
}

GoldenReport CheckUpdates(const json& golden, const std::string& kernels, int members, const std::string& precision) {
  GoldenReport report;
  const int member = members - 1;  // has the golden start: only the last member's gradients are kept
  const std::unique_ptr<Algorithm> population = MakeAlgorithm(ConfigOf(golden, kernels, members, precision));
  std::vector<std::unique_ptr<Algorithm>> solo;
  const AlgorithmConfig one = ConfigOf(golden, kernels, 1, precision);
  for (int m = 0; m < members; ++m) {
    SetStart(population.get(), m, m - member, golden.at("params_before_first_update"));
    if (members == 1) continue;
    solo.push_back(MakeAlgorithm(one));
    SetStart(solo.back().get(), 0, m - member, golden.at("params_before_first_update"));
  }
  std::map<std::string, std::set<size_t>> small;
  int number = 0;
  for (const json& update : golden.at("updates")) {
    const std::string label = kernels + ", " + std::to_string(members) + " members, update " + std::to_string(++number);
    const Batch batch = BatchOf(golden, update, one);
    population->ResetStats();
    ApplyGoldenEpisode(population.get(), members, golden, update);
    population->Update(Repeated(batch, members));
    CompareUpdate(*population, member, update, label, &small, &report);
    CompareLosses(population->GetStats(), member, update, label, &report);
    for (size_t m = 0; m < solo.size(); ++m) {
      ApplyGoldenEpisode(solo[m].get(), 1, golden, update);
      solo[m]->Update(batch);
      const double worst =
          LargestDifference(*population, static_cast<int>(m), *solo[m], 0, golden.at("params_before_first_update"));
      report.Check(worst <= (kernels == "fused" ? 0 : 1e-6),
                   label + ": member " + std::to_string(m) + " differs from its solo run by " + std::to_string(worst));
    }
  }
  return report;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
