// The acting loop of one session: steps the environments of its members as far as credit and fresh snapshots allow.
//
// In each iteration, for each member: one batch of actions, one step of each environment in the batch, and their rows
// are appended to the member's chunk. Credit limits the batch; the environments take turns. A chunk goes to the session
// when it is full, after a few iterations, and immediately when its member cannot step; no timer is involved. Chunks of
// several members are sent together, before the next member steps. When no member can step, the loop waits for credit
// or a snapshot, whichever comes first.
//
// The replay may change the session's assignment at any time. The environments of a new member begin at once, as soon
// as there are a snapshot and credit. When a member leaves, its environments finish their episodes; then it is
// released. So the process steps more environments than usual for a while. If the new member waited for them, two
// actors could wait for each other: a learner that lacks rows of one member gives no credit for the episodes of
// another.
//
// Not thread-safe; Run blocks until the run is finished, a stop is requested, or an error occurs.
#ifndef DATACOM_ACTOR_ROLLOUT_H_
#define DATACOM_ACTOR_ROLLOUT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actor/actor_metrics.h"
#include "actor/environment_batch.h"
#include "common/acting/acting_rule.h"
#include "common/base/clock.h"
#include "common/rpc/insert_session.h"
#include "common/rpc/learner_client.h"
#include "common/transitions/row_schema.h"

namespace datacom::actor {

class Rollout {
 public:
  struct Options {
    uint32_t chunk_rows = 64;                   // a chunk of this many rows is sent immediately
    uint32_t flush_iterations = 8;              // a smaller chunk is sent after this many iterations
    std::chrono::milliseconds wait_slice{100};  // a wait checks for stop and errors this often
    // Blocks until a session or snapshot change is reported, or the timeout (Changes::Wait).
    std::function<void(std::chrono::nanoseconds)> wait;
    std::chrono::milliseconds patience{5000};  // a wait is logged each time it has lasted this much longer
    const Clock* clock = &Clock::Real();
    std::function<bool()> stop = [] { return false; };
    std::function<void()> on_ready = [] {};  // once, when every member that acts has a snapshot
  };
  // A controller that plays a share of the episodes (proto Demonstrations).
  struct Demonstrations {
    std::function<void(const double* observation, double* action)> act;
    double share = 0;           // 0: none
    uint64_t until_update = 0;  // policies from this update on act alone
  };
  // The parts of the loop; tests supply their own.
  struct Parts {
    uint64_t run_seed = 0;
    std::vector<uint64_t> member_seeds;  // one per member of the run
    bool lockstep = false;
    uint64_t max_policy_lag = 0;  // updates
    RowSchema schema;
    Demonstrations demonstrations = {};
    std::function<absl::StatusOr<std::unique_ptr<Task>>()> make_task;
    std::function<absl::StatusOr<std::unique_ptr<ActingRule>>(const Snapshot&, int max_batch)> make_rule;
  };
  // The session must be registered and started; it, the subscriber and the metrics must outlive this object. Subscribes
  // to the session's members. A lockstep session continues its open episodes.
  static absl::StatusOr<std::unique_ptr<Rollout>> Make(Parts parts, InsertSession* session,
                                                       SnapshotSubscriber* subscriber, ActorMetrics* metrics,
                                                       Options options);

  // OK: the run has all its rows. CANCELLED: stopped; all rows are appended. NOT_FOUND: the session ended; register
  // again. FAILED_PRECONDITION, naming array and shapes: a snapshot does not fit and was not used.
  absl::Status Run();

 private:
  enum class WaitsFor { kNothing, kCredit, kSnapshot };
  struct MemberState {
    uint32_t member = 0;
    std::unique_ptr<EnvironmentBatch> environments;
    bool served = false;                                 // is in the assignment
    bool released = false;                               // under this assignment
    std::unique_ptr<ActingRule> rule = nullptr;          // takes batches of environments->size()
    std::shared_ptr<const Snapshot> snapshot = nullptr;  // loaded into rule
    ActedBatch acted = {};                               // the rule's last Act
    RowChunk chunk;
    uint32_t chunk_age = 0;  // iterations since its first row
    int turn = 0;            // index among acting environments of the one that steps first in the next iteration
    WaitsFor waits_for = WaitsFor::kNothing;
  };

  Rollout(Parts parts, InsertSession* session, SnapshotSubscriber* subscriber, ActorMetrics* metrics, Options options);
  absl::Status Adopt();  // takes over the session's newest assignment
  absl::Status Serve(uint32_t member, uint32_t lanes);
  absl::StatusOr<MemberState*> FindOrAdd(uint32_t member);
  absl::Status Release(MemberState* state);
  void Subscribe();
  void ReportEnvironments();
  void ReportReady();
  // Returns how many environments stepped; 0 with state->waits_for set.
  absl::StatusOr<int> StepMember(MemberState* state);
  bool Fresh(const Snapshot* snapshot, const InsertSession::Allowance& allowance) const;
  absl::Status LoadSnapshot(MemberState* state, std::shared_ptr<const Snapshot> snapshot);
  void Act(MemberState* state, int batch, bool timed);
  // Fills demonstrations_ for the environments that step now; null if the policy acts alone.
  const float* Demonstrate(const MemberState& state, int batch);
  // Logs each doubling, so that a broken task cannot flood the log. INVALID_ARGUMENT, naming what is wrong, for a task
  // that has given no row yet.
  absl::Status CountAbandoned(const MemberState& state, int count);
  absl::Status Flush(MemberState* state);  // appends its rows; Send sends those of all members
  void Send();
  static bool WaitsForSnapshot(const MemberState& state) {
    return state.served && state.waits_for == WaitsFor::kSnapshot;
  }
  void Wait();
  void LogWait(WaitsFor reason);
  void ReportSnapshots();

  const Parts parts_;
  InsertSession* const session_;
  SnapshotSubscriber* const subscriber_;
  ActorMetrics* const metrics_;
  const Options options_;
  bool ready_ = false;
  bool appended_ = false;  // rows that are not sent
  std::shared_ptr<const v1::Assignment> assignment_;
  std::vector<MemberState> members_;  // served now or before
  uint64_t iteration_ = 0;
  uint64_t discarded_ = 0;
  uint64_t rows_ = 0, abandoned_ = 0, abandoned_logged_ = 0;
  bool waiting_ = false;
  Clock::Time wait_started_{};
  Clock::Time wait_logged_{};

  std::vector<int> chosen_;             // [batch] environments stepping now
  std::vector<float> observations_;     // [batch, obs_dim]
  std::vector<float> noise_;            // [batch, noise_dim]
  std::vector<float> costs_;            // [batch]: costs of the previous steps
  std::vector<float> memory_;           // [batch, memory_dim]
  std::vector<float> actions_;          // [batch, action_dim]
  std::vector<float> demonstrations_;   // [batch, action_dim]
  std::vector<double> seen_, command_;  // [obs_dim], [action_dim]: one row, for the controller of demonstrations
  std::vector<double> intervention_;    // [batch]
};

}  // namespace datacom::actor

#endif  // DATACOM_ACTOR_ROLLOUT_H_
// SPDX-License-Identifier: Apache-2.0
