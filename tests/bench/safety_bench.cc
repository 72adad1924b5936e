// What acting costs: the safe map alone, the nets, and the whole acting rule, a batch of environments at a time.
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/acting/acting_rule.h"
#include "common/base/random.h"
#include "common/safety/safe_map.h"
#include "datacom/v1/experiment.pb.h"
#include "tests/testing/snapshots.h"

namespace datacom {
namespace {

// Map of K constraints and n actions, state part and one action; cases vary so that no branch is learned.
void BM_SafeMap(benchmark::State& state) {
  const int K = static_cast<int>(state.range(0)), n = static_cast<int>(state.range(1));
  constexpr int kCases = 64;
  RandomStream random(StreamKey("bench.safe_map", {static_cast<uint64_t>(K), static_cast<uint64_t>(n)}));
  std::vector<double> k(kCases * K), J_G(kCases * K * n), drift(kCases * K), u(kCases * n), action(n);
  for (double& v : k) v = random.Uniform(-2, 0.2);
  for (std::vector<double>* values : {&J_G, &drift, &u}) {
    for (double& v : *values) v = random.Normal();
  }
  SafeMap map({K, n, 0, 0});
  int i = 0;
  for (auto _ : state) {
    map.Set(SafeMapReduced{&k[i * K], &J_G[i * K * n], &drift[i * K]}, {25, 3});
    benchmark::DoNotOptimize(map.Apply(&u[i * n], action.data()));
    i = (i + 1) % kCases;
  }
}
BENCHMARK(BM_SafeMap)
    ->Name("safety/map")
    ->ArgNames({"K", "n"})
    ->Args({1, 1})
    ->Args({1, 3})
    ->Args({3, 3})
    ->Args({17, 3});

// Per environment: policy nets, constraint nets with input gradients, model and map (128 x 128 hidden).
void BM_ActingRule(benchmark::State& state, const std::string& rule_name) {
  const int batch = static_cast<int>(state.range(0));
  Snapshot snapshot = testing::SafeMapSnapshot(5, 1, 4, {128, 128}, 1);
  snapshot.acting_rule = rule_name;
  const auto model = MakeTaskModel("cartpole", v1::TaskOptions());
  const auto rule = MakeActingRule(snapshot, *model, batch);
  if (!rule.ok()) return state.SkipWithError(std::string(rule.status().message()).c_str());
  std::vector<float> observations(batch * 5), noise(batch), actions(batch);
  FillNormal(1, observations.data(), batch * 5);
  FillNormal(2, noise.data(), batch);
  for (auto _ : state) {
    (*rule)->Act(batch, observations.data(), noise.data(), actions.data(), {});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK_CAPTURE(BM_ActingRule, safe_map, std::string("safe_map"))
    ->Name("acting/safe_map")
    ->ArgName("batch")
    ->Arg(1)
    ->Arg(16)
    ->Arg(64);
BENCHMARK_CAPTURE(BM_ActingRule, gaussian, std::string("gaussian_policy"))
    ->Name("acting/gaussian_policy")
    ->ArgName("batch")
    ->Arg(16);

}  // namespace
}  // namespace datacom

BENCHMARK_MAIN();
