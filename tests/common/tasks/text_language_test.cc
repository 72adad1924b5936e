// Tests the language of task files (docs/text_tasks.md 2): observations, expressions over lists, commands,
// pushes, random factors, truncation, logs and budgets. Expected values are literals: a mass of 2 kg that a force of 1
// N moves for steps of 0.01 s.
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/safety/known_constraints.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/nearest_row.h"
#include "common/tasks/task.h"
#include "common/tasks/text/expression.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/text_tasks.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::datacom::testing::TaskFolder;
using Loaded = ::datacom::testing::LoadedTask;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The drone is turned by 90 degrees about y: its x axis points down, its z axis along the world's x.
constexpr char kCarts[] = R"(<mujoco>
  <option timestep="0.01"/>
  <default><geom contype="0" conaffinity="0" size="0.1"/></default>
  <worldbody>
    <body name="cart"><joint name="cart" type="slide" axis="1 0 0"/><geom name="cart" mass="2"/></body>
    <body name="other"><joint name="other" type="slide" axis="1 0 0" damping="0.5"/><geom name="other" mass="1"/></body>
    <body name="drone" pos="0 0 1" quat="0.7071067811865476 0 0.7071067811865476 0">
      <freejoint name="drone"/><geom name="drone" mass="1"/><site name="nose"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="a" joint="cart" ctrllimited="true" ctrlrange="-1 1"/>
    <motor name="b" joint="other" ctrllimited="true" ctrlrange="-1 1"/>
  </actuator>
</mujoco>)";

std::string CartTask(const std::string& observation, const std::string& more = "") {
  return "name: \"carts\" model: \"model.xml\" horizon: 50 " + observation +
         " extra { joint: \"cart\" quantity: \"velocity\" name: \"speed\" } constraint_state { joint: \"cart\" joint: "
         "\"other\" } reward: \"0\" " +
         (more.find("cost {") == std::string::npos ? "cost { name: \"c\" value: \"cart - 1\" } " : "") + more;
}

constexpr char kCart[] = "observation { joint: \"cart\" }";

std::vector<double> Seen(const Loaded& task) {
  return {task.observation.begin(), task.observation.begin() + task.layout.policy};
}

std::vector<std::string> SeenNames(const Loaded& task) {
  return {task.model.spec.observation_names.begin(), task.model.spec.observation_names.begin() + task.layout.policy};
}

// Steps with the actions of a and b.
StepResult Step(Loaded* task, double a, double b = 0) {
  const double action[2] = {a, b};
  StepResult result = task->task->Step(action, task->observation.data());
  EXPECT_TRUE(result.valid);
  return result;
}

double Value(const std::string& text, const std::vector<std::string>& names, std::vector<double> values) {
  auto made = text::Expression::Compile(text, names, values.data());
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? made->Value() : std::nan("");
}

TEST(TextLanguage, AQuotedGlobStandsForTheNamesThatMatch) {
  const std::vector<std::string> names = {"action.a",        "action.b",        "x",
                                          "before.action.a", "before.action.b", "before.x"};
  const std::vector<double> values = {3, -4, 5, 1, -2, 7};
  EXPECT_EQ(Value("sum(\"action.*\")", names, values), -1);
  EXPECT_EQ(Value("norm1(\"action.?\")", names, values), 7);
  EXPECT_EQ(Value("norm2(\"action.*\")", names, values), 5);
  EXPECT_EQ(Value("2 * norm2(\"action.*\")^2 + 1", names, values), 51);
  EXPECT_EQ(Value("max(\"action.*\", x)", names, values), 5);
  EXPECT_EQ(Value("sum(\"*\")", names, values), 4) << "no value of the step before";
  EXPECT_EQ(Value("sum(\"before.*\")", names, values), 6);
  EXPECT_DOUBLE_EQ(Value("distance(\"action.*\", \"before.action.*\")", names, values), std::sqrt(8.0));
}

TEST(TextLanguage, MessagesOnGlobsNameTheColumnOfTheFile) {
  std::vector<double> values = {3, -4, 5};
  const auto error = [&](const std::string& text) {
    return std::string(
        text::Expression::Compile(text, {"action.a", "action.b", "x"}, values.data()).status().message());
  };
  EXPECT_THAT(error("1 + sum(\"wheel*\")"), HasSubstr("column 9: no name matches \"wheel*\"; the names are: action.a"));
  EXPECT_THAT(error("sum(\"action.*\") + y"), HasSubstr("column 19: unknown name \"y\""));
  EXPECT_THAT(error("sum(\"action.*)"), HasSubstr("column 5: the quote does not end"));
  EXPECT_THAT(error("distance(\"action.*\", x)"), HasSubstr("distance needs two lists of the same length"));
}

TEST(TextLanguage, AnObservationIsClippedThenScaledAndHasAHistory) {
  TaskFolder folder(kCarts,
                    CartTask("observation { joint: \"cart\" clip { low: -0.0501 high: 0.0501 } scale: 10 history: 3 }"
                             "observation { joint: \"other\" }"));
  Loaded task(folder.task());
  EXPECT_THAT(SeenNames(task), ElementsAre("cart", "cart.1", "cart.2", "other"));
  ASSERT_THAT(task.task->ResetTo({{"cart", 0.05}, {"other", -3}}, nullptr, task.observation.data()), IsOk());
  EXPECT_THAT(Seen(task), ElementsAre(0.5, 0.5, 0.5, -3)) << "a history begins with the start";
  // 1 N on 2 kg: 0.005 m/s after a step, which is a way of 0.00005 m in this step and 0.0001 m in the next.
  Step(&task, 1);
  EXPECT_THAT(Seen(task), ElementsAre(DoubleNear(0.5005, 1e-12), 0.5, 0.5, DoubleNear(-3, 1e-9)));
  Step(&task, 1);
  EXPECT_THAT(Seen(task), ElementsAre(0.501, DoubleNear(0.5005, 1e-12), 0.5, DoubleNear(-3, 1e-9)))
      << "0.05015 is clipped";
  Step(&task, 0);
  EXPECT_THAT(Seen(task), ElementsAre(0.501, 0.501, DoubleNear(0.5005, 1e-12), DoubleNear(-3, 1e-9)));
  ASSERT_THAT(task.task->ResetTo({{"cart", 0}}, nullptr, task.observation.data()), IsOk());
  EXPECT_THAT(Seen(task), ElementsAre(0, 0, 0, 0)) << "nothing is left of the episode before";
}

TEST(TextLanguage, ExpressionsSeeTheNumberItself) {
  TaskFolder folder(
      kCarts, CartTask("observation { joint: \"cart\" scale: 10 history: 2 }", "cost { name: \"c\" value: \"cart\" }"));
  Loaded task(folder.task());
  ASSERT_THAT(task.task->ResetTo({{"cart", 0.25}}, nullptr, task.observation.data()), IsOk());
  EXPECT_EQ(task.task->Cost(), 0.25);
  EXPECT_EQ(task.observation[task.layout.q_at], 0.25) << "so do q and the safe map";
}

TEST(TextLanguage, AnObservationCanBeAnExpressionOrTheLastAction) {
  TaskFolder folder(kCarts,
                    CartTask("observation { name: \"double\" value: \"2 * cart + 1\" }"
                             "observation { joint: \"cart\" } observation { number: \"action.*\" history: 2 }"));
  Loaded task(folder.task());
  EXPECT_THAT(SeenNames(task), ElementsAre("double", "cart", "action.a", "action.b", "action.a.1", "action.b.1"));
  ASSERT_THAT(task.task->ResetTo({{"cart", 4}}, nullptr, task.observation.data()), IsOk());
  EXPECT_THAT(Seen(task), ElementsAre(9, 4, 0, 0, 0, 0));
  Step(&task, 0, -2);
  EXPECT_THAT(Seen(task), ElementsAre(9, 4, 0, -1, 0, 0)) << "after clipping";
  Step(&task, 0, 0.5);
  EXPECT_THAT(Seen(task), ElementsAre(9, 4, 0, 0.5, 0, -1));
}

TEST(TextLanguage, ARewardSeesTheActionBefore) {
  std::string text = CartTask(kCart);
  text.replace(text.find("reward: \"0\""), 11, "reward: \"-distance(\\\"action.*\\\", \\\"before.action.*\\\")^2\"");
  TaskFolder folder(kCarts, text);
  Loaded task(folder.task());
  task.task->Reset(nullptr, task.observation.data());
  EXPECT_DOUBLE_EQ(Step(&task, 0.5).reward, -0.25) << "the action before the first is 0";
  EXPECT_DOUBLE_EQ(Step(&task, -0.5, 1).reward, -2);
  EXPECT_DOUBLE_EQ(Step(&task, -0.5, 1).reward, 0);
  task.task->Reset(nullptr, task.observation.data());
  EXPECT_DOUBLE_EQ(Step(&task, 0.5).reward, -0.25) << "also in the next episode";
}

TEST(TextLanguage, GravityAndVelocitiesAreAlongTheBodysOwnAxes) {
  TaskFolder folder(
      kCarts, CartTask("observation { joint: \"cart\" }"
                       "observation { body: \"drone\" quantity: \"gravity\" name: \"g\" }"
                       "observation { body: \"drone\" quantity: \"local_velocity\" name: \"v\" }"
                       "observation { site: \"nose\" quantity: \"local_angular_velocity\" name: \"w\" axes: \"zx\" }"));
  Loaded task(folder.task());
  EXPECT_THAT(SeenNames(task), ElementsAre("cart", "g.x", "g.y", "g.z", "v.x", "v.y", "v.z", "w.z", "w.x"));
  task.task->Reset(nullptr, task.observation.data());
  task.task->simulation()->data()->qvel[2] = 2;  // along the world's x
  Step(&task, 0);
  EXPECT_THAT(Seen(task), ElementsAre(0, DoubleNear(1, 1e-12), DoubleNear(0, 1e-12), DoubleNear(0, 1e-12),
                                      DoubleNear(0.0981, 1e-9), DoubleNear(0, 1e-12), DoubleNear(2, 1e-12), 0, 0));
  task.task->Reset(nullptr, task.observation.data());
  task.task->simulation()->data()->qvel[7] = 0.5;  // about its own z
  Step(&task, 0);
  EXPECT_THAT(task.observation[7], DoubleNear(0.5, 1e-12));
  EXPECT_THAT(task.observation[8], DoubleNear(0, 1e-12));
}

TEST(TextLanguage, TruncationEndsAnEpisodeWhoseValueGoesOn) {
  const std::string conditions = "truncated: \"cart > 1\" absorbing: \"cart > 2\"";
  TaskFolder folder(kCarts, CartTask(kCart, conditions));
  Loaded task(folder.task());
  for (const auto& [at, truncated, absorbing] :
       {std::tuple(0.5, false, false), {1.5, true, false}, {2.5, false, true}}) {
    ASSERT_THAT(task.task->ResetTo({{"cart", at}}, nullptr, task.observation.data()), IsOk());
    const StepResult result = Step(&task, 0);
    EXPECT_EQ(result.truncated, truncated) << at;
    EXPECT_EQ(result.absorbing, absorbing) << at;
  }
}

TEST(TextLanguage, ACommandIsDrawnAtTheStartAndStays) {
  const std::string one = "command { name: \"goal\" low: 1 high: 3 }";
  const std::string observation = std::string(kCart) + "observation { number: \"command.*\" }";
  TaskFolder folder(kCarts, CartTask(observation, one + "cost { name: \"c\" value: \"command.goal - 2\" }"));
  TaskFolder two(kCarts, CartTask(observation, "command { name: \"more\" low: 0 high: 1 }" + one));
  Loaded task(folder.task()), both(two.task());
  task.task->Reset(nullptr, task.observation.data());
  EXPECT_EQ(task.observation[1], 2) << "without randomness the middle";
  double least = 3, largest = 1;
  for (uint64_t episode = 0; episode < 50; ++episode) {
    RandomStream stream(episode), again(episode);
    task.task->Reset(&stream, task.observation.data());
    const double drawn = task.observation[1];
    EXPECT_EQ(task.task->Cost(), drawn - 2);
    least = std::min(least, drawn), largest = std::max(largest, drawn);
    Step(&task, 1);
    EXPECT_EQ(task.observation[1], drawn) << "during the whole episode";
    both.task->Reset(&again, both.observation.data());
    EXPECT_EQ(both.observation[2], drawn) << "another command changes nothing";
  }
  EXPECT_GE(least, 1);
  EXPECT_LT(least, 1.2);
  EXPECT_LT(largest, 3);
  EXPECT_GT(largest, 2.8);
  EXPECT_THAT(task.model.spec.init_keys, ElementsAre("cart", "other", "command.goal"));
  ASSERT_THAT(task.task->ResetTo({{"command.goal", 1.25}}, nullptr, task.observation.data()), IsOk());
  EXPECT_EQ(task.observation[1], 1.25);
}

TEST(TextLanguage, PushesAddVelocitiesBeforeAControlStep) {
  TaskFolder folder(kCarts,
                    CartTask("observation { joint: \"cart\" quantity: \"velocity\" }"
                             "observation { body: \"drone\" quantity: \"velocity\" axes: \"xy\" }",
                             "cost { name: \"c\" value: \"speed\" }"
                             "push { joint: \"cart\" every { low: 0.03 high: 0.03 } velocity { low: 0.5 high: 0.5 } }"
                             "push { body: \"drone\" every { low: 0.02 high: 0.02 } x { low: -1 high: -1 } }"
                             "push { body: \"drone\" every { low: 1e30 high: 1e30 } y { low: 1 high: 1 } }"));
  Loaded task(folder.task());
  const auto velocities = [&](int index) {
    RandomStream stream(3);
    task.task->Reset(&stream, task.observation.data());
    std::vector<double> seen;
    for (int step = 0; step < 7; ++step) {
      Step(&task, 0);
      seen.push_back(std::round(1e9 * task.observation[index]) / 1e9);
    }
    return seen;
  };
  EXPECT_THAT(velocities(0), ElementsAre(0, 0, 0, 0.5, 0.5, 0.5, 1)) << "after 0.03 s and 0.06 s";
  EXPECT_THAT(velocities(1), ElementsAre(0, 0, -1, -1, -2, -2, -3));
  EXPECT_THAT(velocities(2), ElementsAre(0, 0, 0, 0, 0, 0, 0)) << "a pause beyond all steps that can be counted";
  EXPECT_THAT(velocities(0), ElementsAre(0, 0, 0, 0.5, 0.5, 0.5, 1)) << "each episode has the same clock";
}

TEST(TextLanguage, PushesAreAFunctionOfTheEpisode) {
  TaskFolder folder(kCarts,
                    CartTask("observation { joint: \"cart\" quantity: \"velocity\" }",
                             "cost { name: \"c\" value: \"speed\" }"
                             "push { joint: \"cart\" every { low: 0.02 high: 0.2 } velocity { low: -1 high: 1 } }"));
  Loaded one(folder.task()), two(folder.task());
  RandomStream before(8);
  two.task->Reset(&before, two.observation.data());
  for (int step = 0; step < 13; ++step) Step(&two, 1);
  RandomStream stream(9), again(9);
  one.task->Reset(&stream, one.observation.data());
  two.task->Reset(&again, two.observation.data());
  int changes = 0;
  double last = 0;
  for (int step = 0; step < 50; ++step) {
    Step(&one, 0), Step(&two, 0);
    EXPECT_EQ(one.observation, two.observation) << step;
    changes += one.observation[0] != last;
    last = one.observation[0];
  }
  EXPECT_GE(changes, 3);
  EXPECT_LE(changes, 25);
}

TEST(TextLanguage, RandomFactorsChangeSingleElementsAndNotTheModelOfTheSafeMap) {
  const auto speeds = [](const std::string& randomise) {
    TaskFolder folder(kCarts, CartTask("observation { joint: \"cart\" quantity: \"velocity\" }"
                                       "observation { joint: \"other\" quantity: \"velocity\" }",
                                       "cost { name: \"c\" value: \"speed\" }" + randomise));
    Loaded task(folder.task());
    RandomStream stream(4);
    task.task->Reset(&stream, task.observation.data());
    task.Evaluate();
    EXPECT_NEAR(task.G[4], 0.5, 1e-12) << "G is that of the model as it is";
    Step(&task, 1, 1);
    return std::vector<double>(task.observation.begin(), task.observation.begin() + 2);
  };
  // 1 N for 0.01 s; Euler's method treats the damping of 0.5 Ns/m implicitly: v = 0.01 / (1 + 0.5 * 0.01).
  const double damped = 0.01 / 1.005;
  EXPECT_THAT(speeds(""), ElementsAre(DoubleNear(0.005, 1e-12), DoubleNear(damped, 1e-12)));
  EXPECT_THAT(speeds("randomise { body: \"cart\" factor { low: 2 high: 2 } }"),
              ElementsAre(DoubleNear(0.0025, 1e-12), DoubleNear(damped, 1e-12)));
  EXPECT_THAT(speeds("randomise { actuator: \"*\" factor { low: 0.5 high: 0.5 } }"),
              ElementsAre(DoubleNear(0.0025, 1e-12), DoubleNear(damped / 2, 1e-12)));
  EXPECT_THAT(speeds("randomise { joint: \"other\" factor { low: 4 high: 4 } }"),
              ElementsAre(DoubleNear(0.005, 1e-12), DoubleNear(0.01 / 1.02, 1e-12)));
}

TEST(TextLanguage, RandomFactorsAreDrawnForEachElementAndMultiplyTheGlobalOnes) {
  const std::string two =
      "randomise { body: \"cart\" factor { low: 0.5 high: 2 } } randomise { geom: \"*\" factor { low: 0 high: 1 } }";
  TaskFolder folder(kCarts, CartTask(kCart, two));
  Loaded task(folder.task()), scaled(folder.task(), "randomisation { mass { low: 3 high: 3 } }");
  RandomStream first(1), second(2), again(1), global(1);
  const auto mass = [](const Loaded& of) { return of.task->simulation()->model().body_mass[1]; };
  task.task->Reset(&first, task.observation.data());
  const double drawn = mass(task), friction = task.task->simulation()->model().geom_friction[0];
  EXPECT_GT(drawn, 1);
  EXPECT_LT(drawn, 4);
  EXPECT_NE(friction, task.task->simulation()->model().geom_friction[3]) << "each geom has its own";
  task.task->Reset(&second, task.observation.data());
  EXPECT_NE(mass(task), drawn);
  task.task->Reset(&again, task.observation.data());
  EXPECT_EQ(mass(task), drawn);
  scaled.task->Reset(&global, scaled.observation.data());
  EXPECT_DOUBLE_EQ(mass(scaled), 3 * drawn);
}

TEST(TextLanguage, LogsAreColumnsOfTheRowAndMeansOverADecision) {
  const std::string logs =
      "log { name: \"speed\" value: \"100 * speed\" } log { name: \"push\" value: \"action.a\" }"
      "cost { name: \"c\" value: \"cart\" } cost { name: \"d\" value: \"-1\" }";
  TaskFolder folder(kCarts, CartTask(kCart, logs));
  Loaded task(folder.task()), held(folder.task(), "action_repeat: 3");
  EXPECT_THAT(task.model.spec.log_names, ElementsAre("speed", "push"));
  ASSERT_EQ(task.model.spec.logs_at, task.model.spec.costs_at + 2);
  EXPECT_EQ(task.model.spec.observation_names[task.model.spec.logs_at], "log speed");
  task.task->Reset(nullptr, task.observation.data());
  held.task->Reset(nullptr, held.observation.data());
  const double* const logged = &task.observation[task.model.spec.logs_at];
  const double* const mean = &held.observation[held.model.spec.logs_at];
  for (int step = 1; step <= 3; ++step) {
    Step(&task, 1);
    EXPECT_NEAR(logged[0], 0.5 * step, 1e-9);
    EXPECT_EQ(logged[1], 1);
  }
  Step(&held, 1);
  EXPECT_NEAR(mean[0], (0.5 + 1 + 1.5) / 3, 1e-9);
  EXPECT_EQ(mean[1], 1);
}

TEST(TextLanguage, TheCostIsTheLargestShareOfABudget) {
  TaskFolder folder(kCarts, CartTask(kCart,
                                     "cost { name: \"near\" value: \"cart\" budget: 4 }"
                                     "cost { name: \"fast\" value: \"0.25\" budget: 0.5 }"));
  Loaded task(folder.task());
  for (const auto& [at, cost] : {std::pair(3.0, 0.75), {1.0, 0.5}, {-1.0, 0.5}}) {
    ASSERT_THAT(task.task->ResetTo({{"cart", at}}, nullptr, task.observation.data()), IsOk());
    EXPECT_EQ(task.task->Cost(), cost) << at;
    EXPECT_EQ(task.observation[task.layout.costs_at], at) << "each cost keeps its own unit";
    EXPECT_EQ(task.observation[task.layout.costs_at + 1], 0.25);
  }
}

// A cart on a rail from -1 to 1 with a tip 0.2 in front of it, and a wall at 1.
constexpr char kRail[] = R"(<mujoco>
  <option timestep="0.01"/>
  <worldbody><body name="cart">
    <joint name="cart" type="slide" axis="1 0 0" limited="true" range="-1 1"/><geom name="cart" size="0.1" mass="2"/>
    <site name="tip" pos="0.2 0 0"/>
  </body></worldbody>
  <actuator><motor name="a" joint="cart" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>)";

std::string RailTask(const std::string& margin) {
  return "name: \"rail\" model: \"model.xml\" observation { joint: \"cart\" } reward: \"0\" cost { name: \"c\" value: "
         "\"cart - 1\" } known { name: \"rail\" joint_position: \"cart\" share: 0.9 " +
         margin + " } known { name: \"speed\" joint_velocity: \"cart\" limit: 4 " + margin +
         " } known { name: \"wall\" site: \"tip\" half_space { normal { x: 1 } offset: 1 } " + margin + " }";
}

std::vector<double> KnownAt(Loaded* task, double cart) {
  EXPECT_THAT(task->task->ResetTo({{"cart", cart}}, nullptr, task->observation.data()), IsOk());
  task->Evaluate();
  std::vector<double> k(task->model.known_constraints->count());
  KnownConstraintsOut out;
  out.k = k.data();
  task->model.known_constraints->Evaluate({task->q.data(), nullptr, task->observation.data()}, out);
  return k;
}

TEST(TextLanguage, AMarginMovesEveryKnownRowBeforeItsLimit) {
  TaskFolder without(kRail, RailTask("")), with(kRail, RailTask("margin: 0.05"));
  Loaded plain(without.task()), held(with.task());
  ASSERT_THAT(plain.model.known_constraints->names(),
              ElementsAre("rail_cart_upper", "rail_cart_lower", "speed_cart_upper", "speed_cart_lower", "wall_tip"));
  const auto near = [](double value) { return DoubleNear(value, 1e-12); };
  EXPECT_THAT(KnownAt(&plain, 0.5), ElementsAre(near(-0.4), near(-1.4), near(-4), near(-4), near(-0.3)));
  EXPECT_THAT(KnownAt(&held, 0.5), ElementsAre(near(-0.35), near(-1.35), near(-3.95), near(-3.95), near(-0.25)));
  EXPECT_THAT(TaskFolder(kRail, RailTask("margin: 0.95")).Error(),
              HasSubstr("known[0].margin: leaves joint cart no range"));
}

TEST(TextLanguage, TheNearestKnownRowHasANameAndADistance) {
  TaskFolder folder(kRail, RailTask("margin: 0.05"));
  Loaded task(folder.task());
  NearestRows all(task.model), in_slice(task.model, /*in_slice=*/true);
  const auto nearest = [&](NearestRows* rows, double cart) {
    EXPECT_THAT(task.task->ResetTo({{"cart", cart}}, nullptr, task.observation.data()), IsOk());
    const std::optional<NearestRow> found = rows->At(task.observation.data());
    return found ? std::pair(rows->name(found->row), std::round(1e9 * found->distance) / 1e9)
                 : std::pair(std::string(), 0.0);
  };
  EXPECT_EQ(nearest(&all, 0.5), std::pair(std::string("wall_tip"), 0.25));
  EXPECT_EQ(nearest(&all, -0.75), std::pair(std::string("rail_cart_lower"), 0.1));
  EXPECT_EQ(nearest(&all, 0.8), std::pair(std::string("wall_tip"), -0.05)) << "violated";
  EXPECT_EQ(nearest(&in_slice, 0.5), std::pair(std::string("rail_cart_upper"), 0.35)) << "the wall needs the simulator";
  TaskFolder none(kCarts, CartTask(kCart));
  Loaded without(none.task());
  NearestRows nothing(without.model);
  EXPECT_TRUE(nothing.empty());
  EXPECT_FALSE(nothing.At(without.observation.data()).has_value());
}

TEST(TextLanguage, MessagesNameTheField) {
  const auto error = [](const std::string& observation, const std::string& more) {
    return TaskFolder(kCarts, CartTask(observation, more)).Error();
  };
  const std::string cart = kCart;
  EXPECT_THAT(error(cart + "observation { number: \"wheel*\" }", ""),
              HasSubstr("observation[1].number: no number matches"));
  EXPECT_THAT(error(cart + "observation { value: \"1\" }", ""), HasSubstr("observation[1].name: is needed"));
  EXPECT_THAT(error(cart + "observation { name: \"x\" value: \"1\" site: \"nose\" }", ""),
              HasSubstr("observation[1].site: does not go with number or value"));
  EXPECT_THAT(error(cart + "observation { name: \"x\" value: \"wheel\" }", ""),
              HasSubstr("observation[1].value: column 1: unknown name \"wheel\""));
  EXPECT_THAT(error(cart + "observation { number: \"cart\" }", ""), HasSubstr("the name cart is used twice"));
  EXPECT_THAT(error(cart + "observation { number: \"*n.b\" } observation { number: \"before.*n.b\" }", ""),
              HasSubstr("the name before.action.b is used twice"));
  EXPECT_THAT(error("observation { joint: \"cart\" clip { low: 1 high: 1 } }", ""),
              HasSubstr("observation[0].clip.high: is not above low"));
  EXPECT_THAT(error(cart, "extra { joint: \"other\" scale: 2 }"),
              HasSubstr("extra[1].scale: is only for observations"));
  EXPECT_THAT(error(cart + "observation { body: \"drone\" quantity: \"gravity\" relative_to: \"nose\" }", ""),
              HasSubstr("observation[1].relative_to: gravity is along the element's own axes"));
  EXPECT_THAT(error(cart, "command { name: \"goal\" low: 1 high: 0 }"), HasSubstr("command[0].high: 0 is below low"));
  EXPECT_THAT(error(cart, "push { body: \"cart\" every { low: 1 high: 2 } x { low: 0 high: 1 } }"),
              HasSubstr("push[0].body: has no free joint"));
  EXPECT_THAT(error(cart, "push { body: \"drone\" every { low: 1 high: 2 } velocity { low: 0 high: 1 } }"),
              HasSubstr("push[0].velocity: is only for joint"));
  EXPECT_THAT(error(cart, "push { joint: \"cart\" every { low: 0 high: 2 } velocity { low: 0 high: 1 } }"),
              HasSubstr("push[0].every.low: 0 is not above 0"));
  EXPECT_THAT(error(cart,
                    "randomise { body: \"c*\" factor { low: 1 high: 2 } } randomise { body: \"cart\" factor { low: 1 "
                    "high: 2 } }"),
              HasSubstr("randomise[1].body: body cart has a factor already"));
  EXPECT_THAT(error(cart, "randomise { body: \"cart\" factor { low: 0 high: 2 } }"),
              HasSubstr("randomise[0].factor.low: of a mass must be above 0"));
  EXPECT_THAT(error(cart, "cost { name: \"a\" value: \"0\" budget: 1 } cost { name: \"b\" value: \"0\" }"),
              HasSubstr("cost[1].budget: either all costs have a budget or none has"));
  EXPECT_THAT(error(cart, "log { name: \"x\" value: \"wheel\" }"), HasSubstr("log[0].value: column 1: unknown name"));
}

TEST(TextLanguage, TimeComparesWithADecimalNumberAsOnPaper) {
  const TaskFolder folder(kCarts, CartTask(std::string(kCart) + " observation { value: \"time\" name: \"t\" }",
                                           "control { period: 0.1 } truncated: \"time > 0.3\""));
  Loaded task(folder.task());
  const double still[2] = {0, 0};
  for (const double expected : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}) {
    const StepResult result = task.task->Step(still, task.observation.data());
    EXPECT_EQ(task.observation[1], expected);
    EXPECT_EQ(result.truncated, expected > 0.35) << expected;
  }
  task.task->Reset(nullptr, task.observation.data());
  EXPECT_EQ(task.observation[1], 0);
}

// Every element has one without a name beside it.
TEST(TextLanguage, AStarThatWouldLeaveOutElementsWithoutANameIsRefused) {
  std::string model = kCarts;
  model.insert(model.find("<body name=\"drone\""), "<body><joint type=\"slide\"/><geom mass=\"1\"/><site/></body>");
  model.insert(model.find("</actuator>"), "<motor joint=\"cart\" ctrllimited=\"true\" ctrlrange=\"-1 1\"/>");
  model.insert(model.find("</mujoco>"),
               "<sensor><jointpos joint=\"cart\"/><jointpos name=\"s\" joint=\"cart\"/></sensor>");
  const auto error = [&](const std::string& more) {
    return TaskFolder(model, CartTask(std::string(kCart) + more, "control { actuator: \"a\" actuator: \"b\" }"))
        .Error();
  };
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"observation { joint: \"*\" quantity: \"velocity\" name: \"v\" }",
       "observation[1].joint: \"*\" would leave out 1 without a name of the model's 4 (joint)"},
      {"observation { site: \"**\" }",
       "observation[1].site: \"**\" would leave out 1 without a name of the model's 2 (site)"},
      {"observation { sensor: \"*\" }",
       "observation[1].sensor: \"*\" would leave out 1 without a name of the model's 2 (sensor)"},
      {"randomise { geom: \"*\" factor { low: 1 high: 2 } }",
       "randomise[0].geom: \"*\" would leave out 1 without a name of the model's 4 (geom)"},
      {"randomise { body: \"*\" factor { low: 1 high: 2 } }",
       "randomise[0].body: \"*\" would leave out 1 without a name of the model's 5 (body)"},
      {"randomise { actuator: \"*\" factor { low: 1 high: 2 } }",
       "randomise[0].actuator: \"*\" would leave out 1 without a name of the model's 3 (actuator)"},
  };
  for (const auto& [more, why] : refused) EXPECT_THAT(error(more), HasSubstr(why)) << more;
  EXPECT_THAT(TaskFolder(model, CartTask(kCart)).Error(), HasSubstr("control.actuator: \"*\" would leave out 1"))
      << "an absent list is all";
  EXPECT_EQ(error("observation { joint: \"?*\" quantity: \"velocity\" name: \"v\" }"), "") << "those with a name";
  EXPECT_EQ(error("randomise { joint: \"c*\" factor { low: 1 high: 2 } }"), "") << "it never meant all";
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
