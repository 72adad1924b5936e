// The two long-running modes of datacom-actor: acting and evaluating. Both block until the run is finished, the process
// is asked to stop (Stop::Process()), or an error that trying again cannot mend.
#ifndef DATACOM_ACTOR_ACTOR_PROCESS_H_
#define DATACOM_ACTOR_ACTOR_PROCESS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace datacom {

struct ProcessOptions {
  std::string replay;   // host:port; acting only
  std::string learner;  // host:port
  std::string tls;      // folder of LoadSecurity; empty: plain text
  std::string run_id;
  std::string name;  // of this process, stable over restarts
  uint32_t environments = 16;
  std::string listen = "127.0.0.1:0";          // gRPC health, plain: serving = registered, and a snapshot to act with
  std::string address_file;                    // where to write the health address; empty = nowhere
  std::string metrics_listen = "127.0.0.1:0";  // /metrics; empty = none
  std::string metrics_address_file;
};

// OK: every member has its rows. CANCELLED: stopped, what was acted is acknowledged (or the grace of 5 s ran out).
absl::Status RunActor(const ProcessOptions& options);
// OK: everything is evaluated. CANCELLED: stopped; an item begun is somebody else's once its lease runs out.
absl::Status RunEvaluator(const ProcessOptions& options);

}  // namespace datacom

#endif  // DATACOM_ACTOR_ACTOR_PROCESS_H_
