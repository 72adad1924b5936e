// Writes a sweep as Kubernetes manifests: one JobSet (or its Jobs) with volumes per population, from
// deploy/kubernetes/jobset.yaml.in, and one kustomization over all of them, with the experiments as ConfigMaps.
//
// Blocks on the disk. The same populations give the same files.
#ifndef DATACOM_DEPLOY_CLI_SWEEP_MANIFESTS_H_
#define DATACOM_DEPLOY_CLI_SWEEP_MANIFESTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "deploy/cli/sweep_plan.h"

namespace datacom::cli {

// Turns a name into one that Kubernetes accepts for hosts: lower-case letters, digits and "-", a letter first, at most
// 40 characters (pods append to it). A longer name is cut and gets a checksum.
std::string ObjectName(const std::string& name);

// INVALID_ARGUMENT unless it has the form HOST:PORT/PATH:TAG, of which all but one part may be absent.
absl::Status CheckImages(const std::string& images);

struct ManifestOptions {
  std::string sweep;     // prefix of every name: two sweeps in a cluster may have populations of the same name
  std::string images;    // registry of the images, "registry.example.org/team:tag"; empty: the nodes' default
  int actors = 1;        // per population
  int environments = 0;  // per actor; 0: the default of `train`
  bool plain = false;    // Jobs and Services, which need neither JobSet nor Kueue in the cluster
};

// Whether a ConfigMap holds the experiment with the large files of its model. If not, the population's learner needs
// them in a folder of its image or a volume, named in DATACOM_TASK_FILES.
bool FitsConfigMap(const v1::Experiment& experiment);

// Writes <dir>/<population>/{experiment.textproto,task_files,population.yaml} and <dir>/kustomization.yaml.
// INVALID_ARGUMENT when two populations would get the same name, or an experiment is too large for a ConfigMap.
absl::Status WriteManifests(const std::string& dir, const ManifestOptions& options,
                            const std::vector<SweepRun>& populations);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_SWEEP_MANIFESTS_H_
// SPDX-License-Identifier: Apache-2.0
