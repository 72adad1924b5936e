// A fake replay for the learner's tests: draws are pure functions of the update, and one episode ends every
// `episode_length` rows.
#ifndef DATACOM_TESTS_TESTING_FAKE_LEARNER_DRAWS_H_
#define DATACOM_TESTS_TESTING_FAKE_LEARNER_DRAWS_H_

#include <algorithm>
#include <deque>
#include <functional>
#include <string>

#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/rpc/replay_client.h"
#include "common/transitions/row_schema.h"
#include "learner/algorithms/algorithm.h"
#include "learner/run_settings.h"

namespace datacom::learner {

// q = the observation, f = -q, G = 1.
class FakeControlAffine : public ControlAffine {
 public:
  FakeControlAffine(int obs, int action) : dims_{obs, action, obs, 0} {}
  ControlAffineDims dims() const override { return dims_; }
  void Evaluate(const double* obs, const ControlAffineOut& out) const override {
    for (int i = 0; i < dims_.q; ++i) {
      if (out.q != nullptr) out.q[i] = obs[i];
      if (out.f != nullptr) out.f[i] = -obs[i];
    }
    if (out.G != nullptr) std::fill(out.G, out.G + dims_.q * dims_.action, 1.0);
  }

 private:
  const ControlAffineDims dims_;
};

// Shared by all fake streams of a test: the "stored rows" and the learner's announcements.
struct FakeReplay {
  AlgorithmConfig config;
  RowSchema schema;
  EpochSchedule schedule;
  uint32_t episode_length = 10;
  uint64_t abandoned_every = 0;  // member 0 has an abandoned episode at every so many rows; 0: none

  v1::DrawReply Draw(uint64_t update) const {
    v1::DrawReply reply;
    reply.set_update(update);
    const uint64_t before = update == 1 ? 0 : schedule.RowsSeen(update - 1), now = schedule.RowsSeen(update);
    for (size_t member = 0; member < config.members.size(); ++member) {
      v1::MemberBatch* batch = reply.add_batches();
      RandomStream stream(StreamKey("test.draw", {config.members[member].seed, update}));
      batch->set_main(Rows(BatchSize(config), &stream));
      if (update % 2 == 0) batch->set_failure(Rows(FailureRows(config), &stream));
      batch->set_rows_seen(now);
      batch->set_inserted(now);
      for (uint64_t row = before + 1; row <= now; ++row) {
        if (row % episode_length == 0) *batch->add_episodes() = EpisodeEndingAt(row, member, update);
      }
      if (abandoned_every > 0 && member == 0) {
        batch->set_abandoned(now / abandoned_every - before / abandoned_every);
        batch->set_fault(absl::StrCat("of row ", now, ", which broke"));
      }
    }
    return reply;
  }

  // Row `row` of a member: step and episode follow from EpisodeEndingAt, every third row violates.
  static float CostOf(uint64_t row, uint32_t member) { return row % 3 == member % 3 ? 0.25f + row : -1.0f; }
  // The messages have at most seven rows.
  absl::Status ReadRows(uint32_t member, uint64_t from, uint64_t to,
                        const std::function<absl::Status(const v1::RowRange&)>& consume) const {
    for (uint64_t at = from; at < to;) {
      v1::RowRange range;
      range.set_from(at);
      range.set_row_count(static_cast<uint32_t>(std::min<uint64_t>(7, to - at)));
      for (const Column& column : schema.stored()) {
        for (uint64_t row = at; row < at + range.row_count(); ++row) AppendCell(column, row, member, &range);
      }
      (*range.mutable_actors())[1] = "fake-0";
      at += range.row_count();
      const absl::Status consumed = consume(range);
      if (!consumed.ok()) return consumed;
    }
    return absl::OkStatus();
  }

 private:
  void AppendCell(const Column& column, uint64_t row, uint32_t member, v1::RowRange* range) const {
    std::string* out = range->mutable_columns();
    const auto put = [out](const auto value) { out->append(reinterpret_cast<const char*>(&value), sizeof value); };
    if (column.name == "cost") return put(CostOf(row, member));
    if (column.name == "session") return put(uint32_t{1});
    if (column.name == "episode") return put(static_cast<uint32_t>(row / episode_length));
    if (column.name == "step") return put(static_cast<uint32_t>(row % episode_length));
    if (column.name == "policy_update") return put(row / 2);
    for (uint32_t i = 0; i < column.width; ++i) {
      switch (column.type) {
        case ColumnType::kFloat32:
          put(static_cast<float>(row) + 0.5f * i);
          break;
        case ColumnType::kUint8:
          put(uint8_t{0});
          break;
        case ColumnType::kUint32:
          put(uint32_t{0});
          break;
        case ColumnType::kUint64:
          put(uint64_t{0});
          break;
      }
    }
  }
  std::string Rows(size_t rows, RandomStream* stream) const {
    std::string block;
    for (const Column& column : schema.learning()) {
      for (size_t i = 0; i < rows * column.width; ++i) {
        if (column.type == ColumnType::kUint8) {
          block.push_back(static_cast<char>(stream->Below(2)));
        } else {
          const float value = static_cast<float>(stream->Uniform(-1, 1));
          block.append(reinterpret_cast<const char*>(&value), sizeof(value));
        }
      }
    }
    return block;
  }
  v1::Episode EpisodeEndingAt(uint64_t row, size_t member, uint64_t update) const {
    v1::Episode episode;
    episode.set_episode(static_cast<uint32_t>(row / episode_length - 1));
    episode.set_last_row(row);
    episode.set_length(episode_length);
    episode.set_return_(static_cast<double>(row) + 0.25 * member);
    episode.set_discounted_return(static_cast<double>(row) / 3);
    episode.set_max_violation(row % 20 == 0 ? 0.5 : 0);
    episode.set_sum_cost(row % 20 == 0 ? 1.5 : 0);
    episode.set_violating_steps(row % 20 == 0 ? 6 : 0);
    episode.set_policy_update(update - 1);
    if (row - 1 <= config.members[member].hyper.delta_warmup()) return episode;
    const std::vector<float> observations((episode_length + 1) * config.obs_dim, static_cast<float>(row));
    const std::vector<float> costs(episode_length + 1, 0.125f);
    episode.set_observations(observations.data(), observations.size() * sizeof(float));
    episode.set_costs(costs.data(), costs.size() * sizeof(float));
    return episode;
  }
};

class FakeDrawStream : public DrawStream {
 public:
  explicit FakeDrawStream(const FakeReplay* replay) : replay_(replay) {}
  void Request(uint64_t update) override {
    MutexLock lock(&mutex_);
    requests_.push_back(update);
  }
  void Announce(uint64_t completed) override {
    MutexLock lock(&mutex_);
    announced_ = completed;
  }
  absl::StatusOr<v1::DrawReply> Next(std::chrono::milliseconds) override {
    MutexLock lock(&mutex_);
    if (cancelled_) return absl::CancelledError("cancelled");
    if (requests_.empty()) return absl::InternalError("nothing was asked for");
    most_asked_ = std::max(most_asked_, requests_.size());
    v1::DrawReply reply = replay_->Draw(requests_.front());
    requests_.pop_front();
    return reply;
  }
  void Cancel() override {
    MutexLock lock(&mutex_);
    cancelled_ = true;
  }
  uint64_t announced() const {
    MutexLock lock(&mutex_);
    return announced_;
  }
  size_t most_asked() const {  // most unanswered draws at once
    MutexLock lock(&mutex_);
    return most_asked_;
  }

 private:
  const FakeReplay* const replay_;
  mutable Mutex mutex_;
  std::deque<uint64_t> requests_ ABSL_GUARDED_BY(mutex_);
  uint64_t announced_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t most_asked_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_TESTING_FAKE_LEARNER_DRAWS_H_
// SPDX-License-Identifier: Apache-2.0
