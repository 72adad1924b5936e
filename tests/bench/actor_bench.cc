// How much of the raw stepping rate is left when an actor acts: the whole loop (inference, safe map, step, rows into
// chunks, credit and snapshot looked up) against the same number of bare Task::Step calls with recorded actions.
// Both are measured in turns within one benchmark, so that a change of the machine's speed touches both alike.
//   value: environment steps of the loop per second of CPU time;  peer: the same of bare stepping;  ratio: value /
//   peer; label: the unit.
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "actor/rollout.h"
#include "benchmark/benchmark.h"
#include "common/base/random.h"
#include "common/metrics/metrics.h"
#include "tests/testing/endless_actor_peers.h"

namespace datacom {
namespace {

constexpr uint32_t kEnvironments = 16;
constexpr int kIterations = 64;  // of the loop, between two looks at the clock

// Of this thread: what else runs on the machine does not count.
double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The task alone: the environments take turns as in the loop and start anew at the horizon.
class RawStepping {
 public:
  explicit RawStepping(const v1::Experiment& experiment) {
    for (uint32_t e = 0; e < kEnvironments; ++e)
      tasks_.push_back(MakeTask(experiment.task(), experiment.task_options()).value());
    const TaskSpec& spec = tasks_[0]->spec();
    RandomStream stream(StreamKey("bench.raw", {}));
    for (uint64_t i = 0; i < kActions; ++i) {
      for (int j = 0; j < spec.action_dim; ++j)
        actions_.push_back(stream.Uniform(spec.action_low[j], spec.action_high[j]));
    }
    observation_.resize(spec.obs_dim);
    for (auto& task : tasks_) task->Reset(&stream, observation_.data());
  }
  void Run(int iterations) {
    for (int i = 0; i < iterations; ++i, ++step_) {
      for (auto& task : tasks_) {
        if (step_ % task->spec().horizon == 0) {
          RandomStream stream(step_);
          task->Reset(&stream, observation_.data());
        }
        const double* action = &actions_[next_++ % kActions * task->spec().action_dim];
        benchmark::DoNotOptimize(task->Step(action, observation_.data()));
      }
    }
  }

 private:
  std::vector<std::unique_ptr<Task>> tasks_;
  static constexpr uint64_t kActions = 4096;
  std::vector<double> actions_, observation_;
  uint64_t step_ = 0, next_ = 0;
};

void Acting(benchmark::State& state, const std::string& task) {
  const v1::Experiment experiment = testing::ExperimentOf(task);
  testing::EndlessSession session;
  testing::OneSnapshot subscriber(testing::SnapshotOf(task));
  const std::unique_ptr<Metrics> metrics = Metrics::Start({"actor", "bench", task, "datacom", ""}).value();
  ActorMetrics series(metrics.get());
  int polls = 0;
  Rollout::Options options;
  options.environments = kEnvironments;
  options.stop = [&polls] { return ++polls > kIterations; };
  const auto rollout =
      Rollout::Make(Rollout::PartsOf(experiment).value(), &session, &subscriber, &series, options).value();
  RawStepping raw(experiment);
  double acting = 0, stepping = 0, rounds = 0;
  for (auto _ : state) {
    const double start = CpuSeconds();
    polls = 0;
    if (!absl::IsCancelled(rollout->Run())) state.SkipWithError("the acting loop ended");
    const double between = CpuSeconds();
    raw.Run(kIterations);
    const double end = CpuSeconds();
    acting += between - start;
    stepping += end - between;
    ++rounds;
  }
  const double steps = rounds * kIterations * kEnvironments;
  state.counters["value"] = steps / acting;
  state.counters["peer"] = steps / stepping;
  state.counters["ratio"] = stepping / acting;
  state.SetLabel("steps/CPU-s");
}
}  // namespace
}  // namespace datacom

int main(int argc, char** argv) {
  char longer[] = "--benchmark_min_time=2";  // before the flags given, which win
  std::vector<char*> flags = {argv[0], longer};
  flags.insert(flags.end(), argv + 1, argv + argc);
  for (const std::string& task : datacom::TaskNames()) {
    benchmark::RegisterBenchmark(("actor/" + task + "/envs=16").c_str(), &datacom::Acting, task)
        ->Unit(benchmark::kMillisecond);
  }
  int count = static_cast<int>(flags.size());
  benchmark::Initialize(&count, flags.data());
  if (benchmark::ReportUnrecognizedArguments(count, flags.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
