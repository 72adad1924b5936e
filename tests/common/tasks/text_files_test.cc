// Tests how the files of a text task travel, and globs.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/config/gzip.h"
#include "common/config/task_files.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/mujoco_names.h"
#include "common/tasks/text/task_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/environment_variable.h"
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
  EXPECT_EQ(ContentsOf(*loaded).value()[1], mesh + std::string(6 << 20, '\n'));
  EXPECT_NO_THROW(testing::LoadedTask(folder.task()));
  const auto contents = [&](const auto& change) {
    v1::TextTask task = *loaded;
    change(task.mutable_file(1));
    return ContentsOf(task).status();
  };
  EXPECT_TRUE(absl::IsDataLoss(contents([](v1::TaskFile* file) { (*file->mutable_gzip())[20] ^= 1; })));
  EXPECT_THAT(std::string(contents([](v1::TaskFile* file) { file->set_sha256(std::string(64, '0')); }).message()),
              HasSubstr("shape.obj is damaged: its SHA-256"));
  EXPECT_THAT(std::string(contents([](v1::TaskFile* file) { file->clear_gzip(); }).message()),
              AllOf(HasSubstr("the content of shape.obj is missing"), HasSubstr(loaded->file(1).sha256() + ".gz")));
  EXPECT_THAT(contents([](v1::TaskFile* file) { file->clear_sha256(); }), IsOk()) << "written before files had one";
  folder.Write("model.xml", absl::StrReplaceAll(
                                model, {{"</asset>", "<hfield name=\"h\" file=\"h.bin\" size=\"1 1 1 1\"/></asset>"}}));
  folder.Write("h.bin", std::string("\xa8\x16\0\0\xa8\x16\0\0", 8) + std::string(4 * 5800 * 5800, '\0'));
  EXPECT_THAT(folder.Error(), AllOf(HasSubstr("task.textproto:"), HasSubstr("at most 134217728 are possible"),
                                    HasSubstr("The largest are: h.bin (134"), HasSubstr("--no-visual")));
}

TEST(TextFiles, AnInstalledPackageIsFoundWithoutCodeOfTheWorkingDirectory) {
  namespace fs = std::filesystem;
  const TaskFolder folder("", absl::StrReplaceAll(kTask, {{"model.xml", "python:datacom_test_robots/cart.xml"}}));
  const fs::path root = fs::path(folder.task()).parent_path();
  folder.Write("site/datacom_test_robots/__init__.py", "");
  folder.Write("site/datacom_test_robots/cart.xml", kSlide);
  for (const char* module : {"importlib.py", "contextlib.py", "types.py"}) folder.Write(module, "raise SystemExit(1)");
  // Without the module site, which has imported them already on some systems.
  folder.Write("bin/python3", "#!/bin/sh\nPATH=\"${PATH#*:}\"; exec python3 -S \"$@\"\n");
  fs::permissions(root / "bin/python3", fs::perms::owner_all);
  const testing::EnvironmentVariable packages("PYTHONPATH", (root / "site").string());
  const testing::EnvironmentVariable path("PATH", absl::StrCat((root / "bin").string(), ":", std::getenv("PATH")));
  const fs::path before = fs::current_path();
  fs::current_path(root);
  EXPECT_EQ(folder.Error(), "");
  fs::current_path(before);
}

TEST(TextFiles, ABinaryFileIsLargeEarlierThanTextBecauseTextFormatPrintsItWithEscapes) {
  std::string model = kSlide;
  model.insert(
      model.find("<worldbody>"),
      "<asset><mesh name=\"shape\" file=\"shape.obj\"/><hfield name=\"t\" file=\"t.bin\" size=\"1 1 1 1\"/></asset>");
  const TaskFolder folder(model, kTask);
  folder.Write("shape.obj",
               "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n" + std::string(5000, '\n'));
  folder.Write("t.bin", std::string("\x28\0\0\0\x28\0\0\0", 8) + std::string(4 * 40 * 40, '\x01'));
  const auto read = text::ReadTaskFile(folder.task());
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read->file_size(), 3);
  EXPECT_FALSE(read->file(1).has_sha256()) << read->file(1).name();
  EXPECT_EQ(read->file(2).name(), "t.bin");
  EXPECT_TRUE(read->file(2).has_sha256());
}

TEST(TextFiles, ManySmallFilesTravelLikeLargeOnes) {
  v1::TextTask task;
  for (int i = 0; i < 100; ++i) {
    v1::TaskFile* const file = task.add_file();
    file->set_name(absl::StrCat(i, ".obj"));
    file->set_content(absl::StrCat(std::string(50'000, ' '), i));
  }
  ASSERT_THAT(text::CompressFiles(&task), IsOk());
  for (const v1::TaskFile& file : task.file()) EXPECT_TRUE(file.has_sha256()) << file.name();
  EXPECT_EQ(ContentsOf(task).value()[99], std::string(50'000, ' ') + "99");
}

TEST(TextFiles, AGlobMayHaveASetOfCharacters) {
  EXPECT_TRUE(text::MatchesGlob("joint_[1-5]", "joint_3"));
  EXPECT_FALSE(text::MatchesGlob("joint_[1-5]", "joint_6"));
  EXPECT_TRUE(text::MatchesGlob("link[567]_*", "link6_collision"));
  EXPECT_FALSE(text::MatchesGlob("link[567]_*", "link56_collision"));
  EXPECT_TRUE(text::MatchesGlob("*[a-c0-9]?", "armb_"));
  EXPECT_TRUE(text::MatchesGlob("joint_[!45]", "joint_3"));
  EXPECT_FALSE(text::MatchesGlob("joint_[!45]", "joint_4"));
  EXPECT_TRUE(text::MatchesGlob("a\\*", "a\\b/.c")) << "no character but * ? [ has a meaning";
  EXPECT_TRUE(text::MatchesGlob("arm[1", "arm[1")) << "a bracket that nothing closes is a character";
  EXPECT_TRUE(text::MatchesGlob("a[1]", "a[1]")) << "a name matches itself";
}

// The slow literal meaning of a glob of "*" and letters.
bool Means(const std::string& glob, const std::string& name) {
  if (glob.empty()) return name.empty();
  if (glob[0] != '*') return !name.empty() && glob[0] == name[0] && Means(glob.substr(1), name.substr(1));
  return Means(glob.substr(1), name) || (!name.empty() && Means(glob, name.substr(1)));
}

TEST(TextFiles, AGlobMatchesWhatItsMeaningSays) {
  const auto word = [](const char* letters, int code) {
    std::string text;
    for (; code > 0; code = (code - 1) / 3) text += letters[(code - 1) % 3];  // each text has one number
    return text;
  };
  int matches = 0;
  for (int glob = 0; glob < 243; ++glob) {
    for (int name = 0; name < 243; ++name) {
      const std::string one = word("ab*", glob), other = word("abc", name);
      ASSERT_EQ(text::MatchesGlob(one, other), Means(one, other)) << one << " " << other;
      matches += Means(one, other) ? 1 : 0;
    }
  }
  EXPECT_GT(matches, 1000);
}

// With one more try for each star, 60 stars would take longer than the universe exists.
TEST(TextFiles, AGlobOfManyStarsIsCompared) {
  std::string glob;
  for (int i = 0; i < 60; ++i) glob += "*a";
  EXPECT_FALSE(text::MatchesGlob(glob + "b", std::string(2000, 'a')));
  EXPECT_TRUE(text::MatchesGlob(glob + "*", std::string(2000, 'a')));
}

TEST(TextFiles, FilesThatAreTooLargeOnlyTogetherAreRefusedBeforeTheyAreCompiled) {
  v1::TextTask task = *text::LoadTask(TaskFolder(kSlide, kTask).task());
  const std::string bomb = Gzip(std::string(127 << 20, ' '));
  for (const char* name : {"one.stl", "two.stl"}) {
    v1::TaskFile* const file = task.add_file();
    file->set_name(name);
    file->set_gzip(bomb);
  }
  EXPECT_THAT(std::string(text::CompileFiles(task).status().message()), HasSubstr("two.stl: it has more than"));
  v1::TaskOptions options;
  *options.MutableExtension(v1::text_task) = task;
  EXPECT_THAT(std::string(CheckTaskFiles("", options).message()), HasSubstr("two.stl: it has more than"));
}

TEST(TextFiles, AFileThatIsTooLargeToTravelIsCompiledSoThatItCanBeLeftOut) {
  v1::TextTask task = *text::LoadTask(TaskFolder(kSlide, kTask).task());
  v1::TaskFile* const file = task.add_file();
  file->set_name("paint.stl");
  file->set_content(std::string(kMaxTaskBytes + 1, ' '));
  EXPECT_THAT(text::CompileFiles(task), IsOk());
  EXPECT_THAT(std::string(text::CompressFiles(&task).message()), HasSubstr("The largest are: paint.stl (134217729"));
}

TEST(TextFiles, AFileMayBeCalledLikeTheTaskInOtherLetters) {
  TaskFolder folder(R"(<mujoco><include file="BOX.xml"/><include file="parts/box.xml"/></mujoco>)", R"(name: "box"
    model: "model.xml" observation { joint: "*" } reward: "slide" cost { name: "c" value: "-1" })");
  folder.Write("BOX.xml", R"(<mujoco><worldbody><body><joint name="slide" type="slide"/><geom size="0.1"/></body>
    </worldbody></mujoco>)");
  folder.Write("parts/box.xml", R"(<mujoco><actuator><motor name="m" joint="slide" ctrllimited="true" ctrlrange="-1 1"/>
    </actuator></mujoco>)");
  EXPECT_EQ(folder.Error(), "");
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
