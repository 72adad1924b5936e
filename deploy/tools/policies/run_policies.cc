#include "deploy/tools/policies/run_policies.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "Eigen/Core"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/acting/snapshot_form.h"
#include "common/base/files.h"
#include "common/base/framed_file.h"
#include "common/base/near_miss.h"
#include "common/base/output_file.h"
#include "common/base/shared_files.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/config/gzip.h"
#include "common/nn/snapshot_proto.h"
#include "common/records/best_epoch.h"
#include "common/records/checkpoint.h"
#include "common/tasks/task.h"
#include "datacom/v1/stored_policies.pb.h"

namespace datacom::tools {
namespace {

namespace fs = std::filesystem;

constexpr char kReproduced[] = "runs/reproduce";    // where deploy/dev/reproduce trains
constexpr char kRevisionOfPolicies[] = "77adaad0";  // the last one with the policies of all results

// policies/epoch_NNNN.snapshot -> NNNN; nullopt for other names, also for other ways to write the number.
std::optional<uint32_t> EpochOf(const fs::path& path) {
  const std::string name = path.filename().string();
  absl::string_view number = name;
  uint32_t epoch = 0;
  const bool found = absl::ConsumePrefix(&number, "epoch_") && absl::ConsumeSuffix(&number, ".snapshot") &&
                     absl::SimpleAtoi(number, &epoch) && PoliciesPath(epoch) == absl::StrCat("policies/", name);
  return found ? std::optional(epoch) : std::nullopt;
}

using PolicyPaths = std::map<uint32_t, fs::path>;  // key: epoch

absl::StatusOr<PolicyPaths> SomePolicyFiles(const std::string& run_dir) {
  PolicyPaths files = PolicyFiles(run_dir);
  if (!files.empty()) return files;
  const std::string folder = (fs::path(run_dir) / "policies").string();
  RETURN_IF_ERROR(ListFolder(folder).status());  // it may be closed to this user
  return absl::NotFoundError(absl::StrCat(folder, ": no policies"));
}

bool EndsEpoch(const v1::Experiment& resolved, uint64_t epoch, uint64_t update) {
  const UpdateSchedule updates = UpdatesOf(resolved);
  const uint64_t steps = epoch * resolved.run().steps_per_epoch();
  return update == updates.UpdatesAt(steps) || update == updates.UpdatesAt(std::min(steps, updates.env_steps));
}

// While a longer run continues the last epoch, next_epoch is that epoch.
bool EndedEarly(const v1::LearnerCheckpoint& newest, uint64_t epoch, uint64_t update) {
  return (epoch + 1 == newest.next_epoch() || epoch == newest.next_epoch()) && update == newest.last_epoch_update();
}

absl::StatusOr<std::vector<MemberPolicy>> ReadEpoch(const std::string& run_dir, const PolicyPaths& files,
                                                    uint32_t epoch) {
  const auto found = files.find(epoch);
  if (found == files.end()) {
    return absl::NotFoundError(absl::StrCat((fs::path(run_dir) / "policies").string(), ": no policy of epoch ", epoch,
                                            "; the epochs are ", files.begin()->first, " to ", files.rbegin()->first));
  }
  const std::string path = found->second.string();
  ASSIGN_OR_RETURN(std::vector<Snapshot> snapshots, ReadSnapshotFile(path));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadRunExperiment(run_dir, {}));
  const auto newest = [&run_dir] { return CheckpointStore(run_dir + "/checkpoints").Newest(); };
  RETURN_IF_ERROR(Annotate(CheckEpoch(experiment, RunIdOf(run_dir), epoch, snapshots, newest), path));
  std::vector<MemberPolicy> policies;
  for (Snapshot& snapshot : snapshots) policies.push_back({epoch, std::move(snapshot)});
  return policies;
}

std::string StoredFile(const std::string& run_dir) { return (fs::path(run_dir) / kStoredPolicies).string(); }

// A result has no folder of policies, but a file with some of them.
bool IsResult(const std::string& run_dir) {
  return !FileExists((fs::path(run_dir) / "policies").string()) && FileExists(StoredFile(run_dir));
}

// `wanted`: the epoch, unless `epoch` is last or best.
absl::StatusOr<std::vector<MemberPolicy>> ReadStored(const std::string& run_dir, const std::string& epoch,
                                                     uint32_t wanted) {
  ASSIGN_OR_RETURN(std::vector<StoredPolicy> stored, ReadStoredPolicies(StoredFile(run_dir)));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadRunExperiment(run_dir, {}));
  const std::string run_id = RunIdOf(run_dir);
  std::vector<MemberPolicy> policies;
  std::set<uint32_t> epochs;
  for (StoredPolicy& policy : stored) {
    RETURN_IF_ERROR(
        Annotate(CheckPolicy(experiment, run_id, policy.epoch, policy.snapshot, [] { return std::nullopt; }),
                 StoredFile(run_dir)));
    epochs.insert(policy.epoch);
    const bool chosen = epoch == "last" ? policy.last : epoch == "best" ? policy.best : policy.epoch == wanted;
    if (chosen) policies.push_back({policy.epoch, std::move(policy.snapshot)});
  }
  if (!policies.empty()) return policies;
  return absl::NotFoundError(absl::StrCat(StoredFile(run_dir), ": no policy of epoch ", epoch,
                                          "; there are the last and the best ones, of the epochs ",
                                          absl::StrJoin(epochs, ", ")));
}

absl::StatusOr<std::vector<MemberPolicy>> ReadBest(const std::string& run_dir, const PolicyPaths& files) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadRunExperiment(run_dir, {}));
  ASSIGN_OR_RETURN(const auto epochs, ReadBestEpochs(run_dir, experiment));
  std::vector<MemberPolicy> best;
  for (const auto& [member, epoch] : epochs) {
    ASSIGN_OR_RETURN(const std::vector<MemberPolicy> policies, ReadEpoch(run_dir, files, epoch));
    ASSIGN_OR_RETURN(const MemberPolicy* const policy, FindMember(policies, member));
    best.push_back(*policy);
  }
  return best;
}

bool SetsKnown(const std::string& assignment) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(assignment), "constraints.known");
}

}  // namespace

bool IsRunFolder(const std::string& path) { return FileExists((fs::path(path) / "experiment.textproto").string()); }

absl::Status ApplyTaskOptions(const std::vector<std::string>& set, v1::Experiment* experiment) {
  for (const std::string& assignment : set) {
    if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(assignment), "task_options.")) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set ", assignment, ": only task_options.NAME, and for a run constraints.known, may be set"));
    }
    RETURN_IF_ERROR(ApplyOverride(assignment, experiment));
  }
  return ValidateTaskOptions(experiment->task_options());
}

absl::StatusOr<v1::Experiment> ReadRunExperiment(const std::string& run_dir, const std::vector<std::string>& set) {
  const std::string file = (fs::path(run_dir) / "experiment.textproto").string();
  if (!IsRunFolder(run_dir)) return NotARunFolder(run_dir);
  ASSIGN_OR_RETURN(v1::Experiment experiment, LoadExperiment(file, ""));
  experiment = ResolveExperiment(experiment);
  std::vector<std::string> of_task;
  for (const std::string& assignment : set) {
    if (SetsKnown(assignment)) {
      RETURN_IF_ERROR(ApplyOverride(assignment, &experiment));
    } else {
      of_task.push_back(assignment);
    }
  }
  RETURN_IF_ERROR(ApplyTaskOptions(of_task, &experiment));
  return experiment;
}

absl::Status ChooseKnownRows(const v1::Experiment& experiment, const std::vector<std::string>& set,
                             std::vector<MemberPolicy>* policies) {
  if (std::none_of(set.begin(), set.end(), SetsKnown)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(experiment.task(), experiment.task_options()));
  ASSIGN_OR_RETURN(const std::vector<int> rows, SelectKnownRows(model, experiment.constraints()));
  for (MemberPolicy& policy : *policies) {
    Snapshot& snapshot = policy.snapshot;
    if (snapshot.acting_rule != "safe_map") {
      return absl::InvalidArgumentError(
          absl::StrCat("--set constraints.known: the run's policies (", snapshot.acting_rule, ") join no known rows"));
    }
    std::erase_if(snapshot.scalars, [](const auto& scalar) { return absl::StartsWith(scalar.first, kKnownPrefix); });
    for (const int row : rows) snapshot.scalars[absl::StrCat(kKnownPrefix, model.known_constraints->names()[row])] = 1;
  }
  return absl::OkStatus();
}

// The folders below `root` that have an experiment, as a sentence, with the one that `name` may stand for. Of many only
// their number.
std::string FoldersOf(const fs::path& root, absl::string_view name) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(root, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->path().filename() != "experiment.textproto") continue;
    names.push_back(entry->path().parent_path().lexically_relative(root).string());
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) return absl::StrCat(root.string(), " has none");
  constexpr size_t kMostNamed = 20;
  const std::string list =
      names.size() <= kMostNamed ? absl::StrJoin(names, ", ") : absl::StrCat(names.size(), " below ", root.string());
  return absl::StrCat("there are ", list, DidYouMean(std::string(name), names));
}

absl::StatusOr<std::string> RunFolderOf(const std::string& what) {
  absl::string_view name = what;
  if (absl::ConsumePrefix(&name, "shipped:")) {
    const fs::path shipped = fs::path(FindSharedFile("examples", "deploy/examples")) / "policies";
    const std::string folder = (shipped / std::string(name)).string();
    if (IsRunFolder(folder)) return folder;
    return absl::NotFoundError(
        absl::StrCat(what, ": there is no shipped policy ", folder, "; ", FoldersOf(shipped, name)));
  }
  if (!absl::ConsumePrefix(&name, "results:")) return what;
  const char* const given = std::getenv("DATACOM_RESULTS");
  const fs::path results = given != nullptr ? given : FindSharedFile("results", "deploy/results");
  const std::string folder = (results / std::string(name)).string();
  if (IsRunFolder(folder) && IsResult(folder)) return folder;
  const std::string trained = (fs::path(kReproduced) / std::string(name)).string();
  if (IsRunFolder(trained)) return trained;
  if (IsRunFolder(folder)) {
    return absl::NotFoundError(absl::StrCat(what, ": its policies are neither in ", trained, " nor in ", folder,
                                            "; if that entry is in it, this restores them: git show ",
                                            kRevisionOfPolicies, ":deploy/results/", name, "/", kStoredPolicies, " > ",
                                            folder, "/", kStoredPolicies));
  }
  return absl::NotFoundError(absl::StrCat(what, ": there is no result ", folder, "; ", FoldersOf(results, name),
                                          "; DATACOM_RESULTS names another folder"));
}

absl::Status StorePolicies(const std::string& run_dir, std::optional<uint32_t> member, const std::string& epoch,
                           const std::string& path) {
  std::map<std::pair<uint32_t, uint32_t>, StoredPolicy> stored;  // by member and epoch
  for (const char* const which : {"last", "best"}) {
    if (!epoch.empty() && epoch != which) continue;
    ASSIGN_OR_RETURN(std::vector<MemberPolicy> policies, ReadPolicies(run_dir, which));
    if (member) RETURN_IF_ERROR(FindMember(policies, member).status());
    for (MemberPolicy& policy : policies) {
      if (policy.snapshot.member != member.value_or(policy.snapshot.member)) continue;
      StoredPolicy& own = stored[{policy.snapshot.member, policy.epoch}];
      own.epoch = policy.epoch;
      (which == absl::string_view("last") ? own.last : own.best) = true;
      own.snapshot = std::move(policy.snapshot);
    }
  }
  if (stored.empty())
    return absl::InvalidArgumentError(absl::StrCat("--epoch: \"", epoch, "\" is neither last nor best"));
  std::vector<StoredPolicy> policies;
  for (auto& [at, policy] : stored) policies.push_back(std::move(policy));
  return WriteStoredPolicies(path, policies);
}

std::string RunIdOf(const std::string& run_dir) {
  if (const absl::StatusOr<std::string> id = ReadRunId(run_dir); id.ok()) return *id;
  const auto newest = CheckpointStore(run_dir + "/checkpoints").Newest();
  return newest.has_value() ? newest->run_id() : "";
}

absl::Status CheckPolicy(const v1::Experiment& resolved, const std::string& run_id, uint64_t epoch,
                         const Snapshot& policy, const std::function<std::optional<v1::LearnerCheckpoint>()>& newest) {
  const uint64_t update = policy.version.update;
  const auto differs = [&policy](const std::string& what) {
    return absl::DataLossError(absl::StrCat("policy of member ", policy.member, ": ", what));
  };
  const auto named = [&differs](const char* what, const std::string& found, const std::string& expected) {
    return differs(absl::StrCat("of ", what, " \"", absl::Utf8SafeCHexEscape(found), "\", not \"", expected, "\""));
  };
  if (!run_id.empty() && policy.run_id != run_id) return named("run", policy.run_id, run_id);
  if (policy.task != resolved.task()) return named("task", policy.task, resolved.task());
  const AlgorithmInfo* const algorithm = FindAlgorithm(resolved.algorithm());
  if (algorithm == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "algorithm: \"", resolved.algorithm(), "\" of the run is not one of ", absl::StrJoin(AlgorithmNames(), ", ")));
  }
  if (policy.acting_rule != algorithm->acting_rule)
    return named("acting rule", policy.acting_rule, algorithm->acting_rule);
  const auto member = static_cast<int>(policy.member);
  if (member < 0 || member >= resolved.members_size() || policy.member_seed != resolved.members(member).seed()) {
    return differs(absl::StrCat("of seed ", policy.member_seed, ", which no such member has"));
  }
  if (EndsEpoch(resolved, epoch, update)) return absl::OkStatus();
  if (const auto checkpoint = newest(); checkpoint.has_value() && EndedEarly(*checkpoint, epoch, update))
    return absl::OkStatus();
  return differs(absl::StrCat("of update ", update, ", which does not end epoch ", epoch));
}

absl::Status CheckEpoch(const v1::Experiment& resolved, const std::string& run_id, uint64_t epoch,
                        const std::vector<Snapshot>& snapshots,
                        const std::function<std::optional<v1::LearnerCheckpoint>()>& newest) {
  if (snapshots.size() != static_cast<size_t>(resolved.members_size())) {
    return absl::DataLossError(
        absl::StrCat("holds ", snapshots.size(), " snapshots, the run has ", resolved.members_size(), " members"));
  }
  for (size_t member = 0; member < snapshots.size(); ++member) {
    if (snapshots[member].member != member) {
      return absl::DataLossError(absl::StrCat("snapshot ", member, " is of member ", snapshots[member].member));
    }
    RETURN_IF_ERROR(CheckPolicy(resolved, run_id, epoch, snapshots[member], newest));
  }
  return absl::OkStatus();
}

std::map<uint32_t, fs::path> PolicyFiles(const std::string& run_dir) {
  PolicyPaths files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(run_dir) / "policies", error)) {
    if (const std::optional<uint32_t> epoch = EpochOf(entry.path()); epoch.has_value()) files[*epoch] = entry.path();
  }
  return files;
}

absl::StatusOr<std::vector<uint32_t>> PolicyEpochs(const std::string& run_dir) {
  if (IsResult(run_dir)) {
    ASSIGN_OR_RETURN(const std::vector<StoredPolicy> stored, ReadStoredPolicies(StoredFile(run_dir)));
    std::set<uint32_t> found;
    for (const StoredPolicy& policy : stored) found.insert(policy.epoch);
    return std::vector<uint32_t>(found.begin(), found.end());
  }
  ASSIGN_OR_RETURN(const auto files, SomePolicyFiles(run_dir));
  std::vector<uint32_t> epochs;
  for (const auto& [epoch, path] : files) epochs.push_back(epoch);
  return epochs;
}

absl::StatusOr<std::vector<MemberPolicy>> ReadPolicies(const std::string& run_dir, const std::string& epoch) {
  uint32_t wanted = 0;
  if (epoch != "last" && epoch != "best" && !absl::SimpleAtoi(epoch, &wanted)) {
    return absl::InvalidArgumentError(absl::StrCat("--epoch: \"", epoch, "\" is not a number, last or best"));
  }
  if (IsResult(run_dir)) return ReadStored(run_dir, epoch, wanted);
  ASSIGN_OR_RETURN(const auto files, SomePolicyFiles(run_dir));
  if (epoch == "best") return ReadBest(run_dir, files);
  return ReadEpoch(run_dir, files, epoch == "last" ? files.rbegin()->first : wanted);
}

absl::StatusOr<const MemberPolicy*> FindMember(const std::vector<MemberPolicy>& policies,
                                               std::optional<uint32_t> member) {
  for (const MemberPolicy& policy : policies) {
    if (policy.snapshot.member == member.value_or(policy.snapshot.member)) return &policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--member: no member ", member.value_or(0), "; the run has ", policies.size(), ", counted from 0"));
}

namespace {

constexpr FileFormat kFormat = {"file of stored policies", "DCMSTORE", 1,
                                "play it with the revision that wrote it, see build.txt beside it"};
constexpr size_t kMostBytes = 256 << 20;

// Rounds the arrays to half precision and appends these values.
absl::Status Round(Snapshot* snapshot, std::string* half) {
  for (NamedArray& array : snapshot->arrays) {
    for (float& value : array.values) {
      const auto rounded = static_cast<Eigen::half>(value);
      if (!std::isfinite(static_cast<float>(rounded))) {
        return absl::InvalidArgumentError(absl::StrCat("member ", snapshot->member, ": ", array.name, " has the value ",
                                                       value, ", which half precision cannot hold"));
      }
      value = static_cast<float>(rounded);
      half->append(reinterpret_cast<const char*>(&rounded.x), sizeof rounded.x);
    }
  }
  return absl::OkStatus();
}

// The data of a snapshot, float32, from its values in half precision.
std::string Widen(const std::string& half) {
  std::string data(2 * half.size(), '\0');
  for (size_t i = 0; 2 * i + 1 < half.size(); ++i) {
    Eigen::half value;
    std::memcpy(&value.x, &half[2 * i], sizeof value.x);
    const auto wide = static_cast<float>(value);
    std::memcpy(&data[4 * i], &wide, sizeof wide);
  }
  return data;
}

}  // namespace

absl::Status WriteStoredPolicies(const std::string& path, const std::vector<StoredPolicy>& policies) {
  v1::StoredPolicies stored;
  for (const StoredPolicy& policy : policies) {
    v1::StoredPolicy* const to = stored.add_policy();
    to->set_epoch(policy.epoch);
    to->set_last(policy.last);
    to->set_best(policy.best);
    Snapshot rounded = policy.snapshot;
    RETURN_IF_ERROR(Round(&rounded, to->mutable_half()));
    std::string data;  // the reader makes it from `half`
    *to->mutable_manifest() = MakeManifest(rounded, &data);
  }
  return WriteOutputFile(path, Frame(kFormat, Gzip(stored.SerializeAsString())));
}

absl::StatusOr<std::vector<StoredPolicy>> ReadStoredPolicies(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string compressed, ReadFramedFile(kFormat, path));
  ASSIGN_OR_RETURN(const std::string content, Annotate(Gunzip(compressed, kMostBytes), path));
  v1::StoredPolicies stored;
  if (!stored.ParseFromString(content)) return absl::DataLossError(absl::StrCat(path, ": it has no policies"));
  std::vector<StoredPolicy> policies;
  for (const v1::StoredPolicy& from : stored.policy()) {
    ASSIGN_OR_RETURN(Snapshot snapshot, Annotate(SnapshotFromManifest(from.manifest(), Widen(from.half())), path));
    policies.push_back({from.epoch(), from.last(), from.best(), std::move(snapshot)});
  }
  return policies;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
