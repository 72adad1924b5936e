// Tests how the files of a text task travel, and globs.
#include <filesystem>
#include <string>

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

TEST(TextFiles, LargeFilesAreCompressedAndTooLargeOnesAreNamed) {
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
  EXPECT_TRUE(absl::IsDataLoss(text::ContentOf(damaged).status()));
  v1::TaskFile other = loaded->file(1);
  other.set_sha256(std::string(64, '0'));
  EXPECT_THAT(std::string(text::ContentOf(other).status().message()), HasSubstr("shape.obj is damaged: its SHA-256"));
  v1::TaskFile missing = loaded->file(1);
  missing.clear_gzip();
  EXPECT_THAT(std::string(text::ContentOf(missing).status().message()),
              AllOf(HasSubstr("the content of shape.obj is missing"), HasSubstr(missing.sha256() + ".gz")));
  v1::TaskFile old = loaded->file(1);  // written before files had a SHA-256
  old.clear_sha256();
  EXPECT_THAT(text::ContentOf(old), IsOk());
  folder.Write("shape.obj", mesh + std::string(128 << 20, '\n'));
  EXPECT_THAT(folder.Error(), AllOf(HasSubstr("task.textproto:"), HasSubstr("at most 134217728 are possible"),
                                    HasSubstr("The largest are: shape.obj (134"), HasSubstr("--no-visual")));
}

TEST(TextFiles, ABinaryFileIsLargeEarlierThanTextBecauseTextFormatPrintsItWithEscapes) {
  std::string model = kSlide;
  model.insert(
      model.find("<worldbody>"),
      "<asset><mesh name=\"shape\" file=\"shape.obj\"/><texture name=\"t\" type=\"2d\" nrow=\"50\" ncol=\"50\" "
      "file=\"t.bin\" content_type=\"image/vnd.mujoco.texture\"/></asset>");
  const TaskFolder folder(model, kTask);
  folder.Write("shape.obj",
               "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n" + std::string(5000, '\n'));
  folder.Write("t.bin", std::string(5000, '\x01'));
  const auto read = text::ReadTaskFile(folder.task());
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read->file_size(), 3);
  EXPECT_FALSE(read->file(1).has_sha256()) << read->file(1).name();
  EXPECT_EQ(read->file(2).name(), "t.bin");
  EXPECT_TRUE(read->file(2).has_sha256());
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
