#include "deploy/tools/maps/run_policies.h"

#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/records/best_epoch.h"
#include "deploy/tools/maps/epoch_policies.h"

namespace datacom::tools {
namespace {

namespace fs = std::filesystem;

// policies/epoch_NNNN.snapshot -> NNNN; nullopt for other names.
std::optional<uint32_t> EpochOf(const fs::path& path) {
  const std::string stem = path.stem().string();
  uint32_t epoch = 0;
  if (path.extension() != ".snapshot" || stem.rfind("epoch_", 0) != 0 || !absl::SimpleAtoi(stem.substr(6), &epoch))
    return std::nullopt;
  return epoch;
}

using PolicyPaths = std::map<uint32_t, fs::path>;  // key: epoch

absl::StatusOr<PolicyPaths> PolicyFiles(const std::string& run_dir) {
  const fs::path folder = fs::path(run_dir) / "policies";
  PolicyPaths files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (const std::optional<uint32_t> epoch = EpochOf(entry.path()); epoch.has_value()) files[*epoch] = entry.path();
  }
  if (error || files.empty()) return absl::NotFoundError(absl::StrCat(folder.string(), ": no policies"));
  return files;
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
  const absl::Status status = CheckEpoch(ReadRunOfPolicies(run_dir, experiment), epoch, snapshots,
                                         [&run_dir] { return NewestCheckpoint(run_dir); });
  if (!status.ok()) return Annotate(status, path);
  std::vector<MemberPolicy> policies;
  for (Snapshot& snapshot : snapshots) policies.push_back({epoch, std::move(snapshot)});
  return policies;
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

}  // namespace

bool IsRunFolder(const std::string& path) { return fs::exists(fs::path(path) / "experiment.textproto"); }

absl::Status ApplyTaskOptions(const std::vector<std::string>& set, v1::Experiment* experiment) {
  for (const std::string& assignment : set) {
    if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(assignment), "task_options.")) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set ", assignment, ": only task_options.NAME may be set to play a run or a task"));
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
  RETURN_IF_ERROR(ApplyTaskOptions(set, &experiment));
  return experiment;
}

absl::StatusOr<std::vector<uint32_t>> PolicyEpochs(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const auto files, PolicyFiles(run_dir));
  std::vector<uint32_t> epochs;
  for (const auto& [epoch, path] : files) epochs.push_back(epoch);
  return epochs;
}

absl::StatusOr<std::vector<MemberPolicy>> ReadPolicies(const std::string& run_dir, const std::string& epoch) {
  uint32_t wanted = 0;
  if (epoch != "last" && epoch != "best" && !absl::SimpleAtoi(epoch, &wanted)) {
    return absl::InvalidArgumentError(absl::StrCat("--epoch: \"", epoch, "\" is not a number, last or best"));
  }
  ASSIGN_OR_RETURN(const auto files, PolicyFiles(run_dir));
  if (epoch == "best") return ReadBest(run_dir, files);
  return ReadEpoch(run_dir, files, epoch == "last" ? files.rbegin()->first : wanted);
}

absl::StatusOr<const MemberPolicy*> FindMember(const std::vector<MemberPolicy>& policies, uint32_t member) {
  for (const MemberPolicy& policy : policies) {
    if (policy.snapshot.member == member) return &policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--member: ", member, " is not one of the run's ", policies.size(), " members"));
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
