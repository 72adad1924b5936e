// Tests that members move between actors without a lost, doubled or cut row: random joins, deaths, broken streams and
// restarts of the replay, against a model of every actor's environments. With replay.sync a restart loses the rows that
// wait for a commit, and their actors send them again.
#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/log_level.h"
#include "tests/testing/manual_clock.h"

namespace datacom::replay {
namespace {

using ::datacom::testing::IsOk;
using testing::MakeChunk;
using testing::MemberOf;
using testing::MustOpen;
using testing::SmallOptions;
using testing::TemporaryFolder;
using testing::TestRow;

constexpr uint32_t kMembers = 5;
constexpr uint64_t kRows = 400;
constexpr std::chrono::seconds kLease{30};

// One process: it follows its assignment as proto/datacom/v1/replay.proto says.
class ModelActor {
 public:
  ModelActor(std::string name, uint32_t environments, bool sync)
      : name_(std::move(name)), environments_(environments), sync_(sync) {}

  bool alive() const { return alive_; }
  uint64_t lost = 0;  // episodes that were open at a death

  void Start(Store* store) {
    members_.clear();
    number_ = 0;
    late_.Clear();
    const auto reply = store->Register(name_, ++incarnation_, environments_);
    ASSERT_THAT(reply, IsOk());
    session_ = reply->session();
    Adopt(reply->assignment());
    Connect(store);
    alive_ = true;
  }
  void Connect(Store* store) {
    const auto stream = store->Connect(session_, incarnation_);
    ASSERT_THAT(stream, IsOk());
    stream_ = *stream;
    progress_ = InsertProgress{};
    Hear(store);
  }
  void Break(Store* store) { store->Disconnect(session_, stream_); }
  void Die(Store* store) {
    Break(store);
    alive_ = false;
    for (const auto& [number, member] : members_) {
      lost += std::ranges::count_if(member.lanes, [](const Lane& lane) { return lane.step > 0; });
    }
  }
  void Hear(Store* store) {
    v1::InsertReply reply;
    const auto heard = store->Progress(session_, stream_, &progress_, &reply);
    ASSERT_THAT(heard, IsOk());
    if (reply.has_assignment()) Adopt(reply.assignment());
    for (const v1::Committed& committed : reply.committed()) {
      Member& member = members_[committed.member()];
      const uint64_t waiting = member.next - committed.next_sequence();
      ASSERT_LE(committed.next_sequence(), member.next);
      ASSERT_LE(waiting, member.waiting.size()) << "acknowledged rows are kept";
      if (!sync_) {
        ASSERT_EQ(waiting, 0u);
      }
      member.waiting.erase(member.waiting.begin(), member.waiting.end() - static_cast<int64_t>(waiting));
    }
    for (const v1::Credit& credit : reply.credit()) members_[credit.member()].limit = credit.limit();
  }

  // Makes rows of one member and returns them; the value of the first is `value`.
  std::vector<TestRow> Act(Store* store, uint32_t number, float value, RandomStream* random) {
    Member& member = members_[number];
    std::vector<TestRow> rows;
    for (uint64_t left = random->Below(member.limit - member.next + 1); member.served && left > 0; --left) {
      std::vector<uint32_t> acting;
      for (uint32_t e = 0; e < member.lanes.size(); ++e) {
        if (e < member.wanted || member.lanes[e].step > 0) acting.push_back(e);
      }
      if (acting.empty()) break;
      rows.push_back(
          Step(&member, acting[random->Below(acting.size())], value + static_cast<float>(rows.size()), random));
    }
    if (!rows.empty()) Send(store, number, member.next, rows);
    member.next += rows.size();
    member.waiting.insert(member.waiting.end(), rows.begin(), rows.end());
    return rows;
  }
  // Sends the rows of the member again that are not acknowledged, as after every break of the stream; returns them.
  std::vector<TestRow> Resend(Store* store, uint32_t number) {
    const Member& member = members_[number];
    const std::vector<TestRow> rows(member.waiting.begin(), member.waiting.end());
    if (!rows.empty()) Send(store, number, member.next - rows.size(), rows);
    return rows;
  }

  // Releases members that left; sometimes under an older assignment, as a message that was late.
  void Release(Store* store, RandomStream* random) {
    v1::Release release;
    release.set_assignment(number_);
    for (const auto& [number, member] : members_) {
      const bool open = std::ranges::any_of(member.lanes, [](const Lane& lane) { return lane.step > 0; });
      if (member.served && member.wanted == 0 && !open && member.waiting.empty()) release.add_members(number);
    }
    if (release.members().empty()) return;
    if (random->Below(3) == 0) std::swap(release, late_);
    ASSERT_THAT(store->Release(session_, stream_, release), IsOk());
  }

 private:
  struct Lane {
    uint32_t episode = 0, step = 0;
  };
  struct Member {
    bool served = false;
    uint32_t wanted = 0;
    std::vector<Lane> lanes;
    uint64_t next = 0, limit = 0;
    std::deque<TestRow> waiting;  // the newest rows, not acknowledged yet
  };

  void Send(Store* store, uint32_t member, uint64_t first_sequence, const std::vector<TestRow>& rows) {
    v1::InsertReply reply;
    const absl::Status inserted = store->Insert(session_, stream_, MakeChunk(member, first_sequence, rows), &reply);
    EXPECT_TRUE(inserted.ok() && reply.rejections().empty()) << inserted << reply.ShortDebugString();
  }

  void Adopt(const v1::Assignment& assignment) {
    ASSERT_GE(assignment.number(), number_);
    number_ = assignment.number();
    for (auto& [number, member] : members_) member.served = false;
    for (const v1::MemberLanes& entry : assignment.members()) {
      Member& member = members_[entry.member()];
      member.served = true;
      member.wanted = entry.lanes();
      member.lanes.resize(std::max<size_t>(member.lanes.size(), entry.lanes()));
    }
    for (const auto& [number, member] : members_) {
      const bool open = std::ranges::any_of(member.lanes, [](const Lane& lane) { return lane.step > 0; });
      ASSERT_TRUE(member.served || !open) << "member " << number << " was taken away during an episode";
      ASSERT_TRUE(member.served || member.waiting.empty()) << "member " << number;
    }
  }

  TestRow Step(Member* member, uint32_t environment, float value, RandomStream* random) {
    Lane& lane = member->lanes[environment];
    TestRow row;
    row.environment = environment;
    row.episode = lane.episode;
    row.step = lane.step;
    row.value = value;
    row.last = lane.step == 7 || random->Below(4) == 0;
    lane = row.last ? Lane{lane.episode + 1, 0} : Lane{lane.episode, lane.step + 1};
    return row;
  }

  const std::string name_;
  const uint32_t environments_;
  const bool sync_;
  bool alive_ = false;
  uint64_t incarnation_ = 0, stream_ = 0, number_ = 0;
  uint32_t session_ = 0;
  InsertProgress progress_;
  std::map<uint32_t, Member> members_;
  v1::Release late_;
};

class Handover {
 public:
  Handover(uint64_t seed, bool restarts, bool sync) : random_(seed), restarts_(restarts), sync_(sync) {
    options_.limits.schedule.env_steps = kRows;
    options_.layout.capacity = kRows;
    options_.sync = sync;
    store_ = MustOpen(options_, folder_.path(), &clock_);
    for (const uint32_t environments : {1, 3, 5, 10})
      actors_.emplace_back(absl::StrCat("actor-", actors_.size()), environments, sync);
  }

  bool Complete() const { return store_->Complete(); }

  void Step() {
    clock_.Advance(std::chrono::milliseconds(200));
    ASSERT_THAT(store_->Tick(), IsOk());
    if (sync_ && random_.Below(3) == 0) {
      ASSERT_THAT(store_->Commit(), IsOk());
    }
    ModelActor& actor = actors_[random_.Below(actors_.size())];
    const uint64_t action = random_.Below(300);
    if (action < 40) {
      if (completed_ < kRows - 10 && store_->Ready(completed_ + 1)) {
        ASSERT_THAT(store_->Announce(++completed_), IsOk());
      }
    } else if (!actor.alive()) {
      if (action < 80) {
        ASSERT_NO_FATAL_FAILURE(actor.Start(store_.get()));
      }
    } else if (action < 42) {
      actor.Die(store_.get());
    } else if (action < 45) {
      actor.Break(store_.get());
      ASSERT_NO_FATAL_FAILURE(actor.Connect(store_.get()));
      for (uint32_t member = 0; member < kMembers; ++member) actor.Resend(store_.get(), member);
    } else if (action < 46 && restarts_) {
      ASSERT_NO_FATAL_FAILURE(Reopen());
    } else {
      ASSERT_NO_FATAL_FAILURE(actor.Hear(store_.get()));
      const auto member = static_cast<uint32_t>(random_.Below(kMembers));
      const std::vector<TestRow> made = actor.Act(store_.get(), member, value_, &random_);
      value_ += static_cast<float>(made.size());
      Append(member, made);
      ASSERT_NO_FATAL_FAILURE(actor.Release(store_.get(), &random_));
    }
    ASSERT_NO_FATAL_FAILURE(Check());
  }

  void CheckEnd() {
    for (ModelActor& actor : actors_) {  // ends the sessions of the dead
      if (!actor.alive()) {
        ASSERT_NO_FATAL_FAILURE(actor.Start(store_.get()));
      }
    }
    ASSERT_THAT(store_->Commit(), IsOk());
    uint64_t finished = 0, lost = 0;
    for (const std::vector<TestRow>& rows : rows_)
      finished += static_cast<uint64_t>(std::ranges::count_if(rows, [](const TestRow& row) { return row.last; }));
    for (const ModelActor& actor : actors_) lost += actor.lost;
    EXPECT_EQ(store_->counters().finished_episodes, finished);
    if (!restarts_) {
      EXPECT_EQ(store_->counters().abandoned_episodes, lost);
    }
    for (uint32_t member = 0; member < kMembers; ++member) {
      ASSERT_EQ(rows_[member].size(), kRows);
      v1::RowRange range;
      ASSERT_THAT(store_->ReadRange(member, 0, kRows, &range), IsOk());
      for (uint32_t i = 0; i < range.row_count(); ++i) {
        float stored = 0;
        std::memcpy(&stored, range.columns().data() + 8 * i, sizeof stored);
        ASSERT_EQ(stored, rows_[member][i].value) << "member " << member << " row " << i;
      }
    }
  }

  std::string DescribeStore() const {
    v1::ReplayInfo info;
    store_->Info(&info);
    return info.ShortDebugString();
  }

 private:
  void Append(uint32_t member, const std::vector<TestRow>& rows) {
    rows_[member].insert(rows_[member].end(), rows.begin(), rows.end());
  }

  void Reopen() {
    for (ModelActor& actor : actors_) {
      if (actor.alive()) actor.Break(store_.get());
    }
    for (uint32_t member = 0; member < kMembers; ++member)
      rows_[member].resize(MemberOf(*store_, static_cast<int>(member)).inserted());
    store_.reset();
    store_ = MustOpen(options_, folder_.path(), &clock_);
    ASSERT_THAT(store_->Announce(completed_), IsOk());
    for (ModelActor& actor : actors_) {
      if (!actor.alive()) continue;
      ASSERT_NO_FATAL_FAILURE(actor.Connect(store_.get()));
      for (uint32_t member = 0; member < kMembers; ++member) Append(member, actor.Resend(store_.get(), member));
    }
  }

  void Check() const {
    v1::ReplayInfo info;
    store_->Info(&info);
    std::map<uint32_t, uint64_t> lanes;
    for (const v1::SessionInfo& session : info.sessions()) {
      for (const v1::MemberLanes& entry : session.assignment().members()) lanes[entry.member()] += entry.lanes();
    }
    for (uint32_t member = 0; member < kMembers && info.sessions_size() > 0; ++member)
      ASSERT_GT(lanes[member], 0u) << "nobody acts for member " << member;
    for (const v1::MemberInfo& member : info.members()) {
      ASSERT_LE(member.inserted(), rows_[member.member()].size());
      if (!sync_) {
        ASSERT_EQ(member.inserted(), rows_[member.member()].size());
      }
      ASSERT_EQ(member.lanes(), lanes[member.member()]);
      ASSERT_LE(member.inserted() + member.outstanding(), std::min(kRows, 10 + 16 + completed_ + 1));
      if (completed_ < kRows - 10) {
        ASSERT_LE(member.inserted() + member.outstanding(), 10 + 16 + completed_);
      }
    }
  }

  RandomStream random_;
  const bool restarts_, sync_;
  Options options_ = SmallOptions(kMembers);
  TemporaryFolder folder_;
  ManualClock clock_;
  std::unique_ptr<Store> store_;
  std::vector<ModelActor> actors_;
  std::vector<TestRow> rows_[kMembers];
  uint64_t completed_ = 0;
  float value_ = 0;
};

TEST(Handover, LosesAndDoublesNoRowAndCutsNoEpisodeOfALivingActor) {
  const datacom::testing::LogLevel errors(spdlog::level::err);
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    Handover run(seed, /*restarts=*/seed % 2 == 0, /*sync=*/seed > 8);
    int step = 0;
    for (; step < 200000 && !run.Complete(); ++step) {
      ASSERT_NO_FATAL_FAILURE(run.Step()) << "seed " << seed << ", step " << step;
    }
    ASSERT_TRUE(run.Complete()) << "seed " << seed << ": " << run.DescribeStore();
    ASSERT_NO_FATAL_FAILURE(run.CheckEnd()) << "seed " << seed;
  }
}

std::string Assigned(const Store& store, const std::string& actor) {
  v1::ReplayInfo info;
  store.Info(&info);
  std::string text = "no session";
  for (const v1::SessionInfo& session : info.sessions()) {
    if (session.actor() != actor) continue;
    text.clear();
    for (const v1::MemberLanes& entry : session.assignment().members())
      absl::StrAppend(&text, text.empty() ? "" : " ", entry.member(), ":", entry.lanes());
  }
  return text;
}

TEST(Handover, AnAbsentActorsMembersMoveAfterAThirdOfTheLeaseAndReturnWithIt) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallOptions(4), folder.path(), &clock);
  testing::Client first, second;
  first.Open(store.get(), "actor-0", 1, 4);
  second.Open(store.get(), "actor-1", 1, 4);
  EXPECT_EQ(Assigned(*store, "actor-0"), "0:2 1:2 2:0 3:0");
  EXPECT_EQ(Assigned(*store, "actor-1"), "2:2 3:2");
  store->Disconnect(second.session, second.stream);
  clock.Advance(kLease / 3);
  ASSERT_THAT(store->Tick(), IsOk());
  EXPECT_EQ(Assigned(*store, "actor-1"), "2:2 3:2");
  clock.Advance(std::chrono::seconds(1));
  ASSERT_THAT(store->Tick(), IsOk());
  EXPECT_EQ(Assigned(*store, "actor-0"), "0:1 1:1 2:1 3:1");
  EXPECT_EQ(Assigned(*store, "actor-1"), "2:0 3:0") << "it may finish its episodes";
  second.Reconnect(store.get());
  ASSERT_THAT(store->Tick(), IsOk());
  EXPECT_EQ(Assigned(*store, "actor-0"), "0:2 1:2 2:0 3:0");
  EXPECT_EQ(Assigned(*store, "actor-1"), "2:2 3:2");
  store->Disconnect(second.session, second.stream);
  clock.Advance(kLease + std::chrono::seconds(1));
  ASSERT_THAT(store->Tick(), IsOk());
  EXPECT_EQ(Assigned(*store, "actor-1"), "no session");
}

// The first of two actors serves both members until the second one joins.
struct TwoActors {
  explicit TwoActors(bool sync = false) {
    Options options = SmallOptions(2);
    options.sync = sync;
    store = MustOpen(options, folder.path(), &clock);
    first.Open(store.get(), "actor-0", 1, 2);
  }
  void Join() {
    second.Open(store.get(), "actor-1", 1, 2);
    ASSERT_EQ(Assigned(*store, "actor-0"), "0:2 1:0");
  }
  // The first actor is done with these members.
  void Release(const std::vector<uint32_t>& members, uint64_t assignment) {
    v1::Release release;
    release.mutable_members()->Add(members.begin(), members.end());
    release.set_assignment(assignment);
    ASSERT_THAT(store->Release(first.session, first.stream, release), IsOk());
  }
  // The second actor is away for so long.
  void Leave(std::chrono::seconds time) {
    store->Disconnect(second.session, second.stream);
    clock.Advance(time);
    ASSERT_THAT(store->Tick(), IsOk());
  }

  static constexpr uint64_t kBoth = 2, kMemberOneLeaves = 3;  // the first actor's assignments
  TemporaryFolder folder;
  ManualClock clock;
  std::unique_ptr<Store> store;
  testing::Client first, second;
};

TEST(Handover, AReleaseReturnsTheCreditAndOneOfAnOlderAssignmentIsIgnored) {
  TwoActors actors;
  Store* const store = actors.store.get();
  ASSERT_GT(MemberOf(*store, 1).outstanding(), 0u);
  actors.Join();
  actors.Release({1}, TwoActors::kBoth);
  EXPECT_EQ(Assigned(*store, "actor-0"), "0:2 1:0");
  const uint64_t before = MemberOf(*store, 1).outstanding();
  const uint64_t limit = actors.first.limit[1];
  actors.Release({1, 0}, TwoActors::kMemberOneLeaves);
  EXPECT_EQ(Assigned(*store, "actor-0"), "0:2") << "member 0 has lanes: that release is ignored";
  EXPECT_EQ(actors.first.Send(store, MakeChunk(1, 0, std::vector<TestRow>(1))), absl::StatusCode::kInvalidArgument);
  EXPECT_GT(limit, 0u);
  EXPECT_LE(MemberOf(*store, 1).outstanding(), before);
  actors.second.Hear(store);
  EXPECT_EQ(MemberOf(*store, 1).outstanding(), actors.second.limit[1]) << "the only holder of credit";
}

TEST(Handover, AMemberThatReturnsContinuesItsSequence) {
  TwoActors actors;
  Store* const store = actors.store.get();
  testing::Client& first = actors.first;
  ASSERT_EQ(first.Send(store, MakeChunk(1, 0, {TestRow{.value = 5, .last = true}})), absl::StatusCode::kOk);
  actors.Join();
  actors.Release({1}, TwoActors::kMemberOneLeaves);
  first.Hear(store);
  ASSERT_EQ(Assigned(*store, "actor-0"), "0:2");
  actors.Leave(kLease + std::chrono::seconds(1));
  first.next.clear();
  first.limit.clear();
  first.Hear(store);
  EXPECT_EQ(first.next[1], 1u);
  ASSERT_GT(first.limit[1], 1u);
  EXPECT_EQ(first.Send(store, MakeChunk(1, 1, testing::ShortEpisodes(1, 1))), absl::StatusCode::kOk);
  EXPECT_EQ(MemberOf(*store, 1).inserted(), 2u);
}

TEST(Handover, AMemberThatReturnsBeforeACommitDoesNotBringBackTheCreditThatItsReleaseReturned) {
  TwoActors actors(/*sync=*/true);
  Store* const store = actors.store.get();
  testing::Client& first = actors.first;
  for (const auto& [from, rows] : {std::pair(0, 8), std::pair(8, 6)}) {
    ASSERT_EQ(first.Send(store, MakeChunk(1, from, testing::ShortEpisodes(from, rows))), absl::StatusCode::kOk);
    first.Hear(store);
  }
  ASSERT_EQ(first.next[1], 14u);
  ASSERT_EQ(first.limit[1], 22u);
  actors.Join();
  ASSERT_EQ(actors.second.limit[1], 2u);
  actors.Release({1}, TwoActors::kMemberOneLeaves);  // the second actor gets 6 more rows of credit, not committed yet
  ASSERT_EQ(Assigned(*store, "actor-0"), "0:2");
  actors.Leave(kLease / 3 + std::chrono::seconds(1));
  ASSERT_EQ(Assigned(*store, "actor-0"), "0:1 1:1");
  first.HearWithoutCommit(store);
  EXPECT_EQ(first.limit[1], 18u) << "26 rows are allowed before update 1, and the second actor has credit for 8";
  const auto credit = static_cast<uint32_t>(first.limit[1] - 14);
  std::string refusal;
  EXPECT_EQ(first.Send(store, MakeChunk(1, 14, testing::ShortEpisodes(14, credit)), &refusal), absl::StatusCode::kOk)
      << refusal;
}

}  // namespace
}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
