#include "replay/store.h"

#include <cstdlib>
#include <fstream>
#include <map>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "tests/replay/replay_fixture.h"

namespace datacom {
namespace {

using ::datacom::testing::MakeChunk;
using ::datacom::testing::SimpleRows;
using ::datacom::testing::SmallExperiment;
using ::datacom::testing::SmallSchema;
using ::datacom::testing::StoreOptions;
using ::datacom::testing::TemporaryFolder;
using ::datacom::testing::TestRow;
using ::testing::HasSubstr;

std::unique_ptr<Store> MustOpen(const v1::Experiment& experiment, const std::string& folder, const Clock* clock) {
  auto store = Store::Open(SmallSchema(), StoreOptions(experiment, folder, clock));
  if (!store.ok()) ADD_FAILURE() << store.status();
  return store.ok() ? std::move(*store) : nullptr;
}

// Session with a stream; `progress` remembers what it was told.
struct Client {
  uint32_t session = 0;
  uint64_t stream = 0;
  InsertProgress progress;
  std::map<uint32_t, uint64_t> next, limit;

  void Open(Store* store, const std::string& name, uint64_t incarnation, uint32_t environments) {
    auto reply = store->Register(name, incarnation, environments);
    ASSERT_TRUE(reply.ok()) << reply.status();
    session = reply->session();
    Reconnect(store);
  }
  void Reconnect(Store* store) {
    const auto connected = store->Connect(session);
    ASSERT_TRUE(connected.ok()) << connected.status();
    stream = *connected;
    progress = InsertProgress{};
    Hear(store);
  }
  void Hear(Store* store) {
    v1::InsertReply reply;
    ASSERT_TRUE(store->Progress(session, stream, &progress, &reply).ok());
    for (const auto& entry : reply.committed()) next[entry.member()] = entry.next_sequence();
    for (const auto& entry : reply.credit()) limit[entry.member()] = entry.limit();
  }
  // The code of the refusal, OK when taken.
  absl::StatusCode Send(Store* store, const v1::Chunk& chunk, std::string* message = nullptr) {
    v1::InsertReply reply;
    const absl::Status status = store->Insert(session, stream, chunk, &reply);
    if (!status.ok()) return status.code();
    if (message != nullptr && reply.rejections_size() > 0) *message = reply.rejections(0).message();
    return reply.rejections_size() == 0 ? absl::StatusCode::kOk : static_cast<absl::StatusCode>(reply.rejections(0).code());
  }
};

v1::MemberInfo MemberOf(const Store& store, int member) {
  v1::ReplayInfo info;
  store.Info(&info);
  return info.members(member);
}

// The whole store, restated: rows by number, what every client owns, the credit bound.
TEST(StoreTest, BehavesAsAListOfRowsUnderRandomActorsThatDieAndRestartsOfTheStore) {
  const char* forced = std::getenv("DATACOM_TEST_SEED");
  const uint64_t seed = forced != nullptr ? std::strtoull(forced, nullptr, 10) : 20240601;
  std::printf("seed %llu (DATACOM_TEST_SEED overrides)\n", static_cast<unsigned long long>(seed));
  RandomStream random(seed);
  v1::Experiment experiment = SmallExperiment(2);
  experiment.mutable_run()->set_env_steps(400);
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(experiment, folder.path(), &clock);
  std::map<uint32_t, std::vector<float>> model;  // member -> values in row order
  std::vector<Client> clients(3);
  std::vector<uint64_t> incarnations(3, 1);
  float value = 0;
  uint64_t completed = 0;
  const Limiter limiter({400, 10, 1, 16, 128, false});
  for (int i = 0; i < 3; ++i) clients[i].Open(store.get(), "actor-" + std::to_string(i), 1, 2);
  for (int step = 0; step < 6000; ++step) {
    const uint64_t action = random.Below(100);
    const size_t who = random.Below(3);
    Client& client = clients[who];
    if (action < 2) {  // the actor dies, another start of it registers
      client = Client{};
      client.Open(store.get(), "actor-" + std::to_string(who), ++incarnations[who], 2);
    } else if (action < 4) {  // the replay is killed and started again
      store.reset();
      store = MustOpen(experiment, folder.path(), &clock);
      store->Announce(completed);
      for (Client& each : clients) each.Reconnect(store.get());
    } else if (action < 40) {
      if (store->Ready(completed + 1) && completed < limiter.LastUpdate()) store->Announce(++completed);
    } else {
      const uint32_t member = static_cast<uint32_t>(random.Below(2));
      client.Hear(store.get());
      const uint64_t next = client.next[member], room = client.limit[member] - next;
      const uint64_t back = std::min<uint64_t>(next, random.Below(4));  // a retry that overlaps
      const uint32_t count = static_cast<uint32_t>(back + random.Below(room + 2));  // may go one beyond the credit
      if (count == 0) continue;
      std::vector<TestRow> rows(count);
      for (uint32_t i = 0; i < count; ++i) rows[i].value = i < back ? -1 : value + static_cast<float>(i - back);
      for (TestRow& row : rows) row.cost = random.Below(4) == 0 ? 1.0f : 0.0f;
      const bool fits = next - back + count <= client.limit[member];
      const auto code = client.Send(store.get(), MakeChunk(member, next - back, rows));
      ASSERT_EQ(code, fits ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted);
      if (!fits) continue;
      for (uint32_t i = static_cast<uint32_t>(back); i < count; ++i) model[member].push_back(rows[i].value);
      if (count > back) value += static_cast<float>(count - back);
      client.Hear(store.get());
      ASSERT_EQ(client.next[member], std::max<uint64_t>(next, next - back + count));
    }
    for (int member = 0; member < 2; ++member) {
      const v1::MemberInfo info = MemberOf(*store, member);
      ASSERT_EQ(info.inserted(), model[member].size());
      ASSERT_LE(info.inserted() + info.outstanding(), limiter.Allowed(completed)) << "step " << step;
    }
  }
  EXPECT_EQ(model[0].size(), 400u) << "nobody starved: every row of the run was made, and not one more";
  EXPECT_EQ(model[1].size(), 400u);
  for (uint32_t member = 0; member < 2; ++member) {
    const uint64_t first = 400 - 156;  // capacity 100 + slack 16 + 2 * 20 of 400
    v1::RowRange range;
    EXPECT_EQ(store->ReadRange(member, first - 1 - 20, 400, &range).code(), absl::StatusCode::kNotFound);
    ASSERT_TRUE(store->ReadRange(member, first + 20, 400, &range).ok());
    for (uint32_t i = 0; i < range.row_count(); ++i) {
      float stored = 0;
      std::memcpy(&stored, range.columns().data() + 8 * i, sizeof stored);
      ASSERT_EQ(stored, model[member][first + 20 + i]) << "row " << first + 20 + i;
    }
  }
}

class StoreDrawTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = MustOpen(experiment_, folder_.path(), &clock_);
    client_.Open(store_.get(), "actor-0", 1, 1);
  }
  // Inserts up to `rows` rows, announcing what becomes possible.
  void Fill(uint64_t rows) {
    while (client_.next[0] < rows) {
      client_.Hear(store_.get());
      const uint64_t count = std::min(client_.limit[0] - client_.next[0], rows - client_.next[0]);
      if (count > 0) {
        ASSERT_EQ(client_.Send(store_.get(), MakeChunk(0, client_.next[0], SimpleRows(client_.next[0], static_cast<uint32_t>(count)))), absl::StatusCode::kOk);
      }
      client_.Hear(store_.get());
      while (store_->Ready(completed_ + 1) && completed_ < rows) store_->Announce(++completed_);
    }
  }
  v1::DrawReply Draw(uint64_t update) {
    v1::DrawReply reply;
    const absl::Status status = store_->Draw(update, &reply);
    EXPECT_TRUE(status.ok()) << status;
    return reply;
  }
  static std::vector<float> Values(const std::string& columns, size_t rows) {
    std::vector<float> values(rows);
    for (size_t i = 0; i < rows; ++i) std::memcpy(&values[i], columns.data() + 8 * i, sizeof(float));
    return values;
  }

  v1::Experiment experiment_ = SmallExperiment(1);
  TemporaryFolder folder_;
  ManualClock clock_;
  std::unique_ptr<Store> store_;
  Client client_;
  uint64_t completed_ = 0;
};

TEST_F(StoreDrawTest, DrawsAreTheSameAfterAReopenInAnyOrderAndWithMoreRows) {
  Fill(60);
  std::vector<std::string> first;
  for (uint64_t update = 1; update <= 40; ++update) first.push_back(Draw(update).SerializeAsString());
  Fill(90);
  store_.reset();
  store_ = MustOpen(experiment_, folder_.path(), &clock_);
  for (uint64_t update = 40; update >= 1; --update) EXPECT_EQ(Draw(update).SerializeAsString(), first[update - 1]) << update;
}

TEST_F(StoreDrawTest, MainRowsAreUniformOverTheNewestCapacityAndFailuresOverTheirs) {
  Fill(300);
  std::map<float, int> main, failure;
  int updates = 0;
  for (uint64_t update = 250; update <= 289; ++update, ++updates) {
    const v1::DrawReply reply = Draw(update);
    const float seen = static_cast<float>(reply.batches(0).rows_seen());
    for (const float value : Values(reply.batches(0).main(), 8)) ++main[seen - value];  // age 1 .. 100
    for (const float value : Values(reply.batches(0).failure(), 3)) {
      EXPECT_EQ(static_cast<int>(value) % 3, 0) << "only failures";
      EXPECT_GE(value, seen - 3 * 20 - 3) << "of the newest 20";
      ++failure[value];
    }
  }
  double chi_square = 0;
  for (int age = 1; age <= 100; ++age) chi_square += std::pow(main[static_cast<float>(age)] - 3.2, 2) / 3.2;  // 40 * 8 draws over 100 ages
  EXPECT_LT(chi_square, 179.0);  // 99 degrees of freedom, alpha 1e-6
  EXPECT_EQ(main.begin()->first >= 1 && main.rbegin()->first <= 100, true);
  EXPECT_EQ(static_cast<int>(Values(Draw(280).batches(0).main(), 8).size()), 8);
}

TEST_F(StoreDrawTest, EpisodesComeOnceInRowOrderWithWhatTheDeltaStepNeeds) {
  Fill(60);
  std::vector<uint64_t> ends;
  for (uint64_t update = 1; update <= 50; ++update) {
    const v1::DrawReply reply = Draw(update);
    for (const v1::Episode& episode : reply.batches(0).episodes()) {
      ends.push_back(episode.last_row());
      EXPECT_LE(episode.last_row(), reply.batches(0).rows_seen());
      EXPECT_EQ(episode.length(), 10u);
      EXPECT_EQ(episode.return_(), 10);
      EXPECT_NEAR(episode.discounted_return(), (1 - std::pow(0.99, 10)) / 0.01, 1e-12);
      EXPECT_EQ(episode.max_violation(), 0.25);
      if (episode.last_row() - 1 <= 15) {  // delta_warmup
        EXPECT_TRUE(episode.observations().empty());
        continue;
      }
      ASSERT_EQ(episode.observations().size(), 11 * 2 * sizeof(float));
      ASSERT_EQ(episode.costs().size(), 11 * sizeof(float));
      std::vector<float> observations(22), costs(11);
      std::memcpy(observations.data(), episode.observations().data(), episode.observations().size());
      std::memcpy(costs.data(), episode.costs().data(), episode.costs().size());
      const float start = static_cast<float>(episode.last_row() - 10);
      for (int i = 0; i < 10; ++i) EXPECT_EQ(observations[2 * i], start + static_cast<float>(i));
      EXPECT_EQ(observations[20], start + 9.5f) << "the state the last row reached";
      EXPECT_EQ(costs[0], 0);
      for (int i = 0; i < 10; ++i) EXPECT_EQ(costs[i + 1], static_cast<int>(start + static_cast<float>(i)) % 3 == 0 ? 0.25f : -0.5f);
    }
  }
  EXPECT_THAT(ends, ::testing::ElementsAre(10, 20, 30, 40, 50, 60));
}

TEST_F(StoreDrawTest, OverwrittenRowsAndUpdatesBeyondTheRunAreRefusedInWords) {
  Fill(400);
  v1::DrawReply reply;
  const absl::Status old = store_->Draw(5, &reply);
  EXPECT_EQ(old.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(old.message()), HasSubstr("overwritten"));
  EXPECT_EQ(store_->Draw(991, &reply).code(), absl::StatusCode::kInvalidArgument);
}

TEST(StoreTest, GapsRetriesAndBadRowsAreToldApart) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallExperiment(1), folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  std::string message;
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 4))), absl::StatusCode::kOk);
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 4))), absl::StatusCode::kOk) << "a retry";
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 5, SimpleRows(5, 1)), &message), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(message, HasSubstr("sequence 4 is expected"));
  EXPECT_EQ(client.Send(store.get(), MakeChunk(1, 4, SimpleRows(4, 1)), &message), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(message, HasSubstr("member 1"));
  v1::Chunk chunk = MakeChunk(0, 4, SimpleRows(4, 2));
  chunk.mutable_columns()->pop_back();
  EXPECT_EQ(client.Send(store.get(), chunk, &message), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 2, SimpleRows(2, 4))), absl::StatusCode::kOk) << "two old, two new";
  EXPECT_EQ(MemberOf(*store, 0).inserted(), 6u);
  EXPECT_EQ(store->counters().duplicates, 6u);
}

TEST(StoreTest, ADeadActorsCreditReturnsAndItsOpenEpisodeIsAbandoned) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallExperiment(1), folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 4))), absl::StatusCode::kOk);
  EXPECT_GT(MemberOf(*store, 0).outstanding(), 0u);
  store->Disconnect(client.session, client.stream);
  clock.Advance(std::chrono::seconds(29));
  ASSERT_TRUE(store->Tick().ok());
  EXPECT_GT(MemberOf(*store, 0).outstanding(), 0u) << "the lease is not over";
  clock.Advance(std::chrono::seconds(2));
  ASSERT_TRUE(store->Tick().ok());
  EXPECT_EQ(MemberOf(*store, 0).outstanding(), 0u);
  EXPECT_EQ(store->Connect(client.session).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store->counters().abandoned_episodes, 1u);
}

TEST(StoreTest, LockstepGrantsOneRowAnUpdateAndAKilledActorContinuesItsEpisode) {
  v1::Experiment experiment = SmallExperiment(1);
  experiment.mutable_run()->set_lockstep(true);
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(experiment, folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  EXPECT_EQ(client.limit[0], 11u) << "min_size + 1 rows act with update 0";
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 11))), absl::StatusCode::kOk);
  for (uint64_t update = 1; update <= 3; ++update) {
    store->Announce(update);
    client.Hear(store.get());
    ASSERT_EQ(client.limit[0], 11 + update);
    EXPECT_EQ(client.progress.min_policy_update[0], update);
    EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 10 + update, SimpleRows(10 + update, 1))), absl::StatusCode::kOk);
  }
  store.reset();
  store = MustOpen(experiment, folder.path(), &clock);
  const auto reply = store->Register("actor-0", /*incarnation=*/2, 1);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->session(), client.session);
  ASSERT_EQ(reply->open_episodes_size(), 1);
  EXPECT_EQ(reply->open_episodes(0).episode(), 1u);
  EXPECT_EQ(reply->open_episodes(0).steps(), 4u);
  std::vector<float> actions(4);
  ASSERT_EQ(reply->open_episodes(0).actions().size(), 16u);
  std::memcpy(actions.data(), reply->open_episodes(0).actions().data(), 16);
  EXPECT_THAT(actions, ::testing::ElementsAre(10 / 8.0f, 11 / 8.0f, 12 / 8.0f, 13 / 8.0f));
}

TEST(StoreTest, MembersAreSharedOutAndSharedAgainWhenAnActorStaysAway) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallExperiment(4), folder.path(), &clock);
  const auto first = store->Register("actor-0", 1, 2), second = store->Register("actor-1", 1, 2);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->first_member(), 0u);
  EXPECT_EQ(first->member_count(), 2u);
  EXPECT_EQ(second->first_member(), 2u);
  ASSERT_TRUE(store->Connect(first->session()).ok());
  for (int i = 0; i < 4; ++i) {
    clock.Advance(std::chrono::seconds(20));
    ASSERT_TRUE(store->Tick().ok());
  }
  EXPECT_EQ(store->Connect(first->session()).status().code(), absl::StatusCode::kNotFound) << "it is to register for more";
  const auto again = store->Register("actor-0", 1, 2);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->member_count(), 4u);
}

TEST(StoreTest, TwoReplaysInOneFolderAndFilesOfAnotherRunAreRefused) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallExperiment(1), folder.path(), &clock);
  Store::Options options = StoreOptions(SmallExperiment(1), folder.path(), &clock);
  EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()), HasSubstr("another replay process"));
  store.reset();
  options.run_id = "other";
  EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()), HasSubstr("belongs to run \"run\", not to \"other\""));
  options.run_id = "run";
  EXPECT_THAT(std::string(Store::Open(RowSchema::For(3, 1), options).status().message()), HasSubstr("row schema"));
}

TEST(StoreTest, ADamagedOrTruncatedRingIsRefusedAndAResumedRunMayHaveMoreSteps) {
  TemporaryFolder folder;
  ManualClock clock;
  v1::Experiment experiment = SmallExperiment(1);
  experiment.mutable_run()->set_env_steps(50);
  auto store = MustOpen(experiment, folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 5))), absl::StatusCode::kOk);
  store.reset();
  experiment.mutable_run()->set_env_steps(80);
  store = MustOpen(experiment, folder.path(), &clock);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(MemberOf(*store, 0).inserted(), 5u);
  store.reset();
  const std::string path = folder.path() + "/member_0.rows";
  const auto options = StoreOptions(experiment, folder.path(), &clock);
  const auto flip = [&path](int64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const char byte = static_cast<char>(file.get() ^ 0x41);
    file.seekp(offset);
    file.put(byte);
  };
  for (const int64_t offset : {0, 8, 16, 24, 32, 40, 50}) {  // magic, layout, sizes, schema, run
    flip(offset);
    EXPECT_FALSE(Store::Open(SmallSchema(), options).ok()) << "byte " << offset;
    flip(offset);
  }
  EXPECT_TRUE(Store::Open(SmallSchema(), options).ok());
  std::filesystem::resize_file(path, 5000);
  EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()), HasSubstr("truncated"));
}

}  // namespace
}  // namespace datacom
