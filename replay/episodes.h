// The training episodes of one member, assembled from its committed rows in row order.
//
// An episode belongs to one (session, environment). It is open from its row with step 0 to its row with `last`; then it
// is finished and kept as a summary, in row order. An episode is abandoned when its session ends, or when its
// environment begins another one: then a step was invalid. An environment numbers its episodes without gaps, so those
// that left no row are counted, too, except before its first row. All state follows from rows: feeding the same rows
// after a crash gives the same episodes. Not thread-safe. Owns the summaries; rows are only read during Feed.
#ifndef DATACOM_REPLAY_EPISODES_H_
#define DATACOM_REPLAY_EPISODES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "datacom/v1/replay.pb.h"
#include "replay/row_offsets.h"

namespace datacom::replay {

inline constexpr uint32_t kMaxEnvironments = 65536;  // per session

struct EpisodeSummary {
  v1::Episode facts;       // without observations and costs; log_mean has sums while the episode is open
  uint64_t first_row = 0;  // counted from 0
};

// The newest row of an environment.
struct NewestRow {
  bool known = false;  // false: none that is held
  bool last = false;   // it ended its episode
  uint32_t episode = 0, step = 0;
};
// Whether a row can follow it: the row continues the episode with the next step, or begins a later one with step 0.
inline bool Follows(const NewestRow& newest, uint32_t episode, uint32_t step) {
  const bool continues = newest.known && !newest.last && episode == newest.episode && step == newest.step + 1;
  return continues || (step == 0 && (!newest.known || episode > newest.episode));
}

class EpisodeTracker {
 public:
  EpisodeTracker(const RowOffsets& offsets, double discount) : offsets_(offsets), discount_(discount) {}

  // Adds row `number` (from 0). Call in row order.
  void Feed(uint64_t number, const char* row);
  // Abandons the open episodes of a session that ended.
  void Abandon(uint32_t session);
  // Abandons the open episodes of every session that is not in `living` (after recovery).
  void AbandonAllBut(const std::vector<uint32_t>& living);
  // Drops what happened at or below row `last_row`, counted from 1.
  void Forget(uint64_t last_row);

  // Finished episodes with last row in (after, up_to], in row order.
  std::vector<EpisodeSummary> Finished(uint64_t after, uint64_t up_to) const;
  // Episodes with an invalid step, by the row in (after, up_to] that begins the environment's next one.
  uint64_t Invalid(uint64_t after, uint64_t up_to) const;
  // The environment's open episode; when none is open, the next one, with length 0.
  EpisodeSummary OpenOrNext(uint32_t session, uint32_t environment) const;

  NewestRow Newest(uint32_t session, uint32_t environment) const;
  // Whether rows were overwritten before this process read them: an environment that is not known may be anywhere.
  bool has_gap() const { return has_gap_; }

  uint64_t finished_count() const { return finished_count_; }
  uint64_t abandoned_count() const { return abandoned_count_; }         // since this process started
  void set_finished_count(uint64_t count) { finished_count_ = count; }  // for recovery; includes forgotten episodes

 private:
  struct Lane {
    bool open = false;
    EpisodeSummary episode;     // the open episode
    double discount_power = 1;  // discount^length
    NewestRow newest;
  };

  struct Invalids {
    uint64_t row = 0;  // counted from 1
    uint64_t episodes = 0;
  };

  EpisodeSummary Begun(uint32_t session, uint32_t environment, uint32_t number, uint64_t row) const;
  // The episodes with an invalid step from the newest row of an environment to the first row of `episode`.
  static uint64_t InvalidBetween(const NewestRow& newest, uint32_t episode);

  const RowOffsets offsets_;
  const double discount_;
  std::map<std::pair<uint32_t, uint32_t>, Lane> lanes_;  // by session and environment
  std::deque<EpisodeSummary> finished_;
  std::deque<Invalids> invalid_;
  uint64_t finished_count_ = 0;
  uint64_t abandoned_count_ = 0;
  bool is_empty_ = true, has_gap_ = false;
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_EPISODES_H_
// SPDX-License-Identifier: Apache-2.0
