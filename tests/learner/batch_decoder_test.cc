#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "learner/batch_decoder.h"
#include "tests/testing/fake_learner_run.h"
#include "tests/testing/is_ok.h"

namespace datacom::learner {
namespace {

using datacom::testing::IsOk;

class BatchDecoderTest : public ::testing::Test {
 protected:
  BatchDecoderTest()
      : experiment_(FakeExperiment()),
        replay_(MakeFakeReplay(experiment_)),
        decoder_(replay_.config, replay_.schema, FakeTaskModel().dynamics, KnownRows()) {
    prepared_.batch.Resize(replay_.config);
  }
  absl::Status Decode(v1::DrawReply reply) { return decoder_.Decode(&reply, &prepared_); }

  const v1::Experiment experiment_;
  const FakeReplay replay_;
  BatchDecoder decoder_;
  PreparedUpdate prepared_;
};

// Float `index` of a column that begins after `floats_before` floats of each row.
float At(const std::string& block, size_t rows, size_t floats_before, size_t index) {
  float value;
  std::memcpy(&value, block.data() + (rows * floats_before + index) * sizeof(float), sizeof(value));
  return value;
}

TEST_F(BatchDecoderTest, EveryColumnLandsAtItsMemberAndRow) {
  const v1::DrawReply reply = replay_.Draw(2);
  ASSERT_THAT(Decode(reply), IsOk());
  const Batch& batch = prepared_.batch;
  for (size_t member = 0; member < 2; ++member) {
    const std::string& block = reply.batches(member).main();
    for (size_t row = 0; row < 4; ++row) {  // columns: observation 2, action 1, reward 1, cost 1, next_observation 2
      const size_t at = member * 4 + row;
      EXPECT_EQ(batch.observation[2 * at + 1], At(block, 4, 0, 2 * row + 1));
      EXPECT_EQ(batch.action[at], At(block, 4, 2, row));
      EXPECT_EQ(batch.reward[at], At(block, 4, 3, row));
      EXPECT_EQ(batch.cost[at], At(block, 4, 4, row));
      EXPECT_EQ(batch.next_observation[2 * at], At(block, 4, 5, 2 * row));
      EXPECT_EQ(batch.absorbing[at], block[4 * 7 * sizeof(float) + row] != 0 ? 1.0f : 0.0f);
      EXPECT_EQ(batch.now.z[2 * at], batch.observation[2 * at]);
      EXPECT_EQ(batch.now.f[2 * at], -static_cast<double>(batch.observation[2 * at]));
      EXPECT_EQ(batch.next.z[2 * at + 1], batch.next_observation[2 * at + 1]);
      EXPECT_EQ(batch.now.G[2 * at], 1.0);
    }
    const std::string& failure = reply.batches(member).failure();
    EXPECT_EQ(batch.failure_weight[member], 1.0f);
    EXPECT_EQ(batch.failure_z[member * 4 + 3], At(failure, 2, 0, 3));
    EXPECT_EQ(batch.failure_next_z[member * 4], At(failure, 2, 5, 0));
    EXPECT_EQ(batch.failure_cost[member * 2 + 1], At(failure, 2, 4, 1));
  }
}

// Rows of five numbers: networks see the first two; q and f are the last three.
class TailModel : public ControlAffine {
 public:
  ControlAffineDims dims() const override { return {5, 1, 2, 0}; }
  void Evaluate(const double* obs, const ControlAffineOut& out) const override {
    if (out.q != nullptr) std::copy_n(obs + 2, 2, out.q);
    if (out.f != nullptr) out.f[0] = out.f[1] = obs[4];
    if (out.G != nullptr) out.G[0] = out.G[1] = 1;
  }
};

TEST_F(BatchDecoderTest, NetworksSeeTheBeginningOfARowAndTheModelReadsItsEnd) {
  FakeReplay wide = replay_;
  wide.schema = RowSchema::For(5, 1);
  wide.episode_length = 1000000;
  wide.config.imitation = {[](const double* row, double* command) { *command = row[4]; }, 1, 2};
  prepared_.batch.Resize(wide.config);
  BatchDecoder decoder(wide.config, wide.schema, std::make_shared<TailModel>(), KnownRows());
  v1::DrawReply reply = wide.Draw(2);
  const v1::DrawReply kept = reply;
  ASSERT_THAT(decoder.Decode(&reply, &prepared_), IsOk());
  const Batch& batch = prepared_.batch;
  for (size_t member = 0; member < 2; ++member) {
    const std::string &block = kept.batches(member).main(), &failure = kept.batches(member).failure();
    for (size_t row = 0; row < 4; ++row) {  // columns: observation 5, action 1, reward 1, cost 1, next_observation 5
      const size_t at = member * 4 + row;
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(batch.observation[2 * at + i], At(block, 4, 0, 5 * row + i));
        EXPECT_EQ(batch.next_observation[2 * at + i], At(block, 4, 8, 5 * row + i));
        EXPECT_EQ(batch.now.z[2 * at + i], At(block, 4, 0, 5 * row + 2 + i));
        EXPECT_EQ(batch.next.z[2 * at + i], At(block, 4, 8, 5 * row + 2 + i));
        EXPECT_EQ(batch.next.f[2 * at + i], At(block, 4, 8, 5 * row + 4));
      }
      EXPECT_EQ(batch.command[at], At(block, 4, 0, 5 * row + 4)) << "the controller sees the whole row";
    }
    EXPECT_EQ(batch.failure_z[member * 4 + 3], At(failure, 2, 0, 5 + 3));
    EXPECT_EQ(batch.failure_next_z[member * 4], At(failure, 2, 8, 2));
  }
}

// The column of such a rule follows next_observation.
TEST_F(BatchDecoderTest, AnAlgorithmGetsTheColumnOfItsActingRuleThatItReads) {
  EXPECT_TRUE(prepared_.batch.columns.empty()) << "this one reads none";
  const RowSchema schema = RowSchema::For(2, 1, {ExecutedActionColumn(1), {"prev_cost"}});
  AlgorithmConfig config = replay_.config;
  config.algorithm = "safe_layer_td3";
  prepared_.batch.Resize(config);
  BatchDecoder decoder(config, schema, nullptr, KnownRows());
  v1::DrawReply reply = replay_.Draw(2);
  for (int member = 0; member < 2; ++member) {
    std::string* main = reply.mutable_batches(member)->mutable_main();
    std::string column;
    for (int row = 0; row < 4; ++row) {
      const float value = static_cast<float>(10 * member + row) - 5;
      column.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    main->insert(4 * 7 * sizeof(float), column);
  }
  ASSERT_THAT(decoder.Decode(&reply, &prepared_), IsOk());
  EXPECT_EQ(prepared_.batch.columns, (std::vector<std::vector<float>>{{-5, -4, -3, -2, 5, 6, 7, 8}}));
}

TEST_F(BatchDecoderTest, AMemberWithoutFailuresHasWeightZeroAndNothingOfTheLastBatch) {
  ASSERT_THAT(Decode(replay_.Draw(2)), IsOk());
  ASSERT_THAT(Decode(replay_.Draw(3)), IsOk());
  EXPECT_EQ(prepared_.batch.failure_weight, (std::vector<float>{0, 0}));
  EXPECT_EQ(prepared_.batch.failure_z, std::vector<float>(2 * 2 * 2, 0.0f));
}

TEST_F(BatchDecoderTest, CommandsAreThoseOfTheControllerForEachRowAndCountUntilTheirLastUpdate) {
  AlgorithmConfig config = replay_.config;
  config.imitation = {[](const double* row, double* command) { *command = 3 * row[0] - row[1]; }, 0.25, 5};
  BatchDecoder decoder(config, replay_.schema, FakeTaskModel().dynamics, KnownRows());
  prepared_.batch.Resize(config);
  for (const uint64_t update : {5, 6}) {
    v1::DrawReply reply = replay_.Draw(update);
    ASSERT_THAT(decoder.Decode(&reply, &prepared_), IsOk());
    const Batch& batch = prepared_.batch;
    ASSERT_EQ(batch.command.size(), 2u * 4);
    for (size_t i = 0; i < 8; ++i) {
      const float command = 3 * batch.observation[2 * i] - batch.observation[2 * i + 1];
      EXPECT_FLOAT_EQ(batch.command[i], update == 5 ? command : 0) << "not asked when nothing reads it";
    }
    EXPECT_EQ(batch.imitation, std::vector<double>(2, update == 5 ? 0.25 : 0.0));
    prepared_.batch.command.assign(2 * 4, 0);
  }
  prepared_.batch.command.assign(2 * 4, 9);
  ASSERT_THAT(Decode(replay_.Draw(5)), IsOk());
  EXPECT_EQ(prepared_.batch.command, std::vector<float>(2 * 4, 9)) << "a decoder without a controller writes none";
}

TEST_F(BatchDecoderTest, NoiseDependsOnlyOnSeedUpdateAndPurpose) {
  ASSERT_THAT(Decode(replay_.Draw(5)), IsOk());
  const Batch first = prepared_.batch;
  ASSERT_THAT(Decode(replay_.Draw(6)), IsOk());
  EXPECT_NE(prepared_.batch.noise_actor, first.noise_actor);
  ASSERT_THAT(Decode(replay_.Draw(5)), IsOk());
  EXPECT_EQ(prepared_.batch.noise_actor, first.noise_actor);
  EXPECT_NE(first.noise_actor, first.noise_next);
  const size_t half = first.noise_actor.size() / 2;
  EXPECT_FALSE(
      std::equal(first.noise_actor.begin(), first.noise_actor.begin() + half, first.noise_actor.begin() + half));
}

// A resumed run must draw the noise that it would have drawn without the interruption. The expected values were
// computed from the definitions in common/base/random.h, independently of this code.
TEST_F(BatchDecoderTest, NoiseHasTheValuesOfExistingRuns) {
  ASSERT_THAT(Decode(replay_.Draw(5)), IsOk());
  const float actor[] = {0.3125865f, 1.5065439f, -1.8807721f}, next[] = {-0.6537005f, -1.4359236f, 0.6534933f};
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(prepared_.batch.noise_actor[4 + i], actor[i], 1e-6) << "of member 1";
    EXPECT_NEAR(prepared_.batch.noise_next[4 + i], next[i], 1e-6) << "of member 1";
  }
}

TEST_F(BatchDecoderTest, LevelsAreUniformAndDrawnOnlyForAlgorithmsThatNeedThem) {
  ASSERT_THAT(Decode(replay_.Draw(5)), IsOk());
  EXPECT_TRUE(prepared_.batch.level.empty());
  AlgorithmConfig config = replay_.config;
  config.quantiles = 50;
  BatchDecoder decoder(config, replay_.schema, FakeTaskModel().dynamics, KnownRows());
  const auto decode = [&](uint64_t update) {
    PreparedUpdate prepared;
    prepared.batch.Resize(config);
    v1::DrawReply reply = replay_.Draw(update);
    EXPECT_THAT(decoder.Decode(&reply, &prepared), IsOk());
    return prepared.batch;
  };
  const Batch first = decode(5);
  EXPECT_EQ(first.level.size(), 2u * 6 * 50);  // members, rows and failure rows, levels
  EXPECT_EQ(decode(5).level, first.level);
  EXPECT_NE(decode(6).level, first.level);
  EXPECT_NE(first.level, first.next_level);
  double sum = 0;
  for (const float level : first.level) {
    EXPECT_GE(level, 0);
    EXPECT_LE(level, 1);
    sum += level;
  }
  EXPECT_NEAR(sum / 600, 0.5, 0.06);  // five standard deviations
  const size_t half = first.level.size() / 2;
  EXPECT_FALSE(std::equal(first.level.begin(), first.level.begin() + half, first.level.begin() + half));
}

// Two rows: "other", which the decoder must leave out, and "wall" with k = z[0] - 1. Gains are 0, x is not used.
class TwoRows : public KnownConstraints {
 public:
  TwoRows() {
    Add("other", "other", 0);
    Add("wall", "wall", 0);
  }
  void Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const override {
    const double k[2] = {7, at.q[0] - 1}, J[4] = {7, 7, 1, 0};
    if (out.k != nullptr) std::copy_n(k, 2, out.k);
    if (out.J_q != nullptr) std::copy_n(J, 4, out.J_q);
  }
};

TEST_F(BatchDecoderTest, KnownRowsOfBothStatesEqualThoseOfTheActor) {
  AlgorithmConfig config = replay_.config;
  config.known = {"wall"};
  const TaskModel model = FakeTaskModel();
  BatchDecoder decoder(config, replay_.schema, model.dynamics,
                       KnownRows(std::make_shared<TwoRows>(), {1}, model.dynamics->dims()));
  PreparedUpdate prepared;
  prepared.batch.Resize(config);
  v1::DrawReply reply = replay_.Draw(2);
  ASSERT_THAT(decoder.Decode(&reply, &prepared), IsOk());
  const Batch& batch = prepared.batch;
  ASSERT_EQ(batch.now.known.size(), 2u * 4 * 3);  // members, rows, {k, drift, J_G}
  for (size_t at = 0; at < 8; ++at) {
    for (const auto& [states, features] :
         {std::pair{&batch.observation, &batch.now}, std::pair{&batch.next_observation, &batch.next}}) {
      const double z = (*states)[2 * at];
      EXPECT_EQ(features->known[3 * at], z - 1);
      EXPECT_EQ(features->known[3 * at + 1], std::max(-z, 0.0)) << "f = -z";
      EXPECT_EQ(features->known[3 * at + 2], features->G[2 * at]);
    }
  }
}

TEST_F(BatchDecoderTest, TheBatchIsTheSameOnAnyNumberOfThreads) {
  AlgorithmConfig config = replay_.config;
  config.imitation = {[](const double* row, double* command) { *command = row[0]; }, 1, 50};
  config.team = nullptr;
  BatchDecoder alone(config, replay_.schema, FakeTaskModel().dynamics, KnownRows());
  config.team = std::make_shared<Team>(3);
  BatchDecoder together(config, replay_.schema, FakeTaskModel().dynamics, KnownRows());
  PreparedUpdate a, b;
  a.batch.Resize(config);
  b.batch.Resize(config);
  for (uint64_t update = 1; update <= 100; ++update) {
    v1::DrawReply first = replay_.Draw(update), second = first;
    ASSERT_THAT(alone.Decode(&first, &a), IsOk());
    ASSERT_THAT(together.Decode(&second, &b), IsOk());
    EXPECT_EQ(a.rows_seen, b.rows_seen);
    EXPECT_EQ(a.batch.observation, b.batch.observation);
    EXPECT_EQ(a.batch.next.z, b.batch.next.z);
    EXPECT_EQ(a.batch.failure_z, b.batch.failure_z);
    EXPECT_EQ(a.batch.noise_next, b.batch.noise_next);
    EXPECT_EQ(a.batch.command, b.batch.command);
    EXPECT_EQ(a.batch.imitation, b.batch.imitation);
    ASSERT_EQ(a.episodes.size(), b.episodes.size());
    for (size_t i = 0; i < a.episodes.size(); ++i) {
      EXPECT_EQ(a.episodes[i].member, b.episodes[i].member);
      EXPECT_EQ(a.episodes[i].facts.last_row(), b.episodes[i].facts.last_row());
      EXPECT_EQ(a.episodes[i].z, b.episodes[i].z);
    }
  }
}

TEST_F(BatchDecoderTest, RepliesThatDoNotFitAreRefusedNamingTheMember) {
  v1::DrawReply reply = replay_.Draw(2);
  reply.mutable_batches(1)->mutable_main()->pop_back();
  absl::Status status = Decode(reply);
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_NE(status.message().find("member 1: main"), absl::string_view::npos) << status;

  reply = replay_.Draw(2);
  reply.mutable_batches(0)->mutable_failure()->append("x");
  EXPECT_TRUE(absl::IsDataLoss(Decode(reply)));

  reply = replay_.Draw(2);
  reply.mutable_batches()->RemoveLast();
  status = Decode(reply);
  EXPECT_NE(status.message().find("1 members, expected 2"), absl::string_view::npos) << status;

  reply = replay_.Draw(200);  // carries an episode that is due for a delta step
  ASSERT_GT(reply.batches(0).episodes_size(), 0);
  reply.mutable_batches(0)->mutable_episodes(0)->mutable_costs()->pop_back();
  status = Decode(reply);
  EXPECT_NE(status.message().find("episode.costs"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
