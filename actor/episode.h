// The random streams of a training episode. An episode is a pure function of its streams and its actions. Functions;
// thread-safe; they allocate nothing.
#ifndef DATACOM_ACTOR_EPISODE_H_
#define DATACOM_ACTOR_EPISODE_H_

#include <cstdint>

#include "common/base/random.h"

namespace datacom::actor {

inline RandomStream EpisodeStart(uint64_t run_seed, uint64_t member_seed, uint32_t session, uint32_t environment,
                                 uint32_t episode) {
  return RandomStream(StreamKey("actor.episode", {run_seed, member_seed, session, environment, episode}));
}

// The stream that gives a shortened episode its length: the first episode (0) of an environment, or the first one after
// a pause.
inline RandomStream FirstEpisodeLength(uint64_t run_seed, uint64_t member_seed, uint32_t session, uint32_t environment,
                                       uint32_t episode) {
  constexpr char kName[] = "actor.first_length";
  return RandomStream(episode == 0 ? StreamKey(kName, {run_seed, member_seed, session, environment})
                                   : StreamKey(kName, {run_seed, member_seed, session, environment, episode}));
}

}  // namespace datacom::actor

#endif  // DATACOM_ACTOR_EPISODE_H_
// SPDX-License-Identifier: Apache-2.0
