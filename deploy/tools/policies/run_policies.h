// Reads the experiment and the policies (one snapshot per member and epoch) of a run folder. Functions; thread-safe;
// block on the disk. NOT_FOUND or INVALID_ARGUMENT, naming the missing folder or epoch.
#ifndef DATACOM_DEPLOY_TOOLS_POLICIES_RUN_POLICIES_H_
#define DATACOM_DEPLOY_TOOLS_POLICIES_RUN_POLICIES_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/nn/snapshot.h"
#include "datacom/v1/checkpoint.pb.h"

namespace datacom::v1 {
class Experiment;
}

namespace datacom::tools {

bool IsRunFolder(const std::string& path);

// "shipped:NAME" is a folder of policies that comes with the programs (deploy/examples/policies). "results:NAME" is a
// folder of deploy/results, or of $DATACOM_RESULTS, with a file of policies (kStoredPolicies), or
// else the run folder runs/reproduce/NAME. Every other `what` is returned as it is. NOT_FOUND says how to restore the
// policies of a result, and names what there is when there is no such one.
absl::StatusOr<std::string> RunFolderOf(const std::string& what);

// Writes policies of a run folder's members, or of one of them, to a file (kStoredPolicies): `epoch` last or best, or
// empty for both.
absl::Status StorePolicies(const std::string& run_dir, std::optional<uint32_t> member, const std::string& epoch,
                           const std::string& path);

// Applies assignments "task_options.NAME=value" to an experiment and rejects all others.
absl::Status ApplyTaskOptions(const std::vector<std::string>& set, v1::Experiment* experiment);

// RUN_DIR/experiment.textproto, resolved, with the assignments "task_options.NAME=value" and "constraints.known=[...]"
// applied.
absl::StatusOr<v1::Experiment> ReadRunExperiment(const std::string& run_dir, const std::vector<std::string>& set);

// The id of the run in a folder: that of the file run_id, or of the newest checkpoint. Empty: unknown.
std::string RunIdOf(const std::string& run_dir);

// DATA_LOSS, naming the member and what differs, unless the policy is of this run (its resolved experiment, and its id
// unless that is empty), and of the update that ends the epoch. `newest` is only asked when the epoch has another end:
// the file of an epoch that an earlier end of the run cut short stays until a longer run has ended the epoch again.
absl::Status CheckPolicy(const v1::Experiment& resolved, const std::string& run_id, uint64_t epoch,
                         const Snapshot& policy, const std::function<std::optional<v1::LearnerCheckpoint>()>& newest);
// The same for all members; DATA_LOSS unless each has one, in their order.
absl::Status CheckEpoch(const v1::Experiment& resolved, const std::string& run_id, uint64_t epoch,
                        const std::vector<Snapshot>& snapshots,
                        const std::function<std::optional<v1::LearnerCheckpoint>()>& newest);

// The snapshots in RUN_DIR/policies by their epochs; none when there is no such folder.
std::map<uint32_t, std::filesystem::path> PolicyFiles(const std::string& run_dir);
// Epochs with a snapshot, ascending, at least one.
absl::StatusOr<std::vector<uint32_t>> PolicyEpochs(const std::string& run_dir);

struct MemberPolicy {
  uint32_t epoch = 0;
  Snapshot snapshot;
};
// One policy per member. epoch: a number, "last", or "best": each member's own best (common/records/best_epoch.h).
absl::StatusOr<std::vector<MemberPolicy>> ReadPolicies(const std::string& run_dir, const std::string& epoch);

// If an assignment of `set` is one of constraints.known: gives the policies the experiment's known rows instead of
// those of their training. INVALID_ARGUMENT for policies that know no rows.
absl::Status ChooseKnownRows(const v1::Experiment& experiment, const std::vector<std::string>& set,
                             std::vector<MemberPolicy>* policies);

// The policy of a member; without a number the first one. INVALID_ARGUMENT, naming the member, when there is none.
absl::StatusOr<const MemberPolicy*> FindMember(const std::vector<MemberPolicy>& policies,
                                               std::optional<uint32_t> member);

// A file of the policies of a result: of each member the last epoch's and the best one's, in half precision
// (relative error at most 2^-11), which takes a quarter of two run folders' snapshots. A frame
// (common/base/framed_file.h) around proto StoredPolicies, compressed. It stands in for the folder `policies` of a run.

inline constexpr char kStoredPolicies[] = "policies.stored";  // in the folder of a result

struct StoredPolicy {
  uint32_t epoch = 0;
  bool last = false, best = false;
  Snapshot snapshot;
};

// INVALID_ARGUMENT, naming array and value, for a weight that half precision cannot hold or that is not finite.
absl::Status WriteStoredPolicies(const std::string& path, const std::vector<StoredPolicy>& policies);
// NOT_FOUND without a file; FAILED_PRECONDITION for another version; DATA_LOSS for a damaged file.
absl::StatusOr<std::vector<StoredPolicy>> ReadStoredPolicies(const std::string& path);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_POLICIES_RUN_POLICIES_H_
// SPDX-License-Identifier: Apache-2.0
