// Tests when updates are announced, with a replay that has draws up to a number that the test raises.
#include "learner/prefetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/testing/fake_learner_run.h"
#include "tests/testing/patience.h"

namespace datacom::learner {
namespace {

using datacom::testing::kPatience;
using ::testing::ElementsAre;

// What the test and the stream of a Prefetch share.
struct Shared {
  Mutex mutex;
  CondVar changed;
  uint64_t allowed ABSL_GUARDED_BY(mutex) = 0;  // draws up to this one are there
  uint64_t taken ABSL_GUARDED_BY(mutex) = 0;    // the newest draw that was asked for; all before it are decoded
  bool cancelled ABSL_GUARDED_BY(mutex) = false;
  std::vector<uint64_t> announced ABSL_GUARDED_BY(mutex);
};

class GatedDrawStream : public DrawStream {
 public:
  GatedDrawStream(const FakeReplay* replay, Shared* shared) : replay_(*replay), shared_(*shared) {}
  void Request(uint64_t) override {}
  void Announce(uint64_t update) override {
    MutexLock lock(&shared_.mutex);
    shared_.announced.push_back(update);
  }
  absl::StatusOr<v1::DrawReply> Next(std::chrono::milliseconds) override {
    MutexLock lock(&shared_.mutex);
    shared_.taken = next_;
    shared_.changed.NotifyAll();
    while (next_ > shared_.allowed && !shared_.cancelled) shared_.changed.Wait(&shared_.mutex);
    if (shared_.cancelled) return absl::CancelledError("");
    return replay_.Draw(next_++);
  }
  void Cancel() override {
    MutexLock lock(&shared_.mutex);
    shared_.cancelled = true;
    shared_.changed.NotifyAll();
  }

 private:
  const FakeReplay& replay_;
  Shared& shared_;
  uint64_t next_ = 1;
};

class PrefetchTest : public ::testing::Test {
 protected:
  PrefetchTest()
      : replay_(MakeFakeReplay(FakeExperiment())),
        prefetch_(std::make_unique<GatedDrawStream>(&replay_, &shared_),
                  BatchDecoder(replay_.config, replay_.schema, FakeTaskModel().dynamics, KnownRows()), replay_.config,
                  {.first_update = 1, .last_update = 9, .ahead = 9, .announced_together = 4}) {}

  // Returns once draws up to `update` are decoded; no more than Prefetch::kDecoded beyond those that were trained on.
  void Have(uint64_t update) {
    MutexLock lock(&shared_.mutex);
    shared_.allowed = update;
    shared_.changed.NotifyAll();
    while (shared_.taken <= update) shared_.changed.Wait(&shared_.mutex);
  }
  void Train(uint64_t update) {
    PreparedUpdate* const prepared = prefetch_.Next(kPatience).value();
    EXPECT_EQ(prepared->update, update);
    prefetch_.Release(prepared);
    prefetch_.Announce(update);
  }
  std::vector<uint64_t> Announced() {
    MutexLock lock(&shared_.mutex);
    return shared_.announced;
  }

  const FakeReplay replay_;
  Shared shared_;
  Prefetch prefetch_;
};

TEST_F(PrefetchTest, FourUpdatesAreAnnouncedTogether) {
  Have(4);
  for (const uint64_t update : {1, 2, 3}) Train(update);
  EXPECT_THAT(Announced(), ElementsAre(0));
  Train(4);
  EXPECT_THAT(Announced(), ElementsAre(0, 4));
}

TEST_F(PrefetchTest, ALearnerThatWaitsForADrawAnnouncesWhatItHasDone) {
  Have(2);
  for (const uint64_t update : {1, 2}) Train(update);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(prefetch_.Next(std::chrono::milliseconds(0)).status()));
    EXPECT_THAT(Announced(), ElementsAre(0, 2));
  }
}

TEST_F(PrefetchTest, TheLastUpdateOfARunIsAnnounced) {
  Have(4);
  for (const uint64_t update : {1, 2, 3, 4}) Train(update);
  Have(8);
  for (const uint64_t update : {5, 6, 7, 8}) Train(update);
  {
    MutexLock lock(&shared_.mutex);
    shared_.allowed = 9;
    shared_.changed.NotifyAll();
  }
  Train(9);
  EXPECT_THAT(Announced(), ElementsAre(0, 4, 8, 9));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
