// Random streams of training episodes. An episode is a pure function of its stream and its actions. Thread-safe.
#ifndef DATACOM_ACTOR_EPISODE_START_H_
#define DATACOM_ACTOR_EPISODE_START_H_

#include <cstdint>

#include "common/base/random.h"

namespace datacom {

inline RandomStream EpisodeStart(uint64_t run_seed, uint64_t member_seed, uint32_t session, uint32_t environment,
                                 uint32_t episode) {
  return RandomStream(StreamKey("actor.episode", {run_seed, member_seed, session, environment, episode}));
}

// The stream that an environment's first episode draws its length from.
inline RandomStream FirstEpisodeLength(uint64_t run_seed, uint64_t member_seed, uint32_t session,
                                       uint32_t environment) {
  return RandomStream(StreamKey("actor.first_length", {run_seed, member_seed, session, environment}));
}

}  // namespace datacom

#endif  // DATACOM_ACTOR_EPISODE_START_H_
