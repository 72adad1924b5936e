#include "learner/ledger_recorder.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "tests/testing/fake_learner_run.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::learner {
namespace {

using datacom::testing::IsOk;

class LedgerTest : public ::testing::Test {
 protected:
  std::string Folder(const std::string& name) const { return temporary_.path() + "/" + name; }
  std::unique_ptr<LedgerRecorder> Open(const std::string& folder, const FileEnds& ends = {}) {
    auto ledger = LedgerRecorder::Open(folder, "run", {100, 101}, replay_.schema, ends,
                                       [this](uint32_t member, uint64_t from, uint64_t to, const auto& consume) {
                                         return replay_.ReadRows(member, from, to, consume);
                                       });
    EXPECT_THAT(ledger, IsOk());
    return *std::move(ledger);
  }
  static std::vector<std::string> Lines(const std::string& folder) {
    return absl::StrSplit(*ReadFile(folder + "/ledger/violations.csv"), '\n', absl::SkipEmpty());
  }
  // All files, one after the other.
  static std::string Content(const std::string& folder) {
    return absl::StrCat(*ReadFile(folder + "/ledger/violations.csv"), *ReadFile(folder + "/ledger/member_0.steps"),
                        *ReadFile(folder + "/ledger/member_1.steps"));
  }

  const datacom::testing::TemporaryFolder temporary_;
  v1::Experiment experiment_ = FakeExperiment();
  FakeReplay replay_ = MakeFakeReplay(experiment_);
};

TEST_F(LedgerTest, EveryViolationIsWrittenOnceOrderedByStepThenMember) {
  const std::string folder = Folder("run");
  auto ledger = Open(folder);
  ASSERT_THAT(ledger->Advance(20), IsOk());
  ASSERT_THAT(ledger->Flush(/*sync=*/false), IsOk());
  const std::vector<std::string> lines = Lines(folder);
  size_t line = 1;
  for (uint64_t row = 0; row < 20; ++row) {
    for (uint32_t member = 0; member < 2; ++member) {
      const float cost = FakeReplay::CostOf(row, member);
      if (!(cost > 0)) continue;
      ASSERT_LT(line, lines.size());
      EXPECT_EQ(lines[line], absl::StrCat(line, ",", member, ",", 100 + member, ",fake-0,1,0,", row / 10, ",", row % 10,
                                          ",", row + 1, ",", row / 2, ",,,,", cost, ",", row, ",", row));
      ++line;
    }
  }
  EXPECT_EQ(line, lines.size());
  const auto violation = ReadViolation(folder, line - 1);
  ASSERT_THAT(violation, IsOk());
  const auto episode = ReadEpisode(folder, *violation);
  ASSERT_THAT(episode, IsOk());
  ASSERT_EQ(episode->size(), 10u);
  const float observation[] = {13, 13.5f};
  EXPECT_EQ(episode->at(3).check, StepCheck(observation, observation, 2, /*reward=*/13, /*absorbing=*/false));
  EXPECT_EQ(episode->at(3).execution, std::vector<float>{13});
}

TEST_F(LedgerTest, TheLedgerHasBothActionsAndTheJudgementOfARuleThatFiltersAndJudges) {
  std::vector<Column> columns;
  for (const char* name : {kRawAction, kCvar, kDelta}) columns.push_back({name, ColumnType::kFloat32, 1, false});
  replay_.schema = RowSchema::For(2, 1, columns);  // cvar and delta both hold the row's number: k = 0
  const std::string folder = Folder("run");
  auto ledger = Open(folder);
  ASSERT_THAT(ledger->Advance(4), IsOk());
  ASSERT_THAT(ledger->Flush(false), IsOk());
  EXPECT_EQ(Lines(folder).at(3), "3,0,100,fake-0,1,0,0,3,4,1,3,3,1e-05,3.25,3,3");
}

TEST_F(LedgerTest, TheBytesDoNotDependOnTheStepsOfAdvance) {
  const std::string whole = Folder("whole");
  auto once = Open(whole);
  ASSERT_THAT(once->Advance(250), IsOk());
  ASSERT_THAT(once->Flush(false), IsOk());
  const std::string pieces = Folder("pieces");
  FileEnds ends;
  for (const uint64_t rows : {1, 20, 5, 21, 100, 250}) {
    auto ledger = Open(pieces, ends);
    ASSERT_THAT(ledger->Advance(rows), IsOk());
    ASSERT_THAT(ledger->Flush(false), IsOk());
    ends = ledger->Ends();
  }
  EXPECT_EQ(Content(pieces), Content(whole));
}

TEST_F(LedgerTest, RowsThatWereNotRequestedAreRefused) {
  for (const bool late : {false, true}) {
    auto ledger = LedgerRecorder::Open(Folder(late ? "late" : "short"), "run", {100, 101}, replay_.schema, {},
                                       [&](uint32_t member, uint64_t from, uint64_t to, const auto& consume) {
                                         return replay_.ReadRows(member, from + late, to - !late, consume);
                                       });
    ASSERT_THAT(ledger, IsOk());
    const absl::Status status = (*ledger)->Advance(5);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_EQ((*ledger)->rows(), 0u);
  }
}

TEST_F(LedgerTest, AnInterruptedOrKilledRunHasTheLedgerOfOneThatWasNot) {
  const std::string whole = Folder("whole");
  ASSERT_THAT(RunFake(whole, experiment_).status, IsOk());
  EXPECT_EQ(Lines(whole).size(), 1u + 2 * 250 / 3 + 1);
  for (const uint64_t at : {1, 79, 80, 81, 229}) {
    const std::string cut = Folder(absl::StrCat("cut", at)), killed = Folder(absl::StrCat("killed", at));
    EXPECT_TRUE(absl::IsCancelled(RunFake(cut, experiment_, {/*stop_at_update=*/at}).status));
    ASSERT_THAT(RunFake(cut, experiment_).status, IsOk());
    EXPECT_EQ(Content(cut), Content(whole)) << "stopped at update " << at;
    EXPECT_FALSE(RunFake(killed, experiment_, {UINT64_MAX, /*evaluate=*/true, /*throw_at_update=*/at}).status.ok());
    ASSERT_THAT(RunFake(killed, experiment_).status, IsOk());
    EXPECT_EQ(Content(killed), Content(whole)) << "killed in update " << at;
  }
}

TEST_F(LedgerTest, AReplayThatDoesNotAnswerDelaysNoUpdateAndNoRowIsMissingInTheEnd) {
  const std::string whole = Folder("whole"), folder = Folder("run");
  ASSERT_THAT(RunFake(whole, experiment_).status, IsOk());
  RunPlan plan;
  int calls = 0;
  plan.read_rows = [&](const FakeReplay& replay, uint32_t member, uint64_t from, uint64_t to, const auto& consume) {
    switch (++calls % 4) {
      case 1:
        return absl::Status(absl::UnavailableError("connection refused"));
      case 2:
        return absl::Status(absl::DeadlineExceededError("no answer"));
      default:
        return replay.ReadRows(member, from, to, consume);
    }
  };
  ASSERT_THAT(RunFake(folder, experiment_, plan).status, IsOk());
  EXPECT_EQ(Content(folder), Content(whole));
}

TEST_F(LedgerTest, ARunIsNotOverBeforeItsLastRowsAreWritten) {
  experiment_.mutable_schedule()->set_updates_per_step(0.1);  // 23 updates, the last looks at row 250
  experiment_.mutable_run()->set_env_steps(255);              // rows that no update looks at
  const std::string folder = Folder("run");
  RunPlan plan;
  int refused = 0;
  plan.read_rows = [&](const FakeReplay& replay, uint32_t member, uint64_t from, uint64_t to, const auto& consume) {
    if (to > 250 && ++refused < 3) return absl::Status(absl::OutOfRangeError("250 are committed"));
    return replay.ReadRows(member, from, to, consume);
  };
  ASSERT_THAT(RunFake(folder, experiment_, plan).status, IsOk());
  EXPECT_EQ(refused, 2 + 2) << "both members, once the rows were there";
  EXPECT_EQ(Lines(folder).size(), 1u + 2 * 255 / 3);
}

TEST_F(LedgerTest, OverwrittenRowsEndTheRunBecauseTheLedgerMustBeComplete) {
  RunPlan plan;
  plan.read_rows = [](const FakeReplay&, uint32_t, uint64_t, uint64_t, const auto&) {
    return absl::NotFoundError("row 0 of member 0 is overwritten");
  };
  const RunOutcome outcome = RunFake(Folder("run"), experiment_, plan);
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(outcome.status.message().find("ledger: row 0"), absl::string_view::npos) << outcome.status;
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
