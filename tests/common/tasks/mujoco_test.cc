// Tests the use of MuJoCo: scaled physics against compiling the scaled model, and the handling of its errors.
#include "common/tasks/mujoco.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;

// A sliding puck, a pendulum of two links with a tendon and a motor, a rim, and an explicit contact pair.
std::string Model(const PhysicsScale& scale, const std::string& size = "") {
  const auto mass = [&](double kg) { return absl::StrCat(" mass=\"", kg * scale.mass, "\" "); };
  const auto damping = [&](double d) { return absl::StrCat(" damping=\"", d * scale.damping, "\" "); };
  const auto friction = [&](double a, double b, double c) {
    return absl::StrCat(" friction=\"", a * scale.friction, " ", b * scale.friction, " ", c * scale.friction, "\" ");
  };
  return absl::StrCat(R"(<mujoco><option timestep="0.002"/><statistic extent="2" center="0 0 1"/>)", size,
                      R"(<worldbody>
        <geom name="floor" type="plane" size="5 5 0.1")",
                      friction(1, 0.005, 0.0001), R"(/>
        <body name="puck" pos="0 0 1"><freejoint/><geom name="puck" type="box" size="0.1 0.1 0.1")",
                      mass(0.5), friction(0.5, 0.004, 0.0002), R"(/></body>
        <body name="upper" pos="2 0 2"><joint name="shoulder" axis="0 1 0")",
                      damping(0.1), R"(/>
          <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.05")",
                      mass(2), friction(1, 0.005, 0.0001), R"(/>
          <body name="lower" pos="0.5 0 0"><joint name="elbow" axis="0 1 0")",
                      damping(0.02), R"(/>
            <geom name="hand" type="capsule" fromto="0 0 0 0.5 0 0" size="0.05")",
                      mass(1), friction(1, 0.005, 0.0001), R"(/></body></body>
      </worldbody>
      <tendon><fixed name="coupling"><joint joint="shoulder" coef="1"/><joint joint="elbow" coef="-0.5"/></fixed></tendon>
      <contact><pair geom1="hand" geom2="floor" friction=")",
                      0.7 * scale.friction, " ", 0.7 * scale.friction, " ", 0.01 * scale.friction, " ",
                      0.001 * scale.friction, " ", 0.001 * scale.friction, R"("/></contact>
      <actuator><motor joint="shoulder" gear="3"/></actuator></mujoco>)");
}

MujocoModel Compile(const std::string& xml) {
  const absl::StatusOr<MujocoModel> model = CompileMujocoModel("test", xml);
  EXPECT_THAT(model, IsOk());
  return model.ok() ? *model : nullptr;
}

void ExpectNear(const mjtNum* got, const mjtNum* expected, int count, const char* what) {
  for (int i = 0; i < count; ++i) {
    EXPECT_NEAR(got[i], expected[i], 1e-12 * (1 + std::abs(expected[i]))) << what << "[" << i << "]";
  }
}

void ExpectSameConstants(const mjModel& got, const mjModel& expected) {
  ExpectNear(got.body_mass, expected.body_mass, expected.nbody, "body_mass");
  ExpectNear(got.body_inertia, expected.body_inertia, 3 * expected.nbody, "body_inertia");
  ExpectNear(got.body_subtreemass, expected.body_subtreemass, expected.nbody, "body_subtreemass");
  ExpectNear(got.body_invweight0, expected.body_invweight0, 2 * expected.nbody, "body_invweight0");
  ExpectNear(got.dof_damping, expected.dof_damping, expected.nv, "dof_damping");
  ExpectNear(got.dof_invweight0, expected.dof_invweight0, expected.nv, "dof_invweight0");
  ExpectNear(got.dof_M0, expected.dof_M0, expected.nv, "dof_M0");
  ExpectNear(got.tendon_invweight0, expected.tendon_invweight0, expected.ntendon, "tendon_invweight0");
  ExpectNear(got.tendon_length0, expected.tendon_length0, expected.ntendon, "tendon_length0");
  ExpectNear(got.geom_friction, expected.geom_friction, 3 * expected.ngeom, "geom_friction");
  ExpectNear(got.pair_friction, expected.pair_friction, 5 * expected.npair, "pair_friction");
  ExpectNear(&got.stat.meaninertia, &expected.stat.meaninertia, 1, "stat.meaninertia");
  ExpectNear(&got.stat.meanmass, &expected.stat.meanmass, 1, "stat.meanmass");
  ExpectNear(&got.stat.meansize, &expected.stat.meansize, 1, "stat.meansize");
  ExpectNear(&got.stat.extent, &expected.stat.extent, 1, "stat.extent");
  ExpectNear(got.stat.center, expected.stat.center, 3, "stat.center");
}

// In the compiled model the puck is in the air; on the floor it has four contacts.
void PutDown(const mjModel&, mjData* data) { data->qpos[2] = 0.1; }

// Positions while the puck slides over the floor and the motor swings the arm: [steps, nq].
std::vector<double> Play(Simulation* simulation) {
  simulation->Start([](const mjModel& model, mjData* data) {
    PutDown(model, data);
    data->qvel[0] = 2;
    data->ctrl[0] = 1.5;
  });
  std::vector<double> states;
  for (int i = 0; i < 400; ++i) {
    EXPECT_TRUE(simulation->Step(1));
    states.insert(states.end(), simulation->data()->qpos, simulation->data()->qpos + simulation->model().nq);
  }
  return states;
}

TEST(Simulation, ScaledPhysicsEqualsCompilingTheScaledModel) {
  Simulation simulation = Simulation::Make(Compile(Model({}))).value();
  const std::vector<double> nominal = Play(&simulation);
  for (const PhysicsScale scale : {PhysicsScale{1.7, 1, 1}, PhysicsScale{1, 2.5, 1}, PhysicsScale{1, 1, 0.3},
                                   PhysicsScale{0.6, 0.5, 1.4}, PhysicsScale{0.3, 0, 0}}) {
    SCOPED_TRACE(absl::StrCat(scale.mass, " ", scale.damping, " ", scale.friction));
    Simulation compiled = Simulation::Make(Compile(Model(scale))).value();
    simulation.Scale(scale);
    ExpectSameConstants(simulation.model(), compiled.model());
    const std::vector<double> expected = Play(&compiled), got = Play(&simulation);
    ASSERT_EQ(got.size(), expected.size());
    double worst = 0;
    for (size_t i = 0; i < got.size(); ++i) worst = testing::LargerOrNan(std::abs(got[i] - expected[i]), worst);
    EXPECT_LT(worst, 1e-6) << "contacts amplify rounding differences";
    EXPECT_NE(got, nominal);
  }
  simulation.Scale({});
  EXPECT_EQ(Play(&simulation), nominal) << "scale 1 is the compiled model";
}

#if mjVERSION_HEADER >= 4000000
TEST(Simulation, AllCoefficientsOfADampingAreScaled) {
  Simulation simulation =
      Simulation::Make(CompileMujocoModel("m", R"(<mujoco><worldbody><body><joint type="slide" damping="1 0.5 0.25"/>
        <geom size="0.1"/></body></worldbody></mujoco>)")
                           .value())
          .value();
  const auto coefficients = [&simulation] {
    const mjModel& model = simulation.model();
    return std::vector<double>{model.dof_damping[0], model.dof_dampingpoly[0], model.dof_dampingpoly[1]};
  };
  simulation.Scale({1, 3, 1});
  EXPECT_EQ(coefficients(), (std::vector<double>{3, 1.5, 0.75}));
  const ElementScale elements = {{1, 1}, {2}, {1}, {}};
  simulation.Scale({1, 3, 1}, &elements);
  EXPECT_EQ(coefficients(), (std::vector<double>{6, 3, 1.5}));
}
#endif

TEST(Simulation, AHeavierBodyMakesNoMuscleStronger) {
  Simulation simulation = Simulation::Make(Compile(R"(<mujoco><worldbody><body><joint name="j" axis="0 1 0"/>
      <geom size="0.1" pos="0.2 0 0"/></body></worldbody>
      <actuator><muscle joint="j" lengthrange="-1 1"/></actuator></mujoco>)"))
                              .value();
  const auto force = [&simulation] {
    simulation.Start([](const mjModel& model, mjData* data) {
      data->act[0] = 1;
      mj_forward(&model, data);
    });
    return simulation.data()->actuator_force[0];
  };
  const double nominal = force();
  EXPECT_LT(nominal, 0) << "it pulls";
  simulation.Scale({2, 1, 1});
  EXPECT_EQ(force(), nominal);
  const ElementScale elements = {{1, 3}, {1}, {1}, {1}};
  simulation.Scale({}, &elements);
  EXPECT_EQ(force(), nominal);
}

TEST(Simulation, ScalingOneSimulationDoesNotChangeAnother) {
  const MujocoModel model = Compile(Model({}));
  Simulation one = Simulation::Make(model).value(), two = Simulation::Make(model).value();
  const std::vector<double> nominal = Play(&two);
  one.Scale({2, 2, 2});
  EXPECT_EQ(Play(&two), nominal);
  EXPECT_EQ(two.model().body_mass, model->body_mass);
}

TEST(Simulation, AMujocoErrorInAResetMakesStepsInvalidUntilTheNextReset) {
  Simulation simulation = Simulation::Make(Compile(Model({}))).value();
  for (int i = 0; i < 3; ++i) {
    simulation.Start([](const mjModel&, mjData*) { mju_error("the test's"); });
    EXPECT_FALSE(simulation.Step(1));
    EXPECT_FALSE(simulation.Step(1));
    simulation.Start([](const mjModel&, mjData*) {});
    EXPECT_TRUE(simulation.Step(1));
  }
}

TEST(Simulation, AMujocoErrorInAStepMakesItInvalidAndDoesNotEndTheProcess) {
  Simulation simulation = Simulation::Make(Compile(Model({}))).value();
  for (int i = 0; i < 3; ++i) {
    simulation.Start(&PutDown);
    EXPECT_TRUE(simulation.Step(1));
    mjcb_control = [](const mjModel*, mjData*) { mju_error("the test's"); };
    EXPECT_FALSE(simulation.Step(1));
    mjcb_control = nullptr;
  }
}

TEST(Simulation, AFullContactBufferMakesTheStepInvalid) {
  // Since version 3 contacts lie in the memory of the whole step; 1,500 bytes are enough for one of the four.
  const char* const size = mjVERSION_HEADER >= 300 ? "<size memory=\"1500\"/>" : "<size nconmax=\"2\"/>";
  Simulation roomy = Simulation::Make(Compile(Model({}))).value();
  Simulation tight = Simulation::Make(Compile(Model({}, size))).value();
  for (Simulation* simulation : {&roomy, &tight}) simulation->Start(&PutDown);
  EXPECT_TRUE(roomy.Step(1));
  EXPECT_FALSE(tight.Step(1));
  EXPECT_GT(tight.data()->warning[mjWARN_CONTACTFULL].number, 0);
}

TEST(Guard, TurnsAnErrorIntoAStatusWithItsMessage) {
  const absl::Status status = GuardMujoco([] { mju_error("no such body"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("no such body"));
  EXPECT_THAT(GuardMujoco([] {}), IsOk());
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
