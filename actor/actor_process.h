// The two long-running modes of datacom-actor: acting and evaluating. Both block until the run is finished, the process
// is asked to stop (Stop::Process()), or an error that a retry cannot resolve.
#ifndef DATACOM_ACTOR_ACTOR_PROCESS_H_
#define DATACOM_ACTOR_ACTOR_PROCESS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/base/stall.h"

namespace datacom {

struct ProcessOptions {
  std::string replay;   // host:port; acting only
  std::string learner;  // host:port
  std::string tls;      // folder for LoadSecurity and /metrics; empty: no TLS
  std::string run_id;
  std::string name;  // of this process, stable over restarts
  uint32_t environments = 16;
  // gRPC health without TLS. Serving: an actor has snapshots of all its members, an evaluator has got its first item.
  std::string listen = "127.0.0.1:0";
  std::string address_file;                    // receives the health address; empty = not written
  std::string metrics_listen = "127.0.0.1:0";  // /metrics; empty = none
  std::string metrics_address_file;
  double stall_minutes = kStallMinutes;  // ends the process when its loop hangs for so long (common/base/stall.h)
};

// OK: every member has all its rows. CANCELLED: stopped; all rows are acknowledged, or the grace period of 5 s ran out.
absl::Status RunActor(const ProcessOptions& options);
// OK: everything is evaluated. CANCELLED: stopped; another evaluator gets an unfinished item when its lease runs out.
absl::Status RunEvaluator(const ProcessOptions& options);

}  // namespace datacom

#endif  // DATACOM_ACTOR_ACTOR_PROCESS_H_
