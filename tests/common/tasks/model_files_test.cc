// Tests that a task has the files of its model that MuJoCo reads, and that its copy of the model is the model.
#include "common/tasks/text/model_files.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/config/textproto.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/mujoco_same.h"
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
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTask[] = R"(name: "cart" model: "model.xml" observation { joint: "j" } reward: "0"
  cost { name: "c" value: "j" })";
constexpr char kEnd[] =
    R"(<actuator><motor name="m" joint="j" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>)";

// One pixel: the letters a, b and c.
constexpr char kPng[] =
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63484c4a0600024e0127c0619e190000000049454e44ae426082";

// A cube with a mass of 1000 * side^3.
std::string Cube(double side) {
  std::string text;
  for (int corner = 0; corner < 8; ++corner) {
    absl::StrAppend(&text, "v ", (corner / 4) * side, " ", (corner / 2 % 2) * side, " ", (corner % 2) * side, "\n");
  }
  return text +
         "f 1 2 4\nf 1 4 3\nf 5 7 8\nf 5 8 6\nf 1 5 6\nf 1 6 2\nf 3 4 8\nf 3 8 7\nf 1 3 7\nf 1 7 5\nf 2 6 8\nf 2 8 4\n";
}

// A moving body with these geoms.
std::string Body(const std::string& geoms) {
  return R"(<worldbody><body name="b"><joint name="j" type="slide"/>)" + geoms + "</body></worldbody>";
}

std::vector<std::string> NamesOf(const v1::TextTask& task) {
  std::vector<std::string> names;
  for (const v1::TaskFile& file : task.file()) names.push_back(file.name());
  return names;
}

double MassOf(const v1::TextTask& task, const char* body) {
  const auto model = text::CompileFiles(task);
  EXPECT_THAT(model, IsOk());
  return model.ok() ? (*model)->body_mass[mj_name2id(model->get(), mjOBJ_BODY, body)] : 0;
}

TEST(ModelFiles, AMissingFileIsNamedByItsPlace) {
  const TaskFolder folder(
      R"(<mujoco><compiler meshdir="parts"/><asset><mesh file="shape.obj"/></asset>)" + Body("") + kEnd, kTask);
#if mjVERSION_HEADER >= 4000000
  EXPECT_THAT(folder.Error(), HasSubstr("it needs the file " + fs::path(folder.task()).parent_path().string() +
                                        "/parts/shape.obj, which does not exist"));
#else
  EXPECT_THAT(folder.Error(), HasSubstr("shape.obj"));
#endif
}

TEST(ModelFiles, ModelsDifferInTheFieldAndElementThatIsNamed) {
  const auto compile = [](const std::string& geoms, const std::string& option = "") {
    return CompileMujocoModel("one", "<mujoco>" + option + Body(geoms) + "</mujoco>").value();
  };
  const MujocoModel one = compile("<geom name=\"g\" size=\"0.1\" mass=\"2\"/>");
  EXPECT_THAT(CheckSameModel(*one, *compile("<geom name=\"g\" size=\"0.1\" mass=\"2\"/>")), IsOk());
  const auto error = [&](const MujocoModel& other) { return std::string(CheckSameModel(*one, *other).message()); };
  EXPECT_THAT(error(compile("<geom name=\"g\" size=\"0.1\" mass=\"3\"/>")),
              HasSubstr("body_mass of body b is 3 instead of 2"));
  EXPECT_THAT(error(compile("<geom name=\"g\" size=\"0.1\" mass=\"2\" margin=\"0.5\"/>")),
              HasSubstr("body_margin of body b is 0.5 instead of 0"));
  EXPECT_THAT(error(compile("<geom name=\"g\" size=\"0.1\" mass=\"2\"/>", "<option gravity=\"0 0 -1\"/>")),
              HasSubstr("option gravity is 0 0 -1 instead of 0 0 -9.81"));
  EXPECT_THAT(error(compile("<geom name=\"g\" size=\"0.1\" mass=\"2\"/><geom name=\"h\" size=\"0.1\" mass=\"0\"/>")),
              HasSubstr("ngeom is 2 instead of 1"));
  const MujocoModel renamed = compile("<geom name=\"other\" size=\"0.1\" mass=\"2\"/>");
  EXPECT_THAT(error(renamed), HasSubstr("names"));
  EXPECT_THAT(CheckSameModel(*one, *renamed, Names::kAny), IsOk());
}

TEST(ModelFiles, FilesOfAnOlderExperimentAreFoundByTheirNames) {
  v1::TextTask task;
  const auto add = [&](const char* name, const std::string& content) {
    task.add_file()->set_name(name);
    task.mutable_file()->rbegin()->set_content(content);
  };
  add("model.xml",
      "<mujoco><include file=\"2_model.xml\"/><asset><mesh name=\"a\" file=\"link.obj\"/>"
      "<mesh name=\"b\" file=\"2_link.obj\"/></asset>" +
          std::string(kEnd));
  add("2_link.obj", Cube(0.3));
  add("2_model.xml", "<mujoco>" + Body("<geom type='mesh' mesh='a'/><geom type='mesh' mesh='b'/>") + "</mujoco>");
  add("link.obj", Cube(0.1));
  EXPECT_NEAR(MassOf(task, "b"), 28, 1e-4);
}

#if mjVERSION_HEADER >= 4000000  // attached models, and files of one name in two folders
TEST(ModelFiles, AnAttachedModelKeepsItsOwnFolders) {
  const TaskFolder folder(R"(<mujoco><compiler meshdir="parts"/><asset><mesh name="link" file="link.obj"/>
    <model name="hand" file="hand/hand.xml"/></asset><worldbody><body name="b"><joint name="j" type="slide"/>
    <geom type="mesh" mesh="link"/><attach model="hand" body="palm" prefix="hand_"/></body></worldbody>)" +
                              std::string(kEnd),
                          kTask);
  folder.Write("hand/hand.xml", R"(<mujoco><compiler meshdir="parts"/><asset><mesh name="link" file="link.obj"/>
    <model name="tip" file="../tip/tip.xml"/></asset><worldbody><body name="palm"><geom type="mesh" mesh="link"/>
    <attach model="tip" body="tip" prefix="tip_"/></body></worldbody></mujoco>)");
  folder.Write("tip/tip.xml", R"(<mujoco><asset><mesh file="link.obj"/></asset><worldbody><body name="tip">
    <geom type="mesh" mesh="link"/></body></worldbody></mujoco>)");
  folder.Write("parts/link.obj", Cube(0.2));
  folder.Write("hand/parts/link.obj", Cube(0.1));
  folder.Write("tip/link.obj", Cube(0.3));
  const auto task = text::LoadTask(folder.task());
  ASSERT_THAT(task, IsOk());
  EXPECT_THAT(NamesOf(*task), ElementsAre("model.xml", "hand/hand.xml", "hand/parts/link.obj", "parts/link.obj",
                                          "tip/link.obj", "tip/tip.xml"));
  EXPECT_NEAR(MassOf(*task, "b"), 8, 1e-4);
  EXPECT_NEAR(MassOf(*task, "hand_palm"), 1, 1e-4);
  EXPECT_NEAR(MassOf(*task, "hand_tip_tip"), 27, 1e-4);
}

TEST(ModelFiles, FoldersOfIncludedFilesAreThoseOfMujoco) {
  const TaskFolder folder(R"(<mujoco><compiler meshdir="first"/><include file="more/part.mjcf"/>
    <asset><mesh file="link.obj"/></asset>)" +
                              Body("<geom type='mesh' mesh='link'/><geom type='mesh' mesh='near'/>") + kEnd,
                          kTask);
  folder.Write("more/part.mjcf",
               R"(<mujoco><compiler meshdir="second"/><asset><mesh file="near.obj"/></asset></mujoco>)");
  folder.Write("first/link.obj", Cube(0.2));
  folder.Write("second/link.obj", Cube(0.1));
  folder.Write("more/near.obj", Cube(0.3));
  const auto task = text::LoadTask(folder.task());
  ASSERT_THAT(task, IsOk());
  EXPECT_THAT(NamesOf(*task), ElementsAre("model.xml", "more/near.obj", "more/part.mjcf", "second/link.obj"));
  EXPECT_NEAR(MassOf(*task, "b"), 28, 1e-4) << "the last folder counts; a file beside the included file is found";
}

TEST(ModelFiles, AMistakeInAnIncludedFileNamesTheFilesThatItMayBeIn) {
  const TaskFolder folder("<mujoco><include file=\"parts/arm.xml\"/>" + Body("") + kEnd, kTask);
  folder.Write("parts/arm.xml", "<mujoco><worldbody>\n<geom sise=\"1\"/></worldbody></mujoco>");
  const std::string included = fs::path(folder.task()).parent_path() / "parts/arm.xml";
  EXPECT_THAT(folder.Error(), AllOf(HasSubstr("'sise'"), HasSubstr("line of an included file: " + included + ")")));
  folder.Write("model.xml", "<mujoco>\n<include file=\"parts/arm.xml\"/>\n<geom/></mujoco>");
  folder.Write("parts/arm.xml", "<mujoco><worldbody/></mujoco>");
  EXPECT_THAT(folder.Error(), AllOf(HasSubstr("Element 'geom', line 3"), Not(HasSubstr("included"))));
}

TEST(ModelFiles, AnAssetWithoutANameKeepsTheNameOfItsFile) {
  const TaskFolder folder(R"(<mujoco><asset><mesh name="big" file="left/link.obj"/><mesh file="right/link.obj"/>
    <mesh file="same.obj"/><mesh file="A &amp; B.obj"/></asset>)" +
                              Body("<geom type='mesh' mesh='big'/><geom type='mesh' mesh='link'/>"
                                   "<geom type='mesh' mesh='same'/><geom type='mesh' mesh='A &amp; B'/>") +
                              kEnd,
                          kTask);
  folder.Write("left/link.obj", Cube(0.2));
  folder.Write("right/link.obj", Cube(0.1));
  folder.Write("A & B.obj", Cube(0.3));
  fs::create_symlink("left/link.obj", fs::path(folder.task()).parent_path() / "same.obj");
  const auto task = text::LoadTask(folder.task());
  ASSERT_THAT(task, IsOk());
  EXPECT_NEAR(MassOf(*task, "b"), 8 + 1 + 8 + 27, 1e-4);
}

TEST(ModelFiles, NamesThatAreNotUtf8AreRefused) {  // no message between the roles could carry them
  const std::string file = "gr\xf6\xdf.obj";
  const TaskFolder folder(
      "<mujoco><asset><mesh name=\"m\" file=\"" + file + "\"/></asset>" + Body("<geom type='mesh' mesh='m'/>") + kEnd,
      kTask);
  folder.Write(file, Cube(0.1));
  EXPECT_THAT(folder.Error(), HasSubstr("model: the name of its file " + file + " is not UTF-8; rename it"));
  folder.Write("model.xml", "<mujoco>" + Body("<joint name=\"gr\xf6\xdf\" type='slide'/><geom size='0.1'/>") + kEnd);
  folder.Write("task.textproto", std::string(kTask) + " observation { joint: \"gr\xf6\xdf\" }");
  EXPECT_THAT(folder.Error(), HasSubstr("observation[1].joint: \"gr\xf6\xdf\" is not UTF-8"));
}

TEST(ModelFiles, AReferenceMayLeadAboveTheModelOrBeginAtTheRoot) {
  const TaskFolder folder("", R"(name: "cart" model: "robot/model.xml" observation { joint: "j" } reward: "0"
    cost { name: "c" value: "j" })");
  const std::string root = fs::path(folder.task()).parent_path();
  folder.Write("robot/model.xml", R"(<mujoco><compiler meshdir=")" + root + R"(/meshes"/><asset><mesh file="link.obj"/>
    <mesh name="up" file="../up.obj"/><mesh name="root" file="&#47;)" +
                                      root.substr(1) + R"(/root.obj"/></asset><include file="../parts.xml"/>)" + kEnd);
  folder.Write("parts.xml", "<mujoco>" +
                                Body("<geom type='mesh' mesh='link'/><geom type='mesh' mesh='up'/>"
                                     "<geom type='mesh' mesh='root'/>") +
                                "</mujoco>");
  folder.Write("meshes/link.obj", Cube(0.1));
  folder.Write("up.obj", Cube(0.2));
  folder.Write("root.obj", Cube(0.3));
  const auto task = text::LoadTask(folder.task());
  ASSERT_THAT(task, IsOk());
  EXPECT_EQ(task->file(0).name(), "robot/model.xml");
  EXPECT_THAT(task->file(0).content(),
              AllOf(HasSubstr("meshdir=\"root_of_absolute_paths/"), HasSubstr("file=\"../up.obj\"")));
  EXPECT_NEAR(MassOf(*task, "b"), 36, 1e-4);
}

TEST(ModelFiles, HeightFieldsAndTexturesComeFromTheirOwnFolders) {
  const auto field = [](float height) {
    const int size[2] = {2, 2};
    const float heights[4] = {0, height, 0, 1};
    return std::string(reinterpret_cast<const char*>(size), 8) +
           std::string(reinterpret_cast<const char*>(heights), 16);
  };
  const TaskFolder folder(
      R"(<mujoco><compiler meshdir="m" texturedir="t"/><asset><hfield name="h" file="h.bin" size="1 1 1 1"/>
    <texture name="t" type="2d" file="h.bin" content_type="image/png" embed="false"/>
    </asset>)" +
          Body("<geom size='0.1'/>") + kEnd,
      kTask);
  folder.Write("m/h.bin", field(0.5));
  folder.Write("t/h.bin", absl::HexStringToBytes(kPng));
  const auto task = text::LoadTask(folder.task());
  ASSERT_THAT(task, IsOk());
  EXPECT_THAT(NamesOf(*task), ElementsAre("model.xml", "m/h.bin", "t/h.bin"));
  fs::remove_all(fs::path(folder.task()).parent_path() / "t");
  const MujocoModel model = *text::CompileFiles(*task);
  EXPECT_EQ(model->hfield_data[1], 0.5f);
  EXPECT_EQ(model->tex_data[0], 'a') << "a texture that the model leaves in its file is in the model";
}

TEST(ModelFiles, AFileThatIsNotKeptIsNotTakenFromTheDisk) {
  const TaskFolder folder("", "");
  folder.Write("link.obj", Cube(0.1));
  const std::string place = fs::path(folder.task()).parent_path() / "link.obj";
  const fs::path here = fs::current_path();
  fs::current_path(fs::path(place).parent_path());
  for (const std::string& file : {std::string("link.obj"), place, "../../../../../../../.." + place}) {
    const auto model = CompileMujocoModel("m", "<mujoco><asset><mesh name='link' file='" + file + "'/></asset>" +
                                                   Body("<geom type='mesh' mesh='link'/>") + kEnd);
    EXPECT_THAT(std::string(model.status().message()),
                AllOf(HasSubstr("link.obj'"), HasSubstr("is not among the files that are kept with the model")));
  }
  fs::current_path(here);
}
#endif

TEST(ModelFiles, NamesWithALineBreakBecomeNoSettingOfADraft) {
  const auto model = CompileMujocoModel(
      "m", R"(<mujoco><worldbody><body name="b"><joint name="j"/><geom size="0.1"/></body></worldbody>
        <actuator><motor name="m" joint="j"/></actuator></mujoco>)");
  ASSERT_THAT(model, IsOk());
  const auto draft = text::DraftTask(**model, "name", "a\nhorizon: 1\n#.xml", {"joint b\nabsorbing: 'time > 0'\n#"});
  ASSERT_THAT(draft, IsOk());
  v1::TaskDefinition task;
  ASSERT_THAT(ParseTextproto(*draft, "draft", &task), IsOk()) << *draft;
  EXPECT_FALSE(task.has_absorbing()) << *draft;
  EXPECT_EQ(task.horizon(), 500u) << *draft;
  EXPECT_EQ(task.model(), "a\nhorizon: 1\n#.xml");
  EXPECT_THAT(*draft, HasSubstr("#   joint b\\nabsorbing: \\'time > 0\\'\\n#\n"));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
