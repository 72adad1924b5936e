// Byte offsets of the columns that the replay itself reads in a stored row. Immutable; thread-safe.
#ifndef DATACOM_REPLAY_ROW_OFFSETS_H_
#define DATACOM_REPLAY_ROW_OFFSETS_H_

#include <cstddef>

#include "common/transitions/row_schema.h"

namespace datacom::replay {

class RowOffsets {
 public:
  explicit RowOffsets(const RowSchema& schema)
      : observation(schema.offset("observation")),
        executed(schema.offset(schema.executed_column())),
        reward(schema.offset("reward")),
        cost(schema.offset("cost")),
        next_observation(schema.offset("next_observation")),
        last(schema.offset("last")),
        environment(schema.offset("environment")),
        episode(schema.offset("episode")),
        step(schema.offset("step")),
        policy_update(schema.offset("policy_update")),
        session(schema.offset("session")),
        sequence(schema.offset("sequence")),
        named_cost(next_observation + schema.named_costs().at * sizeof(float)),
        named_costs(schema.named_costs().names.size()),
        log(next_observation + schema.logs().at * sizeof(float)),
        logs(schema.logs().names.size()) {}

  const size_t observation, executed, reward, cost, next_observation, last, environment, episode, step, policy_update,
      session, sequence;
  const size_t named_cost;   // offset of the first named cost, a number of next_observation
  const size_t named_costs;  // their number
  const size_t log, logs;    // the same of the quantities that the task logs
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_ROW_OFFSETS_H_
// SPDX-License-Identifier: Apache-2.0
