// What the training thread writes and the learner's service hands out. Each part is thread-safe by itself.
#ifndef DATACOM_LEARNER_SERVED_STATE_H_
#define DATACOM_LEARNER_SERVED_STATE_H_

#include <string>

#include "common/base/clock.h"
#include "learner/epoch_policies.h"
#include "learner/evaluations.h"
#include "learner/learner_status.h"
#include "learner/run_identity.h"
#include "learner/snapshot_hub.h"

namespace datacom::learner {

struct ServedState {
  // `clock` must outlive this object.
  ServedState(const RunIdentity& run, const std::string& run_dir, const Clock& clock);

  SnapshotHub snapshots;    // for actors
  EpochPolicies policies;   // for evaluators: files in `run_dir`/policies
  Evaluations evaluations;  // work of evaluators and their reports
  LearnerStatus status;     // for `datacom status`
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_SERVED_STATE_H_
