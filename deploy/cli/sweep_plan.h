// Expands a sweep file into an ordered list of populations, each an experiment with labelled members.
//
// Apart from reading files these are pure functions: the same sweep and experiments give the same populations, in the
// same order and under the same names, so that an interrupted sweep finds its run folders again.
#ifndef DATACOM_DEPLOY_CLI_SWEEP_PLAN_H_
#define DATACOM_DEPLOY_CLI_SWEEP_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/sweep.pb.h"
#include "deploy/cli/train_plan.h"

namespace datacom::cli {

// A sweep and the experiments that it names, in the same order.
struct SweepInput {
  std::string file;  // named in messages
  v1::Sweep sweep;
  std::vector<v1::Experiment> experiments;
  int actors = 0;        // per run; 0: the default of `train`
  int environments = 0;  // per actor; 0: the default of `train`
  bool network = false;  // the roles are on several machines: the schedule has the defaults for that
};

// The folder of the shipped sweeps: "sweeps", next to the experiments.
std::string SweepFolder();
// A name under SweepFolder or a path; experiments are found as `train` finds them. INVALID_ARGUMENT naming the file.
absl::StatusOr<SweepInput> LoadSweep(const std::string& name_or_path);

// One run of the sweep.
struct SweepRun {
  std::string name;           // name of its folder inside the sweep's folder
  v1::Experiment experiment;  // resolved and valid; every member has a label
  Needs needs;
};

// Populations are ordered by experiment, then by the points of the axes that set anything outside `hyper` (the first
// axis varies slowest). In each, members are ordered by the points of the other axes, then by seed. A population that
// exceeds the limits is split into parts whose sizes differ by at most one member. INVALID_ARGUMENT names the file, the
// axis and the point.
absl::StatusOr<std::vector<SweepRun>> ExpandSweep(const SweepInput& input);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_SWEEP_PLAN_H_
// SPDX-License-Identifier: Apache-2.0
