#include "deploy/cli/sweep.h"

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/config/experiment.h"
#include "datacom/v1/task.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom::cli {
namespace {

using ::datacom::testing::IsOk;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

SweepRun Named(const std::string& name) {
  SweepRun population;
  population.name = name;
  population.experiment =
      ResolveExperiment(ParseExperiment("name: 'a' task: 'cartpole' algorithm: 'datacom'", "test").value());
  return population;
}

class SweepManifestsTest : public ::testing::Test {
 protected:
  // A new folder with the sub-folders that PrepareSweepFolder makes.
  std::string Folder(const std::vector<SweepRun>& populations) {
    const std::string dir = ::testing::TempDir() + "/sweep_manifests_test";
    std::filesystem::remove_all(dir);
    for (const SweepRun& population : populations) {
      std::filesystem::create_directories(dir + "/" + population.name);
    }
    return dir;
  }
  std::string Refusal(const std::vector<SweepRun>& populations) {
    const absl::Status status = WriteManifests(Folder(populations), {"mine", "", 1}, populations);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }
};

TEST(ObjectNameTest, AnyNameGivesAValidHostName) {
  EXPECT_EQ(ObjectName("cartpole/methods-cartpole-datacom_H-50"), "cartpole-methods-cartpole-datacom-h-50");
  EXPECT_EQ(ObjectName("5 ways."), "run-5-ways");
  EXPECT_EQ(ObjectName("_"), "run");
  EXPECT_EQ(ObjectName("on"), "run-on") << "YAML takes the word for a truth value";
  EXPECT_EQ(ObjectName("No."), "run-no");
  EXPECT_EQ(ObjectName("null"), "run-null");
  const std::regex label("[a-z]([-a-z0-9]*[a-z0-9])?");
  for (const std::string& name : {std::string(200, 'x'), std::string(40, '-'), std::string("Ünïcode"),
                                  std::string("a") + std::string(60, '-'), std::string()}) {
    EXPECT_TRUE(std::regex_match(ObjectName(name), label)) << name << " -> " << ObjectName(name);
    EXPECT_LE(ObjectName(name).size(), 40u);
  }
}

TEST(ObjectNameTest, LongNamesWithDifferentEndsStayDifferent) {
  const std::string head(60, 'x');
  EXPECT_NE(ObjectName(head + "1"), ObjectName(head + "2"));
  EXPECT_EQ(ObjectName(head + "1"), ObjectName(head + "1"));
}

TEST_F(SweepManifestsTest, PopulationsWithTheSameNameInTheClusterAreRefused) {
  const std::string message = Refusal({Named("a_1"), Named("a-1")});
  EXPECT_THAT(message, HasSubstr("a-1: another population"));
  EXPECT_THAT(message, HasSubstr("mine-a-1"));
}

TEST_F(SweepManifestsTest, AnExperimentTooLargeForAConfigMapIsRefused) {
  SweepRun large = Named("large");
  large.experiment.set_description(std::string(1 << 20, 'x'));
  EXPECT_THAT(Refusal({large}), AllOf(HasSubstr("ConfigMap holds 1048576"), EndsWith("; lower --max-members")));
}

TEST_F(SweepManifestsTest, AConfigMapCarriesTheModelsLargeFilesIfTheyFit) {
  SweepRun population = Named("a");
  v1::TaskFile* const mesh = population.experiment.mutable_task_options()->MutableExtension(v1::text_task)->add_file();
  mesh->set_name("hand.stl");
  mesh->set_sha256(std::string(64, '7'));
  mesh->set_gzip(std::string(1000, 'x'));
  const std::string dir = Folder({population}), file = "task_files/" + std::string(64, '7') + ".gz";
  ASSERT_THAT(WriteManifests(dir, {"mine", "", 1}, {population}), IsOk());
  EXPECT_EQ(*ReadFile(dir + "/a/" + file), std::string(1000, 'x'));
  EXPECT_THAT(*ReadFile(dir + "/a/experiment.textproto"), ::testing::Not(HasSubstr("xxx")));
  EXPECT_THAT(*ReadFile(dir + "/kustomization.yaml"),
              HasSubstr("    files: [a/experiment.textproto, a/" + file + "]\n"));
  EXPECT_FALSE(NeedsServerSide(population.experiment));
  mesh->set_gzip(std::string(200000, 'x'));
  EXPECT_TRUE(FitsConfigMap(population.experiment));
  EXPECT_TRUE(NeedsServerSide(population.experiment)) << "base64 needs four bytes for three";
  mesh->set_gzip(std::string(1 << 20, 'x'));
  EXPECT_FALSE(NeedsServerSide(population.experiment)) << "the ConfigMap does not have it";
  EXPECT_FALSE(FitsConfigMap(population.experiment));
  ASSERT_THAT(WriteManifests(dir, {"mine", "", 1}, {population}), IsOk());
  EXPECT_THAT(*ReadFile(dir + "/kustomization.yaml"), ::testing::Not(HasSubstr(file)));
}

TEST_F(SweepManifestsTest, TheLabelsOfATaskAreTextsThatKubernetesTakes) {
  SweepRun population = Named("a");
  const auto label = [&](const std::string& task) {
    population.experiment.set_task(task);
    const std::string dir = Folder({population});
    EXPECT_THAT(WriteManifests(dir, {"mine", "", 1}, {population}), IsOk());
    const std::string text = *ReadFile(dir + "/a/population.yaml"), key = "datacom/task: ";
    const size_t at = text.find(key) + key.size();
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(label("arm_"), "arm");
  EXPECT_EQ(label("on"), "\"on\"");
  EXPECT_EQ(label("air_hockey"), "air_hockey");
  EXPECT_EQ(label(std::string(70, 'x')), std::string(63, 'x'));
}

TEST(CheckImages, AcceptsARegistryWithOrWithoutPortAndTag) {
  for (const char* good :
       {"registry.example.org:5000/team/x:1.0-rc_2", "localhost:5000", "team", "team:tag", "a.b/c__d"}) {
    EXPECT_THAT(CheckImages(good), IsOk()) << good;
  }
  for (const std::string bad :
       {"http://x y", "https://registry/team", "team/", "/team", "Team/x", "team:", "a:b:c", "a@b", "a\nb"}) {
    const absl::Status status = CheckImages(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--images " + bad + ":"));
  }
}

TEST_F(SweepManifestsTest, ImagesGetTheRegistryAndTheTag) {
  const std::vector<SweepRun> populations = {Named("a")};
  const std::string dir = Folder(populations);
  ASSERT_EQ(WriteManifests(dir, {"mine", "host:5000/team:1.2", 1}, populations), absl::OkStatus());
  EXPECT_THAT(*ReadFile(dir + "/kustomization.yaml"),
              HasSubstr("  - name: datacom-actor\n    newName: host:5000/team/datacom-actor\n    newTag: \"1.2\"\n"));
  ASSERT_EQ(WriteManifests(dir, {"mine", "host:5000/team", 1}, populations), absl::OkStatus());
  EXPECT_THAT(*ReadFile(dir + "/kustomization.yaml"),
              HasSubstr("    newName: host:5000/team/datacom-replay\n  - name"));
  ASSERT_EQ(WriteManifests(dir, {"mine", "", 1}, populations), absl::OkStatus());
  EXPECT_THAT(*ReadFile(dir + "/kustomization.yaml"), ::testing::Not(HasSubstr("images:")));
}

TEST_F(SweepManifestsTest, AChangedSweepRewritesTheClustersExperiment) {
  std::vector<SweepRun> populations = {Named("a")};
  const std::string dir = Folder(populations);
  for (const uint64_t steps : {30000, 40000}) {
    populations[0].experiment.mutable_run()->set_env_steps(steps);
    ASSERT_EQ(WriteManifests(dir, {"mine", "", 1}, populations), absl::OkStatus());
    EXPECT_EQ(*ReadFile(dir + "/a/experiment.textproto"), PrintExperiment(populations[0].experiment));
  }
}

}  // namespace
}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
