// The shipped experiments: they are valid, and resolve to the settings in tests/golden/experiments. These texts are
// what a reviewer compares with the paper (docs/algorithms.md 14). After a change that is meant, write them
// with
//   DATACOM_WRITE_GOLDEN=1 build/release/tests/config_test --gtest_filter='ShippedExperiments.*'
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/config/algorithms.h"
#include "tests/common/config/testing.h"
#include "tests/testing/golden_text.h"
#include "tests/testing/is_ok.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;

constexpr char kFolder[] = "deploy/experiments";  // tests run in the source tree
constexpr char kGolden[] = "tests/golden/experiments/";

TEST(ShippedExperiments, ParseValidateResolveAndHaveTheirFilesName) {
  const std::vector<std::string> names = ListTextprotos(kFolder);
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const absl::StatusOr<v1::Experiment> experiment = LoadExperiment(name, kFolder);
    ASSERT_THAT(experiment, IsOk());
    EXPECT_EQ(experiment->name(), name);
    EXPECT_FALSE(experiment->description().empty());
    EXPECT_THAT(Validate(*experiment), IsOk());
    EXPECT_THAT(Validate(ResolveExperiment(*experiment)), IsOk());
  }
}

TEST(AlgorithmDefaults, AreValidExperimentsAndHoldWhereNothingElseIsSet) {
  int with = 0;
  for (const AlgorithmInfo& algorithm : Algorithms()) {
    SCOPED_TRACE(algorithm.name);
    with += !algorithm.defaults.empty();
    const absl::StatusOr<v1::Experiment> defaults = ParseExperiment(algorithm.defaults, "defaults");
    ASSERT_THAT(defaults, IsOk());
    v1::Experiment experiment = Minimal();
    experiment.clear_run(), experiment.clear_hyper();
    experiment.set_algorithm(algorithm.name);
    EXPECT_THAT(Validate(experiment), IsOk());
    v1::Experiment all = *defaults;
    all.MergeFrom(experiment);
    EXPECT_THAT(Validate(all), IsOk()) << "a default that the algorithm does not read";
  }
  EXPECT_GT(with, 0);
  v1::Experiment experiment = Minimal();
  experiment.clear_run(), experiment.clear_hyper();
  experiment.set_algorithm("ppo_lag");
  v1::Experiment resolved = ResolveExperiment(experiment);
  EXPECT_EQ(resolved.hyper().multiplier_lr(), 0.035);
  EXPECT_EQ(resolved.hyper().actor_lr(), 1e-4);
  EXPECT_EQ(resolved.run().steps_per_epoch(), 20000u);
  EXPECT_EQ(resolved.schedule().updates_per_step(), 1 / 20000.0);
  EXPECT_EQ(resolved.learner().passes(), 40u);
  experiment.mutable_hyper()->set_multiplier_lr(0.01);
  EXPECT_EQ(ResolveExperiment(experiment).hyper().multiplier_lr(), 0.01) << "what the experiment sets counts";
  experiment.set_algorithm("rcpo");
  resolved = ResolveExperiment(experiment);
  EXPECT_EQ(resolved.learner().batch_size(), 128u);
  EXPECT_EQ(resolved.learner().passes(), 10u);
  EXPECT_EQ(resolved.hyper().target_kl(), 0.01);
  experiment.set_algorithm("lag_sac");
  EXPECT_EQ(ResolveExperiment(experiment).run().steps_per_epoch(), 10000u) << "another algorithm has the schema's";
}

// "learner.tau" -> "tau: 0.001". Values of a repeated field are joined.
using Settings = std::map<std::string, std::string>;

Settings ResolvedSettings(v1::Experiment experiment) {
  experiment.clear_name();
  experiment.clear_description();
  Settings settings;
  std::vector<std::string> path;
  for (absl::string_view line :
       absl::StrSplit(PrintExperiment(ResolveExperiment(experiment)), '\n', absl::SkipEmpty())) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::ConsumeSuffix(&line, " {")) {
      path.emplace_back(line);
    } else if (line == "}") {
      path.pop_back();
    } else {
      const std::pair<std::string, std::string> setting = absl::StrSplit(line, absl::MaxSplits(": ", 1));
      path.push_back(setting.first);
      std::string& value = settings[absl::StrJoin(path, ".")];
      absl::StrAppend(&value, value.empty() ? "" : ", ", setting.second);
      path.pop_back();
    }
  }
  return settings;
}

TEST(ShippedExperiments, DefaultsAreTheGoldenOnes) {
  std::string text = "# Settings that an experiment has unless it names others.\n";
  for (const auto& [name, value] : ResolvedSettings({})) absl::StrAppend(&text, name, ": ", value, "\n");
  testing::ExpectGoldenText(kGolden + std::string("defaults.txt"), text);
}

TEST(ShippedExperiments, ResolveToTheGoldenSettings) {
  const Settings defaults = ResolvedSettings({});
  std::map<std::string, std::string> texts;  // by task
  for (const std::string& name : ListTextprotos(kFolder)) {
    std::string& text = texts[name.substr(0, name.find('/'))];
    if (text.empty()) {
      text =
          "# Settings of each resolved experiment that differ from defaults.txt. Settings that its algorithm does not "
          "read "
          "are left out.\n";
    }
    absl::StrAppend(&text, "\n", name, "\n");
    const Settings settings = ResolvedSettings(LoadExperiment(name, kFolder).value());
    for (const auto& [setting, value] : settings) {
      const auto same = defaults.find(setting);
      if (same == defaults.end() || same->second != value) absl::StrAppend(&text, "  ", setting, ": ", value, "\n");
    }
  }
  for (const auto& [task, text] : texts) testing::ExpectGoldenText(kGolden + task + ".txt", text);
  std::vector<std::string> tasks;
  for (const auto& [task, text] : texts) tasks.push_back(task);
  EXPECT_EQ(tasks, TaskNames()) << "every registered task has an experiment";
}

TEST(ShippedExperiments, MatchedSacSharesEverySettingThatItReadsWithDatacom) {
  for (const std::string task : {"cartpole", "air_hockey", "navigation"}) {
    SCOPED_TRACE(task);
    Settings matched = ResolvedSettings(LoadExperiment(task + "/sac_matched", kFolder).value());
    Settings datacom = ResolvedSettings(LoadExperiment(task + "/datacom", kFolder).value());
    for (const char* read : {"hyper.actor_lr", "hyper.critic_lr", "hyper.alpha_lr", "hyper.target_entropy"})
      EXPECT_EQ(matched.at(read), datacom.at(read)) << read;
    const auto other = [](const auto& setting) {
      return setting.first == "algorithm" || absl::StartsWith(setting.first, "hyper.");
    };
    for (Settings* settings : {&matched, &datacom}) {
      for (auto it = settings->begin(); it != settings->end();) it = other(*it) ? settings->erase(it) : std::next(it);
    }
    EXPECT_EQ(matched, datacom);
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
