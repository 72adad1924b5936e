// Tests the promises of common/tasks/task.h for every registered task, for the text tasks of deploy/examples and for
// known_task, whose known constraints are of every kind.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/tasks/task.h"
#include "common/tasks/text/task_file.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task.pb.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/counting_allocator.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

constexpr char kRepeated[] = "action_repeat: 3";

// All quantities at once, in ranges that every simulator should bear.
constexpr char kRandomised[] =
    "randomisation { mass { low: 0.8 high: 1.25 } damping { low: 0.5 high: 2 } friction { low: 0.5 high: 1.5 } "
    "action_delay { low: 0 high: 4 } observation_noise { low: 0.001 high: 0.01 } }";

// What a Python environment leaves to datacom.
constexpr char kRandomisedPython[] =
    "randomisation { action_delay { low: 0 high: 4 } observation_noise { low: 0.001 high: 0.01 } }";

v1::TaskOptions Options(const std::string& text) {
  v1::TaskOptions options;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &options)) << text;
  return options;
}

// Task files of the examples; tests run in the source tree, but are also listed while it is built.
std::vector<std::string> ExampleTasks() {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("deploy/examples", error)) {
    const std::filesystem::path file = entry.path() / "task.textproto";
    if (std::filesystem::exists(file)) files.push_back(file.string());
  }
  if (const char* more = std::getenv("DATACOM_EXAMPLE"); more != nullptr) files.emplace_back(more);  // velocity_test.py
  std::sort(files.begin(), files.end());
  return files;
}

constexpr char kKnownTask[] = "tests/contract/known_task/task.textproto";

// Name and options of a task; of a task file with the text task.
std::pair<std::string, v1::TaskOptions> LoadTask(std::string task) {
  v1::TaskOptions options;
  const absl::Status loaded = LoadTaskOf("", &task, &options);
  EXPECT_THAT(loaded, IsOk());
  return {task, options};
}

// The parameter is a name of the register or a task file.
class TaskContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::tie(name_, base_) = LoadTask(GetParam());
    if (base_.HasExtension(v1::python_task)) randomised_ = kRandomisedPython;
    model_ = MakeTaskModel(name_, base_).value();
    observation_.resize(model_.spec.obs_dim);
  }
  std::unique_ptr<Task> Make(const std::string& options = "") const {
    auto task = MakeTask(name_, With(options));
    EXPECT_THAT(task, IsOk());
    return task.ok() ? *std::move(task) : nullptr;
  }
  v1::TaskOptions With(const std::string& text) const {
    v1::TaskOptions options = base_;
    options.MergeFrom(Options(text));
    return options;
  }
  std::vector<double> RandomAction(RandomStream* random) const {
    std::vector<double> action;
    for (int i = 0; i < model_.spec.action_dim; ++i) {
      action.push_back(random->Uniform(model_.spec.action_low[i], model_.spec.action_high[i]));
    }
    return action;
  }
  // All numbers of `steps` steps with random actions after the reset of episode `episode`.
  std::vector<double> Play(Task* task, uint64_t episode, int steps = 150) const {
    std::vector<double> observation(model_.spec.obs_dim), all;
    RandomStream start(StreamKey("test.episode", {episode})), actions(9);
    task->Reset(&start, observation.data());
    all = observation;
    for (int i = 0; i < steps; ++i) {
      const StepResult result = task->Step(RandomAction(&actions).data(), observation.data());
      EXPECT_TRUE(result.valid) << "step " << i;
      EXPECT_EQ(result.cost, task->Cost());
      all.insert(all.end(), observation.begin(), observation.end());
      all.insert(all.end(), {result.reward, result.cost, result.absorbing ? 1.0 : 0.0});
    }
    return all;
  }

  std::string name_;
  v1::TaskOptions base_;  // with the text task
  const char* randomised_ = kRandomised;
  TaskModel model_;
  std::vector<double> observation_;
};

TEST_P(TaskContract, TheSpecificationIsCompleteAndTheModelHasItsDimensions) {
  const TaskSpec& spec = model_.spec;
  EXPECT_EQ(spec.name, name_);
  EXPECT_FALSE(spec.summary.empty());
  EXPECT_GT(spec.horizon, 0);
  EXPECT_GT(spec.control_dt, 0);
  ASSERT_EQ(spec.action_low.size(), static_cast<size_t>(spec.action_dim));
  ASSERT_EQ(spec.action_high.size(), static_cast<size_t>(spec.action_dim));
  for (int i = 0; i < spec.action_dim; ++i) EXPECT_LT(spec.action_low[i], spec.action_high[i]);
  ASSERT_NE(model_.dynamics, nullptr);
  EXPECT_EQ(model_.dynamics->dims().obs, spec.obs_dim);
  EXPECT_EQ(model_.dynamics->dims().action, spec.action_dim);
  const auto task = Make();
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->spec().name, spec.name);
  EXPECT_EQ(task->spec().obs_dim, spec.obs_dim);
  EXPECT_EQ(task->spec().horizon, spec.horizon);
}

TEST_P(TaskContract, TheSameStreamAndActionsGiveTheSameBitsInAnyInstanceAndEpisode) {
  for (const std::string options : {"", randomised_, kRepeated}) {
    const auto one = Make(options), two = Make(options);
    Play(two.get(), 99, 50);  // has played another episode before
    for (const uint64_t episode : {3, 4}) EXPECT_EQ(Play(one.get(), episode), Play(two.get(), episode)) << options;
  }
}

TEST_P(TaskContract, TheModelsCostOfAnObservationIsTheSimulators) {
  if (!model_.cost) return;  // the observation does not determine the cost
  const auto task = Make();
  for (const uint64_t episode : {3, 4, 5}) {
    RandomStream start(StreamKey("test.episode", {episode})), actions(episode);
    task->Reset(&start, observation_.data());
    for (int i = 0; i < 100; ++i) {
      const double cost = task->Step(RandomAction(&actions).data(), observation_.data()).cost;
      EXPECT_NEAR(model_.cost(observation_.data()), cost, 1e-12) << "step " << i;
    }
  }
}

TEST_P(TaskContract, AnEpisodeStaysFiniteAndHasNoTimeLimitOfItsOwn) {
  const auto task = Make();
  RandomStream start(1), actions(2);
  task->Reset(&start, observation_.data());
  bool absorbed = false;
  for (int i = 0; i < model_.spec.horizon + 10; ++i) {
    const std::vector<double> before = observation_;
    const StepResult result = task->Step(RandomAction(&actions).data(), observation_.data());
    ASSERT_TRUE(result.valid) << "step " << i;
    ASSERT_TRUE(std::isfinite(result.reward) && std::isfinite(result.cost));
    for (const double v : observation_) ASSERT_TRUE(std::isfinite(v));
    ASSERT_NE(before, observation_) << "no step, absorbing or not, resets or stops the task";
    if (i + 1 == model_.spec.horizon && !absorbed) {
      EXPECT_FALSE(result.absorbing) << "the time limit is not absorbing";
    }
    absorbed |= result.absorbing;
  }
}

TEST_P(TaskContract, AnUnknownStartValueIsRefusedAndTheKnownOnesListed) {
  const auto task = Make();
  RandomStream start(1);
  const absl::Status status = task->ResetTo({{"no_such_key", 1.0}}, &start, observation_.data());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no_such_key"));
  for (const std::string& key : model_.spec.init_keys) EXPECT_THAT(std::string(status.message()), HasSubstr(key));
  EXPECT_THAT(task->ResetTo({}, &start, observation_.data()), IsOk());
}

#ifndef DATACOM_SANITIZED
TEST_P(TaskContract, StepsResetsAndModelEvaluationsAllocateNothing) {
  const ControlAffineDims dims = model_.dynamics->dims();
  std::vector<double> q(dims.q), x(dims.x), x_dot(dims.x), f(dims.q), G(dims.q * dims.action);
  for (const std::string options : {"", randomised_, kRepeated}) {
    const auto task = Make(options);
    RandomStream actions(2);
    const auto action = RandomAction(&actions);
    const auto episode = [&](uint64_t key) {
      RandomStream start(key);
      task->Reset(&start, observation_.data());
      for (int i = 0; i < 100; ++i) {
        task->Step(action.data(), observation_.data());
        model_.dynamics->Evaluate(observation_.data(), {q.data(), x.data(), x_dot.data(), f.data(), G.data()});
      }
    };
    episode(1);  // makes the first scaled model
    EXPECT_EQ(testing::CountAllocations([&] {
                episode(2);
                episode(3);
              }),
              0u)
        << options;
  }
}
#endif

// For tasks with known constraints: names are unique, Jacobians are derivatives, and rows with a gain are on positions
// of a second-order state.
TEST_P(TaskContract, KnownConstraintsHaveUniqueNamesAndCorrectDerivatives) {
  const KnownConstraints* const known = model_.known_constraints.get();
  if (known == nullptr) return;
  const ControlAffineDims dims = model_.dynamics->dims();
  const int K = known->count();
  ASSERT_EQ(known->names().size(), static_cast<size_t>(K));
  ASSERT_EQ(known->groups().size(), static_cast<size_t>(K));
  ASSERT_EQ(known->viability_gains().size(), static_cast<size_t>(K));
  std::set<std::string> names(known->names().begin(), known->names().end());
  EXPECT_EQ(names.size(), static_cast<size_t>(K));
  for (const std::string& group : known->groups()) EXPECT_EQ(names.count(group), 0u) << group;
  if (known->observed()) return;  // its derivatives are those along the task's motion: the next test
  RandomStream random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> z(dims.q + dims.x), k(K), J_q(K * dims.q), J_x(K * dims.x), high(K), low(K);
    for (double& value : z) value = random.Uniform(-1.5, 1.5);
    const auto evaluate = [&](const std::vector<double>& at, const KnownConstraintsOut& out) {
      known->Evaluate({at.data(), at.data() + dims.q}, out);
    };
    EXPECT_EQ(testing::kCountsAllocations ? testing::CountAllocations([&] {
                evaluate(z, {k.data(), J_q.data(), J_x.data()});
              })
                                          : 0u,
              0u);
    evaluate(z, {k.data(), J_q.data(), J_x.data()});
    for (int d = 0; d < dims.q + dims.x; ++d) {
      std::vector<double> moved = z;
      moved[d] = z[d] + 1e-6;
      evaluate(moved, {high.data(), nullptr, nullptr});
      moved[d] = z[d] - 1e-6;
      evaluate(moved, {low.data(), nullptr, nullptr});
      for (int i = 0; i < K; ++i) {
        const double slope = d < dims.q ? J_q[i * dims.q + d] : J_x[i * dims.x + d - dims.q];
        EXPECT_NEAR(slope, (high[i] - low[i]) / 2e-6, 1e-7) << known->names()[i] << " by entry " << d;
        const bool velocity = d >= dims.q / 2;
        if (known->viability_gains()[i] > 0 && velocity) {
          EXPECT_EQ(slope, 0) << known->names()[i];
          EXPECT_EQ(dims.q % 2, 0);
        }
      }
    }
  }
}

// For rows that are read from the observation: k follows its rate, and the rate its gradient and accelerations, from
// one control step to the next. The actions are held and the steps short, so the sums of all steps agree to a few per
// cent.
TEST_P(TaskContract, ObservedKnownRowsMoveAsTheySay) {
  const KnownConstraints* const known = model_.known_constraints.get();
  if (known == nullptr || !known->observed()) return;
  const ControlAffineDims dims = model_.dynamics->dims();
  const int K = known->count(), n = dims.action;
  std::vector<double> q(dims.q), x(dims.x), x_dot(dims.x), f(dims.q), G(dims.q * n), J_q(K * dims.q), J_x(K * dims.x);
  std::vector<double> J_v(K * dims.q), k(K), rate(K), own(K), others(K), k_dot(K), k_ddot(K), change(K), error(K);
  std::vector<double> before[3], rate_change(K), rate_error(K);
  const auto task = Make();
  const auto evaluate = [&] {
    model_.dynamics->Evaluate(observation_.data(), {q.data(), x.data(), x_dot.data(), f.data(), G.data()});
    known->Evaluate({q.data(), x.data(), observation_.data()},
                    {k.data(), J_q.data(), J_x.data(), rate.data(), J_v.data(), own.data(), others.data()});
  };
  for (const uint64_t episode : {1, 2, 3}) {
    RandomStream start(StreamKey("test.episode", {episode})), actions(episode);
    task->Reset(&start, observation_.data());
    std::vector<double> action = RandomAction(&actions);
    for (int step = 0; step < 60; ++step) {
      if (step % 20 == 0) action = RandomAction(&actions);
      task->Step(action.data(), observation_.data());
      evaluate();
      EXPECT_EQ(testing::kCountsAllocations ? testing::CountAllocations(evaluate) : 0u, 0u);
      for (int i = 0; i < K; ++i) {
        k_dot[i] = rate[i], k_ddot[i] = own[i] + others[i];
        for (int d = 0; d < dims.x; ++d) k_dot[i] += J_x[i * dims.x + d] * x_dot[d];
        for (int d = 0; d < dims.q; ++d) {
          double q_dot = f[d];
          for (int j = 0; j < n; ++j) q_dot += G[d * n + j] * action[j];
          k_dot[i] += J_q[i * dims.q + d] * q_dot;
          k_ddot[i] += J_v[i * dims.q + d] * q_dot;
        }
        if (step % 20 < 2) continue;  // the action has changed, or the start's obstacles were at rest
        const double dt = model_.spec.control_dt, moved = k[i] - before[0][i], sped = k_dot[i] - before[1][i];
        change[i] += std::abs(moved), rate_change[i] += std::abs(sped);
        error[i] += std::abs(moved - dt * (k_dot[i] + before[1][i]) / 2);
        rate_error[i] += std::abs(sped - dt * (k_ddot[i] + before[2][i]) / 2);
      }
      before[0] = k, before[1] = k_dot, before[2] = k_ddot;
    }
  }
  for (int i = 0; i < K; ++i) {
    EXPECT_LE(error[i], 0.05 * change[i]) << known->names()[i];
    if (known->viability_gains()[i] > 0) {
      EXPECT_LE(rate_error[i], 0.1 * rate_change[i]) << known->names()[i];
    }
  }
}

TEST_P(TaskContract, AViolatedKnownConstraintHasPositiveCost) {
  const KnownConstraints* const known = model_.known_constraints.get();
  if (known == nullptr) return;
  const ControlAffineDims dims = model_.dynamics->dims();
  const auto task = Make();
  std::vector<double> q(dims.q), x(dims.x), k(known->count());
  int violations = 0;
  for (uint64_t episode = 0; episode < 10; ++episode) {
    RandomStream start(StreamKey("test.episode", {episode})), actions(episode);
    task->Reset(&start, observation_.data());
    std::vector<double> action = RandomAction(&actions);
    for (int step = 0; step < 100; ++step) {
      if (step % 20 == 0) action = RandomAction(&actions);
      const double cost = task->Step(action.data(), observation_.data()).cost;
      model_.dynamics->Evaluate(observation_.data(), {q.data(), x.data(), nullptr, nullptr, nullptr});
      known->Evaluate({q.data(), x.data(), observation_.data()}, {k.data()});
      double largest = -1;
      for (int i = 0; i < known->count(); ++i) {
        if (known->groups()[i] == "approach") continue;  // navigation's speak up before the cost does
        if (known->equality(i)) continue;                // each value but 0 violates it; costs have a tolerance
        largest = testing::LargerOrNan(k[i], largest);
      }
      if (largest <= 0) continue;
      EXPECT_LE(largest, cost + 4e-3)
          << "at 4 m/s a mallet whose position is reported a millisecond late moves by as much";
      ++violations;
    }
  }
  EXPECT_GT(violations, 0) << "the test never left the safe set";
}

// Each option alone, with a value that its rule allows.
TEST_P(TaskContract, EveryOptionIsTakenOrRefusedByNameAndTheHorizonAlwaysTaken) {
  const std::map<std::string, std::string> values = {
      {"horizon", "horizon: 17"},
      {"puck_region", "puck_region: 'adjusted'"},
      {"reward", "reward: 'paper'"},
      {"mismatch_sigma", "mismatch_sigma: 0.5"},
      {"randomisation", randomised_},
      {"observation", "observation: 'robot_frame'"},
      {"action_repeat", "action_repeat: 4"},
      {"control_dt", "control_dt: 0.25"},
      {"text_task", "[datacom.v1.text_task] { definition { name: 'other' } }"},
      {"python_task", "[datacom.v1.python_task] { name: 'other' }"}};
  const google::protobuf::Descriptor* schema = v1::TaskOptions::descriptor();
  std::vector<std::string> names = {"text_task", "python_task"};  // extensions
  for (int i = 0; i < schema->field_count(); ++i) names.push_back(schema->field(i)->name());
  for (const std::string& name : names) {
    ASSERT_EQ(values.count(name), 1u) << "give the new option " << name << " a value here";
    if (name == "text_task" && base_.HasExtension(v1::text_task)) continue;
    if (name == "python_task" && base_.HasExtension(v1::python_task)) continue;
    const v1::TaskOptions options = With(values.at(name));
    const auto model = MakeTaskModel(name_, options);
    const auto task = MakeTask(name_, options);
    ASSERT_EQ(task.ok(), model.ok()) << name;
    if (model.ok()) {
      EXPECT_EQ(model->spec.horizon, (*task)->spec().horizon);
      EXPECT_EQ(model->spec.control_dt, (*task)->spec().control_dt);
      EXPECT_EQ(model->spec.horizon, name == "horizon"         ? 17
                                     : name == "action_repeat" ? (model_.spec.horizon + 3) / 4
                                                               : model_.spec.horizon);
      Play(task->get(), 5, 20);
      continue;
    }
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(task.status(), model.status());
    EXPECT_NE(name, "horizon");
    EXPECT_NE(name, "randomisation");
    EXPECT_NE(name, "action_repeat");
    EXPECT_THAT(std::string(model.status().message()),
                HasSubstr("task_options." + name + ": task " + name_ + " has no such option; it has: horizon"));
  }
}

TEST_P(TaskContract, ScaledPhysicsApplyFromTheNextResetAndScaleOneIsNominal) {
  const auto task = Make(), nominal = Make();
  const std::vector<double> expected = Play(nominal.get(), 3);
  task->ScalePhysics({2, 1, 1});
  const std::vector<double> heavy = Play(task.get(), 3);
  EXPECT_NE(heavy, expected);
  task->ScalePhysics({1, 1, 1});
  EXPECT_EQ(Play(task.get(), 3), expected);
  task->ScalePhysics({2, 1, 1});
  EXPECT_EQ(Play(task.get(), 3), heavy);
  EXPECT_EQ(Play(nominal.get(), 3), expected) << "another instance's physics do not change";
}

TEST_P(TaskContract, RandomisationOffIsNominalAndOnIsNot) {
  const std::vector<double> expected = Play(Make().get(), 3);
  for (const std::string off :
       {"randomisation { }",
        "randomisation { mass { low: 1 high: 1 } damping { low: 1 high: 1 } friction { low: 1 high: 1 } "
        "action_delay { low: 0 high: 0 } observation_noise { low: 0 high: 0 } }"}) {
    EXPECT_EQ(Play(Make(off).get(), 3), expected) << off;
  }
  for (const std::string on : {"mass { low: 1.1 high: 1.2 }", "action_delay { low: 1 high: 2 }",
                               "observation_noise { low: 0.001 high: 0.01 }"}) {
    const std::vector<double> drawn = Play(Make("randomisation { " + on + " }").get(), 3);
    EXPECT_NE(drawn, expected) << on;
    if (on[0] == 'm') {  // mass: the start does not change
      EXPECT_TRUE(std::equal(drawn.begin(), drawn.begin() + model_.spec.obs_dim, expected.begin()));
    }
  }
}

TEST_P(TaskContract, ANaNActionMakesTheStepInvalidAndDoesNotChangeTheNextEpisode) {
  const auto task = Make();
  const std::vector<double> expected = Play(task.get(), 3);
  for (int i = 0; i < model_.spec.action_dim; ++i) {
    RandomStream start(1), actions(2);
    task->Reset(&start, observation_.data());
    std::vector<double> action = RandomAction(&actions);
    action[i] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(task->Step(action.data(), observation_.data()).valid) << "entry " << i;
    EXPECT_EQ(Play(task.get(), 3), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(AllTasks, TaskContract, ::testing::ValuesIn(TaskNames()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(KnownTask, TaskContract, ::testing::Values(kKnownTask),
                         [](const auto&) { return "known_task"; });
INSTANTIATE_TEST_SUITE_P(TextTasks, TaskContract, ::testing::ValuesIn(ExampleTasks()), [](const auto& info) {
  const std::string folder = std::filesystem::path(info.param).parent_path().filename().string();
  return folder.empty() ? "python_environment" : folder;  // DATACOM_EXAMPLE=python:MODULE:CALLABLE
});

// Tests above have nothing to check for tasks without these.
TEST(TaskContractCases, TheExamplesAreFound) { EXPECT_GE(ExampleTasks().size(), 3u); }

TEST(TaskContractCases, SomeTasksHaveAModelOfTheCostKnownConstraintsAndObservedOnes) {
  int costs = 0, known = 0, observed = 0;
  std::vector<std::string> tasks = TaskNames();
  tasks.emplace_back(kKnownTask);
  for (const std::string& task : tasks) {
    const auto [name, options] = LoadTask(task);
    const TaskModel model = MakeTaskModel(name, options).value();
    costs += static_cast<bool>(model.cost);
    known += model.known_constraints != nullptr;
    observed += model.known_constraints != nullptr && model.known_constraints->observed();
  }
  EXPECT_GT(costs, 0);
  EXPECT_GT(known, 0);
  EXPECT_GT(observed, 0);
}

// The nominal model is q_dot = f + G u. Compared with the simulator over one control step of dt = 1/120 s it has three
// known errors: the input gain (1.9 instead of 2.0 N: 5 % of G u), the damping that the model leaves out (0.001 x_dot,
// 2e-4 theta_dot), and the finite difference (order dt). The test corrects the first exactly and bounds the others by 2
// % of |q_dot| + 0.05, with rates up to 2 rad/s.
TEST(CartPoleModel, PredictsTheSimulatorsAccelerationUpToItsStatedMismatch) {
  const auto model = MakeTaskModel("cartpole", v1::TaskOptions());
  const auto task = *MakeTask("cartpole", v1::TaskOptions());
  RandomStream random(5);
  for (int i = 0; i < 200; ++i) {
    double obs[5], next[5], q[4], f[4], G[4], f_next[4], G_next[4];
    ASSERT_THAT(task->ResetTo({{"theta", random.Uniform(-3, 3)}}, nullptr, obs), IsOk());
    double action = random.Uniform(-0.5, 0.5);
    for (int j = 0; j < 3; ++j) task->Step(&action, obs);
    action = random.Uniform(-1, 1);
    task->Step(&action, next);
    model->dynamics->Evaluate(obs, {q, nullptr, nullptr, f, G});
    model->dynamics->Evaluate(next, {q, nullptr, nullptr, f_next, G_next});
    const double dt = model->spec.control_dt;
    for (int d = 2; d < 4; ++d) {
      const double measured = (next[d + 1] - obs[d + 1]) / dt;
      const double predicted = (f[d] + f_next[d]) / 2 + (G[d] + G_next[d]) / 2 * action * (2.0 / 1.9);
      EXPECT_NEAR(measured, predicted, 0.05 + 0.02 * std::abs(predicted)) << "case " << i << " velocity " << d - 2;
    }
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
