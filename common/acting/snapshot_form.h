// The form of a rule's snapshots: nets, vectors and scalars with their ranges. A rule declares it once
// (register_rule.h). MakeActingRule checks every snapshot against it, tests make random snapshots from it
// (tests/testing/snapshots.h), and the learner's contract test compares what algorithms publish with it.
//
// Plain data and pure functions, thread-safe. SnapshotCheck is immutable; Check allocates nothing unless it fails.
#ifndef DATACOM_COMMON_ACTING_SNAPSHOT_FORM_H_
#define DATACOM_COMMON_ACTING_SNAPSHOT_FORM_H_

#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/nn/mlp.h"
#include "common/nn/snapshot.h"
#include "common/tasks/task.h"

namespace datacom {

// Before the name of a row in a snapshot's scalars, see SnapshotForm::known_constraints.
inline constexpr absl::string_view kKnownPrefix = "known_constraint.";

// The sizes of a task that forms depend on.
struct SnapshotDims {
  int observation = 0;  // the part that policies see (TaskSpec::seen_dim)
  int action = 0;
  int state = 0;  // constraint state of the control-affine model, q + x
  static SnapshotDims Of(const TaskModel& model);
};

struct SnapshotForm {
  struct Vector {
    std::string name;
    int size = 0;
    bool positive = false;  // all numbers are above 0
  };
  struct Scalar {
    std::string name;
    double example = 0;  // a usual value, for tests
    double above = -std::numeric_limits<double>::infinity();
    double most = std::numeric_limits<double>::infinity();
    bool whole = false;  // a whole number
    bool fixed = false;  // the same in all snapshots of a run
  };
  std::vector<MlpSpec> nets;
  std::vector<Vector> vectors;
  std::vector<Scalar> scalars;
  // Also scalars known_constraint.<row>, whose values are not used: rows of the task's known constraints that are
  // joined to the learned one. They are the same in all snapshots of a run.
  bool known_constraints = false;

  const MlpSpec& Net(absl::string_view name) const;  // REQUIRES that it is declared
};

// True if the snapshot has the net of this name; for forms that depend on what a snapshot has.
bool HasNet(const Snapshot& snapshot, absl::string_view net);
// A scalar that a form declares. REQUIRES a snapshot that has been checked.
double ScalarOf(const Snapshot& snapshot, absl::string_view name);
// <row> of every scalar known_constraint.<row>, sorted.
std::vector<std::string> KnownConstraintNames(const Snapshot& snapshot);

class SnapshotCheck {
 public:
  // INVALID_ARGUMENT, naming the array, the scalar or the rule, unless the snapshot has the form. It may have more
  // arrays and scalars.
  static absl::StatusOr<SnapshotCheck> Make(const SnapshotForm& form, const Snapshot& snapshot);
  // The same for another snapshot of the run, which must also have the shapes, fixed scalars and known constraints of
  // the first.
  absl::Status Check(const Snapshot& snapshot) const;

 private:
  struct Array {
    std::string name;
    std::vector<uint32_t> shape;
    bool finite = false, positive = false;
  };
  SnapshotCheck() = default;
  absl::Status AddNet(const MlpSpec& net, const Snapshot& snapshot);
  absl::Status CheckArray(const Array& array, const Snapshot& snapshot) const;
  absl::Status CheckKnownConstraints(const Snapshot& snapshot) const;

  std::string rule_;
  std::vector<Array> arrays_;
  std::vector<SnapshotForm::Scalar> scalars_;
  std::vector<double> first_;  // values of scalars_ in the first snapshot
  bool known_constraints_ = false;
  std::vector<std::string> known_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_SNAPSHOT_FORM_H_
// SPDX-License-Identifier: Apache-2.0
