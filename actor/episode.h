// The random streams and the checked steps of a training episode. An episode is a pure function of its streams and its
// actions. Functions; as thread-safe as the task; they allocate nothing themselves.
#ifndef DATACOM_ACTOR_EPISODE_H_
#define DATACOM_ACTOR_EPISODE_H_

#include <cmath>
#include <cstdint>

#include "common/base/random.h"
#include "common/tasks/task.h"
#include "common/transitions/check_columns.h"

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

// Task::Step that also reports a step as invalid when reward, cost or observation is larger than kLargestValue or not
// finite, so that no row, episode or network sees such a value.
inline StepResult CheckedStep(Task* task, const double* action, double* observation) {
  StepResult result = task->Step(action, observation);
  const auto sane = [](double value) { return std::abs(value) <= kLargestValue; };
  result.valid = result.valid && sane(result.reward) && sane(result.cost);
  const int dim = task->spec().obs_dim;
  for (int i = 0; i < dim; ++i) result.valid = result.valid && sane(observation[i]);
  return result;
}

}  // namespace datacom::actor

#endif  // DATACOM_ACTOR_EPISODE_H_
// SPDX-License-Identifier: Apache-2.0
