// Tests that members move between actors without a lost, doubled or cut row: random joins, deaths, broken streams and
// restarts of the replay, against a model of every actor's environments.
#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "spdlog/spdlog.h"
#include "tests/replay/replay_fixture.h"

namespace datacom {
namespace {

using ::datacom::testing::MakeChunk;
using ::datacom::testing::MemberOf;
using ::datacom::testing::MustOpen;
using ::datacom::testing::SmallExperiment;
using ::datacom::testing::TemporaryFolder;
using ::datacom::testing::TestRow;
using ::testing::ElementsAre;

constexpr uint32_t kMembers = 5;
constexpr uint64_t kRows = 400;
constexpr std::chrono::seconds kLease{30};

// One process: it follows its assignment as proto/datacom/v1/replay.proto says.
class ModelActor {
 public:
  ModelActor(std::string name, uint32_t environments) : name_(std::move(name)), environments_(environments) {}

  bool alive() const { return alive_; }
  uint32_t environments() const { return environments_; }
  uint64_t finished = 0, lost = 0;  // episodes that ended; episodes that were open at a death

  void Start(Store* store) {
    members_.clear();
    number_ = 0;
    late_.Clear();
    const auto reply = store->Register(name_, ++incarnation_, environments_);
    ASSERT_TRUE(reply.ok()) << reply.status();
    session_ = reply->session();
    Adopt(reply->assignment());
    Connect(store);
    alive_ = true;
  }
  void Connect(Store* store) {
    const auto stream = store->Connect(session_, incarnation_);
    ASSERT_TRUE(stream.ok()) << stream.status();
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
    ASSERT_TRUE(heard.ok()) << heard.status();
    if (reply.has_assignment()) Adopt(reply.assignment());
    for (const v1::Committed& committed : reply.committed())
      ASSERT_EQ(committed.next_sequence(), members_[committed.member()].next);
    for (const v1::Credit& credit : reply.credit()) members_[credit.member()].limit = credit.limit();
  }

  // Makes rows of one member and returns their values; the first is `value`.
  uint32_t Act(Store* store, uint32_t number, float value, RandomStream* random) {
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
    if (rows.empty()) return 0;
    v1::InsertReply reply;
    const absl::Status inserted = store->Insert(session_, stream_, MakeChunk(number, member.next, rows), &reply);
    EXPECT_TRUE(inserted.ok() && reply.rejections().empty()) << inserted << reply.ShortDebugString();
    member.next += rows.size();
    return static_cast<uint32_t>(rows.size());
  }

  // Releases members that left; sometimes under an older assignment, as a message that was late.
  void Release(Store* store, RandomStream* random) {
    v1::Release release;
    release.set_assignment(number_);
    for (const auto& [number, member] : members_) {
      const bool open = std::ranges::any_of(member.lanes, [](const Lane& lane) { return lane.step > 0; });
      if (member.served && member.wanted == 0 && !open) release.add_members(number);
    }
    if (release.members().empty()) return;
    if (random->Below(3) == 0) std::swap(release, late_);
    ASSERT_TRUE(store->Release(session_, stream_, release).ok());
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
  };

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
    finished += row.last;
    return row;
  }

  const std::string name_;
  const uint32_t environments_;
  bool alive_ = false;
  uint64_t incarnation_ = 0, stream_ = 0, number_ = 0;
  uint32_t session_ = 0;
  InsertProgress progress_;
  std::map<uint32_t, Member> members_;
  v1::Release late_;
};

class Handover {
 public:
  Handover(uint64_t seed, bool restarts) : random_(seed), restarts_(restarts) {
    experiment_.mutable_run()->set_env_steps(kRows);
    experiment_.mutable_replay()->set_capacity(kRows);
    store_ = MustOpen(experiment_, folder_.path(), &clock_);
    for (const uint32_t environments : {1, 3, 5, 10})
      actors_.emplace_back(absl::StrCat("actor-", actors_.size()), environments);
  }

  bool Complete() const { return store_->Complete(); }

  void Step() {
    clock_.Advance(std::chrono::milliseconds(200));
    ASSERT_TRUE(store_->Tick().ok());
    ModelActor& actor = actors_[random_.Below(actors_.size())];
    const uint64_t action = random_.Below(300);
    if (action < 40) {
      if (completed_ < kRows - 10 && store_->Ready(completed_ + 1)) ASSERT_TRUE(store_->Announce(++completed_).ok());
    } else if (!actor.alive()) {
      if (action < 80) ASSERT_NO_FATAL_FAILURE(actor.Start(store_.get()));
    } else if (action < 42) {
      actor.Die(store_.get());
    } else if (action < 45) {
      actor.Break(store_.get());
      ASSERT_NO_FATAL_FAILURE(actor.Connect(store_.get()));
    } else if (action < 46 && restarts_) {
      ASSERT_NO_FATAL_FAILURE(Reopen());
    } else {
      ASSERT_NO_FATAL_FAILURE(actor.Hear(store_.get()));
      const auto member = static_cast<uint32_t>(random_.Below(kMembers));
      const uint32_t made = actor.Act(store_.get(), member, value_, &random_);
      for (uint32_t i = 0; i < made; ++i) rows_[member].push_back(value_++);
      ASSERT_NO_FATAL_FAILURE(actor.Release(store_.get(), &random_));
    }
    ASSERT_NO_FATAL_FAILURE(Check());
  }

  void CheckEnd() {
    for (ModelActor& actor : actors_) {  // ends the sessions of the dead
      if (!actor.alive()) ASSERT_NO_FATAL_FAILURE(actor.Start(store_.get()));
    }
    uint64_t finished = 0, lost = 0;
    for (const ModelActor& actor : actors_) finished += actor.finished, lost += actor.lost;
    EXPECT_EQ(store_->counters().finished_episodes, finished);
    if (!restarts_) {
      EXPECT_EQ(store_->counters().abandoned_episodes, lost);
    }
    for (uint32_t member = 0; member < kMembers; ++member) {
      ASSERT_EQ(rows_[member].size(), kRows);
      v1::RowRange range;
      ASSERT_TRUE(store_->ReadRange(member, 0, kRows, &range).ok());
      for (uint32_t i = 0; i < range.row_count(); ++i) {
        float stored = 0;
        std::memcpy(&stored, range.columns().data() + 8 * i, sizeof stored);
        ASSERT_EQ(stored, rows_[member][i]) << "member " << member << " row " << i;
      }
    }
  }

  std::string DescribeStore() const {
    v1::ReplayInfo info;
    store_->Info(&info);
    return info.ShortDebugString();
  }

 private:
  void Reopen() {
    for (ModelActor& actor : actors_) {
      if (actor.alive()) actor.Break(store_.get());
    }
    store_.reset();
    store_ = MustOpen(experiment_, folder_.path(), &clock_);
    ASSERT_TRUE(store_->Announce(completed_).ok());
    for (ModelActor& actor : actors_) {
      if (actor.alive()) ASSERT_NO_FATAL_FAILURE(actor.Connect(store_.get()));
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
      ASSERT_EQ(member.inserted(), rows_[member.member()].size());
      ASSERT_EQ(member.lanes(), lanes[member.member()]);
      ASSERT_LE(member.inserted() + member.outstanding(), std::min(kRows, 10 + 16 + completed_ + 1));
      if (completed_ < kRows - 10) ASSERT_LE(member.inserted() + member.outstanding(), 10 + 16 + completed_);
    }
  }

  RandomStream random_;
  const bool restarts_;
  v1::Experiment experiment_ = SmallExperiment(kMembers);
  TemporaryFolder folder_;
  ManualClock clock_;
  std::unique_ptr<Store> store_;
  std::vector<ModelActor> actors_;
  std::vector<float> rows_[kMembers];
  uint64_t completed_ = 0;
  float value_ = 0;
};

TEST(Handover, LosesAndDoublesNoRowAndCutsNoEpisodeOfALivingActor) {
  spdlog::set_level(spdlog::level::err);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Handover run(seed, /*restarts=*/seed % 2 == 0);
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
  auto store = MustOpen(SmallExperiment(4), folder.path(), &clock);
  testing::Client first, second;
  first.Open(store.get(), "actor-0", 1, 4);
  second.Open(store.get(), "actor-1", 1, 4);
  EXPECT_EQ(Assigned(*store, "actor-0"), "0:2 1:2 2:0 3:0");
  EXPECT_EQ(Assigned(*store, "actor-1"), "2:2 3:2");
  store->Disconnect(second.session, second.stream);
  clock.Advance(kLease / 3);
  ASSERT_TRUE(store->Tick().ok());
  EXPECT_EQ(Assigned(*store, "actor-1"), "2:2 3:2");
  clock.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(store->Tick().ok());
  EXPECT_EQ(Assigned(*store, "actor-0"), "0:1 1:1 2:1 3:1");
  EXPECT_EQ(Assigned(*store, "actor-1"), "2:0 3:0") << "it may finish its episodes";
  second.Reconnect(store.get());
  ASSERT_TRUE(store->Tick().ok());
  EXPECT_EQ(Assigned(*store, "actor-0"), "0:2 1:2 2:0 3:0");
  EXPECT_EQ(Assigned(*store, "actor-1"), "2:2 3:2");
  store->Disconnect(second.session, second.stream);
  clock.Advance(kLease + std::chrono::seconds(1));
  ASSERT_TRUE(store->Tick().ok());
  EXPECT_EQ(Assigned(*store, "actor-1"), "no session");
}

TEST(Handover, AReleaseReturnsTheCreditAndOneOfAnOlderAssignmentIsIgnored) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallExperiment(2), folder.path(), &clock);
  testing::Client first, second;
  first.Open(store.get(), "actor-0", 1, 2);
  const uint64_t number = 2;  // of the assignment that gave it both members
  ASSERT_GT(MemberOf(*store, 1).outstanding(), 0u);
  second.Open(store.get(), "actor-1", 1, 2);
  ASSERT_EQ(Assigned(*store, "actor-0"), "0:2 1:0");
  v1::Release release;
  release.add_members(1);
  release.set_assignment(number);
  ASSERT_TRUE(store->Release(first.session, first.stream, release).ok());
  EXPECT_EQ(Assigned(*store, "actor-0"), "0:2 1:0");
  release.add_members(0);
  release.set_assignment(number + 1);
  const uint64_t before = MemberOf(*store, 1).outstanding();
  const uint64_t limit = first.limit[1];
  ASSERT_TRUE(store->Release(first.session, first.stream, release).ok());
  EXPECT_EQ(Assigned(*store, "actor-0"), "0:2") << "member 0 has lanes: that release is ignored";
  EXPECT_EQ(first.Send(store.get(), MakeChunk(1, 0, std::vector<TestRow>(1))), absl::StatusCode::kInvalidArgument);
  EXPECT_GT(limit, 0u);
  EXPECT_LE(MemberOf(*store, 1).outstanding(), before);
  second.Hear(store.get());
  EXPECT_EQ(MemberOf(*store, 1).outstanding(), second.limit[1]) << "the only holder of credit";
}

TEST(Handover, AMemberThatReturnsContinuesItsSequence) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallExperiment(2), folder.path(), &clock);
  testing::Client first, second;
  first.Open(store.get(), "actor-0", 1, 2);
  ASSERT_EQ(first.Send(store.get(), MakeChunk(1, 0, {TestRow{.value = 5, .last = true}})), absl::StatusCode::kOk);
  second.Open(store.get(), "actor-1", 1, 2);
  v1::Release release;
  release.add_members(1);
  release.set_assignment(3);
  ASSERT_TRUE(store->Release(first.session, first.stream, release).ok());
  first.Hear(store.get());
  ASSERT_EQ(Assigned(*store, "actor-0"), "0:2");
  store->Disconnect(second.session, second.stream);
  clock.Advance(kLease + std::chrono::seconds(1));
  ASSERT_TRUE(store->Tick().ok());
  first.next.clear();
  first.limit.clear();
  first.Hear(store.get());
  EXPECT_EQ(first.next[1], 1u);
  ASSERT_GT(first.limit[1], 1u);
  EXPECT_EQ(first.Send(store.get(), MakeChunk(1, 1, std::vector<TestRow>(1))), absl::StatusCode::kOk);
  EXPECT_EQ(MemberOf(*store, 1).inserted(), 2u);
}

}  // namespace
}  // namespace datacom
