// Tests how the files of a text task travel, and globs.
#include <filesystem>
#include <string>

#include "common/base/random.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/mujoco_names.h"
#include "common/tasks/text/task_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/text_tasks.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::datacom::testing::TaskFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kSlide[] =
    R"(<mujoco><worldbody><body><joint name="slide" type="slide"/><geom size="0.1"/></body></worldbody>
  <actuator><motor name="m" joint="slide" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>)";
constexpr char kTask[] = R"(name: "cart" model: "model.xml" observation { joint: "slide" } reward: "0"
  cost { name: "c" value: "slide" })";

TEST(TextFiles, LargeFilesTravelCompressedAndTooLargeOnesAreNamed) {
  std::string mesh = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
  std::string model = kSlide;
  model.insert(model.find("<worldbody>"), "<asset><mesh name=\"shape\" file=\"shape.obj\"/></asset>");
  const TaskFolder folder(model, kTask);
  folder.Write("shape.obj", mesh + std::string(6 << 20, '\n'));
  const auto loaded = text::LoadTask(folder.task());
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->file(0).content(), model.c_str()) << "a small file stays readable";
  EXPECT_FALSE(loaded->file(1).has_content());
  EXPECT_LT(loaded->ByteSizeLong(), 100'000u);
  EXPECT_EQ(text::ContentOf(loaded->file(1)).value(), mesh + std::string(6 << 20, '\n'));
  EXPECT_NO_THROW(testing::LoadedTask(folder.task()));
  v1::TaskFile damaged = loaded->file(1);
  (*damaged.mutable_gzip())[20] ^= 1;
  EXPECT_FALSE(text::ContentOf(damaged).ok() && text::ContentOf(damaged).value() == mesh + std::string(6 << 20, '\n'));
  mesh += "# ";
  RandomStream noise(1);
  for (int i = 0; i < 8 << 20; ++i) mesh.push_back("0123456789abcdef"[noise.Below(16)]);  // half of it remains
  folder.Write("shape.obj", mesh);
  EXPECT_THAT(folder.Error(), AllOf(HasSubstr("task.textproto:"), HasSubstr("at most 4194304 travel with a run"),
                                    HasSubstr("The largest compressed are: shape.obj (4"), HasSubstr("--no-visual")));
  folder.Write("shape.obj", std::string(65 << 20, '\n'));
  EXPECT_THAT(folder.Error(),
              AllOf(HasSubstr("at most 67108864 travel with a run"), HasSubstr("The largest are: shape.obj")));
}

TEST(TextFiles, AGlobMayHaveASetOfCharacters) {
  EXPECT_TRUE(text::MatchesGlob("joint_[1-5]", "joint_3"));
  EXPECT_FALSE(text::MatchesGlob("joint_[1-5]", "joint_6"));
  EXPECT_TRUE(text::MatchesGlob("link[567]_*", "link6_collision"));
  EXPECT_FALSE(text::MatchesGlob("link[567]_*", "link56_collision"));
  EXPECT_TRUE(text::MatchesGlob("*[a-c0-9]?", "armb_"));
  EXPECT_TRUE(text::MatchesGlob("arm[1", "arm[1")) << "a bracket that nothing closes is a character";
  EXPECT_TRUE(text::MatchesGlob("a[1]", "a[1]")) << "a name matches itself";
}

TEST(TextFiles, AMissingFileIsNamedWithEachPlaceOnce) {
  std::string model = kSlide;
  model.insert(model.find("<worldbody>"),
               "<compiler meshdir=\"parts\"/><asset><mesh name=\"shape\" file=\"shape.obj\"/></asset>");
  const TaskFolder folder(model, kTask);
  const std::string at = std::filesystem::path(folder.task()).parent_path();
  EXPECT_THAT(folder.Error(), HasSubstr("it needs the file shape.obj, which is neither " + at +
                                        "/parts/shape.obj nor " + at + "/shape.obj"));
  EXPECT_THAT(folder.Error(), ::testing::EndsWith("/shape.obj"));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
