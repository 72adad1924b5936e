// Tests what is said of a Python environment that is not the one of a run.
#include "common/tasks/python/identity.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom::python {
namespace {

using ::datacom::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPlainArm[] = R"(
    environment: 'arm:make' observation: 3 action_low: [-1, 0] action_high: [1, 4] horizon: 60 control_dt: 0.05
    cost: ['near', 'fast'] repeatable: true
    identity {
      observation_space: '(3,)' action_space: '(2,)' observation: [0.5, -2000] reward: [1, 2] cost: [-0.25]
      file { name: 'arm.py' sha256: 'aa' } file { name: 'parts/gear.py' sha256: 'bb' }
      interpreter: '/usr/bin/python3' version: ['python 3.11.2', 'numpy 2.1.0'] })";

v1::PythonTask PlainArm() {
  v1::PythonTask task;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kPlainArm, &task));
  return task;
}

TEST(Differences, AreEachNamedWithBothValues) {
  v1::PythonTask now = PlainArm();
  now.set_horizon(80);
  now.set_control_dt(0.1);
  now.set_action_high(1, 5);
  now.mutable_identity()->set_action_space("(1, 2)");
  now.mutable_identity()->set_observation(1, -2001);
  now.mutable_identity()->set_cost(0, 0.25);
  now.mutable_identity()->mutable_file(1)->set_sha256("cc");
  now.mutable_identity()->set_version(1, "numpy 1.26.4");
  EXPECT_THAT(
      Differences(PlainArm(), now),
      ElementsAre("time limit 60 -> 80", "control period 0.05 -> 0.1", "upper bounds of actions 1, 4 -> 1, 5",
                  "action space (2,) -> (1, 2)", "the observation after the same seed and actions -2000 -> -2001",
                  "the cost after the same seed and actions -0.25 -> 0.25", "file parts/gear.py changed",
                  "numpy 2.1.0 -> 1.26.4"));
}

TEST(Differences, AreAlsoWhatComesAndGoes) {
  v1::PythonTask now = PlainArm();
  now.clear_horizon();
  now.mutable_identity()->mutable_file(1)->set_name("gear.py");
  now.mutable_identity()->set_version(1, "gymnasium 1.0.0");
  now.mutable_identity()->mutable_reward()->RemoveLast();
  EXPECT_THAT(Differences(PlainArm(), now),
              ElementsAre("time limit 60 -> none", "the first look has 2 -> 1 numbers of the reward",
                          "file parts/gear.py not used any more", "file gear.py new", "numpy 2.1.0 -> none",
                          "gymnasium none -> 1.0.0"));
}

TEST(Differences, LeaveOutRoundingTheLastNumberOfPythonAndWhatIsNotRepeatableOrNotRecorded) {
  v1::PythonTask now = PlainArm();
  now.mutable_identity()->set_observation(1, -2000.001);
  now.mutable_identity()->set_version(0, "python 3.11.9");
  now.add_fact("a sentence");
  EXPECT_THAT(Differences(PlainArm(), now), IsEmpty());
  now.mutable_identity()->set_observation(1, -2000.01);
  EXPECT_EQ(Differences(PlainArm(), now).size(), 1);
  v1::PythonTask random = PlainArm();
  random.set_repeatable(false);
  now.set_repeatable(false);
  EXPECT_THAT(Differences(random, now), IsEmpty());
  v1::PythonTask old = PlainArm();
  old.clear_identity();
  EXPECT_THAT(Differences(old, PlainArm()), IsEmpty());
  now.mutable_identity()->set_version(0, "python 3.12.2");
  EXPECT_THAT(Differences(random, now), ElementsAre("python 3.11 -> 3.12"));
}

TEST(Differences, LeaveOutTheOrderOfNamedCosts) {
  v1::PythonTask now = PlainArm();
  now.mutable_cost()->SwapElements(0, 1);
  EXPECT_THAT(Differences(PlainArm(), now), IsEmpty());
  now.set_cost(0, "far");
  EXPECT_THAT(Differences(PlainArm(), now), ElementsAre("named costs fast, near -> far, near"));
}

TEST(Differences, OfInstalledFilesCountForARunThatHasRecordedSome) {
  v1::PythonTask run = PlainArm(), now = PlainArm();
  now.mutable_identity()->add_file()->set_name("site-packages/arms/base.py");
  EXPECT_THAT(Differences(run, now), IsEmpty());
  EXPECT_THAT(Differences(now, run), ElementsAre("file site-packages/arms/base.py not used any more"));
  run.mutable_identity()->add_file()->set_name("site-packages/arms/gear.py");
  EXPECT_THAT(Differences(run, now),
              ElementsAre("file site-packages/arms/gear.py not used any more", "file site-packages/arms/base.py new"));
}

TEST(Differences, LeaveOutAnotherNameOfTheInterpreterInItsFolder) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "python_identity";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "other");
  std::ofstream(folder / "python3") << "an interpreter";
  std::filesystem::create_symlink("python3", folder / "python");
  std::filesystem::create_symlink("../python3", folder / "other/python3");
  v1::PythonTask run = PlainArm(), now = PlainArm();
  run.mutable_identity()->set_interpreter((folder / "python3").string());
  now.mutable_identity()->set_interpreter((folder / "python").string());
  EXPECT_THAT(Differences(run, now), IsEmpty());
  // One environment of several that share an interpreter.
  now.mutable_identity()->set_interpreter((folder / "other/python3").string());
  EXPECT_THAT(Differences(run, now), ElementsAre(HasSubstr("python_identity/other/python3")));
}

TEST(CheckSame, RefusesADifferenceUnlessTheUserAcceptsItAndSizesAlways) {
  ::unsetenv(kAcceptEnvironment);
  v1::PythonTask now = PlainArm();
  EXPECT_THAT(CheckSame(PlainArm(), now), IsOk());
  now.set_horizon(80);
  const absl::Status refused = CheckSame(PlainArm(), now);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("the environment arm:make is not the one of the run: time limit 60 -> 80; to step it"));
  ::setenv(kAcceptEnvironment, "1", 1);
  EXPECT_THAT(CheckSame(PlainArm(), now), IsOk());
  now.set_observation(4);
  EXPECT_THAT(std::string(CheckSame(PlainArm(), now).message()),
              HasSubstr("numbers of an observation 3 -> 4, time limit"));
  ::unsetenv(kAcceptEnvironment);
}

TEST(DescribeFacts, NamesTheOptionsThatReplaceThem) {
  v1::TaskOptions options;
  EXPECT_THAT(DescribeFacts(options), IsEmpty());
  options.MutableExtension(v1::python_task)->add_fact("time limit: 60 steps, from max_episode_steps");
  options.MutableExtension(v1::python_task)->add_fact("control period: it states none");
  options.set_horizon(7);
  options.set_control_dt(0.5);
  EXPECT_THAT(DescribeFacts(options),
              ElementsAre("what the environment states, and where:",
                          "  time limit: 60 steps, from max_episode_steps; task_options.horizon sets 7 steps",
                          "  control period: it states none; task_options.control_dt sets 0.5 s"));
}

TEST(CodeLine, HasFilesInterpreterAndVersions) {
  EXPECT_EQ(CodeLine(PlainArm()),
            "environment arm:make, arm.py aa, parts/gear.py bb, /usr/bin/python3, python 3.11.2, numpy 2.1.0");
  EXPECT_EQ(CodeLine(v1::PythonTask()), "");
}

}  // namespace
}  // namespace datacom::python
// SPDX-License-Identifier: Apache-2.0
