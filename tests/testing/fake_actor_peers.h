// A replay and a learner for an actor in one thread: the test answers during the actor's waits.
#ifndef DATACOM_TESTS_TESTING_FAKE_ACTOR_PEERS_H_
#define DATACOM_TESTS_TESTING_FAKE_ACTOR_PEERS_H_

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/insert_session.h"
#include "common/rpc/learner_client.h"
#include "common/transitions/row_schema.h"
#include "gtest/gtest.h"

namespace datacom::testing {

struct ReceivedRow {
  uint32_t member = 0;
  std::vector<float> observation, action, executed, next_observation;  // executed: from the column of that name
  std::vector<float> memory;                                           // if the schema has it
  float reward = 0, cost = 0, previous_cost = 0;                       // previous_cost: if the schema has it
  uint8_t absorbing = 0, last = 0;
  uint32_t environment = 0, episode = 0, step = 0, policy_incarnation = 0;
  uint64_t policy_update = 0;
  friend bool operator==(const ReceivedRow&, const ReceivedRow&) = default;
};

// Reads column `name` of row `row` from a chunk with the layout of proto Chunk.
inline const char* Cell(const RowSchema& schema, const std::string& columns, uint32_t rows, uint32_t row,
                        absl::string_view name) {
  size_t offset = 0;
  for (const Column& column : schema.wire()) {
    if (column.name == name) return columns.data() + offset + row * column.bytes();
    offset += column.bytes() * rows;
  }
  ADD_FAILURE() << "no column " << name;
  return columns.data();
}

class FakeInsertSession : public InsertSession {
 public:
  FakeInsertSession(RowSchema schema, v1::RegisterReply registration)
      : schema_(std::move(schema)),
        registration_(std::move(registration)),
        assignment_(std::make_shared<const v1::Assignment>(registration_.assignment())) {}

  // Set by the test.
  void Assign(uint64_t number, const std::vector<std::pair<uint32_t, uint32_t>>& member_lanes) {
    v1::Assignment assignment;
    assignment.set_number(number);
    for (const auto& [member, lanes] : member_lanes) {
      assignment.add_members()->set_member(member);
      assignment.mutable_members()->rbegin()->set_lanes(lanes);
    }
    assignment_ = std::make_shared<const v1::Assignment>(assignment);
  }
  std::map<uint32_t, uint64_t> limit;
  std::map<uint32_t, uint64_t> min_policy_update;
  absl::Status state;
  bool run_finished = false;
  // Read by the test.
  std::vector<ReceivedRow> rows;
  std::vector<uint32_t> chunk_rows;
  std::vector<size_t> sent;                             // rows so far at each Send
  std::string fault;                                    // of the newest chunk
  std::vector<std::pair<uint32_t, uint64_t>> released;  // member and number of the assignment

  uint64_t produced(uint32_t member) const {
    const auto found = next_.find(member);
    return found == next_.end() ? 0 : found->second;
  }

  const v1::RegisterReply& registration() const override { return registration_; }
  absl::Status Start(uint64_t) override { return absl::OkStatus(); }
  std::shared_ptr<const v1::Assignment> assignment() const override { return assignment_; }
  void Release(uint32_t member, uint64_t assignment) override { released.emplace_back(member, assignment); }
  Allowance allowance(uint32_t member) const override {
    const auto limited = limit.find(member);
    const auto update = min_policy_update.find(member);
    return {limited == limit.end() ? 0 : limited->second - produced(member), produced(member),
            update == min_policy_update.end() ? 0 : update->second};
  }
  absl::Status Append(uint32_t member, uint32_t count, std::string columns, const std::string& why) override {
    fault = why;
    if (!state.ok()) return absl::FailedPreconditionError("the session ended");
    EXPECT_EQ(columns.size(), count * schema_.wire_row_bytes());
    next_[member] += count;
    EXPECT_LE(next_[member], limit[member]) << "rows beyond the credit of member " << member;
    for (uint32_t row = 0; row < count; ++row) rows.push_back(Decode(member, count, row, columns));
    chunk_rows.push_back(count);
    return absl::OkStatus();
  }
  void Send() override { sent.push_back(rows.size()); }
  uint64_t acknowledged(uint32_t member) const override { return produced(member); }
  Changes& changes() override { return changes_; }
  absl::Status Flush(std::chrono::milliseconds) override { return absl::OkStatus(); }
  bool finished() const override { return run_finished; }
  absl::Status status() const override { return state; }
  std::string waiting_for() const override { return "the test"; }

 private:
  template <typename T>
  T Value(const std::string& columns, uint32_t count, uint32_t row, absl::string_view name) const {
    T value;
    std::memcpy(&value, Cell(schema_, columns, count, row, name), sizeof value);
    return value;
  }
  std::vector<float> Floats(const std::string& columns, uint32_t count, uint32_t row, const char* name,
                            uint32_t width) const {
    std::vector<float> values(width);
    std::memcpy(values.data(), Cell(schema_, columns, count, row, name), width * sizeof(float));
    return values;
  }
  ReceivedRow Decode(uint32_t member, uint32_t count, uint32_t row, const std::string& columns) const {
    ReceivedRow r;
    r.member = member;
    r.observation = Floats(columns, count, row, "observation", schema_.obs_dim());
    r.action = Floats(columns, count, row, "action", schema_.action_dim());
    r.executed = Floats(columns, count, row, std::string(schema_.executed_column()).c_str(), schema_.action_dim());
    r.next_observation = Floats(columns, count, row, "next_observation", schema_.obs_dim());
    r.reward = Value<float>(columns, count, row, "reward");
    r.cost = Value<float>(columns, count, row, "cost");
    for (const Column& column : schema_.wire()) {
      if (column.name == kMemory) r.memory = Floats(columns, count, row, "memory", column.width);
      if (column.name == "prev_cost") r.previous_cost = Value<float>(columns, count, row, "prev_cost");
    }
    r.absorbing = Value<uint8_t>(columns, count, row, "absorbing");
    r.last = Value<uint8_t>(columns, count, row, "last");
    r.environment = Value<uint32_t>(columns, count, row, "environment");
    r.episode = Value<uint32_t>(columns, count, row, "episode");
    r.step = Value<uint32_t>(columns, count, row, "step");
    r.policy_incarnation = Value<uint32_t>(columns, count, row, "policy_incarnation");
    r.policy_update = Value<uint64_t>(columns, count, row, "policy_update");
    return r;
  }

  const RowSchema schema_;
  const v1::RegisterReply registration_;
  std::shared_ptr<const v1::Assignment> assignment_;
  std::map<uint32_t, uint64_t> next_;
  Changes changes_;
};

class FakeSubscriber : public SnapshotSubscriber {
 public:
  std::map<uint32_t, std::shared_ptr<const Snapshot>> latest;
  std::vector<uint32_t> members;  // that the actor asked for last
  absl::Status state;

  void SetMembers(const std::vector<uint32_t>& wanted) override { members = wanted; }

  std::shared_ptr<const Snapshot> Latest(uint32_t member) const override {
    const auto found = latest.find(member);
    return found == latest.end() ? nullptr : found->second;
  }
  Changes& changes() override { return changes_; }
  absl::Status status() const override { return state; }
  double age_seconds(uint32_t) const override { return 0; }
  uint64_t discarded() const override { return 0; }

 private:
  Changes changes_;
};

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_FAKE_ACTOR_PEERS_H_
// SPDX-License-Identifier: Apache-2.0
