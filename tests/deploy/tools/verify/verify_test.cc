// Verifies a run folder that is made in this process: rings that have wrapped, sessions, credit, ledger, episodes, a
// checkpoint. tests/e2e/verify_test.py does the same with real runs.
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/checksum.h"
#include "common/base/files.h"
#include "common/base/framed_file.h"
#include "common/config/experiment.h"
#include "common/records/checkpoint.h"
#include "common/records/csv.h"
#include "common/records/ledger.h"
#include "common/safety/safe_map.h"
#include "deploy/tools/verify/check_rings.h"
#include "deploy/tools/verify/verify.h"
#include "gmock/gmock.h"
#include "replay/member_table.h"
#include "replay/sessions.h"
#include "replay/settings.h"
#include "tests/testing/changed_files.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::datacom::testing::TemporaryFolder;
using ::datacom::testing::WriteInPlace;
using ::testing::HasSubstr;
using ::testing::Not;
using verify::Verification;
using verify::VerifyRun;

namespace fs = std::filesystem;

constexpr uint32_t kMembers = 2, kEpisodeSteps = 50, kEnvironments = 2;
constexpr uint64_t kEpochRows = 500;

// The values of row n of every member.
float Value(uint64_t n, uint32_t index) { return static_cast<float>(n % 1000) * 0.01f + static_cast<float>(index); }
float Cost(uint64_t n) { return n % 7 == 0 ? 0.25f : -0.5f; }
uint32_t Step(uint64_t n) { return static_cast<uint32_t>(n / kEnvironments % kEpisodeSteps); }
uint32_t Episode(uint64_t n) { return static_cast<uint32_t>(n / kEnvironments / kEpisodeSteps); }

void PutCell(const Column& column, uint64_t n, uint64_t policy, std::string* out) {
  const auto put = [out](auto value) { out->append(reinterpret_cast<const char*>(&value), sizeof value); };
  if (column.type == ColumnType::kFloat32) {
    for (uint32_t i = 0; i < column.width; ++i) {
      put(column.name == "reward" ? 1.0f : column.name == "cost" ? Cost(n) : Value(n, i));
    }
  } else if (column.name == "absorbing") {
    put(uint8_t{0});
  } else if (column.name == "last") {
    put(static_cast<uint8_t>(Step(n) + 1 == kEpisodeSteps));
  } else if (column.name == "policy_update") {
    put(policy);
  } else {
    put(column.name == "environment" ? static_cast<uint32_t>(n % kEnvironments)
        : column.name == "episode"   ? Episode(n)
        : column.name == "step"      ? Step(n)
                                     : uint32_t{1});
  }
}

class VerifyTest : public ::testing::Test {
 protected:
  void SetUp() override { Make(4000); }

  // A run folder of `rows` rows of each member.
  void Make(uint64_t rows) {
    experiment_ = LoadExperiment(on_policy_ ? "cartpole/ppo_lag" : "cartpole/datacom", ExperimentFolder()).value();
    experiment_.mutable_run()->set_env_steps(rows + 1000);
    experiment_.mutable_run()->set_steps_per_epoch(kEpochRows);
    experiment_.mutable_run()->set_checkpoint_updates(100);
    experiment_.mutable_replay()->set_min_size(on_policy_ ? 0 : 100);
    experiment_.mutable_replay()->set_capacity(1000);
    experiment_.mutable_replay()->set_failure_capacity(50);
    experiment_.clear_members();
    for (uint32_t member = 0; member < kMembers; ++member) experiment_.add_members()->set_seed(member);
    experiment_ = ResolveExperiment(experiment_);
    setup_ = replay::SetUp(experiment_).value();
    setup_.options.folder = Path("replay"), setup_.options.run_id = "run";
    ASSERT_THAT(WriteFileAtomically(Path("experiment.textproto"), PrintExperiment(experiment_)), IsOk());
    ASSERT_THAT(MakeFolders(Path("replay")), IsOk());
    MakeRows(rows);
    MakeLedger(rows);
    MakeCheckpoint(rows);
  }

  // The update of the policy that acted row n.
  uint64_t Policy(uint64_t n) const {
    if (!on_policy_) return 0;
    return n / kEpochRows - (n == wrong_row_ ? 1 : 0);
  }

  void MakeRows(uint64_t rows) {
    auto table = OpenSessions().value();
    ASSERT_THAT(table->Start(1), IsOk());
    std::vector<uint32_t> ended;
    replay::Session* session = table->Register("actor-0", 1, kEnvironments * kMembers, &ended).value();
    auto episodes = CsvWriter::Open(Path("episodes.csv"), {"member", "session", "environment", "episode", "env_steps",
                                                           "length", "discounted_return", "return", "max_violation",
                                                           "sum_cost", "violating_steps", "policy_version"});
    for (uint32_t member = 0; member < kMembers; ++member) {
      auto rings = replay::MemberTable::Open(setup_.schema, setup_.options, member).value();
      ASSERT_THAT(rings->Complete(1), IsOk());
      for (uint64_t from = 0; from < rows; from += kChunk) {
        const auto count = static_cast<uint32_t>(std::min(rows - from, kChunk));
        std::string columns;
        for (const Column& column : setup_.schema.wire()) {
          for (uint32_t i = 0; i < count; ++i) PutCell(column, from + i, Policy(from + i), &columns);
        }
        rings->Stage(session->number, from, columns, count, 0, count);
        ASSERT_THAT(rings->Commit(), IsOk());
        for (const auto& [e, first_row] : rings->episodes().Finished(from, from + count)) {
          ASSERT_THAT((*episodes)->Append({Cell(member), Cell(e.session()), Cell(e.environment()), Cell(e.episode()),
                                           Cell(e.last_row()), Cell(e.length()), Cell(e.discounted_return()),
                                           Cell(e.return_()), Cell(e.max_violation()), Cell(e.sum_cost()),
                                           Cell(e.violating_steps()), Cell(e.policy_update())}),
                      IsOk());
          ++episodes_[member];
        }
      }
      table->SetCredit(*session, member, {rows, rows});
    }
    ASSERT_THAT((*episodes)->Flush(false), IsOk());
    files_["episodes.csv"] = (*episodes)->end();
  }

  void MakeLedger(uint64_t rows) {
    const uint32_t actions = setup_.schema.action_dim(), observations = setup_.schema.obs_dim();
    auto writer = LedgerWriter::Open({folder_.path(), kMembers, actions, "run"}, {}).value();
    std::vector<float> observation(observations), action(actions);
    for (uint64_t n = 0; n < rows; ++n) {
      for (uint32_t i = 0; i < observations; ++i) observation[i] = Value(n, i);
      for (uint32_t i = 0; i < actions; ++i) action[i] = Value(n, i);
      LedgerStep step{1, static_cast<uint32_t>(n % kEnvironments), Episode(n), Step(n), Cost(n), 0, action};
      step.check = StepCheck(observation.data(), observation.data(), static_cast<int>(observations), 1, false);
      for (uint32_t member = 0; member < kMembers; ++member) {
        ASSERT_THAT(writer->AppendStep(member, step), IsOk());
        if (!(Cost(n) > 0)) continue;
        LedgerViolation violation{0,         member, member,    "actor-0", 1,         step.environment, step.episode,
                                  step.step, n + 1,  Policy(n), {},        step.cost, action,           action};
        if (!on_policy_) violation.judgement = {Value(n, 0), Value(n, 0), static_cast<float>(SafeMapSlack(0))};
        ASSERT_THAT(writer->AppendViolation(violation), IsOk());
      }
    }
    ASSERT_THAT(writer->Flush(false), IsOk());
    files_.merge(writer->Ends());
  }

  void MakeCheckpoint(uint64_t rows) {
    Checkpoint checkpoint;
    checkpoint.learner.set_run_id("run");
    checkpoint.learner.set_experiment(PrintExperiment(experiment_));
    checkpoint.learner.set_update(on_policy_ ? rows / kEpochRows : rows - 200);
    for (const auto& [path, end] : files_) {
      v1::FileEnd* const file = checkpoint.learner.add_files();
      file->set_path(path);
      file->set_bytes(end.bytes);
      file->set_sha256(end.sha256);
    }
    for (uint32_t member = 0; member < kMembers; ++member)
      checkpoint.learner.add_totals()->set_episodes(episodes_[member]);
    checkpoint.algorithm["weights"] = "1234";
    ASSERT_THAT(MakeFolders(Path("checkpoints")), IsOk());
    ASSERT_THAT(CheckpointStore(Path("checkpoints")).Save(checkpoint), IsOk());
  }

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  Verification Verify(bool repair = false) const {
    auto verification = VerifyRun(folder_.path(), repair);
    EXPECT_THAT(verification, IsOk());
    return verification.value_or(Verification{});
  }
  // Opens the rings as the replay does.
  absl::StatusOr<std::unique_ptr<replay::SessionTable>> OpenSessions() {
    return replay::SessionTable::Open(
        {Path("replay"), "run", kMembers, false, false, std::chrono::seconds(30), &clock_});
  }
  // Replaces the file of sessions; its checksum is right.
  void WriteSessions(const v1::ReplaySessions& sessions) const {
    const std::string file = ReadFile(Path("replay/sessions")).value();
    FrameHeader header;
    std::memcpy(&header, file.data(), sizeof header);
    FileFormat format;
    format.magic = absl::string_view(header.magic, sizeof header.magic);
    format.version = header.version;
    WriteInPlace(Path("replay/sessions"), Frame(format, sessions.SerializeAsString()));
  }

  static constexpr uint64_t kChunk = 40;
  TemporaryFolder folder_;
  ManualClock clock_;
  v1::Experiment experiment_;
  replay::ReplaySetup setup_;
  bool on_policy_ = false;           // every epoch is acted by the policy of the update before,
  uint64_t wrong_row_ = UINT64_MAX;  // but this row by an older one
  uint64_t episodes_[kMembers] = {};
  FileEnds files_;
};

TEST_F(VerifyTest, ASoundRunWhoseRingsHaveWrappedHasCounts) {
  const Verification found = Verify();
  EXPECT_TRUE(found.sound) << found.text;
  EXPECT_THAT(found.text, HasSubstr("8000 steps, 1144 violations"));  // 2 (4000 / 7, rounded up)
  EXPECT_THAT(found.text, HasSubstr("160 rows, 160 recounted"));      // 2 4000 / 50
  EXPECT_THAT(found.text, Not(HasSubstr("8000 rows held")));
  EXPECT_THAT(found.text, HasSubstr("checkpoints  1 sound, update 3800"));
  EXPECT_THAT(found.text, HasSubstr("sound: no damage was found"));
}

class VerifyEpochsTest : public VerifyTest {
 protected:
  void SetUp() override { on_policy_ = true; }
};

TEST_F(VerifyEpochsTest, EachEpochIsActedByThePolicyOfTheUpdateBefore) {
  Make(4000);
  const Verification found = Verify();
  EXPECT_TRUE(found.sound) << found.text;
}

TEST_F(VerifyEpochsTest, ARowThatAnotherPolicyActedIsNamed) {
  wrong_row_ = 3601;
  Make(4000);
  const Verification found = Verify();
  EXPECT_FALSE(found.sound);
  for (const std::string member : {"0", "1"}) {
    EXPECT_THAT(found.text, HasSubstr("damage: replay/member_" + member +
                                      ".rows: row 3601: acted by the policy of update 6, not of update 7"));
  }
}

TEST_F(VerifyTest, AChangedFileIsFoundOrChangesNothing) {
  const std::string sound = Verify().text;
  for (const std::string name :
       {"replay/member_1.rows", "replay/member_0.failures", "replay/credit", "replay/sessions", "ledger/member_1.steps",
        "ledger/violations.csv", "episodes.csv", "checkpoints/3800/learner.state", "checkpoints/3800/algorithm.state",
        "checkpoints/3800/state.sha256"}) {
    const std::string whole = ReadFile(Path(name)).value();
    const std::string named = absl::StartsWith(name, "checkpoints") ? "checkpoints/3800" : name;
    int found = 0;
    for (const auto& [change, content] : testing::ChangesOf(whole, /*dense=*/20, /*stride=*/whole.size() / 40 + 1)) {
      WriteInPlace(Path(name), content);
      const Verification verified = Verify();
      if (verified.sound) {
        ASSERT_EQ(verified.text, sound) << name << ", " << change;
        const bool recorded = absl::StartsWith(name, "ledger") || name == "episodes.csv";
        ASSERT_TRUE(!recorded || absl::StartsWith(content, whole)) << name << ", " << change;
      } else {
        ASSERT_THAT(verified.text, HasSubstr("damage: " + named)) << name << ", " << change;
        ++found;
      }
    }
    EXPECT_GE(found, 40) << name;
    WriteInPlace(Path(name), whole);
  }
  EXPECT_EQ(Verify().text, sound);
}

TEST_F(VerifyTest, AStepThatOccursTwiceWithARightChecksumIsNamed) {
  std::string steps = ReadFile(Path("ledger/member_0.steps")).value();
  const uint64_t number = 101, bytes = LedgerStepBytes(1, setup_.schema.action_dim()) -
                                       LedgerStepBytes(0, setup_.schema.action_dim());
  const size_t place = LedgerStepBytes(number, setup_.schema.action_dim());
  std::string record = steps.substr(place - bytes, bytes - 4);
  const uint32_t crc = Crc32c(std::string(reinterpret_cast<const char*>(&number), 8) + record);
  steps.replace(place, bytes, record + std::string(reinterpret_cast<const char*>(&crc), 4));
  WriteInPlace(Path("ledger/member_0.steps"), steps);
  EXPECT_THAT(Verify().text,
              HasSubstr("damage: ledger/member_0.steps: record 101: session 1, environment 0, episode 1, "
                        "step 0 follows episode 1, step 0"));
}

TEST_F(VerifyTest, ACellOfAViolationThatItsStepContradictsIsNamed) {
  const std::string file = Path("ledger/violations.csv"), whole = ReadFile(file).value();
  const std::string line = "\n3,0,0,actor-0,1,1,0,3,8,0,";  // of row 7
  ASSERT_THAT(whole, HasSubstr(line));
  for (const auto& [changed, damage] : std::map<std::string, std::string>{
           {"\n3,0,0,actor-0,1,1,0,4,8,0,", "column 8: \"4\", the violation of row 7 of member 0 has \"3\""},
           {"\n3,0,0,actor-1,1,1,0,3,8,0,",
            "column 4: \"actor-1\", the violation of row 7 of member 0 has \"actor-0\""},
           {"\n3,0,0,actor-0,1,1,0,3,8,+0,", "column 10: \"+0\", the violation of row 7 of member 0 has \"0\""},
           {"\n3,0,0,actor-0,1,1,0,3,8,x,", "column 10: \"x\" is not a number"}}) {
    WriteInPlace(file, absl::StrReplaceAll(whole, {{line, changed}}));
    EXPECT_THAT(Verify().text, HasSubstr("damage: ledger/violations.csv: line 4, " + damage));
  }
}

TEST_F(VerifyTest, SessionsAreDamagedWhereTheReplayRefusesThem) {
  const v1::ReplaySessions sound = replay::SessionTable::Read(Path("replay")).value();
  ASSERT_THAT(OpenSessions(), IsOk());
  const std::function<void(v1::ReplaySessions*)> changes[] = {
      [](auto* file) { file->mutable_living(0)->set_session(file->next_session()); },
      [](auto* file) { file->mutable_living(0)->set_slot(SessionSlots(kMembers)); },
      [](auto* file) { file->mutable_living(0)->mutable_assignment()->mutable_members(0)->set_member(kMembers); },
      [](auto* file) { file->mutable_living(0)->mutable_assignment()->set_number(0); },
      [](auto* file) { file->mutable_living(0)->set_environments(replay::kMaxEnvironments + 1); },
      [](auto* file) { *file->add_living() = file->living(0); },
      [](auto* file) {
        *file->add_living() = file->living(0);
        file->mutable_living(1)->set_slot(1);  // the other session has the same number
      }};
  for (const auto& change : changes) {
    v1::ReplaySessions changed = sound;
    change(&changed);
    WriteSessions(changed);
    EXPECT_THAT(Verify().text, HasSubstr("damage: replay/sessions: session ")) << changed.ShortDebugString();
    EXPECT_TRUE(absl::IsDataLoss(OpenSessions().status())) << changed.ShortDebugString();
  }
}

// Reads sessions and credit, as a verification does before it reads the rows.
struct SessionsOfALargeRow {
  SessionsOfALargeRow(const std::string& folder, const v1::Experiment& experiment) : report(folder) {
    run.dir = folder;
    run.settings = replay::SetUp(experiment).value().options;
    run.schema = RowSchema::For(/*obs_dim=*/1000, /*action_dim=*/1);  // a chunk has at most 130 rows
    run.has_sessions = true;
    run.report = &report;
    files.emplace(&run);
  }
  // Session 1 has sent so many rows to each member.
  std::string Compare(uint64_t rows) {
    verify::HeldSessions held;
    held.known = true;
    held.end = rows;
    held.next_sequence[1] = rows;
    files->Compare(std::vector<verify::HeldSessions>(kMembers, held));
    return report.Text();
  }

  verify::Report report;
  verify::VerifiedRun run;
  std::optional<verify::SessionFiles> files;
};

TEST_F(VerifyTest, CreditMayBeBehindTheRowsByAsManyAsAGroupHolds) {
  SessionsOfALargeRow group(folder_.path(), experiment_), more(folder_.path(), experiment_);
  EXPECT_THAT(group.Compare(4000 + 1024), Not(HasSubstr("damage: ")));
  EXPECT_THAT(more.Compare(4000 + 1025), HasSubstr("has sent rows up to sequence 4000, the ring has them up to 5025"));
}

TEST_F(VerifyTest, ACreditFileThatIsReplacedDuringTheVerificationIsDamage) {
  v1::ReplaySessions sessions = replay::SessionTable::Read(Path("replay")).value();
  sessions.mutable_living(0)->set_slot(500);
  WriteSessions(sessions);
  SessionsOfALargeRow found(folder_.path(), experiment_);
  fs::remove(Path("replay/credit"));
  ASSERT_THAT(replay::CreditFile::Open({Path("replay/credit"), "run", /*slots=*/1024, /*members=*/900}), IsOk());
  EXPECT_THAT(found.Compare(4000), HasSubstr("damage: replay/credit: it was replaced"));
}

TEST_F(VerifyTest, AFailureRingIsNotRebuiltWhenRowsWereOverwritten) {
  fs::remove(Path("replay/member_0.failures"));
  const Verification found = Verify(/*repair=*/true);
  EXPECT_FALSE(found.sound);
  EXPECT_THAT(found.text, HasSubstr("damage: replay/member_0.failures: "));
  EXPECT_FALSE(fs::exists(Path("replay/member_0.failures")));
}

TEST_F(VerifyTest, AFailureRingThatWasMadeAnewIsDamage) {
  const auto layout = [this](uint32_t member) {
    replay::Ring::Options ring;
    ring.path = Path("replay/member_" + std::to_string(member) + ".failures");
    ring.run_id = "run";
    ring.member = member;
    ring.schema_fingerprint = setup_.schema.fingerprint();
    ring.record_bytes = setup_.schema.stored_row_bytes() + kFailureHeaderBytes;
    ring.kept = 64;
    ring.guard = 64;
    return ring;
  };
  fs::remove(layout(1).path);
  ASSERT_THAT(replay::Ring::Open(layout(1)), IsOk());
  EXPECT_THAT(Verify().text, ::testing::ContainsRegex("damage: replay/member_1.failures: record 0: the ring ends, but "
                                                      "[0-9]+ copies of rows with cost > 0 were made"));
}

TEST_F(VerifyTest, ACutLineAndLeftoversAreRepaired) {
  WriteInPlace(Path("episodes.csv"), ReadFile(Path("episodes.csv")).value() + "0,1,2");
  WriteInPlace(Path("replay/sessions.tmp"), "x");
  fs::create_directory(Path("task_files"));
  WriteInPlace(Path("task_files/mesh.gz.tmp"), "x");
  EXPECT_FALSE(Verify().sound);
  const Verification found = Verify(/*repair=*/true);
  EXPECT_TRUE(found.sound) << found.text;
  EXPECT_THAT(found.text, HasSubstr("repaired: episodes.csv: cut 5 bytes"));
  EXPECT_THAT(found.text, HasSubstr("repaired: replay/sessions.tmp: removed"));
  EXPECT_THAT(found.text, HasSubstr("repaired: task_files/mesh.gz.tmp: removed"));
  for (const std::string lock : {"replay/lock", "checkpoints/lock"})
    EXPECT_TRUE(fs::exists(Path(lock))) << "this copy had none, and a replay could have started";
}

TEST_F(VerifyTest, ARepairRemovesNothingThatALinkNamesAndNoFolderOfAUser) {
  TemporaryFolder other;
  const std::string precious = other.path() + "/letter.tmp";
  WriteInPlace(precious, "x");
  fs::create_directory_symlink(other.path(), Path("policies"));
  fs::create_directories(Path("analysis.tmp/thesis"));
  EXPECT_TRUE(Verify(/*repair=*/true).sound);
  EXPECT_TRUE(fs::exists(precious));
  EXPECT_TRUE(fs::exists(Path("analysis.tmp/thesis")));
}

TEST_F(VerifyTest, ALearnersFolderOnAClusterHasNoRings) {
  fs::remove_all(Path("replay"));
  const Verification found = Verify();
  EXPECT_TRUE(found.sound) << found.text;
  EXPECT_THAT(found.text, HasSubstr("rings        not in this folder"));
  WriteInPlace(Path("run_id"), "run\n");  // `train` keeps the rings here
  EXPECT_THAT(Verify().text, HasSubstr("damage: replay/member_1.rows: "));
}

TEST_F(VerifyTest, AFolderOfTrainWithoutItsIdIsDamaged) {
  ASSERT_THAT(MakeFolders(Path("cluster")), IsOk());
  WriteInPlace(Path("cluster/layout"), "actors 1\nenvironments 4\n");
  EXPECT_THAT(Verify().text, HasSubstr("damage: run_id: open run_id: No such file or directory\n"));
  WriteInPlace(Path("run_id"), "\n");
  EXPECT_THAT(Verify().text, HasSubstr("damage: run_id: it is empty\n"));
  WriteInPlace(Path("run_id"), "run\n");
  EXPECT_TRUE(Verify().sound);
}

TEST_F(VerifyTest, PartsOfAnotherRunAreNamed) {
  WriteInPlace(Path("run_id"), "another\n");
  const std::string text = Verify().text;
  for (const std::string part : {"replay/member_0.rows", "replay/member_1.failures", "replay/credit", "replay/sessions",
                                 "checkpoints/3800", "ledger/member_1.steps"}) {
    EXPECT_THAT(text,
                ::testing::ContainsRegex("damage: " + part + ": .*belongs to .*run \"run\", not to .*\"another\""));
  }
}

TEST_F(VerifyTest, APipeInThePlaceOfAFileIsDamageAndNotWaitedFor) {
  for (const std::string file :
       {"ledger/violations.csv", "ledger/member_1.steps", "replay/member_0.rows", "replay/member_1.failures",
        "replay/credit", "replay/sessions", "episodes.csv", "checkpoints/3800/learner.state"}) {
    fs::rename(Path(file), Path("kept"));
    ASSERT_EQ(::mkfifo(Path(file).c_str(), 0600), 0);
    EXPECT_THAT(Verify().text, HasSubstr("is not a regular file")) << file;
    fs::rename(Path("kept"), Path(file));
  }
  EXPECT_TRUE(Verify().sound);
}

TEST_F(VerifyTest, AFileOfAnEpochFarBeyondTheRunIsNoReasonToCountUpToIt) {
  ASSERT_THAT(MakeFolders(Path("policies")), IsOk());
  WriteInPlace(Path("policies/epoch_4000000000.snapshot"), "x");
  const std::string text = Verify().text;
  EXPECT_THAT(text, HasSubstr("damage: policies/epoch_0000.snapshot: missing, and all up to epoch 3999999999\n"));
  EXPECT_THAT(text, HasSubstr("damage: policies/epoch_4000000000.snapshot: "));
}

TEST_F(VerifyTest, AnEmptyCellOfAnEpisodeIsNamed) {
  std::string episodes = ReadFile(Path("episodes.csv")).value();
  const size_t end = episodes.rfind(',');
  episodes.erase(end + 1, episodes.size() - end - 2);  // the last cell of the last row
  WriteInPlace(Path("episodes.csv"), episodes);
  EXPECT_THAT(Verify().text, ::testing::ContainsRegex("damage: episodes.csv: line [0-9]+: policy_version is empty"));
}

TEST_F(VerifyTest, RingsOfTwoMembersThatWereExchangedAreNamed) {
  fs::rename(Path("replay/member_0.rows"), Path("replay/kept"));
  fs::rename(Path("replay/member_1.rows"), Path("replay/member_0.rows"));
  fs::rename(Path("replay/kept"), Path("replay/member_1.rows"));
  EXPECT_THAT(Verify().text, ::testing::ContainsRegex("damage: replay/member_1.rows: .*belongs to member 0 of"));
}

TEST(VerifyReport, CutsOnlyTheFolderAndShowsNamesInUtf8AndOtherBytesInOneLine) {
  verify::Report report("r");
  report.Part("experiment", "prüfung");
  report.Damage("ledger/a", "r/ledger/a: \xff\nsound\x1b");
  report.Damage("b", "open r/ledger/b: gone");
  EXPECT_EQ(report.Text(),
            "experiment   prüfung\ndamage: ledger/a: \\xff\\x0asound\\x1b\ndamage: b: open ledger/b: gone\n"
            "damaged: 2 findings\n");
}

TEST_F(VerifyTest, AHeldLockMeansARunningRunWhichIsNotRepaired) {
  const std::unique_ptr<FolderLock> lock = FolderLock::Take(Path("replay")).value();
  WriteInPlace(Path("episodes.csv"), ReadFile(Path("episodes.csv")).value() + "0,1,2");  // being written
  EXPECT_TRUE(Verify().sound);
  fs::remove(Path("replay/lock"));  // its folder stays locked
  EXPECT_TRUE(absl::IsFailedPrecondition(VerifyRun(folder_.path(), true).status()));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
