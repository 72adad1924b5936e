// Tests where the large files of a text task are, and that the text of an experiment does not hold them.
#include "common/config/task_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/base/files.h"
#include "common/config/experiment.h"
#include "common/config/gzip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kContent = Gzip("solid hand");
const std::string kSha256 = "157d6d55f0d3232791158f358b6b2826227aea5d1e511594e5a71779753f2c80";

class TaskFilesTest : public ::testing::Test {
 protected:
  TaskFilesTest() {
    experiment_.set_name("mine");
    v1::TextTask* const task = experiment_.mutable_task_options()->MutableExtension(v1::text_task);
    v1::TaskFile* const model = task->add_file();
    model->set_name("model.xml");
    model->set_content("<mujoco/>");
    v1::TaskFile* const mesh = task->add_file();
    mesh->set_name("hand.stl");
    mesh->set_sha256(kSha256);
    mesh->set_gzip(kContent);
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  static std::string Mesh(const v1::Experiment& experiment) {
    return experiment.task_options().GetExtension(v1::text_task).file(1).gzip();
  }

  const testing::TemporaryFolder folder_;
  v1::Experiment experiment_;
};

TEST_F(TaskFilesTest, AnExperimentIsReadWithTheFilesBesideIt) {
  ASSERT_THAT(WriteExperiment(Path("run/experiment.textproto"), experiment_).code(), absl::StatusCode::kOk);
  EXPECT_EQ(*ReadFile(Path("run/task_files/" + kSha256 + ".gz")), kContent);
  EXPECT_THAT(*ReadFile(Path("run/experiment.textproto")),
              AllOf(HasSubstr("<mujoco/>"), HasSubstr(kSha256), Not(HasSubstr("gzip"))));
  const auto loaded = LoadExperiment(Path("run/experiment.textproto"), "");
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(Mesh(*loaded), kContent);
  EXPECT_EQ(PrintExperiment(*loaded), PrintExperiment(experiment_));
  EXPECT_THAT(CheckTaskFiles(Path("run"), loaded->task_options()), IsOk());
}

TEST_F(TaskFilesTest, AFileMayBeInTheTextsFolderOrInTheFolderOfTheEnvironment) {
  std::filesystem::create_directories(Path("other"));
  for (const char* place : {"", "other/"}) {
    ASSERT_THAT(WriteFileAtomically(Path("experiment.textproto"), PrintExperiment(experiment_)), IsOk());
    ASSERT_THAT(WriteFileAtomically(Path(place + kSha256 + ".gz"), place), IsOk());
    ::setenv("DATACOM_TASK_FILES", Path("other").c_str(), 1);
    EXPECT_EQ(Mesh(*LoadExperiment(Path("experiment.textproto"), "")), place);
    ::unsetenv("DATACOM_TASK_FILES");
    std::filesystem::remove(Path(place + kSha256 + ".gz"));
  }
}

TEST_F(TaskFilesTest, AMissingFileIsNamedWithItsPlace) {
  ASSERT_THAT(WriteFileAtomically(Path("experiment.textproto"), PrintExperiment(experiment_)), IsOk());
  const auto loaded = LoadExperiment(Path("experiment.textproto"), "");
  ASSERT_THAT(loaded, IsOk()) << "who needs no simulator reads it";
  EXPECT_THAT(
      std::string(CheckTaskFiles(folder_.path(), loaded->task_options()).message()),
      AllOf(HasSubstr("the content of 1 of the model's files is missing, first of hand.stl"),
            HasSubstr("there is no " + Path("task_files/" + kSha256 + ".gz")), HasSubstr("DATACOM_TASK_FILES")));
}

TEST_F(TaskFilesTest, ASha256ThatWouldNameAnotherPlaceIsRefused) {
  for (const std::string& wrong : {std::string("../../etc/passwd"), std::string(63, 'a'), std::string(64, 'A'),
                                   std::string(62, 'a') + "/a", std::string()}) {
    v1::TaskFile* const mesh = experiment_.mutable_task_options()->MutableExtension(v1::text_task)->mutable_file(1);
    mesh->set_sha256(wrong);
    EXPECT_TRUE(absl::IsInvalidArgument(WriteTaskFiles(folder_.path(), experiment_.task_options()))) << wrong;
    mesh->clear_gzip();
    EXPECT_TRUE(absl::IsInvalidArgument(AddTaskFiles(folder_.path(), experiment_.mutable_task_options()))) << wrong;
    mesh->set_gzip(kContent);
  }
}

TEST_F(TaskFilesTest, EachMissingFileIsReadOnceFromElsewhere) {
  DropTaskFiles(experiment_.mutable_task_options());
  EXPECT_EQ(Mesh(experiment_), "");
  int reads = 0;
  const auto read = [&](const v1::TaskFile& file) -> absl::StatusOr<std::string> {
    ++reads;
    return "of " + file.name();
  };
  for (int i = 0; i < 2; ++i) ASSERT_THAT(AddTaskFiles(read, experiment_.mutable_task_options()), IsOk());
  EXPECT_EQ(Mesh(experiment_), "of hand.stl");
  EXPECT_EQ(reads, 1);
}

TEST_F(TaskFilesTest, AnOldExperimentKeepsTheContentsInItsText) {
  v1::TaskFile* const mesh = experiment_.mutable_task_options()->MutableExtension(v1::text_task)->mutable_file(1);
  mesh->clear_sha256();
  const auto again = ParseExperiment(PrintExperiment(experiment_), "printed");
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(Mesh(*again), kContent);
  EXPECT_THAT(CheckTaskFiles("", again->task_options()), IsOk());
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
