// Tests what `task new` makes of models that nobody here wrote: names, ranges that the model does not give, joints that
// nothing drives, and meshes that only draw. Expected values are literals.
#include <filesystem>
#include <string>
#include <vector>

#include "common/config/textproto.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/text/model_files.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/mujoco_draft.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/text_tasks.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;
using ::datacom::testing::IsOk;
using ::datacom::testing::TaskFolder;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

v1::TextTask ReadModel(const TaskFolder& folder) {
  v1::TextTask task;
  EXPECT_THAT(text::AddModelFiles(fs::path(folder.task()).parent_path() / "model.xml", &task), IsOk());
  return task;
}

// The first task of a model, completed.
v1::TextTask Drafted(const std::string& model) {
  v1::TextTask task = ReadModel(TaskFolder(model, ""));
  const auto compiled = text::CompileFiles(task);
  EXPECT_THAT(compiled, IsOk());
  if (!compiled.ok()) return task;
  const auto draft = text::DraftTask(**compiled, "drafted", "model.xml");
  EXPECT_THAT(draft, IsOk());
  if (!draft.ok()) return task;
  EXPECT_THAT(ParseTextproto(*draft, "draft", task.mutable_definition()), IsOk()) << *draft;
  EXPECT_THAT(text::Resolve(&task), IsOk()) << *draft;
  return task;
}

TEST(ForeignModels, AnElementWhoseNameLooksLikeAGlobIsMeantByItsName) {
  const v1::TextTask task = Drafted(R"(<mujoco><worldbody><body><joint name="a[1]" axis="0 1 0"/>
    <geom size="0.1" pos="0.2 0 0"/><body pos="0.2 0 0"><joint name="a1" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/>
    <body pos="0.2 0 0"><joint name="-e" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/></body></body></body></worldbody>
    <actuator><motor name="m*" joint="a1" ctrllimited="true" ctrlrange="-1 1"/><motor name="mx" joint="-e"/></actuator>
    </mujoco>)");
  EXPECT_THAT(task.resolved().action(), ElementsAre("m_", "mx"));
  EXPECT_THAT(task.resolved().state(), ElementsAre("a_1_", "a1", "_e", "a_1__velocity", "a1_velocity", "_e_velocity"));
  ASSERT_EQ(task.definition().control().range_size(), 1);
  EXPECT_EQ(task.definition().control().range(0).actuator(), "mx");
}

TEST(ForeignModels, ControlRangesThatTheModelDoesNotGiveFollowFromForcesAndLimits) {
  const v1::TextTask task = Drafted(R"(<mujoco><worldbody><body><joint name="j" axis="0 1 0"/>
    <geom size="0.1" pos="0.2 0 0"/><body pos="0.2 0 0"><joint name="k" axis="0 1 0" limited="true" range="20 120"/>
    <geom size="0.1" pos="0.2 0 0"/></body></body></worldbody><actuator>
    <general name="strong" joint="j" gainprm="2" forcelimited="true" forcerange="-80 60"/>
    <position name="servo" joint="k" kp="30" gear="-2"/><motor name="plain" joint="j"/></actuator></mujoco>)");
  const auto& ranges = task.definition().control().range();
  ASSERT_EQ(ranges.size(), 3);
  EXPECT_EQ(ranges[0].low(), -40);
  EXPECT_EQ(ranges[0].high(), 30);
  EXPECT_THAT(ranges[1].low(), DoubleNear(-4.189, 1e-9)) << "twice 120 degrees, the other way round";
  EXPECT_THAT(ranges[1].high(), DoubleNear(-0.6981, 1e-9));
  EXPECT_EQ(ranges[2].low(), -1);
  EXPECT_EQ(ranges[2].high(), 1);
}

TEST(ForeignModels, AMusclesRangeBeginsAtZero) {
  const v1::TextTask task = Drafted(R"(<mujoco><worldbody><body><joint name="j" axis="0 1 0"/>
    <geom size="0.1" pos="0.2 0 0"/></body></worldbody>
    <actuator><muscle name="m" joint="j" lengthrange="-1 1"/></actuator></mujoco>)");
  ASSERT_EQ(task.definition().control().range_size(), 1);
  EXPECT_EQ(task.definition().control().range(0).low(), 0);
  EXPECT_EQ(task.definition().control().range(0).high(), 1);
}

TEST(ForeignModels, AJointWithoutANameThatNothingDrivesIsNoPartOfQ) {
  const std::string arm = R"(<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/>
    </body><body pos="0 0 3">)",
                    end = R"(<geom size="0.1"/></body></worldbody>
    <actuator><motor name="m" joint="j" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>)";
  EXPECT_THAT(Drafted(arm + "<joint type=\"slide\"/>" + end).definition().constraint_state().joint(), ElementsAre("j"));
  EXPECT_THAT(Drafted(arm + "<joint name=\"k\" type=\"slide\"/>" + end).resolved().state(),
              ElementsAre("j", "j_velocity", "k"));
}

TEST(ForeignModels, AJointWithoutANameIsNotTakenForOneThatIsCalledAfterItsNumber) {
  const TaskFolder folder(R"(<mujoco><worldbody><body><joint name="joint_1" axis="0 1 0"/>
    <geom size="0.1" pos="0.2 0 0"/><body pos="0.2 0 0"><joint axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/></body>
    </body></worldbody><actuator><motor name="m" joint="joint_1" ctrllimited="true" ctrlrange="-1 1"/></actuator>
    </mujoco>)",
                          R"(name: "two" model: "model.xml" observation { joint: "?*" } reward: "0"
    cost { name: "c" value: "-1" })");
  const auto task = text::LoadTask(folder.task());
  ASSERT_THAT(task, IsOk());
  EXPECT_THAT(task->resolved().start_key(), ElementsAre("joint_1", "joint_1_1"));
  EXPECT_THAT(task->resolved().state(), ElementsAre("joint_1", "joint_1_1", "joint_1_velocity", "joint_1_1_velocity"));
}

TEST(ForeignModels, NamesThatLookAlikeAndLikeEachOthersReplacementStayDifferent) {
  const v1::TextTask task = Drafted(R"(<mujoco><worldbody><body><joint name="a b" axis="0 1 0"/>
    <geom size="0.1" pos="0.2 0 0"/><body pos="0.2 0 0"><joint name="a-b" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/>
    <body pos="0.2 0 0"><joint name="a_b_0" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/></body></body></body></worldbody>
    <actuator><motor name="m 1" joint="a b"/><motor name="m-1" joint="a-b"/><motor name="m_1_0" joint="a_b_0"/></actuator>
    </mujoco>)");
  EXPECT_THAT(task.resolved().action(), ElementsAre("m_1_0_0", "m_1_1", "m_1_0"));
  EXPECT_THAT(task.resolved().start_key(), UnorderedElementsAre("a_b_0_0", "a_b_1", "a_b_0"));
}

TEST(ForeignModels, AJointMayBeCalledLikeTheVelocityOfAnother) {
  const std::string arm = R"(<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/>)",
                    other = R"(<body><joint name="j_velocity" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/></body>)",
                    end = R"(</worldbody><actuator><motor name="m" joint="j"/></actuator></mujoco>)";
  EXPECT_THAT(Drafted(arm + other + "</body>" + end).resolved().state(),
              ElementsAre("j", "j_velocity", "j_velocity_", "j_velocity_velocity"));
  EXPECT_THAT(Drafted(arm + "</body>" + other + end).resolved().state(),
              ElementsAre("j", "j_velocity", "joint_j_velocity"));
}

TEST(ForeignModels, AWheelThatHasTurnedOftenStartsAsInItsKeyframe) {
  const v1::TextTask task = Drafted(R"(<mujoco><worldbody><body><joint name="wheel" axis="0 1 0"/>
    <geom size="0.1" pos="0.2 0 0"/><body><joint name="rail" type="slide"/><geom size="0.1"/></body></body></worldbody>
    <actuator><motor name="m" joint="wheel"/></actuator>
    <keyframe><key name="home" qpos="40 30"/></keyframe></mujoco>)");
  EXPECT_EQ(task.definition().start().keyframe(), "home");
  ASSERT_EQ(task.definition().start().joint_size(), 1);
  EXPECT_EQ(task.definition().start().joint(0).joint(), "rail");
}

TEST(ForeignModels, ANarrowRangeFarFromZeroIsWrittenWithTheDigitsThatItNeeds) {
  const v1::TextTask task =
      Drafted(R"(<mujoco><worldbody><body><joint name="j" type="slide" ref="1000.25" limited="true"
    range="1000.1 1000.4"/><geom size="0.1"/></body></worldbody>
    <actuator><position name="servo" joint="j" kp="30"/></actuator></mujoco>)");
  const v1::TaskDefinition& draft = task.definition();
  ASSERT_EQ(draft.control().range_size(), 1);
  EXPECT_EQ(draft.control().range(0).low(), 1000.1);
  EXPECT_EQ(draft.control().range(0).high(), 1000.4);
  ASSERT_EQ(draft.start().joint_size(), 1);
  EXPECT_THAT(draft.start().joint(0).position().low(), DoubleNear(1000.235, 0.001));
  EXPECT_THAT(draft.start().joint(0).position().high(), DoubleNear(1000.265, 0.001));
  EXPECT_THAT(draft.reward(), HasSubstr("1000.2"));
  ASSERT_EQ(draft.cost_size(), 1);
  EXPECT_THAT(draft.cost(0).value(), HasSubstr("1000.2"));
}

TEST(ForeignModels, AModelWithoutActuatorsIsToldWhatItNeeds) {
  const auto refusal = [](const std::string& joint, const std::string& file) {
    const auto model = CompileMujocoModel("m", "<mujoco><worldbody><body><joint name=\"j\" " + joint +
                                                   "/><geom size=\"0.1\"/></body></worldbody></mujoco>");
    EXPECT_THAT(model, IsOk());
    return std::string(text::DraftTask(**model, "name", file).status().message());
  };
  EXPECT_THAT(refusal("", "arm.urdf"), HasSubstr("A URDF model cannot have one: convert it to MJCF"));
  EXPECT_THAT(refusal("", "arm.xml"), HasSubstr("<motor name=\"j\" joint=\"j\" gear=\"1\""));
#if mjVERSION_HEADER >= 4000000
  EXPECT_THAT(refusal("actuatorfrcrange=\"-87 80\"", "arm.xml"), HasSubstr("gear=\"87\""));
#endif
}

#if mjVERSION_HEADER >= 4000000  // attached models; files by their whole paths
TEST(ForeignModels, WhatHasNoNameInAnAttachedModelGetsOne) {
  const TaskFolder folder(R"(<mujoco><asset><model name="leg" file="parts/leg.xml"/></asset><worldbody>
    <body name="a &lt; &amp; b" pos="0 0 1"><freejoint/><geom size="0.1"/>
    <attach model="leg" body="hip" prefix="left_"/><attach model="leg" body="hip" prefix="right_"/></body></worldbody>
    </mujoco>)",
                          "");
  folder.Write("parts/leg.xml",
               R"(<mujoco><include file="more.xml"/><actuator><motor joint="knee"/></actuator></mujoco>)");
  folder.Write("parts/more.xml", R"(<mujoco><worldbody><body name="hip"><joint axis="0 1 0"/>
    <geom size="0.1" pos="0.2 0 0"/><body name="shank" pos="0.2 0 0"><joint name="knee" axis="0 1 0"/>
    <geom size="0.1" pos="0.2 0 0"/></body></body></worldbody></mujoco>)");
  v1::TextTask task = ReadModel(folder);
  EXPECT_THAT(text::NameElements(&task), ElementsAre("joint a < & b", "joint hip", "actuator knee"));
  const auto model = text::CompileFiles(task);
  ASSERT_THAT(model, IsOk());
  for (const char* const joint : {"a < & b", "left_hip", "left_knee", "right_hip", "right_knee"}) {
    EXPECT_GE(mj_name2id(model->get(), mjOBJ_JOINT, joint), 0) << joint;
  }
  EXPECT_GE(mj_name2id(model->get(), mjOBJ_ACTUATOR, "right_knee"), 0);
}

TEST(ForeignModels, AModelThatIsAttachedByAnIncludedFileMayLieBesideThatFile) {
  const TaskFolder folder(R"(<mujoco><include file="parts/all.xml"/><worldbody><body name="b"><geom size="0.1"/>
    <joint name="x" type="slide"/><attach model="leg" body="hip" prefix="left_"/></body></worldbody></mujoco>)",
                          "");
  folder.Write("parts/all.xml", R"(<x><asset><model name="leg" file="leg.xml"/></asset></x>)");
  folder.Write("parts/leg.xml", R"(<mujoco><worldbody><body name="hip"><joint axis="0 1 0"/>
    <geom size="0.1" pos="0.2 0 0"/></body></worldbody></mujoco>)");
  v1::TextTask task = ReadModel(folder);
  EXPECT_THAT(text::NameElements(&task), ElementsAre("joint hip"));
}

constexpr char kTetrahedron[] = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";

// A cart that may see a wall.
std::string Cart(const std::string& wall, const std::string& sensor) {
  return R"(<mujoco><asset><mesh name="wall" file="a &amp; b.obj"/></asset><worldbody>
    <geom name="wall" type="mesh" mesh="wall" pos="2 0 0" )" +
         wall +
         R"(/><body name="cart"><joint name="x" type="slide"/><geom size="0.1"/><site name="eye"/></body></worldbody>
    <actuator><motor name="m" joint="x"/></actuator><sensor>)" +
         sensor + "</sensor></mujoco>";
}

TEST(ForeignModels, WithoutVisualMeshesAFileThatIsUsedStays) {
  const std::string draws = "contype=\"0\" conaffinity=\"0\"";
  const auto files = [](const std::string& wall) {
    const TaskFolder folder(Cart(wall, ""), "");
    folder.Write("a & b.obj", kTetrahedron);
    v1::TextTask task = ReadModel(folder);
    EXPECT_THAT(text::RemoveVisual(&task), IsOk());
    return task.file_size();
  };
  EXPECT_EQ(files(""), 2) << "it collides";
  EXPECT_EQ(files(draws), 1);
  EXPECT_EQ(files(draws + " fluidshape=\"ellipsoid\""), 2) << "a fluid pushes it";
}

TEST(ForeignModels, AnInfiniteRangeIsNone) {
  v1::TextTask task = Drafted(R"(<mujoco><worldbody><body><joint name="j" type="slide" range="-inf inf"/>
    <geom size="0.1"/><body><joint name="k" axis="0 1 0" range="0 inf"/><geom size="0.1" pos="0.2 0 0"/></body></body>
    </worldbody><actuator><motor name="a" joint="j" ctrlrange="-inf inf"/>
    <motor name="b" joint="k" forcerange="-inf inf"/></actuator></mujoco>)");
  ASSERT_EQ(task.definition().control().range_size(), 2);
  EXPECT_EQ(task.definition().control().range(0).high(), 1);
  EXPECT_EQ(task.definition().control().range(1).high(), 1);
  ASSERT_EQ(task.definition().start().joint_size(), 2);
  EXPECT_EQ(task.definition().start().joint(0).position().high(), 0.05);
  task.mutable_definition()->mutable_control()->mutable_range()->DeleteSubrange(0, 1);
  EXPECT_THAT(std::string(text::Resolve(&task).message()), HasSubstr("actuator a has no control range in the model"));
}

TEST(ForeignModels, AnEmptyNameIsNone) {
  v1::TextTask task = ReadModel(TaskFolder(R"(<mujoco><worldbody><body name="it's"><joint name="x" type="slide"/>
    <joint name='' axis="0 1 0"/><geom size="0.1"/></body></worldbody>
    <actuator><motor joint="x" name = ""/></actuator></mujoco>)",
                                           ""));
  EXPECT_THAT(text::NameElements(&task), ElementsAre("joint it's", "actuator x"));
  const auto model = text::CompileFiles(task);
  ASSERT_THAT(model, IsOk());
  EXPECT_GE(mj_name2id(model->get(), mjOBJ_JOINT, "it's"), 0);
  EXPECT_GE(mj_name2id(model->get(), mjOBJ_ACTUATOR, "x"), 0);
}

TEST(ForeignModels, FoldersMayBeSeparatedAsOnWindows) {
  const TaskFolder folder(R"(<mujoco><asset><mesh file="meshes\hull.obj"/><mesh file="meshes\paint.obj"/></asset>
    <include file="parts\cart.xml"/><actuator><motor name="m" joint="x"/></actuator></mujoco>)",
                          "");
  folder.Write("parts/cart.xml", R"(<mujoco><worldbody><body name="cart"><joint name="x" type="slide"/>
    <joint type="slide" axis="1 0 0"/><geom type="mesh" mesh="hull"/>
    <geom type="mesh" mesh="paint" mass="0" contype="0" conaffinity="0"/></body></worldbody></mujoco>)");
  folder.Write("meshes/hull.obj", kTetrahedron);
  folder.Write("meshes/paint.obj", kTetrahedron);
  v1::TextTask task = ReadModel(folder);
  EXPECT_THAT(text::NameElements(&task), ElementsAre("joint cart"));
  const auto visual = text::RemoveVisual(&task);
  ASSERT_THAT(visual, IsOk());
  EXPECT_EQ(visual->geoms - visual->kept, 1);
  EXPECT_EQ(task.file_size(), 3) << "the model, the cart and its hull";
}

TEST(ForeignModels, WithoutVisualMeshesAFileThatHasNothingElseIsNotIncluded) {
  const TaskFolder folder(R"(<mujoco><asset><include file="meshes.xml"/></asset><worldbody><body><geom size="0.1"/>
    <joint name="x" type="slide"/><include file="paint.xml"/></body></worldbody></mujoco>)",
                          "");
  folder.Write("meshes.xml", "<x><include file=\"more.xml\"/></x>");
  folder.Write("more.xml", "<x>\n<mesh file=\"paint.obj\"/>\n</x>");
  folder.Write("paint.xml", "<x><geom type=\"mesh\" mesh=\"paint\" mass=\"0\" contype=\"0\" conaffinity=\"0\"/></x>");
  folder.Write("paint.obj", kTetrahedron);
  v1::TextTask task = ReadModel(folder);
  const auto visual = text::RemoveVisual(&task);
  ASSERT_THAT(visual, IsOk());
  EXPECT_EQ(visual->geoms - visual->kept, 1);
  EXPECT_EQ(task.file_size(), 1);
}

TEST(ForeignModels, AMeshThatASensorSeesDoesNotOnlyDraw) {
  const auto error = [](const std::string& sensor) {
    const TaskFolder folder(Cart("contype=\"0\" conaffinity=\"0\"", sensor), "");
    folder.Write("a & b.obj", kTetrahedron);
    v1::TextTask task = ReadModel(folder);
    return std::string(text::RemoveVisual(&task).status().message());
  };
  EXPECT_THAT(error("<rangefinder name=\"eye\" site=\"eye\"/>"),
              HasSubstr("model: its sensor eye also measures geoms that only draw a mesh"));
  EXPECT_THAT(error("<distance name=\"near\" body1=\"world\" body2=\"cart\" cutoff=\"5\"/>"),
              HasSubstr("its sensor near also measures"));
  EXPECT_EQ(error("<jointpos name=\"x\" joint=\"x\"/>"), "");
}
#endif

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
