// Compares the actor's whole loop (inference, safe map, step, rows into chunks, lookup of credit and snapshot) with
// bare stepping of the same episodes and actions. Both are measured alternately in one benchmark, so that a change of
// the machine's speed affects both.
//   value: environment steps of the loop per second of CPU time;  peer: those of bare stepping;  ratio: value / peer;
//   label: the unit.
// Bare stepping is Task::Step for CartPole; for air hockey the loop of its physics, 20 x (inverse dynamics + mj_step);
// for navigation mj_step of the model with the states and forces of those episodes; for a text task mj_step with the
// controls of those episodes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "actor/actor_setup.h"
#include "actor/rollout.h"
#include "benchmark/benchmark.h"
#include "common/base/random.h"
#include "common/metrics/metrics.h"
#include "common/tasks/air_hockey/arm.h"
#include "common/tasks/air_hockey/task.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "datacom/v1/task.pb.h"
#include "tests/testing/endless_actor_peers.h"

namespace datacom {
namespace {

constexpr uint32_t kEnvironments = 16;
constexpr int kIterations = 64;  // of the loop, between two readings of the clock

// CPU time of this thread, which other processes do not change.
double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Keeps its rows until the next round.
class KeepingSession : public testing::EndlessSession {
 public:
  using EndlessSession::EndlessSession;
  absl::Status Append(uint32_t member, uint32_t rows, std::string columns, const std::string& fault) override {
    chunks.emplace_back(rows, std::move(columns));
    return EndlessSession::Append(member, rows, "", fault);
  }
  std::vector<std::pair<uint32_t, std::string>> chunks;
};

struct Step {
  uint32_t environment, episode, step;
  double action[8];  // the task's dimension is at most 8
};

// The steps in the chunks, in the order in which they were taken.
std::vector<Step> StepsOf(const RowSchema& schema, const std::vector<std::pair<uint32_t, std::string>>& chunks) {
  std::vector<Step> steps;
  for (const auto& [rows, bytes] : chunks) {
    const auto cell = [&, rows = rows, &bytes = bytes](const std::string& name, uint32_t row) {
      size_t at = 0;
      for (const Column& column : schema.wire()) {
        if (column.name == name) return bytes.data() + at + row * column.bytes();
        at += rows * column.bytes();
      }
      std::abort();
    };
    for (uint32_t row = 0; row < rows; ++row) {
      Step step = {};
      std::memcpy(&step.environment, cell("environment", row), 4);
      std::memcpy(&step.episode, cell("episode", row), 4);
      std::memcpy(&step.step, cell("step", row), 4);
      float action[std::size(step.action)];
      std::memcpy(action, cell("action", row), 4 * schema.action_dim());
      std::copy_n(action, schema.action_dim(), step.action);
      steps.push_back(step);
    }
  }
  return steps;
}

// A bare environment. The steps of a round are first prepared, which is not timed, then taken.
class Bare {
 public:
  explicit Bare(std::unique_ptr<Task> task) : task_(std::move(task)), observation_(task_->spec().obs_dim) {}
  virtual ~Bare() = default;
  virtual void PrepareReset(RandomStream* /*stream*/) {}
  virtual void PrepareStep(const double* /*action*/) {}
  virtual void Reset(RandomStream* stream) { task_->Reset(stream, observation_.data()); }
  virtual void Step(const double* action) { task_->Step(action, observation_.data()); }

 protected:
  const std::unique_ptr<Task> task_;
  std::vector<double> observation_;
};

class BareAirHockey : public Bare {
 public:
  explicit BareAirHockey(std::unique_ptr<Task> task)
      : Bare(std::move(task)),
        model_(task_->simulation()->model()),
        data_(MakeMujocoData(model_).value()),
        inverse_dynamics_(air_hockey::InverseDynamics::Make().value()) {}
  void Reset(RandomStream* stream) override {
    Bare::Reset(stream);
    mj_resetData(&model_, data_.get());
    std::copy_n(task_->simulation()->data()->qpos, model_.nq, data_->qpos);
    std::fill_n(filtered_, air_hockey::kJoints, 0.0);
  }
  void Step(const double* action) override {
    double desired[air_hockey::kJoints], acceleration[air_hockey::kJoints];
    for (int i = 0; i < air_hockey::kJoints; ++i) desired[i] = action[i] * air_hockey::kAccelerationLimits[i];
    for (int substep = 0; substep < 20; ++substep) {
      air_hockey::LimitAcceleration(desired, filtered_, acceleration);
      inverse_dynamics_.Torque(data_->qpos, filtered_, acceleration, data_->ctrl);
      mj_step(&model_, data_.get());
      for (int i = 0; i < air_hockey::kJoints; ++i) filtered_[i] = 0.274 * data_->qvel[i] + 0.726 * filtered_[i];
    }
  }

 private:
  const mjModel& model_;
  const MujocoData data_;
  air_hockey::InverseDynamics inverse_dynamics_;
  double filtered_[air_hockey::kJoints] = {};
};

// The task plays the episode first; then its physics are repeated step by step.
class BareNavigation : public Bare {
 public:
  explicit BareNavigation(std::unique_ptr<Task> task)
      : Bare(std::move(task)), model_(task_->simulation()->model()), data_(MakeMujocoData(model_).value()) {}
  void PrepareReset(RandomStream* stream) override { Bare::Reset(stream); }
  void PrepareStep(const double* action) override {
    const mjData& data = *task_->simulation()->data();
    recorded_.insert(recorded_.end(), data.qpos, data.qpos + model_.nq);
    recorded_.insert(recorded_.end(), data.qvel, data.qvel + model_.nv);
    Bare::Step(action);
    recorded_.insert(recorded_.end(), data.qfrc_applied, data.qfrc_applied + model_.nv);
  }
  void Reset(RandomStream*) override { mj_resetData(&model_, data_.get()); }
  void Step(const double*) override {
    const double* from = &recorded_[next_];
    std::copy_n(from, model_.nq, data_->qpos);
    std::copy_n(from += model_.nq, model_.nv, data_->qvel);
    std::copy_n(from += model_.nv, model_.nv, data_->qfrc_applied);
    next_ += model_.nq + 2 * model_.nv;
    mj_step(&model_, data_.get());
    if (next_ < recorded_.size()) return;
    recorded_.clear();
    next_ = 0;
  }

 private:
  const mjModel& model_;
  const MujocoData data_;
  std::vector<double> recorded_;
  size_t next_ = 0;
};

// The actuators' controls are the actions, scaled to the control ranges of the model.
class BareText : public Bare {
 public:
  explicit BareText(std::unique_ptr<Task> task)
      : Bare(std::move(task)),
        model_(task_->simulation()->model()),
        data_(MakeMujocoData(model_).value()),
        substeps_(static_cast<int>(std::lround(task_->spec().control_dt / model_.opt.timestep))) {}
  void Reset(RandomStream* stream) override {
    Bare::Reset(stream);
    mj_resetData(&model_, data_.get());
    std::copy_n(task_->simulation()->data()->qpos, model_.nq, data_->qpos);
    std::copy_n(task_->simulation()->data()->qvel, model_.nv, data_->qvel);
  }
  void Step(const double* action) override {
    for (int i = 0; i < model_.nu; ++i) {
      const double low = model_.actuator_ctrlrange[2 * i], high = model_.actuator_ctrlrange[2 * i + 1];
      data_->ctrl[i] = (low + high) / 2 + (high - low) / 2 * std::clamp(action[i], -1.0, 1.0);
    }
    for (int i = 0; i < substeps_; ++i) mj_step(&model_, data_.get());
  }

 private:
  const mjModel& model_;
  const MujocoData data_;
  const int substeps_;
};

std::unique_ptr<Bare> MakeOne(const v1::Experiment& experiment) {
  std::unique_ptr<Task> task = MakeTask(experiment.task(), experiment.task_options()).value();
  if (experiment.task() == "air_hockey") return std::make_unique<BareAirHockey>(std::move(task));
  if (experiment.task() == "navigation") return std::make_unique<BareNavigation>(std::move(task));
  if (experiment.task_options().HasExtension(v1::text_task)) return std::make_unique<BareText>(std::move(task));
  return std::make_unique<Bare>(std::move(task));
}

std::vector<std::unique_ptr<Bare>> MakeBare(const v1::Experiment& experiment) {
  std::vector<std::unique_ptr<Bare>> bare;
  for (uint32_t e = 0; e < kEnvironments; ++e) bare.push_back(MakeOne(experiment));
  return bare;
}

void Play(const v1::Experiment& experiment, const std::vector<Step>& steps, bool prepare,
          std::vector<std::unique_ptr<Bare>>* bare) {
  for (const Step& step : steps) {
    Bare& environment = *(*bare)[step.environment];
    if (step.step == 0) {
      RandomStream stream(StreamKey("actor.episode", {experiment.run().seed(), experiment.members(0).seed(),
                                                      /*session=*/0, step.environment, step.episode}));
      prepare ? environment.PrepareReset(&stream) : environment.Reset(&stream);
    }
    prepare ? environment.PrepareStep(step.action) : environment.Step(step.action);
  }
}

// The experiment of a text task whose f and G come from finite differences.
v1::Experiment WithDifferences(const std::string& task) {
  v1::Experiment experiment = testing::ExperimentOf(task);
  v1::TextTask* const text = experiment.mutable_task_options()->MutableExtension(v1::text_task);
  text->mutable_definition()->mutable_control()->set_dynamics("finite_difference");
  if (!text::Resolve(text).ok()) std::abort();
  return experiment;
}

void Acting(benchmark::State& state, const v1::Experiment& experiment) {
  KeepingSession session(kEnvironments);
  testing::OneSnapshot subscriber(testing::SnapshotOf(experiment));
  const std::unique_ptr<Metrics> metrics = Metrics::Start({"actor", "bench", experiment.task(), "datacom", ""}).value();
  actor::ActorMetrics series(metrics.get());
  int polls = 0;
  actor::Rollout::Options options;
  options.stop = [&polls] { return ++polls > kIterations; };
  actor::Rollout::Parts parts = actor::MakeParts(experiment).value();
  const RowSchema schema = parts.schema;
  const auto rollout = actor::Rollout::Make(std::move(parts), &session, &subscriber, &series, options).value();
  auto bare = MakeBare(experiment);
  double acting = 0, stepping = 0, taken = 0;
  for (auto _ : state) {
    polls = 0;
    session.chunks.clear();
    const double start = CpuSeconds();
    if (!absl::IsCancelled(rollout->Run())) state.SkipWithError("the acting loop ended");
    acting += CpuSeconds() - start;
    const std::vector<Step> steps = StepsOf(schema, session.chunks);
    Play(experiment, steps, /*prepare=*/true, &bare);
    const double between = CpuSeconds();
    Play(experiment, steps, /*prepare=*/false, &bare);
    stepping += CpuSeconds() - between;
    taken += static_cast<double>(steps.size());
  }
  state.counters["value"] = taken / acting;
  state.counters["peer"] = taken / stepping;
  state.counters["ratio"] = stepping / acting;
  state.SetLabel("steps/CPU-s");
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) {
  char longer[] = "--benchmark_min_time=2";  // before the given flags, which take precedence
  std::vector<char*> flags = {argv[0], longer};
  flags.insert(flags.end(), argv + 1, argv + argc);
  for (const std::string& task : datacom::TaskNames()) {
    benchmark::RegisterBenchmark(("actor/" + task + "/envs=16").c_str(), &datacom::Acting,
                                 datacom::testing::ExperimentOf(task))
        ->Unit(benchmark::kMillisecond);
  }
  const std::string arm = DATACOM_SOURCE_DIR "/deploy/examples/arm_reach/task.textproto";
  benchmark::RegisterBenchmark("actor/arm_reach/envs=16", &datacom::Acting, datacom::testing::ExperimentOf(arm))
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("actor/arm_reach_differences/envs=16", &datacom::Acting, datacom::WithDifferences(arm))
      ->Unit(benchmark::kMillisecond);
  int count = static_cast<int>(flags.size());
  benchmark::Initialize(&count, flags.data());
  if (benchmark::ReportUnrecognizedArguments(count, flags.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
// SPDX-License-Identifier: Apache-2.0
