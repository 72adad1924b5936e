// Tests known constraints of task files on sites and distances: k against literals, gradients and accelerations against
// differences along MuJoCo's integration of positions, joined rows against differences along the nominal model.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "common/base/random.h"
#include "common/safety/known_rows.h"
#include "common/safety/safe_map.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/mujoco_geometry.h"
#include "common/tasks/text/mujoco_known_columns.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// q: an arm, a drone and a gimbal. The obstacle is a mocap body, the drifter a free body; neither is part of q.
constexpr char kWorld[] = R"(<mujoco>
  <option timestep="0.002" gravity="0 0 0"><flag contact="disable"/></option>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" pos="0 0 -1"/>
    <site name="goal" pos="1 1 1"/>
    <body name="obstacle" mocap="true" pos="0.8 0 0.5"><geom name="obstacle" size="0.1"/></body>
    <body name="drifter" pos="1 1 1"><freejoint name="drifter"/>
      <geom name="drifter" type="capsule" fromto="0 0 0 0.2 0 0.1" size="0.05"/></body>
    <body name="upper">
      <joint name="shoulder" axis="0 1 0" range="-150 150" limited="true"/>
      <geom name="upper" type="capsule" fromto="0 0 0 0.4 0 0" size="0.04"/>
      <body name="lower" pos="0.4 0 0">
        <joint name="elbow" axis="0 0.8 0.6"/>
        <geom name="lower" type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
        <geom name="palm" type="box" pos="0.3 0 0" size="0.02 0.03 0.04"/>
        <site name="hand" pos="0.3 0 0"/>
      </body>
    </body>
    <body name="drone" pos="0 1 0"><freejoint name="drone"/>
      <geom name="drone" size="0.05"/><site name="nose" pos="0.1 0.02 0"/></body>
    <body name="gimbal" pos="-1 0 0"><joint name="gimbal" type="ball"/>
      <geom name="gimbal" type="capsule" fromto="0 0 0 0.2 0.1 0" size="0.02"/><site name="tip" pos="0.2 0.1 0"/></body>
  </worldbody>
  <actuator>
    <motor name="shoulder" joint="shoulder" gear="3" ctrllimited="true" ctrlrange="-1 1"/>
    <motor name="elbow" joint="elbow" ctrllimited="true" ctrlrange="-1 1"/>
    <motor name="rotor" site="nose" gear="0 0 1 0.1 0 0" ctrllimited="true" ctrlrange="-1 1"/>
  </actuator>
</mujoco>)";

constexpr char kRows[] = R"(
  known { name: "wall" site: "hand" half_space { normal { x: 3 z: 4 } offset: 0.2 } viability_gain: 0.5 }
  known { name: "ball" site: "hand" sphere { center { x: 0.1 z: -0.2 } radius: 0.5 } viability_gain: 0.3 }
  known { name: "away" site: "hand" sphere { radius: 0.3 side: "outside" } relative_to: "obstacle" }
  known { name: "range" joint_position: "shoulder" share: 0.5 viability_gain: 0.25 }
  known { name: "cage" site: "nose" box { center { y: 1 } size { x: 0.5 z: 0.2 } } }
  known { name: "seen" site: "tip" half_space { normal { y: 1 } offset: 0.1 } relative_to: "drone" viability_gain: 2 }
)";

// Distances of the geoms that every MuJoCo can measure.
std::string Rows() {
  std::string rows = kRows;
  for (const char* geom : {"floor", "obstacle", "drifter", "upper", "drone", "gimbal"}) {
    rows += std::string("known { name: \"gap_") + geom + "\" distance { geom1: \"lower\" geom2: \"" + geom +
            "\" minimum: 0.05 } }\n";
  }
  return rows;
}

v1::TextTask Definition(
    const std::string& known, const std::string& control = "",
    const std::string& state = R"(joint: "shoulder" joint: "elbow" joint: "drone" joint: "gimbal")") {
  v1::TextTask task;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(name: "world" model: "world.xml" observation { joint: "elbow" } reward: "0" cost { name: "c" value: "0" }
         control { )" +
          control + " } constraint_state { " + state + " } " + known,
      task.mutable_definition()));
  v1::TaskFile* const file = task.add_file();
  file->set_name("world.xml");
  file->set_content(kWorld);
  return task;
}

std::string Error(const std::string& known, const std::string& control = "") {
  v1::TextTask task = Definition(known, control);
  return std::string(text::Resolve(&task).message());
}

// A state of the world and everything that a row says of it.
class World {
 public:
  explicit World(const v1::TextTask& definition) : task_(definition) {
    const absl::Status resolved = text::Resolve(&task_);
    EXPECT_THAT(resolved, IsOk());
    compiled_ = text::CompiledTask::Make(task_).value();
    *options_.MutableExtension(v1::text_task) = task_;
    facts_ = MakeTaskModel("world", options_).value();
    layout = text::RowLayout::Of(task_);
    columns_.emplace(compiled_->unconstrained, MakeMujocoData(*compiled_->unconstrained).value(),
                     compiled_->known.geometry, compiled_->joints, !layout.first_order);
    terms_.emplace(compiled_->unconstrained, MakeMujocoData(*compiled_->unconstrained).value(), compiled_->joints,
                   *compiled_->actuation, task_.definition().constraint_state());
    data_ = MakeMujocoData(*compiled_->model).value();
    mocap_velocity.resize(3);
  }
  const mjModel& model() const { return *compiled_->model; }
  mjData* data() const { return data_.get(); }
  const KnownConstraints& known() const { return *facts_.known_constraints; }
  const TaskModel& facts() const { return facts_; }
  const std::vector<int>& dofs() const { return compiled_->joints.dofs; }

  void Randomise(RandomStream* random) {
    std::vector<double> away(model().nv);
    for (double& each : away) each = random->Uniform(-1, 1);
    mj_resetData(&model(), data());
    mj_integratePos(&model(), data()->qpos, away.data(), 1);
    for (int i = 0; i < model().nv; ++i) data()->qvel[i] = random->Uniform(-2, 2);
    for (int i = 0; i < 3; ++i) data()->mocap_pos[i] += random->Uniform(-0.2, 0.2);
    for (double& each : mocap_velocity) each = random->Uniform(-1, 1);
  }

  // The observation after `own` seconds of q's motion and `others` seconds of the rest's, with velocities changed by
  // `push` [velocities of q].
  std::vector<double> Observe(double own = 0, double others = 0, const std::vector<double>& push = {}) {
    const MujocoData moved = MakeMujocoData(model()).value();
    std::vector<double> q_velocity(model().nv), rest(data()->qvel, data()->qvel + model().nv);
    for (const int dof : dofs()) std::swap(q_velocity[dof], rest[dof]);
    mju_copy(moved->qpos, data()->qpos, model().nq);
    mju_copy(moved->qvel, data()->qvel, model().nv);
    mj_integratePos(&model(), moved->qpos, q_velocity.data(), own);
    mj_integratePos(&model(), moved->qpos, rest.data(), others);
    for (size_t i = 0; i < push.size(); ++i) moved->qvel[dofs()[i]] += push[i];
    std::vector<double> observation(layout.size);
    constexpr double kDt = 0.25;
    for (const double back : {kDt, 0.0}) {  // the columns' mocap velocity is that between two calls
      for (int i = 0; i < 3; ++i) moved->mocap_pos[i] = data()->mocap_pos[i] + (others - back) * mocap_velocity[i];
      EXPECT_TRUE(columns_->Write(*moved, back == 0 ? kDt : 0, observation.data() + layout.known_at));
    }
    terms_->WriteState(model(), *moved, observation.data() + layout.q_at);
    if (layout.evaluated) {
      EXPECT_TRUE(terms_->Write(model(), moved.get(), false, observation.data() + layout.drift_at));
    }
    return observation;
  }

  // Numbers of the row: k, gradient, rate, own_acceleration, acceleration.
  const double* Columns(const std::vector<double>& observation, int row) const {
    return observation.data() + layout.known_at + row * layout.known_width;
  }
  double KDot(const std::vector<double>& observation, int row) const {
    const double* const columns = Columns(observation, row);
    double sum = columns[1 + layout.velocities];
    for (int i = 0; i < layout.velocities; ++i) sum += columns[1 + i] * data()->qvel[dofs()[i]];
    return sum;
  }

  text::RowLayout layout;
  std::vector<double> mocap_velocity;

 private:
  v1::TextTask task_;
  v1::TaskOptions options_;
  std::shared_ptr<const text::CompiledTask> compiled_;
  TaskModel facts_;
  std::optional<text::KnownColumns> columns_;
  std::optional<text::Terms> terms_;
  MujocoData data_;
};

TEST(TextKnown, RowsHaveTheValuesOfTheModelsGeometry) {
  World world(Definition(Rows()));
  ASSERT_THAT(
      world.known().names(),
      ElementsAre("wall_hand", "ball_hand", "away_hand", "range_shoulder_upper", "range_shoulder_lower",
                  "cage_nose_x_upper", "cage_nose_x_lower", "cage_nose_z_upper", "cage_nose_z_lower", "seen_tip",
                  "gap_floor_lower_floor", "gap_obstacle_lower_obstacle", "gap_drifter_lower_drifter",
                  "gap_upper_lower_upper", "gap_drone_lower_drone", "gap_gimbal_lower_gimbal"));
  EXPECT_EQ(world.known().groups()[5], "cage");
  EXPECT_EQ(world.known().viability_gains()[0], 0.5);
  EXPECT_EQ(world.known().viability_gains()[2], 1);
  EXPECT_EQ(world.layout.known, 14) << "two of the 16 rows are limits of a joint";
  EXPECT_EQ(world.layout.known_width, 4 + 11);
  mj_resetData(&world.model(), world.data());
  const std::vector<double> observation = world.Observe();
  std::vector<double> k(16), q(world.layout.q);
  world.facts().dynamics->Evaluate(observation.data(), {q.data(), nullptr, nullptr, nullptr, nullptr});
  world.known().Evaluate({q.data(), nullptr, observation.data()}, {k.data()});
  const double arm = 75 * M_PI / 180;
  const double expected[16] = {
      3.0 / 5 * 0.7 - 0.2,  // the hand is at (0.7, 0, 0)
      std::hypot(0.6, 0.2) - 0.5,
      0.3 - std::hypot(0.1, 0.5),  // the obstacle is at (0.8, 0, 0.5)
      -arm,
      -arm,
      0.1 - 0.5,
      -0.1 - 0.5,
      -0.2,
      -0.2,           // the nose is at (0.1, 1.02, 0)
      0.1 - 1 - 0.1,  // the tip is at (-0.8, 0.1, 0), the drone at (0, 1, 0)
      0.05 - (1 - 0.03),
      0.05 - (std::hypot(0.1, 0.5) - 0.13),
      0.05 - (std::sqrt(0.09 + 1 + 1) - 0.08),  // from (0.7, 0, 0) to (1, 1, 1)
      0.05 + 0.07,                              // the lower arm begins where the upper one ends
      0.05 - (std::hypot(0.4, 1) - 0.08),
      0.05 - (std::hypot(1.2, 0.1) - 0.05),  // from (0.4, 0, 0) to (-0.8, 0.1, 0)
  };
  for (int i = 0; i < 16; ++i) EXPECT_NEAR(k[i], expected[i], 1e-12) << world.known().names()[i];
}

TEST(TextKnown, GradientsRatesAndAccelerationsAreDifferencesAlongMujocosIntegration) {
  World world(Definition(Rows()));
  RandomStream random(1);
  constexpr double kStep = 1e-5;
  for (int round = 0; round < 10; ++round) {
    world.Randomise(&random);
    const std::vector<double> here = world.Observe();
    const std::vector<double> own[2] = {world.Observe(-kStep, 0), world.Observe(kStep, 0)};
    const std::vector<double> others[2] = {world.Observe(0, -kStep), world.Observe(0, kStep)};
    const auto slope = [&](const auto& value, const std::vector<double>* pair) {
      return (value(pair[1]) - value(pair[0])) / (2 * kStep);
    };
    for (int row = 0; row < world.layout.known; ++row) {
      const auto k = [&](const std::vector<double>& at) { return world.Columns(at, row)[0]; };
      const auto k_dot = [&](const std::vector<double>& at) { return world.KDot(at, row); };
      const double* const columns = world.Columns(here, row);
      const double* const tail = columns + 1 + world.layout.velocities;
      EXPECT_NEAR(tail[0], slope(k, others), 1e-5) << "row " << row;
      EXPECT_NEAR(tail[1], slope(k_dot, own), 2e-3) << "row " << row;
      EXPECT_NEAR(tail[2], slope(k_dot, others), 2e-3) << "row " << row;
      std::vector<double> velocity(world.data()->qvel, world.data()->qvel + world.model().nv);
      for (int dof = 0; dof < world.layout.velocities; ++dof) {
        mju_zero(world.data()->qvel, world.model().nv);
        world.data()->qvel[world.dofs()[dof]] = 1;
        const std::vector<double> along[2] = {world.Observe(-kStep, 0), world.Observe(kStep, 0)};
        EXPECT_NEAR(columns[1 + dof], slope(k, along), 1e-7) << "row " << row << ", dof " << dof;
        mju_copy(world.data()->qvel, velocity.data(), world.model().nv);
      }
    }
  }
}

// A model with quaternions in q, moving obstacles, and rows with and without gains.
TEST(TextKnown, JoinedRowsAreDerivativesOfTheirValueAlongTheNominalModel) {
  World world(Definition(Rows()));
  const ControlAffineDims dims = world.facts().dynamics->dims();
  const int q = dims.q, n = dims.action, positions = world.layout.positions, size = JoinedRowSize(n);
  KnownRows rows(world.facts().known_constraints, SelectKnownRows(world.facts(), world.known().names()).value(), dims);
  const auto records = [&](const std::vector<double>& observation) {
    std::vector<double> at(q), f(q), G(q * n), made(rows.count() * size);
    world.facts().dynamics->Evaluate(observation.data(), {at.data(), nullptr, nullptr, f.data(), G.data()});
    rows.Evaluate({at.data(), nullptr, f.data(), G.data(), nullptr, observation.data()}, made.data());
    return made;
  };
  RandomStream random(2);
  constexpr double kStep = 1e-5;
  for (int round = 0; round < 20; ++round) {
    world.Randomise(&random);
    const std::vector<double> here = world.Observe();
    std::vector<double> f(q), G(q * n);
    world.facts().dynamics->Evaluate(here.data(), {nullptr, nullptr, nullptr, f.data(), G.data()});
    const std::vector<double> made = records(here);
    const auto rate = [&](double own, double others, const std::vector<double>& acceleration, int row) {
      std::vector<double> push(acceleration), back(acceleration);
      for (double& each : push) each *= kStep;
      for (double& each : back) each *= -kStep;
      return (records(world.Observe(own * kStep, others * kStep, push))[row * size] -
              records(world.Observe(-own * kStep, -others * kStep, back))[row * size]) /
             (2 * kStep);
    };
    const std::vector<double> drift(f.begin() + positions, f.end());
    for (int row = 0; row < rows.count(); ++row) {
      const double own = rate(1, 0, drift, row), others = rate(0, 1, {}, row);
      EXPECT_NEAR(made[row * size + 1], std::max(own, 0.0) + others, 5e-3) << world.known().names()[row];
      for (int i = 0; i < n; ++i) {
        std::vector<double> gain;
        for (int j = positions; j < q; ++j) gain.push_back(G[j * n + i]);
        const double expected = rate(0, 0, gain, row);
        EXPECT_NEAR(made[row * size + 2 + i], expected, 1e-5 * (1 + std::abs(expected))) << world.known().names()[row];
      }
    }
  }
}

// The analytic map of the baseline takes f and G of torque control. Random torques drive the hand through a wall;
// through the map, which also limits the joints' speed, they do not.
TEST(TextKnown, RandomTorquesThroughTheAnalyticMapKeepTheHandBeforeTheWall) {
  v1::TextTask task =
      Definition(R"(known { name: "wall" site: "hand" half_space { normal { z: 1 } offset: 0.2 } }
    known { name: "speed" joint_velocity: "shoulder" limit: 1 }
    known { name: "turn" joint_velocity: "elbow" limit: 1 })",
                 R"(period: 0.01 actuator: "shoulder" actuator: "elbow")", R"(joint: "shoulder" joint: "elbow")");
  ASSERT_THAT(text::Resolve(&task), IsOk());
  v1::TaskOptions options;
  *options.MutableExtension(v1::text_task) = task;
  const TaskModel model = MakeTaskModel("world", options).value();
  const auto world = MakeTask("world", options).value();
  const ControlAffineDims dims = model.dynamics->dims();
  std::vector<double> observation(dims.obs), q(dims.q), f(dims.q), G(dims.q * dims.action), k(5);
  const auto deepest = [&](bool mapped) {
    AnalyticMap map(model.known_constraints, model.known_constraints->viability_gains(), dims);
    double largest = -1, u[2] = {0, 0}, action[2];
    for (uint64_t episode = 0; episode < 5; ++episode) {
      RandomStream actions(episode);
      world->Reset(nullptr, observation.data());
      for (int step = 0; step < 300; ++step) {
        if (step % 25 == 0) u[0] = actions.Uniform(-1, 1), u[1] = actions.Uniform(-1, 1);
        model.dynamics->Evaluate(observation.data(), {q.data(), nullptr, nullptr, f.data(), G.data()});
        map.Set({q.data(), nullptr, f.data(), G.data(), nullptr, observation.data()}, {10, 3});
        map.Apply(u, action);
        EXPECT_TRUE(world->Step(mapped ? action : u, observation.data()).valid);
        model.known_constraints->Evaluate({q.data(), nullptr, observation.data()}, {k.data()});
        largest = std::max(largest, k[0]);
      }
    }
    return largest;
  };
  EXPECT_GT(deepest(false), 0.3);
  EXPECT_LT(deepest(true), 0.005);
}

TEST(TextKnown, VelocityControlTakesRowsAsTheyAreWithTheRateOfMovingObstacles) {
  v1::TextTask task =
      Definition(R"(known { name: "away" site: "hand" sphere { radius: 0.3 side: "outside" }
    relative_to: "obstacle" })",
                 R"(mode: "velocity" actuator: "shoulder" actuator: "elbow")", R"(joint: "shoulder" joint: "elbow")");
  task.mutable_file(0)->set_content(
      absl::StrReplaceAll(kWorld, {{"<motor name=\"shoulder\"", "<velocity name=\"shoulder\""},
                                   {"<motor name=\"elbow\"", "<velocity name=\"elbow\""}}));
  World world(task);
  EXPECT_EQ(world.layout.q, 2);
  EXPECT_EQ(world.layout.known_width, 4);
  EXPECT_EQ(world.known().viability_gains()[0], 0);
  mj_resetData(&world.model(), world.data());
  world.mocap_velocity = {0.5, 0, 0};
  const std::vector<double> observation = world.Observe();
  // The hand is at (0.7, 0, 0); its shoulder turns about y, so it goes down with 0.7 m/rad.
  const double distance = std::hypot(0.1, 0.5), lever[2] = {-0.7, -0.3 * 0.8};
  double k = 0, J[2], rate = 0;
  world.known().Evaluate({observation.data() + world.layout.q_at, nullptr, observation.data()},
                         {&k, J, nullptr, &rate});
  EXPECT_NEAR(k, 0.3 - distance, 1e-12);
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(J[i], lever[i] * 0.5 / distance, 1e-12) << "the hand is below the obstacle";
  EXPECT_NEAR(rate, -0.5 * 0.1 / distance, 1e-7) << "the obstacle leaves";
}

TEST(TextKnown, ClosestPointsOfSpheresCapsulesAndPlanesAreNoFartherThanAnySample) {
  World world(Definition(Rows()));
  const mjModel& model = world.model();
  RandomStream random(3);
  const auto id = [&](const char* name) { return mj_name2id(&model, mjOBJ_GEOM, name); };
  for (int round = 0; round < 50; ++round) {
    world.Randomise(&random);
    mj_kinematics(&model, world.data());
    for (const auto& [one, two] : {std::pair{"lower", "drifter"}, std::pair{"upper", "gimbal"},
                                   std::pair{"drone", "lower"}, std::pair{"drone", "obstacle"}}) {
      const int geoms[2] = {id(one), id(two)};
      const text::Closest found = text::ClosestPoints(model, world.data(), geoms[0], geoms[1]);
      double nearest = 1e9, radii = 0;
      mjtNum points[2][3];
      for (const int geom : geoms) radii += model.geom_size[3 * geom];
      for (int sample = 0; sample < 101 * 101; ++sample) {
        const double along[2] = {sample % 101 / 50.0 - 1, static_cast<int>(sample / 101) / 50.0 - 1};
        for (int i = 0; i < 2; ++i) {
          const double half = model.geom_type[geoms[i]] == mjGEOM_CAPSULE ? model.geom_size[3 * geoms[i] + 1] : 0;
          for (int axis = 0; axis < 3; ++axis) {
            points[i][axis] = world.data()->geom_xpos[3 * geoms[i] + axis] +
                              along[i] * half * world.data()->geom_xmat[9 * geoms[i] + 3 * axis + 2];
          }
        }
        nearest = std::min(nearest, mju_dist3(points[0], points[1]) - radii);
      }
      EXPECT_LE(found.distance, nearest + 1e-12) << one << " " << two;
      EXPECT_GE(found.distance, nearest - 4e-3) << one << " " << two;
      EXPECT_NEAR(mju_dist3(found.points[0], found.points[1]) - radii, found.distance, 1e-12);
      const text::Closest turned = text::ClosestPoints(model, world.data(), geoms[1], geoms[0]);
      EXPECT_NEAR(turned.distance, found.distance, 1e-12);
      EXPECT_NEAR(mju_dot3(turned.normal, found.normal), -1, 1e-9);
#if mjVERSION_HEADER >= 300
      EXPECT_NEAR(mj_geomDistance(&model, world.data(), geoms[0], geoms[1], 10, nullptr), found.distance, 1e-9);
#endif
    }
    const text::Closest below = text::ClosestPoints(model, world.data(), id("floor"), id("lower"));
    const text::Closest above = text::ClosestPoints(model, world.data(), id("lower"), id("floor"));
    const mjtNum* const centre = world.data()->geom_xpos + 3 * id("lower");
    const double slope = std::abs(world.data()->geom_xmat[9 * id("lower") + 8]);
    EXPECT_NEAR(below.distance, centre[2] + 1 - 0.15 * slope - 0.03, 1e-12);
    EXPECT_EQ(above.distance, below.distance);
    EXPECT_THAT(below.normal, ElementsAre(0, 0, 1));
    EXPECT_EQ(above.normal[2], -1);
  }
}

TEST(TextKnown, GlobsGiveARowForEverySiteAndForEveryPairThatCanMove) {
  World world(Definition(R"(known { name: "away" distance { geom1: "*er" geom2: "dr*" minimum: 0.1 } }
    known { name: "low" site: "*n*" half_space { normal { z: 1 } } })"));
  // A geom has no distance from itself.
  EXPECT_THAT(world.known().names(), ElementsAre("away_drifter_drone", "away_upper_drifter", "away_upper_drone",
                                                 "away_lower_drifter", "away_lower_drone", "low_hand", "low_nose"));
}

#if mjVERSION_HEADER < 300
TEST(TextKnown, OtherGeomsNeedMujoco3) {
  EXPECT_THAT(Error(R"(known { name: "gap" distance { geom1: "palm" geom2: "obstacle" minimum: 0.1 } })"),
              AllOf(HasSubstr("known[0].distance: there is no distance of the geoms palm and obstacle"),
                    HasSubstr("other types need MuJoCo 3")));
}
#else
TEST(TextKnown, DistancesOfOtherGeomsComeFromMujoco) {
  World world(Definition(R"(known { name: "gap" distance { geom1: "palm" geom2: "obstacle" minimum: 0.1 } })"));
  mj_resetData(&world.model(), world.data());
  world.data()->mocap_pos[2] = 0;  // the palm's face is at x = 0.72, the obstacle's centre at 0.8: they overlap by 2 cm
  EXPECT_NEAR(world.Columns(world.Observe(), 0)[0], 0.1 + 0.02, 1e-6);
  world.data()->mocap_pos[0] = 1;
  EXPECT_NEAR(world.Columns(world.Observe(), 0)[0], 0.1 - 0.18, 1e-6);
  RandomStream random(1);
  for (int round = 0; round < 20; ++round) {
    world.Randomise(&random);
    constexpr double kStep = 1e-4;
    const std::vector<double> here = world.Observe();
    const double slope =
        (world.Columns(world.Observe(kStep, 0), 0)[0] - world.Columns(world.Observe(-kStep, 0), 0)[0]) / (2 * kStep);
    const double bend =
        (world.KDot(world.Observe(kStep, 0), 0) - world.KDot(world.Observe(-kStep, 0), 0)) / (2 * kStep);
    const double* const tail = world.Columns(here, 0) + 1 + world.layout.velocities;
    EXPECT_NEAR(world.KDot(here, 0) - tail[0], slope, 1e-4);
    EXPECT_NEAR(tail[1], bend, 0.05 * (1 + std::abs(bend)));
  }
}
#endif

TEST(TextKnown, MessagesNameTheFieldAndTheChoice) {
  EXPECT_THAT(Error(R"(known { name: "a" })"),
              HasSubstr("known[0]: needs exactly one of joint_position, joint_velocity, site and distance"));
  EXPECT_THAT(Error(R"(known { name: "a" site: "hand" joint_position: "shoulder" })"), HasSubstr("exactly one of"));
  EXPECT_THAT(Error(R"(known { name: "a" site: "hand" })"),
              HasSubstr("known[0]: a site needs exactly one of half_space, sphere and box"));
  EXPECT_THAT(Error(R"(known { name: "a" joint_position: "shoulder" box { size { x: 1 } } })"),
              HasSubstr("known[0].box: is only for site"));
  EXPECT_THAT(Error(R"(known { name: "a" site: "hand" limit: 1 sphere { radius: 1 } })"),
              HasSubstr("known[0].limit: is only for joint_velocity"));
  EXPECT_THAT(
      Error(R"(known { name: "a" site: "hnd" sphere { radius: 1 } })"),
      AllOf(HasSubstr("known[0].site: no site of the model matches \"hnd\""), HasSubstr("goal, hand, nose, tip")));
  EXPECT_THAT(Error(R"(known { name: "a" site: "goal" sphere { radius: 1 } })"),
              HasSubstr("known[0].site: site goal is not moved by joints of q"));
  EXPECT_THAT(Error(R"(known { name: "a" site: "hand" sphere { radius: 1 } relative_to: "lower" })"),
              HasSubstr("site hand is not moved by joints of q relative to that frame"));
  EXPECT_THAT(Error(R"(known { name: "a" site: "hand" sphere { radius: 0 } })"), HasSubstr("known[0].sphere.radius"));
  EXPECT_THAT(Error(R"(known { name: "a" site: "hand" sphere { radius: 1 side: "left" } })"),
              AllOf(HasSubstr("known[0].sphere.side"), HasSubstr("outside")));
  EXPECT_THAT(Error(R"(known { name: "a" site: "hand" box { size { x: -1 } } })"),
              HasSubstr("known[0].box.size.x: must be above 0"));
  EXPECT_THAT(Error(R"(known { name: "a" site: "hand" box { size { } } })"), HasSubstr("known[0].box.size: needs"));
  EXPECT_THAT(Error(R"(known { name: "a" site: "hand" half_space { normal { } } })"),
              HasSubstr("known[0].half_space.normal: is 0"));
  EXPECT_THAT(
      Error(R"(known { name: "a" distance { geom1: "lower" geom2: "wall" minimum: 1 } })"),
      AllOf(HasSubstr("known[0].distance.geom2: no geom of the model matches \"wall\""), HasSubstr("obstacle")));
  EXPECT_THAT(Error(R"(known { name: "a" distance { geom1: "floor" geom2: "obstacle" minimum: 1 } })"),
              HasSubstr("known[0].distance: joints of q change the distance of no \"floor\" from a \"obstacle\""));
  EXPECT_THAT(Error(R"(known { name: "a" site: "hand" sphere { radius: 1 } }
                       known { name: "a_hand" site: "hand" sphere { radius: 1 } })"),
              HasSubstr("known[0].name: the row a_hand has the name of another row or group"));
}

TEST(TextKnown, OnlyRowsOfGeometryAddColumns) {
  const World none(Definition("")), limits(Definition(R"(known { name: "r" joint_position: "shoulder" })"));
  const World one(Definition(R"(known { name: "b" site: "hand" sphere { radius: 1 } })"));
  EXPECT_EQ(limits.layout.size, none.layout.size);
  EXPECT_EQ(one.layout.size, none.layout.size + 1 + 11 + 3);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
