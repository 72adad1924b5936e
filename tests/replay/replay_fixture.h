// Helpers of the replay's tests: a small row schema, options, chunks of recognisable rows.
#ifndef DATACOM_TESTS_REPLAY_REPLAY_FIXTURE_H_
#define DATACOM_TESTS_REPLAY_REPLAY_FIXTURE_H_

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/transitions/row_schema.h"
#include "gtest/gtest.h"
#include "replay/store.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::replay::testing {

using ::datacom::testing::TemporaryFolder;

// The part of a draw that is a pure function of its update: everything but the count of inserted rows.
inline std::string PureBytes(v1::DrawReply reply) {
  for (v1::MemberBatch& batch : *reply.mutable_batches()) {
    batch.clear_inserted();
    batch.clear_lanes();
  }
  return reply.SerializeAsString();
}

inline RowSchema SmallSchema() { return RowSchema::For(/*obs_dim=*/2, /*action_dim=*/1); }

// Rings with such a small guard that a few hundred rows wrap them more than once.
constexpr uint64_t kSmallGuard = 8;
// The readable rows of a ring of SmallOptions: capacity and slack. With the guard it has 184.
constexpr uint64_t kSmallKept = 176;

// Without folder and clock.
inline Options SmallOptions(int members) {
  Options options;
  options.run_id = "run";
  options.task = "cartpole";
  options.algorithm = "datacom";
  options.experiment_text = "the experiment";
  for (int i = 0; i < members; ++i)
    options.members.push_back({.seed = static_cast<uint64_t>(i), .episode_rows = true, .delta_warmup = 15});
  options.limits.schedule = {.env_steps = 1000, .min_size = 10, .updates_per_step = 1};
  options.layout.capacity = 100;
  options.layout.failure_capacity = 20;
  options.layout.slack = 76;
  options.layout.guard = kSmallGuard;
  options.batch = 8;
  options.failure_batch = 3;
  return options;
}

inline Options LockstepOptions(int members) {
  Options options = SmallOptions(members);
  options.limits.lockstep = true;
  options.limits.tolerance = 1;
  options.limits.max_policy_lag = 0;
  return options;
}

inline Options StoreOptions(Options options, const std::string& folder, const Clock* clock) {
  options.folder = folder;
  options.clock = clock;
  return options;
}

struct TestRow {
  uint32_t environment = 0, episode = 0, step = 0;
  float value = 0;  // observation[0]; observation[1] = -value
  float action = 0, reward = 0, cost = 0;
  bool last = false;
  uint64_t policy_update = 0;
};

// Columns of `rows` for SmallSchema.
inline std::string Columns(const std::vector<TestRow>& rows) {
  std::string out;
  const auto put = [&out](const auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const TestRow& row : rows) put(row.value), put(-row.value);
  for (const TestRow& row : rows) put(row.action);
  for (const TestRow& row : rows) put(row.reward);
  for (const TestRow& row : rows) put(row.cost);
  for (const TestRow& row : rows) put(row.value + 0.5f), put(-row.value);
  for (size_t i = 0; i < rows.size(); ++i) put(uint8_t{0});
  for (const TestRow& row : rows) put(static_cast<uint8_t>(row.last));
  for (const TestRow& row : rows) put(row.environment);
  for (const TestRow& row : rows) put(row.episode);
  for (const TestRow& row : rows) put(row.step);
  for (size_t i = 0; i < rows.size(); ++i) put(uint32_t{1});
  for (const TestRow& row : rows) put(row.policy_update);
  return out;
}

inline v1::Chunk MakeChunk(uint32_t member, uint64_t first_sequence, const std::vector<TestRow>& rows) {
  v1::Chunk chunk;
  chunk.set_member(member);
  chunk.set_first_sequence(first_sequence);
  chunk.set_row_count(static_cast<uint32_t>(rows.size()));
  chunk.set_columns(Columns(rows));
  return chunk;
}

// Rows of one environment with episodes of `length`, value = sequence, every third one a failure.
inline std::vector<TestRow> SimpleRows(uint64_t first_sequence, uint32_t count, uint32_t length = 10) {
  std::vector<TestRow> rows(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t sequence = first_sequence + i;
    rows[i].episode = static_cast<uint32_t>(sequence / length);
    rows[i].step = static_cast<uint32_t>(sequence % length);
    rows[i].value = static_cast<float>(sequence);
    rows[i].action = static_cast<float>(sequence) / 8;
    rows[i].reward = 1;
    rows[i].cost = sequence % 3 == 0 ? 0.25f : -0.5f;
    rows[i].last = rows[i].step + 1 == length;
  }
  return rows;
}

// Rows that are an episode each.
inline std::vector<TestRow> ShortEpisodes(uint64_t first_sequence, uint64_t count) {
  std::vector<TestRow> rows(count);
  for (uint64_t i = 0; i < count; ++i) rows[i].episode = static_cast<uint32_t>(first_sequence + i);
  return rows;
}

inline std::unique_ptr<Store> MustOpen(const Options& options, const std::string& folder, const Clock* clock) {
  auto store = Store::Open(SmallSchema(), StoreOptions(options, folder, clock));
  if (!store.ok()) ADD_FAILURE() << store.status();
  return store.ok() ? std::move(*store) : nullptr;
}

// A session with a stream; `progress` keeps the answers it got.
struct Client {
  uint32_t session = 0;
  uint64_t stream = 0, incarnation = 0;
  InsertProgress progress;
  std::map<uint32_t, uint64_t> next, limit, oldest_policy;
  std::set<uint32_t> served;

  void Open(Store* store, const std::string& name, uint64_t start, uint32_t environments) {
    auto reply = store->Register(name, start, environments);
    ASSERT_THAT(reply, ::datacom::testing::IsOk());
    session = reply->session();
    incarnation = start;
    Reconnect(store);
  }
  void Leave(Store* store) const { store->Disconnect(session, stream); }
  void Reconnect(Store* store) {
    const auto connected = store->Connect(session, incarnation);
    ASSERT_THAT(connected, ::datacom::testing::IsOk());
    stream = *connected;
    progress = InsertProgress{};
    Hear(store);
  }
  // Hears of everything, also of what waited for a commit.
  void Hear(Store* store) {
    const absl::Status committed = store->Commit();
    ASSERT_THAT(committed, ::datacom::testing::IsOk());
    HearWithoutCommit(store);
  }
  void HearWithoutCommit(Store* store) {
    v1::InsertReply reply;
    const absl::StatusOr<bool> told = store->Progress(session, stream, &progress, &reply);
    ASSERT_THAT(told, ::datacom::testing::IsOk());
    if (reply.has_assignment()) served.clear();
    for (const auto& entry : reply.assignment().members()) served.insert(entry.member());
    for (const auto& entry : reply.committed()) next[entry.member()] = entry.next_sequence();
    for (const auto& entry : reply.credit()) {
      limit[entry.member()] = entry.limit();
      oldest_policy[entry.member()] = entry.min_policy_update();
    }
  }
  // The code of the refusal; OK when accepted.
  absl::StatusCode Send(Store* store, const v1::Chunk& chunk, std::string* message = nullptr) {
    v1::InsertReply reply;
    const absl::Status status = store->Insert(session, stream, chunk, &reply);
    if (!status.ok()) return status.code();
    if (message != nullptr && reply.rejections_size() > 0) *message = reply.rejections(0).message();
    return reply.rejections_size() == 0 ? absl::StatusCode::kOk
                                        : static_cast<absl::StatusCode>(reply.rejections(0).code());
  }
};

inline v1::MemberInfo MemberOf(const Store& store, int member) {
  v1::ReplayInfo info;
  store.Info(&info);
  return info.members(member);
}

}  // namespace datacom::replay::testing

#endif  // DATACOM_TESTS_REPLAY_REPLAY_FIXTURE_H_
// SPDX-License-Identifier: Apache-2.0
