#include "common/records/ledger.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>

#include "common/base/checksum.h"
#include "common/base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/framed_files.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/step_files.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

// Two environments of a session alternate; the second violates at its steps 1 and 2.
class LedgerFiles : public ::testing::Test {
 protected:
  static constexpr uint32_t kActions = 2;

  static LedgerStep StepOf(uint32_t row) {
    LedgerStep step;
    step.session = 7;
    step.environment = row % 2;
    step.episode = 3;
    step.step = row / 2;
    step.cost = row == 3 || row == 5 ? 0.1f * row : -1;
    step.check = 1000 + row;
    step.execution = {0.1f * row, -1.0f / (row + 1)};
    return step;
  }
  static LedgerViolation ViolationOf(uint32_t row, uint32_t member) {
    const LedgerStep step = StepOf(row);
    LedgerViolation violation;
    violation.member = member;
    violation.seed = 40 + member;
    violation.actor = "actor-0";
    violation.session = step.session;
    violation.environment = step.environment;
    violation.episode = step.episode;
    violation.step = step.step;
    violation.env_steps = row + 1;
    violation.policy_version = 16;
    if (member == 1) violation.judgement = {3.0486f, 2.5f, 0.5486f};
    violation.cost = step.cost;
    violation.raw_action = {std::nextafter(0.3f, 1.0f), std::numeric_limits<float>::min()};
    violation.executed_action = step.execution;
    return violation;
  }
  std::unique_ptr<LedgerWriter> Open(const FileEnds& ends = {}) {
    auto writer = LedgerWriter::Open({folder_, /*members=*/2, kActions, "run"}, ends);
    EXPECT_THAT(writer, IsOk());
    return *std::move(writer);
  }
  // The ends of a ledger with `rows` rows.
  FileEnds Written(uint32_t rows) {
    auto writer = Open();
    Append(0, rows, writer.get());
    return writer->Ends();
  }
  static void Append(uint32_t from, uint32_t to, LedgerWriter* writer) {
    for (uint32_t row = from; row < to; ++row) {
      for (uint32_t member = 0; member < 2; ++member) {
        ASSERT_THAT(writer->AppendStep(member, StepOf(row)), IsOk());
        if (StepOf(row).cost > 0) {
          ASSERT_THAT(writer->AppendViolation(ViolationOf(row, member)), IsOk());
        }
      }
    }
    ASSERT_THAT(writer->Flush(/*sync=*/false), IsOk());
  }
  std::string Path(const std::string& name) const { return folder_ + "/ledger/" + name; }
  std::string Content(const std::string& name) const { return ReadFile(Path(name)).value(); }
  // Replaces the content of a file by `edit` of it.
  template <typename Edit>
  void Damage(const std::string& name, const Edit& edit) {
    std::string content = Content(name);
    edit(&content);
    ASSERT_THAT(WriteFileAtomically(Path(name), content), IsOk());
  }
  const testing::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(LedgerFiles, AViolationIsAReadableRow) {
  Append(0, 6, Open().get());
  EXPECT_EQ(Content("violations.csv"),
            "id,member,seed,actor,session,environment,episode,step,env_steps,policy_version,delta,cvar,slack,cost,"
            "raw_action0,raw_action1,executed_action0,executed_action1\n"
            "1,0,40,actor-0,7,1,3,1,4,16,,,,0.3,0.30000004,1.1754944e-38,0.3,-0.25\n"
            "2,1,41,actor-0,7,1,3,1,4,16,3.0486,2.5,0.5486,0.3,0.30000004,1.1754944e-38,0.3,-0.25\n"
            "3,0,40,actor-0,7,1,3,2,6,16,,,,0.5,0.30000004,1.1754944e-38,0.5,-0.16666667\n"
            "4,1,41,actor-0,7,1,3,2,6,16,3.0486,2.5,0.5486,0.5,0.30000004,1.1754944e-38,0.5,-0.16666667\n");
  EXPECT_EQ(Content("member_1.steps").size(), LedgerStepBytes(6, kActions));
}

TEST_F(LedgerFiles, ReadsTheBitsThatWereWritten) {
  Append(0, 6, Open().get());
  const auto violation = ReadViolation(folder_, 4);
  ASSERT_THAT(violation, IsOk());
  const LedgerViolation wanted = ViolationOf(5, 1);
  EXPECT_EQ(violation->id, 4u);
  EXPECT_EQ(violation->member, 1u);
  EXPECT_EQ(violation->seed, 41u);
  EXPECT_EQ(violation->actor, "actor-0");
  EXPECT_EQ(violation->session, 7u);
  EXPECT_EQ(violation->environment, 1u);
  EXPECT_EQ(violation->episode, 3u);
  EXPECT_EQ(violation->step, 2u);
  EXPECT_EQ(violation->env_steps, 6u);
  EXPECT_EQ(violation->policy_version, 16u);
  EXPECT_EQ(violation->cost, wanted.cost);
  EXPECT_EQ(violation->raw_action, wanted.raw_action);
  EXPECT_EQ(violation->executed_action, wanted.executed_action);
  ASSERT_TRUE(violation->judgement.has_value());
  EXPECT_EQ(violation->judgement->delta, 3.0486f);
  EXPECT_EQ(violation->judgement->cvar, 2.5f);
  EXPECT_FALSE(ReadViolation(folder_, 3)->judgement.has_value());

  const auto episode = ReadEpisode(folder_, *violation);
  ASSERT_THAT(episode, IsOk());
  ASSERT_EQ(episode->size(), 3u) << "nothing of the other environment";
  for (uint32_t step = 0; step < 3; ++step) {
    const LedgerStep want = StepOf(2 * step + 1);
    EXPECT_EQ(episode->at(step).step, step);
    EXPECT_EQ(episode->at(step).cost, want.cost);
    EXPECT_EQ(episode->at(step).check, want.check);
    EXPECT_EQ(episode->at(step).execution, want.execution);
  }
}

TEST_F(LedgerFiles, AResumedLedgerHasTheBytesOfAnUninterruptedOne) {
  Append(0, 6, Open().get());
  const std::string violations = Content("violations.csv"), steps = Content("member_0.steps");
  for (uint32_t cut = 0; cut <= 6; ++cut) {
    FileEnds ends;
    {
      auto writer = Open();
      Append(0, cut, writer.get());
      ends = writer->Ends();
      Append(cut, 5, writer.get());  // rows after the checkpoint
    }
    auto writer = Open(ends);
    EXPECT_EQ(writer->transitions(0), cut);
    Append(cut, 6, writer.get());
    EXPECT_EQ(Content("violations.csv"), violations) << "cut at " << cut;
    EXPECT_EQ(Content("member_0.steps"), steps) << "cut at " << cut;
  }
}

TEST_F(LedgerFiles, AReadableViolationHasItsStepsWhateverIsBuffered) {
  const auto writer = Open();
  uint64_t readable = 0;
  for (uint32_t row = 0; row < 2000; ++row) {
    ASSERT_THAT(writer->AppendStep(0, StepOf(row)), IsOk());
    ASSERT_THAT(writer->AppendStep(1, StepOf(row)), IsOk());
    ASSERT_THAT(writer->AppendViolation(ViolationOf(row, 1)), IsOk());
    const std::string csv = Content("violations.csv");
    const auto rows = static_cast<uint64_t>(std::count(csv.begin(), csv.end(), '\n'));
    if (rows <= readable + 1) continue;  // the first line is the header
    readable = rows - 1;
    const auto violation = ReadViolation(folder_, readable);
    ASSERT_THAT(violation, IsOk());
    const auto episode = ReadEpisode(folder_, *violation);
    ASSERT_THAT(episode, IsOk());
    EXPECT_GT(episode->size(), violation->step);
  }
  EXPECT_GT(readable, 0u) << "no buffer was full";
}

TEST_F(LedgerFiles, ActorNamesCannotBreakARow) {
  auto writer = Open();
  ASSERT_THAT(writer->AppendStep(0, StepOf(3)), IsOk());
  LedgerViolation violation = ViolationOf(3, 0);
  violation.actor = "a,\"b\"\nc";
  ASSERT_THAT(writer->AppendViolation(violation), IsOk());
  ASSERT_THAT(writer->Flush(false), IsOk());
  EXPECT_EQ(ReadViolation(folder_, 1)->actor, "a__b__c");
}

TEST_F(LedgerFiles, AMissingFileOrViolationIsNamed) {
  EXPECT_EQ(ReadViolation(folder_, 1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(CountViolations(folder_).value(), 0u);
  Append(0, 3, Open().get());
  EXPECT_EQ(CountViolations(folder_).value(), 0u);
  EXPECT_THAT(std::string(ReadViolation(folder_, 1).status().message()), HasSubstr("it holds none"));
  Append(0, 6, Open().get());
  EXPECT_EQ(CountViolations(folder_).value(), 4u);
  for (const uint64_t id : {0, 5}) {
    const absl::Status status = ReadViolation(folder_, id).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr("it holds 1 to 4"));
  }
}

TEST_F(LedgerFiles, APipeInThePlaceOfAFileIsRefusedByName) {
  Append(0, 6, Open().get());
  const LedgerViolation violation = *ReadViolation(folder_, 1);
  for (const std::string name : {"violations.csv", "member_0.steps"}) {
    std::filesystem::remove(Path(name));
    ASSERT_EQ(::mkfifo(Path(name).c_str(), 0600), 0);
  }
  EXPECT_EQ(ReadViolation(folder_, 1).status().message(), Path("violations.csv") + " is not a regular file");
  EXPECT_EQ(ReadEpisode(folder_, violation).status().message(), Path("member_0.steps") + " is not a regular file");
}

TEST_F(LedgerFiles, AnUnfinishedLastRowOrRecordDoesNotCount) {
  Append(0, 6, Open().get());
  const LedgerViolation violation = *ReadViolation(folder_, 1);
  Damage("violations.csv", [](std::string* content) { content->pop_back(); });
  EXPECT_EQ(CountViolations(folder_).value(), 3u);
  EXPECT_EQ(ReadViolation(folder_, 4).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(ReadViolation(folder_, 3), IsOk());
  Damage("member_0.steps", [](std::string* content) { content->pop_back(); });
  EXPECT_EQ(ReadEpisode(folder_, violation)->size(), 2u);
}

TEST_F(LedgerFiles, DamageIsRefusedNamingFileAndPosition) {
  Append(0, 6, Open().get());
  const LedgerViolation violation = *ReadViolation(folder_, 3);
  const std::string csv = Content("violations.csv"), steps = Content("member_0.steps");
  const auto csv_error = [&](const std::string& from, const std::string& to) {
    Damage("violations.csv", [&](std::string* content) {
      *content = csv;
      content->replace(content->find(from), from.size(), to);
    });
    const absl::Status status = ReadViolation(folder_, 3).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << from << " -> " << to;
    return std::string(status.message());
  };
  EXPECT_THAT(csv_error("id,member", "id,remember"), HasSubstr("line 1: not the header"));
  EXPECT_THAT(csv_error("\n2,1,41", "\n1,1,41"), HasSubstr("line 3: its id is not 2"));
  EXPECT_THAT(csv_error("\n3,0,40", "\n3,0,forty"), HasSubstr("line 4, column 3: \"forty\" is not a number"));
  EXPECT_THAT(csv_error("\n3,0,40", "\n3,40"), HasSubstr("line 4: 17 columns instead of 18"));

  const auto steps_error = [&](size_t at, char value, std::optional<uint64_t> sealed = std::nullopt) {
    Damage("member_0.steps", [&](std::string* content) {
      *content = steps;
      content->at(at) = value;
      if (sealed.has_value()) testing::SealStep(*sealed, kActions, content);
    });
    const absl::Status status = ReadEpisode(folder_, violation).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << at;
    return std::string(status.message());
  };
  const auto at = [](uint64_t record, size_t byte) { return testing::StepOffset(record, kActions) + byte; };
  EXPECT_THAT(steps_error(0, 'X'), HasSubstr("not a step file of this program"));
  EXPECT_THAT(steps_error(24, 3), HasSubstr("member_0.steps: damaged: checksum"));
  EXPECT_THAT(steps_error(at(3, 12), 9), HasSubstr("record 3: its checksum is wrong"));
  EXPECT_THAT(steps_error(at(3, 12), 9, 3), HasSubstr("record 3: step 9 of its episode instead of step 1"));
  EXPECT_THAT(steps_error(at(5, 16), 9, 5), HasSubstr("record 5 is not violation 3"));
  Damage("member_0.steps", [&](std::string* content) { *content = Content("member_1.steps"); });
  EXPECT_THAT(std::string(ReadEpisode(folder_, violation).status().message()),
              HasSubstr("belongs to member 1 of run \"run\", not to member 0 of"));
  Damage("member_0.steps", [&](std::string* content) { *content = steps.substr(0, at(4, 0)); });
  EXPECT_THAT(std::string(ReadEpisode(folder_, violation).status().message()),
              HasSubstr("record 5 is not violation 3"));
}

TEST_F(LedgerFiles, ALedgerThatContradictsItsCheckpointIsNotContinued) {
  FileEnds ends = Written(6);
  // An end `more` bytes further, with the checksum of the bytes that are there.
  const auto refusal = [&](const std::string& path, int64_t more) {
    FileEnds wrong = ends;
    FileEnd& end = wrong.at(path);
    end.bytes += more;
    end.sha256 = Sha256Hex(ReadFile(folder_ + "/" + path).value().substr(0, end.bytes));
    const absl::Status status = LedgerWriter::Open({folder_, 2, kActions, "run"}, wrong).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << path << " " << more;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal("ledger/violations.csv", 1), HasSubstr("were recorded"));
  EXPECT_THAT(refusal("ledger/violations.csv", -1), HasSubstr("no row ends at"));
  EXPECT_THAT(refusal("ledger/member_1.steps", -1), HasSubstr("no record ends at"));
  EXPECT_THAT(refusal("ledger/member_1.steps", 36), HasSubstr("were recorded"));
  EXPECT_THAT(refusal("ledger/member_1.steps", -36), HasSubstr("member 0 has 6 transitions, member 1 has 5"));
  EXPECT_THAT(std::string(LedgerWriter::Open({folder_, 2, kActions + 1, "run"}, ends).status().message()),
              HasSubstr("its steps have not 3 action values"));
  Damage("member_0.steps", [](std::string* content) { *content = testing::WithVersion(*content, 1); });
  EXPECT_THAT(std::string(LedgerWriter::Open({folder_, 2, kActions, "run"}, ends).status().message()),
              HasSubstr("member_0.steps: its first"));
  ends.at("ledger/member_0.steps").sha256 = Sha256Hex(Content("member_0.steps"));
  EXPECT_THAT(std::string(LedgerWriter::Open({folder_, 2, kActions, "run"}, ends).status().message()),
              HasSubstr("format version 1, this build reads version 3"));
}

// Each record ends with a CRC-32C, so that a CRC-32C of the file would be the same for all contents.
TEST_F(LedgerFiles, TwoStepFilesOfOneLengthHaveTwoSums) {
  const FileEnds ends = Written(6);
  const std::string content = Content("member_0.steps");
  std::string other = content.substr(0, ledger::kStepHeaderBytes);
  const size_t bytes = ledger::StepBytes(kActions);
  for (uint64_t number = 0; number < 6; ++number) {
    const std::string record(bytes - sizeof(uint32_t), static_cast<char>('a' + number));
    const uint32_t sum = ledger::RecordChecksum(number, record);
    other += record + std::string(reinterpret_cast<const char*>(&sum), sizeof sum);
  }
  ASSERT_EQ(other.size(), content.size());
  EXPECT_EQ(Crc32c(other), Crc32c(content)) << "if this fails, the comment above is wrong";
  Damage("member_0.steps", [&](std::string* steps) { *steps = other; });
  EXPECT_THAT(std::string(LedgerWriter::Open({folder_, 2, kActions, "run"}, ends).status().message()),
              HasSubstr("member_0.steps: its first"));
}

TEST_F(LedgerFiles, TheStepsOfAnotherRunAreRefusedNamingBoth) {
  const FileEnds ends = Written(2);
  EXPECT_THAT(std::string(LedgerWriter::Open({folder_, 2, kActions, "other"}, ends).status().message()),
              HasSubstr("belongs to member 0 of run \"run\", not to member 0 of run \"other\""));
}

TEST(StepCheck, ChangesWithEveryCheckedBit) {
  const float observation[] = {1, 2}, next[] = {2, -0.0f};
  const uint32_t check = StepCheck(observation, next, 2, 0.5f, false);
  EXPECT_EQ(StepCheck(observation, next, 2, 0.5f, false), check);
  const float other[] = {2, 0.0f}, nearest[] = {std::nextafter(1.0f, 2.0f), 2};
  EXPECT_NE(StepCheck(observation, other, 2, 0.5f, false), check) << "the sign of a zero";
  EXPECT_NE(StepCheck(nearest, next, 2, 0.5f, false), check);
  EXPECT_NE(StepCheck(observation, next, 2, std::nextafter(0.5f, 1.0f), false), check);
  EXPECT_NE(StepCheck(observation, next, 2, 0.5f, true), check);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
