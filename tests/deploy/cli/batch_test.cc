#include "deploy/cli/batch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/plugins.h"
#include "common/base/shell_word.h"
#include "common/config/experiment.h"
#include "deploy/cli/sweep.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/environment_variable.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::cli {
namespace {

namespace fs = std::filesystem;

using ::datacom::testing::IsOk;
using ::datacom::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

SweepRun Named(const std::string& name, const std::string& more = "") {
  SweepRun population;
  population.name = name;
  population.experiment = ResolveExperiment(
      ParseExperiment("name: 'a' task: 'cartpole' algorithm: 'datacom' run { env_steps: 7000 } " + more, "test")
          .value());
  population.needs.memory_bytes = 300ull << 20;
  population.needs.ring_bytes = 100ull << 20;
  population.needs.actor_memory_bytes = 40ull << 20;
  return population;
}

std::string Read(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  EXPECT_THAT(text, IsOk());
  return text.value_or("");
}

TEST(ShellWordTest, AShellReadsEveryWordAsItWas) {
  const TemporaryFolder folder;
  for (const std::string word : {"plain-1.0/x", "two words", "it's", "$HOME `id` \"x\" \\", "", "*", "a\nb", "ü"}) {
    const std::string file = folder.path() + "/out";
    ASSERT_EQ(std::system(("printf %s " + ShellWord(word) + " >" + file).c_str()), 0);
    EXPECT_EQ(Read(file), word);
  }
  EXPECT_EQ(ShellWord("runs/a_1"), "runs/a_1");
}

TEST(TrainCommandTest, TheCommandNamesTheRunAndEveryOptionThatWasGiven) {
  BatchOptions batch;
  batch.program = "apptainer run /shared/datacom.sif";
  TrainOptions options;
  options.actors = 2, options.environments = 8, options.tls = "/t", options.max_hours = 1.5, options.stall_minutes = 3;
  EXPECT_EQ(TrainCommand(batch, options, "/runs/my run", 500),
            "apptainer run /shared/datacom.sif train --resume --no-film --run-dir '/runs/my run' --steps 500 --actors "
            "2 --envs 8 "
            "--tls /t --max-hours 1.5 --stall-minutes 3");
}

TEST(TrainCommandTest, TheCommandsForOtherMachinesAndForAResumeLoadThePluginsOfThisOne) {
  BatchOptions batch;
  batch.program = "datacom";
  ::setenv(kPluginsVariable, ":/p/my plug.so:/q.so", /*overwrite=*/1);
  EXPECT_EQ(TrainCommand(batch, {}, "/r", 500),
            "datacom train --resume --no-film --run-dir /r --steps 500 --stall-minutes 10 --plugin '/p/my plug.so' "
            "--plugin /q.so");
  EXPECT_EQ(ResumeCommand("my run", {}),
            "datacom train --run-dir 'my run' --resume --plugin '/p/my plug.so' --plugin /q.so");
  ::unsetenv(kPluginsVariable);
  EXPECT_EQ(ResumeCommand("run", {}), "datacom train --run-dir run --resume");
}

class SlurmScriptsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Write(const std::vector<SweepRun>& populations, const SlurmJob& job = {"sweep", "my/sweep"},
                                 const BatchOptions& batch = {}) {
    const absl::StatusOr<std::vector<std::string>> scripts = WriteSlurmScripts(dir_, job, batch, {}, populations);
    EXPECT_THAT(scripts, IsOk());
    for (const std::string& script : scripts.value_or(std::vector<std::string>())) {
      EXPECT_EQ(std::system(("bash -n " + script).c_str()), 0) << script;
      EXPECT_THAT(Read(script), Not(HasSubstr("@RUN")));
    }
    return scripts.value_or(std::vector<std::string>());
  }
  const TemporaryFolder folder_;
  const std::string dir_ = folder_.path() + "/sweep";

  void SetUp() override { fs::create_directories(dir_); }
};

TEST_F(SlurmScriptsTest, AnArrayHasATaskForEachPopulationWithTheResourcesOfThePlan) {
  EXPECT_THAT(Write({Named("a"), Named("b"), Named("c")}, {"sweep", "my/sweep", 2}),
              ElementsAre(dir_ + "/sweep.sbatch"));
  EXPECT_THAT(Read(dir_ + "/sweep.sbatch"),
              AllOf(HasSubstr("#SBATCH --job-name=datacom-my-sweep\n#SBATCH --array=0-2%2\n"),
                    HasSubstr("--cpus-per-task=2 --mem=500M\n"), HasSubstr("#SBATCH --requeue --signal=B:TERM@90\n"),
                    Not(HasSubstr("--gres")), Not(HasSubstr("--host"))));
  const std::string jobs = Read(dir_ + "/jobs.txt");
  EXPECT_THAT(jobs, HasSubstr("--run-dir " + dir_ + "/b --steps 7000 "));
  EXPECT_EQ(std::count(jobs.begin(), jobs.end(), '\n'), 3);
}

TEST_F(SlurmScriptsTest, ARunWithAnArchiveHasMemoryForItsCopies) {
  TrainOptions options;
  options.archive = "/bucket";
  ASSERT_THAT(WriteSlurmScripts(dir_, {"train", "a"}, {}, options, {Named("")}), IsOk());
  EXPECT_THAT(Read(dir_ + "/train.sbatch"), HasSubstr("--mem=820M\n"));
}

TEST_F(SlurmScriptsTest, TheTemplatesAreThoseOfTheProgramWhereverTheExperimentsLie) {
  const datacom::testing::EnvironmentVariable elsewhere("DATACOM_EXPERIMENTS", folder_.path() + "/experiments");
  EXPECT_THAT(Write({Named("a")}), ElementsAre(dir_ + "/sweep.sbatch"));
}

TEST_F(SlurmScriptsTest, OptionsOfSbatchComeLastSoThatTheyWin) {
  BatchOptions batch;
  batch.sbatch = " --partition=long --mem=9G ";
  Write({Named("a", "learner { device: 'cuda' }")}, {"sweep", "s"}, batch);
  const std::string text = Read(dir_ + "/sweep.sbatch");
  EXPECT_THAT(
      text, AllOf(HasSubstr("--mem=500M --gres=gpu:1\n"), HasSubstr("\n#SBATCH --partition=long --mem=9G\nset -u\n")));
  EXPECT_LT(text.find("--mem=500M"), text.find("--mem=9G"));
}

TEST_F(SlurmScriptsTest, SweepsThatExceedAnArrayGetFurtherScriptsWithTheNextLines) {
  std::vector<SweepRun> populations;
  for (int i = 0; i < 7; ++i) populations.push_back(Named("p" + std::to_string(i)));
  EXPECT_THAT(Write(populations, {"sweep", "s", 0, 3}),
              ElementsAre(dir_ + "/sweep.sbatch", dir_ + "/sweep-2.sbatch", dir_ + "/sweep-3.sbatch"));
  EXPECT_THAT(Read(dir_ + "/sweep-2.sbatch"), AllOf(HasSubstr("--array=0-2\n"), HasSubstr("number=$((4 + ")));
  EXPECT_THAT(Read(dir_ + "/sweep-3.sbatch"), AllOf(HasSubstr("--array=0-0\n"), HasSubstr("number=$((7 + ")));
}

TEST_F(SlurmScriptsTest, ARunHasNoArrayAndItsOwnFolder) {
  EXPECT_THAT(Write({Named("")}, {"train", "cartpole/datacom"}), ElementsAre(dir_ + "/train.sbatch"));
  EXPECT_THAT(Read(dir_ + "/train.sbatch"), AllOf(Not(HasSubstr("--array=")), HasSubstr("\nrun=$folder\n"),
                                                  HasSubstr("--output=" + dir_ + "/slurm/%j.log\n")));
  EXPECT_THAT(Read(dir_ + "/jobs.txt"), HasSubstr("--run-dir " + dir_ + " --steps 7000"));
}

TEST_F(SlurmScriptsTest, ActorsOfOtherJobsComeWithPrivateCertificatesThatASecondCallKeeps) {
  BatchOptions batch;
  batch.join = 5;
  EXPECT_THAT(Write({Named("a")}, {"sweep", "s"}, batch), ElementsAre(dir_ + "/sweep.sbatch", dir_ + "/actors.sbatch"));
  EXPECT_THAT(Read(dir_ + "/actors.sbatch"),
              AllOf(HasSubstr("--array=1-5\n"), HasSubstr("--mem=50M\n"), HasSubstr(" join " + dir_ + " --name "),
                    HasSubstr("--tls " + dir_ + "/tls;")));
  EXPECT_THAT(Read(dir_ + "/jobs.txt"), HasSubstr("--tls " + dir_ + "/tls"));
  EXPECT_THAT(Read(dir_ + "/sweep.sbatch"), HasSubstr("--host \"$host\""));
  EXPECT_FALSE(fs::exists(dir_ + "/tls/ca.key")) << "it would travel with copies of the folder";
  const std::string token = Read(dir_ + "/tls/token");
  EXPECT_EQ(fs::status(dir_ + "/tls/tls.key").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  Write({Named("a")}, {"sweep", "s"}, batch);
  EXPECT_EQ(Read(dir_ + "/tls/token"), token);
}

TEST_F(SlurmScriptsTest, AFolderNamedLikeAWordOfTheTemplateStaysAsItIs) {
  const std::string dir = folder_.path() + "/@NAME@";
  fs::create_directories(dir);
  BatchOptions batch;
  batch.join = 1;
  ASSERT_THAT(WriteSlurmScripts(dir, {"sweep", "s"}, batch, {}, {Named("a")}), IsOk());
  EXPECT_THAT(Read(dir + "/actors.sbatch"),
              AllOf(HasSubstr(" join " + dir + " "), HasSubstr("--tls " + dir + "/tls;")));
}

TEST_F(SlurmScriptsTest, ACommandNamesThePythonEnvironmentOfTheOneThatWroteIt) {
  ::setenv("DATACOM_PYTHON_TASK", "my_env:make", 1);
  Write({Named("a")});
  ::unsetenv("DATACOM_PYTHON_TASK");
  EXPECT_THAT(Read(dir_ + "/jobs.txt"), HasSubstr(" --stall-minutes 10 --python my_env:make\n"));
}

TEST_F(SlurmScriptsTest, AFolderThatSlurmCannotNameIsRefused) {
  for (const std::string name : {"/two words", "/100%", "/it's"}) {
    const absl::Status status = CheckBatch(kSlurm, folder_.path() + name, {}, {});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("choose another --run-dir"));
  }
}

TEST(ParseQueueTest, TheTasksOfTheFoldersScriptsAreFoundByTheirLines) {
  const std::string text =
      "/r/s/sweep.sbatch|0|RUNNING|None|n1|1:05\n"
      "/r/s/sweep.sbatch|12|PENDING|JobArrayTaskLimit||0:00\n"
      "/r/s/sweep-2.sbatch|3|COMPLETING|None|n2|0:10\n"
      "/r/s/actors.sbatch|1|RUNNING|None|n3|1:00\n"
      "/r/other/sweep.sbatch|5|RUNNING|None|n3|1:00\n"
      "/r/s/sweep-x.sbatch|6|RUNNING|None|n3|1:00\n"
      "(null)|N/A|RUNNING|None|n3|1:00\n";
  EXPECT_THAT(ParseQueue(text, "/r/s", 100),
              ElementsAre(Pair(0, "running, on n1 for 1:05"), Pair(12, "waiting, JobArrayTaskLimit"),
                          Pair(103, "completing, on n2 for 0:10")));
}

}  // namespace
}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
