// Two copies of a run that both went on: a part of one in the other is refused, and nothing is changed.
#include "replay/starts.h"

#include <filesystem>
#include <map>
#include <set>

#include "common/base/files.h"
#include "gmock/gmock.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/changed_files.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"

namespace datacom::replay::testing {
namespace {

using ::datacom::testing::IsOk;
using ::datacom::testing::WriteInPlace;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr uint64_t kFirst = 0xa1, kOurs = 0xb2, kTheirs = 0xc3;

class StartsTest : public ::testing::Test {
 protected:
  StartsTest() {
    Play("ours", kFirst, 7);
    fs::copy(Folder("ours"), Folder("theirs"), fs::copy_options::recursive);
    Play("ours", kOurs, 5);
    Play("theirs", kTheirs, 5);  // as many rows: lengths do not differ
  }
  std::string Folder(const std::string& copy) const { return folder_.path() + "/" + copy; }
  Options OptionsOf(const std::string& copy, uint64_t start) {
    Options options = StoreOptions(options_, Folder(copy), &clock_);
    options.start = start;
    return options;
  }
  absl::StatusOr<std::unique_ptr<Store>> Open(uint64_t start = 0xd4) {
    return Store::Open(SmallSchema(), OptionsOf("ours", start));
  }
  // The actor sends rows to a replay of this start, which then ends.
  void Play(const std::string& copy, uint64_t start, uint32_t rows) {
    auto store = Store::Open(SmallSchema(), OptionsOf(copy, start)).value();
    Client actor;
    actor.Open(store.get(), "actor-0", 1, 1);
    actor.Hear(store.get());
    for (uint32_t row = 0; row < rows && actor.next[0] < actor.limit[0]; ++row) {
      actor.Send(store.get(), MakeChunk(0, actor.next[0], SimpleRows(actor.next[0], 1)));
      actor.Hear(store.get());
    }
  }
  std::map<std::string, std::string> Content(const std::string& copy) const {
    std::map<std::string, std::string> files;
    for (const char* name : {"member_0.rows", "member_0.failures", "credit", "sessions"}) {
      files[name] = ReadFile(Folder(copy) + "/" + name).value();
    }
    return files;
  }

  const TemporaryFolder folder_;
  ManualClock clock_;
  Options options_ = SmallOptions(1);
};

TEST_F(StartsTest, APartOfAnotherCopyIsRefusedNamingBothStartsAndNothingChanges) {
  const auto ours = Content("ours"), theirs = Content("theirs");
  for (const auto& [name, content] : theirs) {
    ASSERT_NE(content, ours.at(name)) << name;
    WriteInPlace(Folder("ours") + "/" + name, content);
    const auto before = Content("ours");
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << name << ": " << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("0000000000b2"), HasSubstr("0000000000c3"))) << name;
    if (name != "sessions") EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_EQ(Content("ours"), before) << name;
    WriteInPlace(Folder("ours") + "/" + name, ours.at(name));
  }
  EXPECT_THAT(Open().status(), IsOk());
}

TEST_F(StartsTest, AllPartsOfAnotherCopyAreRefusedByTheLearnersState) {
  for (const auto& [name, content] : Content("theirs")) WriteInPlace(Folder("ours") + "/" + name, content);
  const auto store = Open();
  ASSERT_THAT(store.status(), IsOk());
  EXPECT_THAT((*store)->CheckStart("the learner's state", 0), IsOk()) << "it has drawn nothing yet";
  EXPECT_THAT((*store)->CheckStart("the learner's state", kFirst), IsOk()) << "both copies have these rows";
  EXPECT_THAT((*store)->CheckStart("the learner's state", kTheirs), IsOk());
  const absl::Status status = (*store)->CheckStart("the learner's state", kOurs);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the learner's state was last used by start 0000000000b2 of the replay; the file of sessions "
                        "knows 3 starts, the newest is 0000000000d4"));
}

TEST_F(StartsTest, AReplayThatIsToldTheCheckpointsStartRefusesAnotherCopyBeforeAnythingChanges) {
  for (const auto& [name, content] : Content("theirs")) WriteInPlace(Folder("ours") + "/" + name, content);
  const auto before = Content("ours");
  Options options = OptionsOf("ours", 0xd4);
  options.checkpoint_start = kOurs;
  const absl::Status status = Store::Open(SmallSchema(), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the newest checkpoint was last used by start 0000000000b2 of the replay"));
  EXPECT_EQ(Content("ours"), before);
  options.checkpoint_start = kFirst;
  EXPECT_THAT(Store::Open(SmallSchema(), options).status(), IsOk());
}

TEST_F(StartsTest, AStartThatDiedBeforeItNamedItselfEverywhereIsContinued) {
  const auto before = Content("ours");
  ASSERT_THAT(Open(0xd4).status(), IsOk());
  const auto after = Content("ours");
  // The file of sessions is written first; any of the others may still be the old one.
  for (const char* name : {"member_0.rows", "member_0.failures", "credit"}) {
    for (const auto& [other, content] : after) WriteInPlace(Folder("ours") + "/" + other, content);
    WriteInPlace(Folder("ours") + "/" + name, before.at(name));
    EXPECT_THAT(Open(0xe5).status(), IsOk()) << name;
  }
}

TEST_F(StartsTest, ManyStartsAreForgottenOldestFirst) {
  auto table = SessionTable::Open({Folder("sessions_only"), "run", 1, false, false, {}, &clock_});
  ASSERT_FALSE(table.ok());  // no folder
  ASSERT_THAT(MakeFolders(Folder("sessions_only")), IsOk());
  table = SessionTable::Open({Folder("sessions_only"), "run", 1, false, false, {}, &clock_});
  ASSERT_THAT(table.status(), IsOk());
  for (uint64_t start = 1; start <= 2 * kKeptStarts + 1; ++start) ASSERT_THAT((*table)->Start(start), IsOk());
  EXPECT_EQ((*table)->starts().size(), kKeptStarts + 1);
  EXPECT_EQ((*table)->starts().front(), kKeptStarts + 1);
  EXPECT_EQ((*table)->starts().back(), 2 * kKeptStarts + 1);
}

TEST(DrawStart, GivesNumbersThatDiffer) {
  std::set<uint64_t> drawn;
  for (int i = 0; i < 1000; ++i) drawn.insert(DrawStart());
  EXPECT_EQ(drawn.size(), 1000u);
  EXPECT_FALSE(drawn.contains(0));
  EXPECT_LT(*drawn.rbegin(), uint64_t{1} << 48);
}

}  // namespace
}  // namespace datacom::replay::testing
// SPDX-License-Identifier: Apache-2.0
