#include "actor/policies.h"

#include <filesystem>
#include <iterator>
#include <map>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "actor/actions.h"
#include "common/base/status.h"
#include "common/config/experiment.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;

// policies/epoch_NNNN.snapshot -> NNNN; nothing for other names.
std::optional<uint32_t> EpochOf(const fs::path& path) {
  const std::string stem = path.stem().string();
  uint32_t epoch = 0;
  if (path.extension() != ".snapshot" || stem.rfind("epoch_", 0) != 0 || !absl::SimpleAtoi(stem.substr(6), &epoch))
    return std::nullopt;
  return epoch;
}

// Every epoch's file, by epoch.
absl::StatusOr<std::map<uint32_t, fs::path>> PolicyFiles(const std::string& run_dir) {
  const fs::path folder = fs::path(run_dir) / "policies";
  std::map<uint32_t, fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (const std::optional<uint32_t> epoch = EpochOf(entry.path()); epoch.has_value()) files[*epoch] = entry.path();
  }
  if (error || files.empty()) return absl::NotFoundError(absl::StrCat(folder.string(), ": no policy of any epoch"));
  return files;
}

}  // namespace

absl::StatusOr<v1::Experiment> ReadRunExperiment(const std::string& run_dir, const std::vector<std::string>& set) {
  const std::string file = (fs::path(run_dir) / "experiment.textproto").string();
  if (!fs::exists(file))
    return absl::NotFoundError(absl::StrCat(run_dir, " is no run folder: it has no experiment.textproto"));
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

absl::StatusOr<Policies> ReadPolicies(const std::string& run_dir, const std::string& epoch) {
  uint32_t wanted = 0;
  if (epoch != "last" && !absl::SimpleAtoi(epoch, &wanted)) {
    return absl::InvalidArgumentError(absl::StrCat("--epoch: \"", epoch, "\" is neither a number nor last"));
  }
  ASSIGN_OR_RETURN(const auto files, PolicyFiles(run_dir));
  const auto found = epoch == "last" ? std::prev(files.end()) : files.find(wanted);
  if (found == files.end()) {
    return absl::NotFoundError(absl::StrCat((fs::path(run_dir) / "policies").string(), ": no policy of epoch ", wanted,
                                            "; there are ", files.begin()->first, " to ", files.rbegin()->first));
  }
  Policies policies;
  policies.epoch = found->first;
  ASSIGN_OR_RETURN(policies.snapshots, ReadSnapshotFile(found->second.string()));
  return policies;
}

absl::StatusOr<const Snapshot*> FindMember(const Policies& policies, uint32_t member) {
  for (const Snapshot& snapshot : policies.snapshots) {
    if (snapshot.member == member) return &snapshot;
  }
  return absl::InvalidArgumentError(absl::StrCat("--member: ", member, " is none of the ", policies.snapshots.size(),
                                                 " members of epoch ", policies.epoch));
}

}  // namespace datacom
