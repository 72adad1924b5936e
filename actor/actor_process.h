// The two long-running modes of datacom-actor: acting and evaluating. Both block until the run is finished, the process
// is asked to stop (Stop::Process()), or an error that a retry cannot resolve. Their health service serves once an
// actor has snapshots of all its members, or an evaluator has its first item.
#ifndef DATACOM_ACTOR_ACTOR_PROCESS_H_
#define DATACOM_ACTOR_ACTOR_PROCESS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/role_flags.h"

namespace datacom::actor {

struct ActorOptions : RoleFlags {  // `listen` serves gRPC health without TLS
  std::string replay;              // host:port; acting only
  std::string learner;             // host:port
  std::string name;                // the process keeps it over restarts
  uint32_t environments = 16;
  bool stay = false;  // acting only: when the run has all its rows, wait and look again instead of ending
};

// OK: every member has all its rows. CANCELLED: stopped; all rows are acknowledged, or the grace period of 5 s ran out.
absl::Status RunActor(const ActorOptions& options);
// OK: everything is evaluated. CANCELLED: stopped; another evaluator gets an unfinished item when its lease runs out.
absl::Status RunEvaluator(const ActorOptions& options);

}  // namespace datacom::actor

#endif  // DATACOM_ACTOR_ACTOR_PROCESS_H_
// SPDX-License-Identifier: Apache-2.0
