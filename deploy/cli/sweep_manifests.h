// A sweep as Kubernetes manifests: for each population a JobSet with its volumes, from
// deploy/kubernetes/jobset.yaml.in, and one kustomization over all, with the experiments as ConfigMaps.
//
// Blocks on the disk. The same populations give the same files.
#ifndef DATACOM_DEPLOY_CLI_SWEEP_MANIFESTS_H_
#define DATACOM_DEPLOY_CLI_SWEEP_MANIFESTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "deploy/cli/sweep_plan.h"

namespace datacom::cli {

// A name as Kubernetes takes it of what becomes a host's: lower-case letters, digits and "-", a letter first, at most
// 40 (pods append to it). A longer one keeps its head and gets a checksum.
std::string ObjectName(const std::string& name);

// INVALID_ARGUMENT when it is not where images can be: HOST:PORT/PATH:TAG, of which all but one part may be absent.
absl::Status CheckImages(const std::string& images);

struct ManifestOptions {
  std::string sweep;     // its name: two sweeps of a cluster may have populations of the same name
  std::string images;    // where the images are, "registry.example.org/team:tag"; empty: as the nodes find them
  int actors = 1;        // of each population
  int environments = 0;  // of each actor; 0: as many as `train` takes by itself
};

// Writes <dir>/<population>/{experiment.textproto,jobset.yaml} and <dir>/kustomization.yaml. INVALID_ARGUMENT when two
// populations would share a name, or an experiment is too large for a ConfigMap.
absl::Status WriteManifests(const std::string& dir, const ManifestOptions& options,
                            const std::vector<Population>& populations);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_SWEEP_MANIFESTS_H_
