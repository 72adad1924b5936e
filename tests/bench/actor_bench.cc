// How much of the raw stepping rate is left when an actor acts: the whole loop (inference, safe map, step, rows into
// chunks, credit and snapshot looked up) against the same number of bare Task::Step calls with recorded actions.
// Both are measured in turns within one benchmark, so that a change of the machine's speed touches both alike.
//   value: environment steps/s of the loop;  peer: steps/s of bare stepping;  ratio: value / peer;  label: the unit.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "actor/rollout.h"
#include "benchmark/benchmark.h"
#include "common/base/random.h"
#include "common/config/experiment.h"
#include "common/metrics/metrics.h"

namespace datacom {
namespace {

constexpr uint32_t kEnvironments = 16;
constexpr int kIterations = 64;  // of the loop, between two looks at the clock

// Takes every row and keeps none.
class EndlessSession : public InsertSession {
 public:
  EndlessSession() { registration_.set_member_count(1); }
  const v1::RegisterReply& registration() const override { return registration_; }
  absl::Status Start(uint64_t) override { return absl::OkStatus(); }
  Allowance allowance(uint32_t) const override { return {uint64_t{1} << 40, rows_, 0}; }
  absl::Status Append(uint32_t, uint32_t rows, std::string columns) override {
    benchmark::DoNotOptimize(columns.data());
    rows_ += rows;
    return absl::OkStatus();
  }
  uint64_t acknowledged(uint32_t) const override { return rows_; }
  void WaitForChange(std::chrono::milliseconds) override {}
  absl::Status Flush(std::chrono::milliseconds) override { return absl::OkStatus(); }
  bool finished() const override { return false; }
  absl::Status status() const override { return absl::OkStatus(); }
  std::string waiting_for() const override { return ""; }

 private:
  v1::RegisterReply registration_;
  uint64_t rows_ = 0;
};

class OneSnapshot : public SnapshotSubscriber {
 public:
  explicit OneSnapshot(Snapshot snapshot) : snapshot_(std::make_shared<const Snapshot>(std::move(snapshot))) {}
  std::shared_ptr<const Snapshot> Latest(uint32_t) const override { return snapshot_; }
  void WaitForChange(std::chrono::milliseconds) override {}
  absl::Status status() const override { return absl::OkStatus(); }
  double age_seconds(uint32_t) const override { return 0; }
  uint64_t discarded() const override { return 0; }

 private:
  const std::shared_ptr<const Snapshot> snapshot_;
};

void AddLayer(const std::string& net, int index, uint32_t in, uint32_t out, Snapshot* snapshot) {
  const std::string name = net + "." + std::to_string(index);
  NamedArray weight = {name + ".weight", {in, out}, std::vector<float>(in * out)};
  FillNormal(StreamKey(weight.name, {}), weight.values.data(), static_cast<int64_t>(weight.values.size()));
  for (float& value : weight.values) value /= std::sqrt(static_cast<float>(in));
  snapshot->arrays.push_back(std::move(weight));
  snapshot->arrays.push_back({name + ".bias", {out}, std::vector<float>(out, 0.01f)});
}

// Networks of the paper's sizes for CartPole, random weights.
Snapshot RandomSnapshot(const v1::Experiment& experiment) {
  Snapshot snapshot;
  snapshot.task = experiment.task();
  snapshot.acting_rule = FindAlgorithm(experiment.algorithm())->acting_rule;
  const auto add = [&snapshot](const std::string& net, uint32_t in, uint32_t out) {
    AddLayer(net, 0, in, 128, &snapshot);
    AddLayer(net, 1, 128, 128, &snapshot);
    AddLayer(net, 2, 128, out, &snapshot);
  };
  for (const char* net : {"actor.mean", "actor.log_std"}) add(net, 5, 1);
  for (const char* net : {"constraint.mean", "constraint.log_std"}) add(net, 4, 1);
  snapshot.scalars = {{"delta", 1.0}, {"risk_margin", 0.2}, {"atacom_gain", 60}, {"slack_beta", 3}};
  return snapshot;
}

v1::Experiment CartPole() {
  v1::Experiment experiment;
  experiment.set_name("bench");
  experiment.set_task("cartpole");
  experiment.set_algorithm("datacom");
  return ResolveExperiment(experiment);
}

// The task alone: the environments take turns as in the loop and start anew at the horizon.
class RawStepping {
 public:
  explicit RawStepping(const v1::Experiment& experiment) : actions_(4096) {
    for (uint32_t e = 0; e < kEnvironments; ++e)
      tasks_.push_back(MakeTask(experiment.task(), experiment.task_options()).value());
    RandomStream stream(StreamKey("bench.raw", {}));
    for (double& action : actions_) action = stream.Uniform(-1, 1);
    observation_.resize(tasks_[0]->spec().obs_dim);
    for (auto& task : tasks_) task->Reset(&stream, observation_.data());
  }
  void Run(int iterations) {
    for (int i = 0; i < iterations; ++i, ++step_) {
      for (auto& task : tasks_) {
        if (step_ % task->spec().horizon == 0) {
          RandomStream stream(step_);
          task->Reset(&stream, observation_.data());
        }
        benchmark::DoNotOptimize(task->Step(&actions_[next_++ % actions_.size()], observation_.data()));
      }
    }
  }

 private:
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<double> actions_, observation_;
  uint64_t step_ = 0, next_ = 0;
};

void CartPoleActing(benchmark::State& state) {
  const v1::Experiment experiment = CartPole();
  EndlessSession session;
  OneSnapshot subscriber(RandomSnapshot(experiment));
  const std::unique_ptr<Metrics> metrics = Metrics::Start({"actor", "bench", "cartpole", "datacom", ""}).value();
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
    const Clock::Time start = Clock::Real().Now();
    polls = 0;
    if (!absl::IsCancelled(rollout->Run())) state.SkipWithError("the acting loop ended");
    const Clock::Time between = Clock::Real().Now();
    raw.Run(kIterations);
    const Clock::Time end = Clock::Real().Now();
    acting += Seconds(between - start);
    stepping += Seconds(end - between);
    ++rounds;
  }
  const double steps = rounds * kIterations * kEnvironments;
  state.counters["value"] = steps / acting;
  state.counters["peer"] = steps / stepping;
  state.counters["ratio"] = stepping / acting;
  state.SetLabel("steps/s");
}
BENCHMARK(CartPoleActing)->Name("actor/cartpole/envs=16")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) {
  char longer[] = "--benchmark_min_time=2";  // before the flags given, which win
  std::vector<char*> flags = {argv[0], longer};
  flags.insert(flags.end(), argv + 1, argv + argc);
  int count = static_cast<int>(flags.size());
  benchmark::Initialize(&count, flags.data());
  if (benchmark::ReportUnrecognizedArguments(count, flags.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
