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
  mesh->set_gzip(std::string(1 << 20, 'x'));
  EXPECT_FALSE(FitsConfigMap(population.experiment));
  ASSERT_THAT(WriteManifests(dir, {"mine", "", 1}, {population}), IsOk());
  EXPECT_THAT(*ReadFile(dir + "/kustomization.yaml"), ::testing::Not(HasSubstr(file)));
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
