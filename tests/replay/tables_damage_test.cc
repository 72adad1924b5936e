// Files that were damaged, rolled back or lost between two starts: the replay refuses them, naming what is wrong, or
// shows exactly what it held before.
#include <filesystem>

#include "absl/strings/str_cat.h"
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
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// A closed replay with two sessions whose rings have wrapped.
class DamageTest : public ::testing::Test {
 protected:
  DamageTest() {
    options_.layout.slack = 19;
    auto store = MustOpen(options_, Folder(), &clock_);
    first_.Open(store.get(), "actor-0", 1, 1);
    second_.Open(store.get(), "actor-1", 1, 1);
    Send(store.get(), &first_, 5);
    for (int round = 0; round < 60; ++round) Send(store.get(), &second_, 5);
    EXPECT_EQ(MemberOf(*store, 0).inserted(), kHeld);
    kept_ = Content(*store);
  }
  std::string Folder() const { return folder_.path() + "/replay"; }
  Options OptionsInFolder() const { return StoreOptions(options_, Folder(), &clock_); }
  absl::Status Open() const { return Store::Open(SmallSchema(), OptionsInFolder()).status(); }

  void Send(Store* store, Client* client, uint32_t rows) {
    client->Hear(store);
    rows = std::min<uint32_t>(rows, static_cast<uint32_t>(client->limit[0] - client->next[0]));
    if (rows > 0) {
      ASSERT_EQ(client->Send(store, MakeChunk(0, client->next[0], SimpleRows(client->next[0], rows))),
                absl::StatusCode::kOk);
    }
    const uint64_t held = MemberOf(*store, 0).inserted();
    if (held > 10) {
      EXPECT_THAT(store->Announce(held - 10), IsOk());
    }
    client->Hear(store);
  }
  // Everything that the replay answers about rows, failures, episodes and credit.
  std::string Content(const Store& store) const {
    std::string content;
    const uint64_t held = MemberOf(store, 0).inserted();
    v1::RowRange range;
    EXPECT_THAT(store.ReadRange(0, held - 100, held, &range), IsOk());
    content += range.columns();
    v1::ReplayInfo info;
    store.Info(&info);
    content += absl::StrCat(held, " ", info.members(0).failures(), " ", info.members(0).episodes(), " ",
                            info.members(0).outstanding());
    return content;
  }

  static constexpr uint64_t kHeld = 245;  // rows; credit comes in pieces of 4
  TemporaryFolder folder_;
  ManualClock clock_;
  Options options_ = SmallOptions(1);
  Client first_, second_;
  std::string kept_;
};

TEST_F(DamageTest, AFlippedBitIsRefusedOrChangesNothing) {
  int refused = 0, equal = 0;
  for (const std::string name : {"/member_0.rows", "/member_0.failures", "/credit", "/sessions"}) {
    const std::string path = Folder() + name, whole = ReadFile(path).value();
    const size_t in_use = std::min<size_t>(whole.size(), name == "/credit" ? 4096 + 4 * 16 : whole.size());
    for (size_t at = 0; at < in_use; at += at < 400 ? 1 : 37) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
      WriteInPlace(path, damaged);
      auto store = Store::Open(SmallSchema(), OptionsInFolder());
      if (store.ok()) {
        ASSERT_EQ(Content(**store), kept_) << name << ", byte " << at;
        ++equal;
      } else {
        ASSERT_TRUE(absl::IsDataLoss(store.status())) << name << ", byte " << at << ": " << store.status();
        ASSERT_THAT(std::string(store.status().message()), HasSubstr(path)) << "byte " << at;
        ++refused;
      }
      store = absl::CancelledError();  // closes it before its files are replaced
      WriteInPlace(path, whole);
    }
  }
  EXPECT_GT(refused, 700);
  EXPECT_GT(equal, 0) << "bytes that hold nothing";
}

TEST_F(DamageTest, AnErasedPageOfRowsIsRefusedNamingTheRecords) {
  const std::string path = Folder() + "/member_0.rows";
  std::string damaged = ReadFile(path).value();
  damaged.replace(4096 + 1024, 1024, std::string(1024, '\0'));
  WriteInPlace(path, damaged);
  EXPECT_THAT(std::string(Open().message()), ::testing::ContainsRegex("member_0.rows: records [0-9]+ to [0-9]+"));
}

// 80 of the 240 rows of the second session and 2 of the 5 of the first have cost > 0; about 120 rows are held.
TEST_F(DamageTest, AFailureRingThatCannotBeRestoredInFullIsRefusedAndStaysAsItWas) {
  const std::string path = Folder() + "/member_0.failures", whole = ReadFile(path).value();
  const std::string headless = std::string(4096, '\0') + whole.substr(4096);
  for (const std::string& content : {std::string("no file"), std::string(), headless}) {
    content == "no file" ? (void)fs::remove(path) : WriteInPlace(path, content);
    const absl::Status status = Open();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("member_0.failures: 82 copies of rows with cost > 0 were made, only "));
    EXPECT_EQ(ReadFile(path).value_or("no file"), content);
  }
  WriteInPlace(path, whole);
  EXPECT_EQ(Content(*MustOpen(options_, Folder(), &clock_)), kept_);
}

TEST_F(DamageTest, AnOlderFailureRingIsRefusedOnceRowsThatItLacksAreOverwritten) {
  const std::string path = Folder() + "/member_0.failures", older = ReadFile(path).value();
  {
    auto store = MustOpen(options_, Folder(), &clock_);
    ASSERT_THAT(store->Announce(MemberOf(*store, 0).inserted() - 10), IsOk());
    second_.Reconnect(store.get());
    for (int round = 0; round < 60; ++round) Send(store.get(), &second_, 5);
  }
  const std::string whole = ReadFile(path).value();
  WriteInPlace(path, older);
  EXPECT_THAT(std::string(Open().message()), HasSubstr("member_0.failures: "));
  EXPECT_EQ(ReadFile(path).value(), older);
  WriteInPlace(path, whole);
  EXPECT_THAT(Open(), IsOk());
}

TEST_F(DamageTest, RowsOlderThanTheCreditAreRefused) {
  const std::string path = Folder() + "/member_0.rows", older = ReadFile(path).value();
  {
    auto store = MustOpen(options_, Folder(), &clock_);
    ASSERT_THAT(store->Announce(MemberOf(*store, 0).inserted() - 10), IsOk());
    second_.Reconnect(store.get());
    Send(store.get(), &second_, 1);
  }
  const std::string failures = ReadFile(Folder() + "/member_0.failures").value();
  WriteInPlace(path, older);
  const absl::Status status = Open();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("member_0.rows is older than the credit: session 2"));
  EXPECT_EQ(ReadFile(Folder() + "/member_0.failures").value(), failures) << "a refusal changes nothing";
}

TEST_F(DamageTest, AReplayOlderThanTheLearnersCheckpointIsRefusedNamingBothPositions) {
  auto store = MustOpen(options_, Folder(), &clock_);
  const absl::Status status = store->Announce(kHeld - 10 + 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(HasSubstr("completed update 236, which has seen 246 rows of member 0"),
                               HasSubstr("holds 245"), HasSubstr("older than the checkpoint")));
}

TEST_F(DamageTest, AnAnnouncementBeyondTheRunChangesNothing) {
  auto store = MustOpen(options_, Folder(), &clock_);
  ASSERT_THAT(store->Announce(230), IsOk());
  v1::ReplayInfo before, after;
  store->Info(&before);
  for (const uint64_t update : {uint64_t{991}, uint64_t{4000}, uint64_t{1} << 63}) {
    const absl::Status status = store->Announce(update);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the run has updates 1 to 990"));
  }
  store->Info(&after);
  EXPECT_EQ(after.completed_update(), 230u);
  EXPECT_EQ(after.members(0).allowed(), before.members(0).allowed());
}

TEST_F(DamageTest, LostOrOlderSessionsAreRefusedBecauseTheirNumbersWouldReturn) {
  const std::string path = Folder() + "/sessions", whole = ReadFile(path).value();
  fs::remove(path);
  absl::Status status = Open();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/sessions is missing: member 0 holds rows of session 2"));
  WriteInPlace(path, whole);
  {
    auto store = MustOpen(options_, Folder(), &clock_);
    ASSERT_THAT(store->Announce(MemberOf(*store, 0).inserted() - 10), IsOk());
    Client third;
    third.Open(store.get(), "actor-2", 1, 1);
    for (int i = 0; i < 20 && third.next[0] == 0; ++i) Send(store.get(), &third, 1);
    ASSERT_GT(third.next[0], 0u);
  }
  WriteInPlace(path, whole);
  status = Open();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/sessions is older than the rows"));
}

TEST_F(DamageTest, NoRowBeyondTheRunsStepsIsAccepted) {
  options_.limits.schedule.env_steps = kHeld + 2;  // resumed with fewer steps than credit was granted for
  auto store = MustOpen(options_, Folder(), &clock_);
  ASSERT_NE(store, nullptr);
  second_.Reconnect(store.get());
  ASSERT_GT(second_.limit[0], second_.next[0] + 2);
  EXPECT_EQ(second_.Send(store.get(), MakeChunk(0, second_.next[0], SimpleRows(second_.next[0], 3))),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(second_.Send(store.get(), MakeChunk(0, second_.next[0], SimpleRows(second_.next[0], 2))),
            absl::StatusCode::kOk);
  EXPECT_EQ(MemberOf(*store, 0).inserted(), kHeld + 2);
}

}  // namespace
}  // namespace datacom::replay::testing
// SPDX-License-Identifier: Apache-2.0
