// What every registered task promises (common/tasks/task.h), whatever it simulates.
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mujoco/mujoco.h"

namespace {
thread_local long allocations = 0;  // of this thread through operator new, and MuJoCo's

void* CountedMujocoMalloc(size_t size) {
  ++allocations;
  return std::aligned_alloc(64, (size + 63) / 64 * 64);
}

// Before anything of MuJoCo is allocated.
const bool mujoco_counted = [] {
  mju_user_malloc = &CountedMujocoMalloc;
  mju_user_free = &std::free;
  return true;
}();
}  // namespace

// Not inlined, or the compiler takes malloc and free for mismatched partners of new and delete.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace datacom {
namespace {

using ::testing::HasSubstr;

class TaskContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto model = MakeTaskModel(GetParam(), v1::TaskOptions());
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
    observation_.resize(model_.spec.obs_dim);
  }
  std::unique_ptr<Task> Make() const {
    auto task = MakeTask(GetParam(), v1::TaskOptions());
    return task.ok() ? *std::move(task) : nullptr;
  }
  std::vector<double> RandomAction(RandomStream* random) const {
    std::vector<double> action;
    for (int i = 0; i < model_.spec.action_dim; ++i) {
      action.push_back(random->Uniform(model_.spec.action_low[i], model_.spec.action_high[i]));
    }
    return action;
  }

  TaskModel model_;
  std::vector<double> observation_;
};

TEST_P(TaskContract, ItsFactsAreWholeAndTheModelHasTheirDimensions) {
  const TaskSpec& spec = model_.spec;
  EXPECT_EQ(spec.name, GetParam());
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

TEST_P(TaskContract, TheSameStreamAndActionsGiveTheSameBitsInEveryInstanceAndEpisode) {
  const auto one = Make(), two = Make();
  // `two` has lived through another episode before.
  RandomStream other(3), other_actions(4);
  two->Reset(&other, observation_.data());
  for (int i = 0; i < 50; ++i) two->Step(RandomAction(&other_actions).data(), observation_.data());
  RandomStream start_one(7), start_two(7), actions(9);
  std::vector<double> a(observation_), b(observation_);
  one->Reset(&start_one, a.data());
  two->Reset(&start_two, b.data());
  ASSERT_EQ(a, b);
  for (int i = 0; i < 200; ++i) {
    const auto action = RandomAction(&actions);
    const StepResult x = one->Step(action.data(), a.data()), y = two->Step(action.data(), b.data());
    ASSERT_EQ(a, b) << "step " << i;
    ASSERT_EQ(x.reward, y.reward);
    ASSERT_EQ(x.cost, y.cost);
    ASSERT_EQ(x.absorbing, y.absorbing);
  }
}

TEST_P(TaskContract, AnEpisodeStaysFiniteAndTheTimeLimitIsTheCallersBusiness) {
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
    ASSERT_NE(before, observation_) << "no step, absorbing or not, resets or freezes";
    if (i + 1 == model_.spec.horizon && !absorbed) {
      EXPECT_FALSE(result.absorbing) << "the time limit is not absorbing";
    }
    absorbed |= result.absorbing;
  }
}

TEST_P(TaskContract, AnUnknownStartValueIsRefusedNamingItAndTheKnownOnes) {
  const auto task = Make();
  RandomStream start(1);
  const absl::Status status = task->ResetTo({{"no_such_key", 1.0}}, &start, observation_.data());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no_such_key"));
  for (const std::string& key : model_.spec.init_keys) EXPECT_THAT(std::string(status.message()), HasSubstr(key));
  EXPECT_TRUE(task->ResetTo({}, &start, observation_.data()).ok());
}

TEST_P(TaskContract, StepsAndModelEvaluationsAllocateNothing) {
  const auto task = Make();
  const ControlAffineDims dims = model_.dynamics->dims();
  std::vector<double> q(dims.q), x(dims.x), x_dot(dims.x), f(dims.q), G(dims.q * dims.action);
  RandomStream start(1), actions(2);
  task->Reset(&start, observation_.data());
  const auto action = RandomAction(&actions);
  task->Step(action.data(), observation_.data());
  ASSERT_TRUE(mujoco_counted);
  const long before = allocations;
  for (int i = 0; i < 100; ++i) {
    task->Step(action.data(), observation_.data());
    model_.dynamics->Evaluate(observation_.data(), {q.data(), x.data(), x_dot.data(), f.data(), G.data()});
  }
  task->Reset(&start, observation_.data());
  EXPECT_EQ(allocations, before);
}

INSTANTIATE_TEST_SUITE_P(AllTasks, TaskContract, ::testing::ValuesIn(TaskNames()),
                         [](const auto& info) { return info.param; });

// The nominal model claims q_dot = f + G u. Against the simulator over one control step of dt = 1/120 s three known
// errors remain: the input gain (1.9 against 2.0 N: 5 % of G u), damping that the model leaves out (0.001 x_dot, 2e-4
// theta_dot), and the finite difference (order dt). The test corrects the first exactly and bounds the others by 2 % of
// |q_dot| + 0.05, with rates up to 2 rad/s.
TEST(CartPoleModel, PredictsTheSimulatorsAccelerationUpToItsStatedMismatch) {
  const auto model = MakeTaskModel("cartpole", v1::TaskOptions());
  const auto task = *MakeTask("cartpole", v1::TaskOptions());
  RandomStream random(5);
  for (int i = 0; i < 200; ++i) {
    double obs[5], next[5], q[4], f[4], G[4], f_next[4], G_next[4];
    ASSERT_TRUE(task->ResetTo({{"theta", random.Uniform(-3, 3)}}, nullptr, obs).ok());
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
