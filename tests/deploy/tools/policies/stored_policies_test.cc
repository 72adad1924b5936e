// Tests the file of the policies that a result keeps.
#include "deploy/tools/policies/run_policies.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "datacom/v1/experiment.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::tools {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

StoredPolicy Policy(uint32_t member, uint32_t epoch, bool last, bool best, std::vector<float> bias) {
  StoredPolicy policy{epoch, last, best, {}};
  policy.snapshot.member = member;
  policy.snapshot.member_seed = 100 + member;
  policy.snapshot.version = {1, 10 * epoch};
  policy.snapshot.task = "cartpole";
  policy.snapshot.acting_rule = "gaussian_policy";
  const auto count = static_cast<uint32_t>(bias.size());
  policy.snapshot.arrays = {{"actor.mean.0.bias", {count}, std::move(bias)}};
  policy.snapshot.scalars = {{"delta", 0.1}};
  return policy;
}

class StoredPoliciesTest : public ::testing::Test {
 protected:
  // Two members; the best policy of the second is its last one.
  void WriteResult(const std::string& name) const {
    std::filesystem::create_directories(folder_.path() + "/" + name);
    std::ofstream(folder_.path() + "/" + name + "/experiment.textproto")
        << "name: 'a' task: 'cartpole' algorithm: 'sac' members { seed: 100 } members { seed: 101 }"
        << "run { env_steps: 1000 steps_per_epoch: 10 } replay { min_size: 0 } schedule { updates_per_step: 1 }";
    ASSERT_THAT(WriteStoredPolicies(
                    folder_.path() + "/" + name + "/policies.stored",
                    {Policy(0, 9, true, false, {1}), Policy(0, 4, false, true, {2}), Policy(1, 9, true, true, {3})}),
                IsOk());
  }
  std::string Path() const { return folder_.path() + "/policies.stored"; }

  const testing::TemporaryFolder folder_;
};

TEST_F(StoredPoliciesTest, WeightsAreRoundedToElevenBitsAndTheRestIsKept) {
  const std::vector<float> weights = {0, 1, -0.5f, 0.333333343f, 1e-3f, 60000, 3.14159274f};
  ASSERT_THAT(WriteStoredPolicies(Path(), {Policy(3, 7, true, false, weights)}), IsOk());
  const auto read = ReadStoredPolicies(Path());
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read->size(), 1u);
  const Snapshot& snapshot = (*read)[0].snapshot;
  EXPECT_EQ((*read)[0].epoch, 7u);
  EXPECT_TRUE((*read)[0].last && !(*read)[0].best);
  EXPECT_EQ(snapshot.member_seed, 103u);
  EXPECT_EQ(snapshot.scalars.at("delta"), 0.1) << "scalars are not rounded";
  const std::vector<float>& values = snapshot.arrays[0].values;
  for (size_t i = 0; i < weights.size(); ++i)
    EXPECT_LE(std::abs(values[i] - weights[i]), std::ldexp(std::abs(weights[i]), -11));
  EXPECT_EQ(values[3], 0.333251953125f);
  EXPECT_EQ(values[6], 3.140625f);
}

TEST_F(StoredPoliciesTest, AWeightThatDoesNotFitIsNamed) {
  for (const float weight : {70000.0f, std::nanf("")}) {
    EXPECT_THAT(std::string(WriteStoredPolicies(Path(), {Policy(3, 7, true, true, {1, weight})}).message()),
                HasSubstr("member 3: actor.mean.0.bias has the value "));
  }
}

TEST_F(StoredPoliciesTest, AFileThatIsDamagedAnywhereIsRefused) {
  WriteResult("a");
  const std::string path = folder_.path() + "/a/policies.stored", whole = *ReadFile(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 4;
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_FALSE(ReadStoredPolicies(path).ok()) << at;
  }
  std::ofstream(path, std::ios::binary) << whole.substr(0, whole.size() - 1);
  EXPECT_TRUE(absl::IsDataLoss(ReadStoredPolicies(path).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadStoredPolicies(path + "x").status()));
}

TEST_F(StoredPoliciesTest, AResultHasTheLastAndTheBestPolicyOfEachMember) {
  WriteResult("a");
  const std::string result = folder_.path() + "/a";
  const auto bias = [&](const std::string& epoch) {
    std::vector<float> found;
    const auto policies = ReadPolicies(result, epoch);
    EXPECT_THAT(policies, IsOk());
    for (const MemberPolicy& policy : *policies) found.push_back(policy.snapshot.arrays[0].values[0]);
    return found;
  };
  EXPECT_EQ(bias("last"), (std::vector<float>{1, 3}));
  EXPECT_EQ(bias("best"), (std::vector<float>{2, 3}));
  EXPECT_EQ(bias("4"), (std::vector<float>{2}));
  EXPECT_EQ(*PolicyEpochs(result), (std::vector<uint32_t>{4, 9}));
  EXPECT_THAT(std::string(ReadPolicies(result, "5").status().message()), HasSubstr("of the epochs 4, 9"));
}

TEST_F(StoredPoliciesTest, AnEpochsFileHasOneName) {
  const testing::TemporaryFolder run;
  ASSERT_THAT(MakeFolders(run.path() + "/policies"), IsOk());
  for (const std::string name : {"epoch_0003.snapshot", "epoch_3.snapshot", "epoch_00004.snapshot", "epoch_ 5.snapshot",
                                 "epoch_0006.snapshot.tmp", "epoch_12345.snapshot"}) {
    ASSERT_THAT(WriteFileAtomically(run.path() + "/policies/" + name, ""), IsOk());
  }
  EXPECT_EQ(*PolicyEpochs(run.path()), (std::vector<uint32_t>{3, 12345}));
}

TEST_F(StoredPoliciesTest, PoliciesOfAnotherResultAreRefusedNamingWhatDiffers) {
  WriteResult("a");
  const auto refusal = [&](const auto& change) {
    StoredPolicy policy = Policy(1, 9, true, true, {1});
    change(&policy);
    EXPECT_THAT(WriteStoredPolicies(folder_.path() + "/a/policies.stored", {policy}), IsOk());
    return std::string(ReadPolicies(folder_.path() + "/a", "last").status().message());
  };
  EXPECT_EQ(refusal([](StoredPolicy*) {}), "");
  EXPECT_THAT(refusal([](StoredPolicy* policy) { policy->snapshot.acting_rule = "safe_map"; }),
              HasSubstr("a/policies.stored: policy of member 1: of acting rule \"safe_map\", not \"gaussian_policy\""));
  EXPECT_THAT(refusal([](StoredPolicy* policy) { policy->snapshot.task = "navigation"; }),
              HasSubstr("of task \"navigation\", not \"cartpole\""));
  EXPECT_THAT(refusal([](StoredPolicy* policy) { policy->snapshot.member_seed = 100; }), HasSubstr("of seed 100"));
  EXPECT_THAT(refusal([](StoredPolicy* policy) { policy->snapshot.member = 2; }), HasSubstr("policy of member 2"));
  EXPECT_THAT(refusal([](StoredPolicy* policy) { policy->snapshot.version.update = 80; }),
              HasSubstr("of update 80, which does not end epoch 9"));
}

TEST_F(StoredPoliciesTest, AResultIsFoundByItsNameAndOthersAreListed) {
  WriteResult("hockey/sac");
  WriteResult("pole/sweep/part");
  ::setenv("DATACOM_RESULTS", folder_.path().c_str(), 1);
  EXPECT_EQ(*RunFolderOf("results:hockey/sac"), folder_.path() + "/hockey/sac");
  EXPECT_EQ(*RunFolderOf("runs/mine"), "runs/mine");
  EXPECT_THAT(std::string(RunFolderOf("results:hockey/none").status().message()),
              HasSubstr("there are hockey/sac, pole/sweep/part"));
  ::setenv("DATACOM_RESULTS", "/nowhere", 1);
  EXPECT_THAT(std::string(RunFolderOf("results:x").status().message()), HasSubstr("DATACOM_RESULTS"));
  ::unsetenv("DATACOM_RESULTS");
}

TEST_F(StoredPoliciesTest, ManyResultsAreCountedAndNotListed) {
  for (int i = 0; i < 21; ++i) WriteResult("pole/part_" + std::to_string(i));
  ::setenv("DATACOM_RESULTS", folder_.path().c_str(), 1);
  EXPECT_THAT(std::string(RunFolderOf("results:hockey/none").status().message()),
              HasSubstr("there are 21 below " + folder_.path()));
  ::unsetenv("DATACOM_RESULTS");
}

TEST_F(StoredPoliciesTest, WithoutItsPoliciesAResultIsTheRunFolderThatReproducedIt) {
  WriteResult("hockey/sac");
  std::filesystem::remove(folder_.path() + "/hockey/sac/policies.stored");
  ::setenv("DATACOM_RESULTS", folder_.path().c_str(), 1);
  const std::string file = "/hockey/sac/policies.stored";
  EXPECT_THAT(std::string(RunFolderOf("results:hockey/sac").status().message()),
              HasSubstr("git show 77adaad0:deploy/results" + file + " > " + folder_.path() + file));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  std::filesystem::create_directories("runs/reproduce/hockey/sac");
  std::ofstream("runs/reproduce/hockey/sac/experiment.textproto") << "name: 'hockey/sac'";
  EXPECT_EQ(*RunFolderOf("results:hockey/sac"), "runs/reproduce/hockey/sac");
  std::filesystem::current_path(before);
  ::unsetenv("DATACOM_RESULTS");
}

// Tests run in the source tree, where the policies lie in deploy/examples.
TEST(ShippedPolicies, AreFoundByNameAndHaveOnePolicyEach) {
  int found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("deploy/examples/policies")) {
    if (entry.path().filename() != "policies.stored") continue;
    const std::string name = entry.path().parent_path().lexically_relative("deploy/examples/policies").string();
    SCOPED_TRACE(name);
    const absl::StatusOr<std::string> folder = RunFolderOf("shipped:" + name);
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_EQ(ReadRunExperiment(*folder, {})->name(), name);
    const auto policies = ReadPolicies(*folder, "last");
    ASSERT_TRUE(policies.ok()) << policies.status();
    EXPECT_EQ(policies->size(), 1u);
    EXPECT_TRUE(FindMember(*policies, std::nullopt).ok());
    ++found;
  }
  EXPECT_EQ(found, 7);
  EXPECT_THAT(std::string(RunFolderOf("shipped:pole/none").status().message()),
              HasSubstr("there are air_hockey/datacom, "));
}

}  // namespace
}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
