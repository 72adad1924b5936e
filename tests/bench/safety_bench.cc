// CPU time of acting: the safe map alone, and the whole acting rule for a batch of environments.
//   safety/map: value in ns per state; floor is its limit, where it has one (ratio < 1).
//   acting:     value in ns per environment; floor is Eigen's matrix products of the rule's networks, forward and
//               backward, measured alternately. The rest is activations, model, map and bookkeeping.
//   acting/planner: value in ms per decision; floor is the products of its nets alone, by the code that the rule uses.
#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "Eigen/Core"
#include "benchmark/benchmark.h"
#include "common/acting/acting_rule.h"
#include "common/base/random.h"
#include "common/nn/multiply.h"
#include "common/safety/safe_map.h"
#include "datacom/v1/task_options.pb.h"
#include "tests/testing/snapshots.h"

namespace datacom {
namespace {

double CpuNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The time limit of the map with K constraints and n actions, in ns; 0 = none.
double LimitOf(int K, int n) {
  if (K == 1 && n == 3) return 1000;
  if (K == 17 && n == 3) return 15000;
  return 0;
}

// Map of K constraints, of which the last `equalities` are equations, and n actions: state part and one action. The
// cases vary, so that branches are not predicted.
void SafeMapOfCases(benchmark::State& state, int equalities) {
  const int K = static_cast<int>(state.range(0)), n = static_cast<int>(state.range(1));
  constexpr int kCases = 64;
  RandomStream random(StreamKey("bench.safe_map", {static_cast<uint64_t>(K), static_cast<uint64_t>(n)}));
  std::vector<double> k(kCases * K), J_G(kCases * K * n), drift(kCases * K), u(kCases * n), action(n);
  for (double& v : k) v = random.Uniform(-2, 0.2);
  for (std::vector<double>* values : {&J_G, &drift, &u}) {
    for (double& v : *values) v = random.Normal();
  }
  SafeMap map({K, n, 0, 0, equalities});
  int i = 0;
  const double start = CpuNanoseconds();
  for (auto _ : state) {
    map.Set(SafeMapReduced{&k[i * K], &J_G[i * K * n], &drift[i * K]}, {25, 3});
    benchmark::DoNotOptimize(map.Apply(&u[i * n], action.data()));
    i = (i + 1) % kCases;
  }
  state.counters["value"] = (CpuNanoseconds() - start) / static_cast<double>(state.iterations());
  if (LimitOf(K, n) > 0) state.counters["floor"] = LimitOf(K, n);
  state.SetLabel(LimitOf(K, n) > 0 ? "ns < limit" : "ns");
}
BENCHMARK_CAPTURE(SafeMapOfCases, inequalities, 0)
    ->Name("safety/map")
    ->ArgNames({"K", "n"})
    ->Args({1, 1})
    ->Args({1, 3})
    ->Args({3, 3})
    ->Args({17, 3});
BENCHMARK_CAPTURE(SafeMapOfCases, equation, 1)
    ->Name("safety/map_equation")
    ->ArgNames({"K", "n"})
    ->Args({1, 7})
    ->Args({2, 7})
    ->Args({35, 7});

// The products of two layers of 128 and an output, `forward` times towards the output and `backward` times back.
class Products {
 public:
  explicit Products(int batch) : in_(batch, 5), hidden_(batch, 128), next_(batch, 128), out_(batch, 1) {
    for (Matrix* m : {&in_, &hidden_, &next_, &out_, &first_, &second_, &last_}) m->setConstant(0.01f);
  }
  void Run(int forward, int backward) {
    for (int i = 0; i < forward; ++i) {
      hidden_.noalias() = in_ * first_;
      next_.noalias() = hidden_ * second_;
      out_.noalias() = next_ * last_;
      benchmark::ClobberMemory();
    }
    for (int i = 0; i < backward; ++i) {
      next_.noalias() = out_ * last_.transpose();
      hidden_.noalias() = next_ * second_.transpose();
      in_.noalias() = hidden_ * first_.transpose();
      benchmark::ClobberMemory();
    }
  }

 private:
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Matrix in_, hidden_, next_, out_;
  Matrix first_{5, 128}, second_{128, 128}, last_{128, 1};
};

// Per environment: policy nets, constraint nets with input gradients, model and map (128 x 128 hidden).
void ActingRuleOfBatch(benchmark::State& state, const std::string& rule_name) {
  const int batch = static_cast<int>(state.range(0));
  Snapshot snapshot = testing::SafeMapSnapshot(5, 1, 4, {128, 128}, 1);
  snapshot.acting_rule = rule_name;
  const auto model = MakeTaskModel("cartpole", v1::TaskOptions());
  const auto rule = MakeActingRule(snapshot, *model, batch);
  if (!rule.ok()) return state.SkipWithError(std::string(rule.status().message()).c_str());
  std::vector<float> observations(batch * 5), noise(batch), actions(batch);
  FillNormal(1, observations.data(), batch * 5);
  FillNormal(2, noise.data(), batch);
  Products products(batch);
  const bool safe = (*rule)->has_constraint();
  constexpr int kCalls = 16;  // between two readings of the clock
  double acting = 0, floor = 0;
  for (auto _ : state) {
    const double start = CpuNanoseconds();
    for (int i = 0; i < kCalls; ++i) {
      (*rule)->Act(batch, {observations.data(), noise.data()}, actions.data(), {});
      benchmark::ClobberMemory();
    }
    const double between = CpuNanoseconds();
    for (int i = 0; i < kCalls; ++i) products.Run(safe ? 4 : 2, safe ? 2 : 0);
    acting += between - start;
    floor += CpuNanoseconds() - between;
  }
  const double environments = static_cast<double>(state.iterations()) * kCalls * batch;
  state.counters["value"] = acting / environments;
  state.counters["floor"] = floor / environments;
  state.SetLabel("ns/env");
}
BENCHMARK_CAPTURE(ActingRuleOfBatch, safe_map, std::string("safe_map"))
    ->Name("acting/safe_map")
    ->ArgName("batch")
    ->Arg(1)
    ->Arg(16)
    ->Arg(64);
BENCHMARK_CAPTURE(ActingRuleOfBatch, gaussian, std::string("gaussian_policy"))
    ->Name("acting/gaussian_policy")
    ->ArgName("batch")
    ->Arg(16);

// The products of a swish or ReLU net for `rows` rows, layer by layer.
class NetProducts {
 public:
  NetProducts(const std::vector<int>& widths, int rows) : widths_(widths), rows_(rows) {
    for (size_t i = 0; i < widths_.size(); ++i) {
      layers_.emplace_back(rows * Padded(widths_[i]), 0.01f);
      if (i > 0) weights_.emplace_back(widths_[i - 1] * Padded(widths_[i]), 0.01f);
    }
  }
  void Run() {
    for (size_t i = 0; i + 1 < widths_.size(); ++i) {
      Multiply(rows_, widths_[i], layers_[i].data(), Padded(widths_[i]), weights_[i].data(), Padded(widths_[i + 1]),
               nullptr, layers_[i + 1].data());
    }
    benchmark::ClobberMemory();
  }

 private:
  static int Padded(int width) { return (width + kVectorFloats - 1) / kVectorFloats * kVectorFloats; }
  const std::vector<int> widths_;
  const int rows_;
  std::vector<std::vector<float>> layers_, weights_;
};

// A decision of two iterations in air hockey with the released sizes: 105 plans of 7 actions, 4 particles of each of 5
// nets with 4 x 200 units. With the released settings a decision makes at most five iterations.
void PlannerDecision(benchmark::State& state) {
  constexpr int kObs = 16, kActions = 3, kPlans = 105, kParticles = 4, kNets = 5, kIterations = 2, kHorizon = 7;
  Snapshot snapshot = testing::PlannerSnapshot(kObs, kActions, {128, 128}, 1);
  const auto is_dynamics = [](const NamedArray& array) { return array.name.rfind("dynamics.", 0) == 0; };
  snapshot.arrays.erase(std::remove_if(snapshot.arrays.begin(), snapshot.arrays.end(), is_dynamics),
                        snapshot.arrays.end());
  for (int i = 0; i < kNets; ++i) {
    testing::AddNet("dynamics." + std::to_string(i), {kObs + kActions, 200, 200, 200, 200, 2 * (kObs + 1)}, i,
                    &snapshot);
  }
  snapshot.arrays.push_back({"dynamics.input_mean", {kObs + kActions}, std::vector<float>(kObs + kActions, 0.0f)});
  snapshot.arrays.push_back({"dynamics.input_std", {kObs + kActions}, std::vector<float>(kObs + kActions, 1.0f)});
  snapshot.scalars["cost_limit"] = 1e9;
  snapshot.scalars["plan_samples"] = 100;
  snapshot.scalars["plan_particles"] = kParticles;
  snapshot.scalars["plan_iterations"] = kIterations;
  const auto rule = MakeActingRule(snapshot, *MakeTaskModel("air_hockey", v1::TaskOptions()), 1);
  if (!rule.ok()) return state.SkipWithError(std::string(rule.status().message()).c_str());
  std::vector<float> observation(kObs, 0.1f), noise(2, 0.5f), action(kActions), memory((*rule)->memory_dim());
  std::vector<NetProducts> dynamics(kNets, NetProducts({kObs + kActions, 200, 200, 200, 200, 2 * (kObs + 1)}, kPlans));
  NetProducts critic({kObs + kActions, 128, 128, 1}, kPlans);
  double acting = 0, floor = 0;
  for (auto _ : state) {
    const double start = CpuNanoseconds();
    (*rule)->Act(1, {observation.data(), noise.data(), nullptr, memory.data()}, action.data(), {});
    const double between = CpuNanoseconds();
    for (int i = 0; i < kIterations; ++i) {
      for (NetProducts& net : dynamics) {
        for (int particle = 0; particle < kParticles; ++particle) {
          for (int step = 0; step < kHorizon; ++step) net.Run();
          critic.Run();
        }
      }
    }
    acting += between - start;
    floor += CpuNanoseconds() - between;
  }
  state.counters["value"] = acting / static_cast<double>(state.iterations()) / 1e6;
  state.counters["floor"] = floor / static_cast<double>(state.iterations()) / 1e6;
  state.SetLabel("ms/decision");
}
BENCHMARK(PlannerDecision)->Name("acting/planner")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace datacom

BENCHMARK_MAIN();
// SPDX-License-Identifier: Apache-2.0
