#include "common/records/ledger.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/exit_code.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

// Each transition of two members is a step of one of two alternating environments; an episode has four steps.
class LedgerExcerpt : public ::testing::Test {
 protected:
  // costs[member] of the transitions, from the first.
  void Write(const std::vector<std::vector<float>>& costs) const {
    const auto writer = *LedgerWriter::Open({run_, 2, 1, "run"}, {});
    for (uint32_t row = 0; row < costs[0].size(); ++row) {
      for (uint32_t member = 0; member < 2; ++member) {
        LedgerStep step;
        step.session = 3;
        step.environment = row % 2;
        step.episode = row / 8;
        step.step = row / 2 % 4;
        step.cost = costs[member][row];
        step.check = 100 * member + row;
        step.execution = {0.5f * row};
        ASSERT_THAT(writer->AppendStep(member, step), IsOk());
        if (step.cost <= 0) continue;
        LedgerViolation violation;
        violation.member = member;
        violation.seed = 70 + member;
        violation.actor = "actor-0";
        violation.session = 3;
        violation.environment = step.environment;
        violation.episode = step.episode;
        violation.step = step.step;
        violation.env_steps = row + 1;
        violation.cost = step.cost;
        violation.raw_action = violation.executed_action = step.execution;
        ASSERT_THAT(writer->AppendViolation(violation), IsOk());
      }
    }
    ASSERT_THAT(writer->Flush(/*sync=*/false), IsOk());
  }
  std::vector<float> Costs() const {
    std::vector<float> costs;
    const auto add = [&](const LedgerViolation& violation) { costs.push_back(violation.cost); };
    EXPECT_THAT(VisitViolations(kept_, add), IsOk());
    return costs;
  }

  const testing::TemporaryFolder temporary_;
  const std::string run_ = temporary_.path() + "/run", kept_ = temporary_.path() + "/kept";
};

// Episode 0 of environment 0 of member 0 has rows 0, 2, 4, 6, of environment 1 rows 1, 3, 5, 7; episode 1 rows 8 to 15.
TEST_F(LedgerExcerpt, HasTheLargestViolationOfEachEpisodeFirstTheLargest) {
  Write({{-1, 2, 5, -1, 7, 6, -1, -1, 1, -1, -1, 3, -1, 9, -1, -1},
         {-1, -1, -1, -1, 4, -1, -1, -1, -1, -1, 8, -1, -1, -1, -1, -1}});
  EXPECT_EQ(*CopyLargestViolations(run_, 4, kept_), 4u);
  EXPECT_EQ(Costs(), (std::vector<float>{9, 8, 7, 6}));
  const LedgerViolation second = *ReadViolation(kept_, 2);
  EXPECT_EQ(second.member, 1u);
  EXPECT_EQ(second.seed, 71u);
  EXPECT_EQ(second.env_steps, 11u);
  EXPECT_EQ(second.step, 1u);
  EXPECT_EQ(second.executed_action, (std::vector<float>{5}));
}

TEST_F(LedgerExcerpt, AnEpisodeEndsWithItsViolation) {
  Write({{-1, 2, 5, -1, 7, 6, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1}});
  ASSERT_THAT(CopyLargestViolations(run_, 10, kept_), IsOk());
  const std::vector<LedgerStep> steps = *ReadEpisode(kept_, *ReadViolation(kept_, 1));
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].check, 0u);
  EXPECT_EQ(steps[1].check, 2u);
  EXPECT_EQ(steps[2].check, 4u);
  EXPECT_EQ(steps[2].cost, 7);
}

TEST_F(LedgerExcerpt, AnEpisodeThatWasPushedOutReturnsWithALargerViolation) {
  Write({{1, 2, -1, 3, 9, -1, -1, -1}, {4, -1, -1, -1, -1, -1, -1, -1}});
  EXPECT_EQ(*CopyLargestViolations(run_, 2, kept_), 2u);
  EXPECT_EQ(Costs(), (std::vector<float>{9, 4}));
}

TEST_F(LedgerExcerpt, OfEqualViolationsTheFirstIsKept) {
  Write({{-1, 2, -1, -1, 2, 2, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1}});
  EXPECT_EQ(*CopyLargestViolations(run_, 1, kept_), 1u);
  EXPECT_EQ(ReadViolation(kept_, 1)->env_steps, 2u);
}

TEST_F(LedgerExcerpt, AMemberThatNoRunHasGetsNoFiles) {
  constexpr uint32_t kStrange = 4000000000;
  Write({{-1, 2, -1, -1, 3, -1, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1}});
  const std::string file = run_ + "/ledger/violations.csv", steps = ReadFile(run_ + "/ledger/member_0.steps").value();
  std::string violations = ReadFile(file).value();
  violations.replace(violations.find("\n1,0,") + 3, 1, std::to_string(kStrange));
  ASSERT_THAT(WriteFileAtomically(file, violations), IsOk());
  const std::string header = ledger::StepHeader(MakeOwner("run", kStrange), 1);
  ASSERT_THAT(WriteFileAtomically(run_ + "/" + ledger::StepsPath(kStrange), header + steps.substr(header.size())),
              IsOk());
  const absl::Status status = CopyLargestViolations(run_, 10, kept_).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("violation 1 is of member 4000000000, which no run has"));
  EXPECT_FALSE(FileExists(kept_)) << "each member below it would have got a file";
}

TEST_F(LedgerExcerpt, ADamagedLedgerReplacesNothing) {
  Write({{-1, 2, -1, -1, 3, -1, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1}});
  ASSERT_THAT(CopyLargestViolations(run_, 10, kept_), IsOk());
  const std::string file = run_ + "/ledger/violations.csv", content = ReadFile(file).value();
  std::string other = content;  // of a member that the run does not have
  other.replace(other.find("\n1,0,") + 3, 1, "4000000000");
  ASSERT_THAT(WriteFileAtomically(file, other), IsOk());
  EXPECT_TRUE(absl::IsNotFound(CopyLargestViolations(run_, 10, kept_).status()));
  EXPECT_EQ(Costs(), (std::vector<float>{3, 2}));
}

TEST_F(LedgerExcerpt, AnEarlierExcerptIsReplaced) {
  Write({{-1, 2, -1, -1, 3, -1, -1, -1}, {-1, 9, -1, -1, -1, -1, -1, -1}});
  ASSERT_THAT(CopyLargestViolations(run_, 10, kept_), IsOk());
  EXPECT_TRUE(FileExists(kept_ + "/ledger/member_1.steps"));
  Write({{-1, 2, -1, -1, 3, -1, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1}});
  ASSERT_THAT(CopyLargestViolations(run_, 10, kept_), IsOk());
  EXPECT_EQ(Costs(), (std::vector<float>{3, 2}));
  EXPECT_FALSE(FileExists(kept_ + "/ledger/member_1.steps"));
}

TEST_F(LedgerExcerpt, AnEarlierExcerptStaysWhenTheNewOneCannotBeWritten) {
  Write({{-1, 2, -1, -1, 3, -1, -1, -1}, {-1, 9, -1, -1, -1, -1, -1, -1}});
  ASSERT_THAT(CopyLargestViolations(run_, 10, kept_), IsOk());
  const int code = testing::ExitCodeOf([this] {
    const rlimit small{10, 10};  // bytes of a file
    std::signal(SIGXFSZ, SIG_IGN);
    ::_exit(::setrlimit(RLIMIT_FSIZE, &small) != 0 ? 100 : CopyLargestViolations(run_, 1, kept_).ok() ? 0 : 1);
  });
  EXPECT_EQ(code, 1);
  EXPECT_EQ(Costs(), (std::vector<float>{9, 3, 2}));
  EXPECT_EQ(*ListFolder(kept_), (std::vector<std::string>{"ledger"}));
}

TEST_F(LedgerExcerpt, WhatIsNoExcerptIsNotReplaced) {
  Write({{-1, 2, -1, -1, -1, -1, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1}});
  const auto refused = [this](const std::string& file) {
    const absl::Status status = CopyLargestViolations(run_, 10, kept_).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(kept_ + "/ledger/" + file + " is not of an excerpt"));
    EXPECT_TRUE(FileExists(kept_ + "/ledger/" + file));
  };
  std::filesystem::copy(run_, kept_, std::filesystem::copy_options::recursive);  // of another run
  refused("member_0.steps");
  std::filesystem::remove_all(kept_);
  ASSERT_THAT(MakeFolders(kept_ + "/ledger"), IsOk());
  ASSERT_THAT(WriteFileAtomically(kept_ + "/ledger/accounts", "precious"), IsOk());
  refused("accounts");
}

TEST_F(LedgerExcerpt, ARunWithoutViolationsLeavesNothing) {
  Write({{-1, -1, -1, -1, -1, -1, -1, -1}, {0, 0, 0, 0, 0, 0, 0, 0}});
  EXPECT_EQ(*CopyLargestViolations(run_, 10, kept_), 0u);
  EXPECT_FALSE(FileExists(kept_ + "/ledger/violations.csv"));
}

TEST_F(LedgerExcerpt, TheRunsOwnLedgerIsNeverReplaced) {
  Write({{-1, 2, -1, -1, 3, -1, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1}});
  EXPECT_THAT(std::string(CopyLargestViolations(run_, 10, run_ + "/.").status().message()),
              HasSubstr("is the run itself"));
  EXPECT_THAT(ReadViolation(run_, 2), IsOk());
  EXPECT_THAT(std::string(CopyLargestViolations(kept_, 10, run_).status().message()), HasSubstr("has no ledger"));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
