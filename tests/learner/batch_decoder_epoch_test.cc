// The rows of an on-policy epoch are put into the order of time, one lane after the other.
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/batch_decoder.h"
#include "tests/testing/is_ok.h"

namespace datacom::learner {
namespace {

using datacom::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::DrawReply Reply(const std::vector<v1::MemberBatch>& batches) {
  v1::DrawReply reply;
  reply.set_update(3);
  for (const v1::MemberBatch& batch : batches) *reply.add_batches() = batch;
  return reply;
}

// A row of an epoch; its arrays follow from `value`.
struct EpochRow {
  RowPlace place;
  float value = 0;
  bool absorbing = false;
};

v1::MemberBatch EpochBatch(const RowSchema& schema, const std::vector<EpochRow>& rows) {
  v1::MemberBatch batch;
  batch.set_row_count(static_cast<uint32_t>(rows.size()));
  batch.set_rows_seen(rows.size());
  const auto put = [](const auto value, std::string* to) {
    to->append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  float shift = 0;  // of a column's values
  for (const Column& column : schema.learning()) {
    for (const EpochRow& row : rows) {
      if (column.type == ColumnType::kUint8) {
        put(static_cast<uint8_t>(column.name == "absorbing" && row.absorbing), batch.mutable_main());
        continue;
      }
      for (uint32_t i = 0; i < column.width; ++i) put(row.value + shift + 0.25f * i, batch.mutable_main());
    }
    shift += 100;
  }
  for (const auto part : {&RowPlace::session, &RowPlace::environment, &RowPlace::episode, &RowPlace::step}) {
    for (const EpochRow& row : rows) put(row.place.*part, batch.mutable_places());
  }
  return batch;
}

class EpochDecoderTest : public ::testing::Test {
 protected:
  EpochDecoderTest() {
    config_.algorithm = "ppo_lag";
    config_.members.resize(1);
    config_.obs_dim = 2, config_.action_dim = 1;
    config_.epoch_rows = 8;
    prepared_.batch.Resize(config_);
  }
  absl::Status Decode(v1::DrawReply reply) {
    BatchDecoder decoder(config_, schema_, nullptr, KnownRows());
    return decoder.Decode(&reply, &prepared_);
  }

  AlgorithmConfig config_;
  const RowSchema schema_ = RowSchema::For(2, 1, {ExecutedActionColumn(1), {"log_prob"}});
  PreparedUpdate prepared_;
};

// Two lanes of session 3 take turns. The first one ends episode 4, terminated, and begins episode 5; the other one's
// episode 0 was begun in an earlier epoch and continues. Session 2 ended after one row.
const std::vector<EpochRow> kEpoch = {
    {{3, 0, 4, 8}, 10},  {{3, 1, 0, 30}, 11}, {{2, 0, 1, 6}, 12},  {{3, 0, 4, 9}, 13, /*absorbing=*/true},
    {{3, 1, 0, 31}, 14}, {{3, 0, 5, 0}, 15},  {{3, 1, 0, 32}, 16}, {{3, 0, 5, 1}, 17}};

TEST_F(EpochDecoderTest, RowsOfALaneFollowEachOtherAndPathsEndWhereTheirEpisodeOrTheEpochDoes) {
  v1::DrawReply reply = Reply({EpochBatch(schema_, kEpoch)});
  reply.mutable_batches(0)->set_inserted(9);
  reply.mutable_batches(0)->set_lanes(2);
  v1::Episode* episode = reply.mutable_batches(0)->add_episodes();
  episode->set_length(10);
  episode->set_last_row(4);
  episode->set_sum_cost(2.5);
  const absl::Status status = Decode(reply);
  ASSERT_THAT(status, IsOk());
  const Batch& batch = prepared_.batch;
  EXPECT_THAT(batch.reward, ElementsAre(212, 210, 213, 215, 217, 211, 214, 216));
  EXPECT_THAT(batch.path_end, ElementsAre(1, 0, 1, 0, 1, 0, 0, 1));
  EXPECT_THAT(batch.absorbing, ElementsAre(0, 0, 1, 0, 0, 0, 0, 0));
  EXPECT_THAT(batch.action, ElementsAre(112, 110, 113, 115, 117, 111, 114, 116));
  EXPECT_THAT(batch.cost, ElementsAre(312, 310, 313, 315, 317, 311, 314, 316));
  EXPECT_THAT(batch.columns, ElementsAre(ElementsAre(512, 510, 513, 515, 517, 511, 514, 516)));
  EXPECT_THAT(std::vector<float>(batch.observation.begin(), batch.observation.begin() + 4),
              ElementsAre(12, 12.25, 10, 10.25));
  EXPECT_THAT(std::vector<float>(batch.next_observation.end() - 2, batch.next_observation.end()),
              ElementsAre(416, 416.25));
  EXPECT_THAT(prepared_.rows_seen, ElementsAre(8));
  EXPECT_THAT(prepared_.inserted, ElementsAre(9));
  EXPECT_THAT(prepared_.lanes, ElementsAre(2));
  ASSERT_EQ(prepared_.episodes.size(), 1u);
  EXPECT_THAT(prepared_.episodes[0].costs, ElementsAre(0, 2.5)) << "for the multiplier";
  EXPECT_TRUE(prepared_.episodes[0].z.empty());
}

TEST_F(EpochDecoderTest, TheNumberOfLanesAndTheBatchesOfADrawDoNotChangeARow) {
  ASSERT_THAT(Decode(Reply({EpochBatch(schema_, kEpoch)})), IsOk());
  const Batch whole = prepared_.batch;
  v1::MemberBatch first = EpochBatch(schema_, {kEpoch.begin(), kEpoch.begin() + 3});
  v1::MemberBatch second = EpochBatch(schema_, {kEpoch.begin() + 3, kEpoch.end()});
  first.set_rows_seen(8), second.set_rows_seen(8);
  second.set_first_row(3);
  ASSERT_THAT(Decode(Reply({first, second})), IsOk());
  EXPECT_EQ(prepared_.batch.observation, whole.observation);
  EXPECT_EQ(prepared_.batch.columns, whole.columns);
  EXPECT_EQ(prepared_.batch.path_end, whole.path_end);
}

TEST_F(EpochDecoderTest, RefusesAnotherNumberOfRows) {
  config_.epoch_rows = 7;
  const absl::Status refused = Decode(Reply({EpochBatch(schema_, kEpoch)}));
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("8 rows, expected the 7 of an update"));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
