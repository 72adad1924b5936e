// Tests the store against simple models of its promises under random schedules: rows by number, draws, credit.
#include <cstdlib>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/log_level.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/reference_random.h"

namespace datacom::replay {
namespace {

using ::datacom::testing::IsOk;
using ::datacom::testing::ReferenceKey;
using ::datacom::testing::ReferenceRows;
using testing::Client;
using testing::kSmallKept;
using testing::MakeChunk;
using testing::MemberOf;
using testing::MustOpen;
using testing::SmallOptions;
using testing::TemporaryFolder;
using testing::TestRow;

uint64_t Seed() {
  const char* forced = std::getenv("DATACOM_TEST_SEED");
  const uint64_t seed = forced != nullptr ? std::strtoull(forced, nullptr, 10) : 20240601;
  std::printf("seed %llu (DATACOM_TEST_SEED overrides)\n", static_cast<unsigned long long>(seed));
  return seed;
}

// The limiter's formula (limiter_test.cc) for `quarters` / 4 updates per row, in integers.
struct Bounds {
  uint64_t env_steps, min_size, tolerance, quarters;
  uint64_t last_update() const { return (env_steps - min_size) * quarters / 4; }
  uint64_t allowed(uint64_t completed) const {
    if (completed >= last_update()) return env_steps;
    const uint64_t next = min_size + (4 * (completed + 1) + quarters - 1) / quarters;
    const uint64_t ahead = min_size + tolerance + 4 * completed / quarters;
    return std::min(std::max(next, ahead), env_steps);
  }
};

constexpr uint64_t kRows = 1500;
constexpr uint32_t kMembers = 2;
constexpr int kClients = 3;

// Three actors that die, retry and exceed their credit, a learner, and a replay that restarts, with the checks that
// must hold. With `sync` several chunks wait for a commit, and a restart loses them.
class StoreModel {
 public:
  StoreModel(uint64_t seed, bool sync, double newest_share) : random_(seed), sync_(sync), share_(newest_share) {
    options_.limits.schedule.env_steps = kRows;
    options_.layout.newest_share = newest_share;
    options_.sync = sync;
    store_ = MustOpen(options_, folder_.path(), &clock_);
    for (int i = 0; i < kClients; ++i) clients_[i].Open(store_.get(), "actor-" + std::to_string(i), 1, 2);
  }

  void Step() {
    const uint64_t action = random_.Below(200);
    const auto who = static_cast<int>(random_.Below(kClients));
    if (action < 1) {
      if (clients_[who].stream != 0) clients_[who].Leave(store_.get());
      clients_[who] = Client{};
      sent_[who].clear();
      clients_[who].Open(store_.get(), "actor-" + std::to_string(who), ++incarnation_, 2);
    } else if (action < 3) {
      ASSERT_NO_FATAL_FAILURE(Reopen());
    } else if (action < 80) {
      Learn();
    } else {
      Insert(who, static_cast<uint32_t>(random_.Below(kMembers)));
    }
    for (uint32_t member = 0; member < kMembers; ++member) {
      const v1::MemberInfo info = MemberOf(*store_, static_cast<int>(member));
      if (sync_) {
        ASSERT_LE(info.inserted(), rows_[member].size());
      } else {
        ASSERT_EQ(info.inserted(), rows_[member].size());
      }
      ASSERT_LE(info.inserted() + info.outstanding(), bounds_.allowed(completed_));
    }
  }

  void CheckEnd() {
    ASSERT_THAT(store_->Commit(), IsOk());
    for (uint32_t member = 0; member < kMembers; ++member) {
      ASSERT_EQ(rows_[member].size(), kRows) << "exactly the rows of the run were made";
      v1::RowRange range;
      EXPECT_EQ(store_->ReadRange(member, kRows - kSmallKept - 1, kRows, &range).code(), absl::StatusCode::kNotFound);
      ASSERT_THAT(store_->ReadRange(member, kRows - kSmallKept, kRows, &range), IsOk());
      ASSERT_EQ(range.row_count(), kSmallKept);
      for (uint32_t i = 0; i < range.row_count(); ++i) {
        float stored = 0;
        std::memcpy(&stored, range.columns().data() + 8 * i, sizeof stored);
        ASSERT_EQ(stored, rows_[member][kRows - kSmallKept + i]) << "row " << kRows - kSmallKept + i;
      }
    }
  }

 private:
  void Reopen() {  // like a restart after a kill
    for (uint32_t member = 0; member < kMembers; ++member) {
      const uint64_t inserted = MemberOf(*store_, static_cast<int>(member)).inserted();
      rows_[member].resize(inserted);
      failed_[member].resize(inserted);
    }
    store_.reset();
    store_ = MustOpen(options_, folder_.path(), &clock_);
    EXPECT_THAT(store_->Announce(completed_), IsOk());
    for (int who = 0; who < kClients; ++who) {
      const std::map<uint32_t, uint64_t> acknowledged = clients_[who].next;
      clients_[who].Reconnect(store_.get());
      for (auto& [member, sent] : sent_[who]) {
        const uint64_t kept = clients_[who].next[member];
        ASSERT_GE(kept, acknowledged.at(member)) << "acknowledged rows are kept";
        ASSERT_LE(kept, sent);
        sent = kept;
      }
    }
  }

  void Learn() {
    if (completed_ == bounds_.last_update() || !store_->Ready(completed_ + 1)) return;
    EXPECT_THAT(store_->Announce(++completed_), IsOk());
    if (random_.Below(4) != 0) return;
    v1::DrawReply reply;
    const absl::Status drawn = store_->Draw(completed_, &reply);
    ASSERT_THAT(drawn, IsOk());
    for (uint32_t member = 0; member < kMembers; ++member) CheckDraw(member, reply.batches(static_cast<int>(member)));
  }

  void CheckDraw(uint32_t member, const v1::MemberBatch& batch) {
    const uint64_t seen = 10 + completed_;
    ASSERT_EQ(batch.rows_seen(), seen);
    uint64_t window = 1;
    while (window < 100 && static_cast<double>(window) < share_ * static_cast<double>(seen)) ++window;
    const std::vector<uint64_t> main =
        ReferenceRows(ReferenceKey("replay.draw.main", {0, member, completed_}), seen, window, 8);
    for (int i = 0; i < 8; ++i) ASSERT_EQ(Value(batch.main(), i), rows_[member][main[i]]) << "update " << completed_;
    std::vector<float> failures;
    for (uint64_t row = 0; row < seen; ++row) {
      if (failed_[member][row]) failures.push_back(rows_[member][row]);
    }
    ASSERT_EQ(batch.failure().empty(), failures.size() <= 3);
    if (batch.failure().empty()) return;
    const std::vector<uint64_t> failed =
        ReferenceRows(ReferenceKey("replay.draw.failure", {0, member, completed_}), failures.size(), 20, 3);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(Value(batch.failure(), i), failures[failed[i]]) << "update " << completed_;
  }

  static float Value(const std::string& columns, int row) {
    float value = 0;
    std::memcpy(&value, columns.data() + 8 * row, sizeof value);
    return value;
  }

  // Commits; every row that was sent is then acknowledged.
  void Hear(int who) {
    clients_[who].Hear(store_.get());
    for (const auto& [member, sent] : sent_[who]) ASSERT_EQ(clients_[who].next[member], sent) << "member " << member;
  }

  void Insert(int who, uint32_t member) {
    Client* const client = &clients_[who];
    const bool hears = !sync_ || random_.Below(3) == 0;
    if (hears) {
      ASSERT_NO_FATAL_FAILURE(Hear(who));
    }
    if (!client->served.contains(member)) return;
    uint64_t& sent = sent_[who][member];
    const uint64_t next = sent, room = client->limit[member] - next;
    const uint64_t back = std::min<uint64_t>(next, random_.Below(4));  // a retry that overlaps
    // It may exceed the credit by one if it knows all of it.
    const auto count = static_cast<uint32_t>(back + random_.Below(room + 1 + hears));
    if (count == 0) return;
    std::vector<TestRow> rows = testing::ShortEpisodes(next - back, count);
    for (uint32_t i = 0; i < count; ++i) rows[i].value = i < back ? -1 : value_ + static_cast<float>(i - back);
    for (TestRow& row : rows) row.cost = random_.Below(4) == 0 ? 1.0f : 0.0f;
    const bool fits = next - back + count <= client->limit[member];
    const auto code = client->Send(store_.get(), MakeChunk(member, next - back, rows));
    ASSERT_EQ(code, fits ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted);
    if (!fits) return;
    for (uint32_t i = static_cast<uint32_t>(back); i < count; ++i) {
      rows_[member].push_back(rows[i].value);
      failed_[member].push_back(rows[i].cost > 0);
    }
    if (count > back) value_ += static_cast<float>(count - back);
    sent = std::max<uint64_t>(next, next - back + count);
    if (!sync_) Hear(who);
  }

  RandomStream random_;
  const bool sync_;
  const double share_;
  Options options_ = SmallOptions(kMembers);
  TemporaryFolder folder_;
  ManualClock clock_;
  std::unique_ptr<Store> store_;
  Client clients_[kClients];
  std::map<uint32_t, uint64_t> sent_[kClients];  // rows by member; without sync all are acknowledged
  const Bounds bounds_{kRows, 10, 16, 4};
  std::vector<float> rows_[kMembers];   // values in row order
  std::vector<bool> failed_[kMembers];  // whether these rows are failures
  uint64_t completed_ = 0, incarnation_ = 1;
  float value_ = 0;
};

TEST(StoreModelTest, BehavesLikeAListOfRowsThroughWrapsDeathsAndRestarts) {
  for (const auto& [sync, share] : {std::pair{false, 1.0}, {true, 1.0}, {false, 0.25}}) {
    SCOPED_TRACE(::testing::Message() << "sync " << sync << ", newest_share " << share);
    StoreModel model(Seed(), sync, share);
    for (int step = 0; step < 12000; ++step) {
      ASSERT_NO_FATAL_FAILURE(model.Step()) << "step " << step;
    }
    ASSERT_NO_FATAL_FAILURE(model.CheckEnd());
  }
}

// Actors of different speed and size that die and sometimes restart, at one ratio and tolerance.
class Schedule {
 public:
  Schedule(uint64_t quarters, uint64_t tolerance, uint64_t seed, bool sync = false)
      : random_(StreamKey("test.schedule", {seed, quarters, tolerance})), bounds_{200, 10, tolerance, quarters} {
    options_.limits.schedule.env_steps = 200;
    options_.limits.schedule.updates_per_step = static_cast<double>(quarters) / 4;
    options_.limits.tolerance = tolerance;
    options_.layout.slack = tolerance + 60;
    options_.sync = sync;
    store_ = MustOpen(options_, folder_.path(), &clock_);
  }

  bool Complete() const { return store_->Complete(); }

  void Step() {
    clock_.Advance(std::chrono::milliseconds(100));
    ASSERT_THAT(store_->Tick(), IsOk());
    if (random_.Below(4) == 0) {
      ASSERT_THAT(store_->Commit(), IsOk());
    }
    const uint64_t action = random_.Below(100);
    // The first actor is twenty times faster than the last.
    const uint64_t draw = random_.Below(26);
    Actor& actor = actors_[draw < 20 ? 0 : draw < 25 ? 1 : 2];
    if (action < 1) {
      Die(&actor);
    } else if (action < 30) {
      if (completed_ < bounds_.last_update() && store_->Ready(completed_ + 1)) {
        EXPECT_THAT(store_->Announce(++completed_), IsOk());
      }
    } else {
      Act(&actor);
    }
    for (int member = 0; member < 3; ++member) {
      const v1::MemberInfo info = MemberOf(*store_, member);
      ASSERT_LE(info.inserted() + info.outstanding(), bounds_.allowed(completed_));
      ASSERT_LE(info.inserted(), 200u);
    }
  }

  std::string DescribeStore() const {
    v1::ReplayInfo info;
    store_->Info(&info);
    return info.ShortDebugString();
  }

 private:
  struct Actor {
    std::string name;
    uint32_t environments = 1;
    Client client;
    bool alive = false;
    int rest = 0;  // steps until it restarts
    uint64_t incarnation = 0;
  };

  void Die(Actor* actor) {
    if (!actor->alive) return;
    store_->Disconnect(actor->client.session, actor->client.stream);
    actor->alive = false;
    actor->rest = static_cast<int>(random_.Below(20));
  }

  void Act(Actor* actor) {
    if (!actor->alive && actor->rest-- > 0) return;
    v1::InsertReply reply;
    Client& client = actor->client;
    if (!actor->alive || !store_->Progress(client.session, client.stream, &client.progress, &reply).ok()) {
      client = Client{};  // it restarted, or its session ended
      client.Open(store_.get(), actor->name, ++actor->incarnation, actor->environments);
      actor->alive = true;
      return;
    }
    for (const auto& entry : reply.committed()) client.next[entry.member()] = entry.next_sequence();
    for (const auto& entry : reply.credit()) client.limit[entry.member()] = entry.limit();
    for (auto& [member, limit] : client.limit) {
      const auto count = static_cast<uint32_t>(random_.Below(limit - client.next[member] + 1));
      if (count == 0) continue;
      ASSERT_EQ(client.Send(store_.get(),
                            MakeChunk(member, client.next[member], testing::ShortEpisodes(client.next[member], count))),
                absl::StatusCode::kOk);
      client.next[member] += count;
    }
  }

  RandomStream random_;
  const Bounds bounds_;
  Options options_ = SmallOptions(3);
  TemporaryFolder folder_;
  ManualClock clock_;
  std::unique_ptr<Store> store_;
  Actor actors_[3] = {{"fast", 6, {}, false, 0, 0}, {"medium", 3, {}, false, 0, 0}, {"slow", 1, {}, false, 0, 0}};
  uint64_t completed_ = 0;
};

TEST(StoreModelTest, EveryScheduleEndsWithExactlyItsRowsWithinTheBound) {
  const uint64_t seed = Seed();
  const datacom::testing::LogLevel errors(
      spdlog::level::err);  // hides thousands of messages about waits and ended leases
  for (const uint64_t quarters : {1, 4, 16}) {
    for (const uint64_t tolerance : {1, 7, 500}) {
      Schedule schedule(quarters, tolerance, seed, /*sync=*/tolerance == 7);
      int step = 0;
      for (; step < 100000 && !schedule.Complete(); ++step) {
        ASSERT_NO_FATAL_FAILURE(schedule.Step()) << quarters << "/4 updates per row"
                                                 << ", tolerance " << tolerance << ", step " << step;
      }
      EXPECT_TRUE(schedule.Complete()) << quarters << "/4 updates per row"
                                       << ", tolerance " << tolerance << ": " << schedule.DescribeStore();
    }
  }
}

}  // namespace
}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
