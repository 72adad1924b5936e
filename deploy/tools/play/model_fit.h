// Measures how well f and G of a task predict its simulator, under random actions. Blocks while it plays.
#ifndef DATACOM_DEPLOY_TOOLS_PLAY_MODEL_FIT_H_
#define DATACOM_DEPLOY_TOOLS_PLAY_MODEL_FIT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::tools {

// The predicted numbers are the velocities of q, where q has only positions these; of a task that is no text file the
// numbers of q whose row of G is not 0 in some state. In each step the prediction is f + G u at the state before it,
// and the truth is the change of the numbers, divided by the time. The error of a step is |prediction - truth| /
// |truth|, with Euclidean norms over the numbers.
struct ModelFit {
  double control_step = 0;         // median error over a control step
  std::optional<double> one_step;  // over one time step of the model; only of text tasks with instantaneous f and G
  uint64_t steps = 0;
  bool positions = false;  // positions are predicted
  // Shares of the steps: a contact that moves q counts, a limit of a joint or tendon that acts.
  double contacts = 0, limits = 0;
  int equalities = 0;       // most equality constraints in a step
  int friction_losses = 0;  // most joints and tendons with friction loss in a step
};

inline constexpr int kMostHeld = 20;  // most control steps under one random action
double ProcessorSeconds();            // that this thread has used

inline constexpr double kGoodFit = 0.1, kRoughFit = 0.5;  // largest errors that are called so

struct FitPlay {
  uint64_t seed = 0;
  uint32_t steps = 1000;
  double seconds = 1e9;  // of this thread's processor time, after which no further step is played
};

// INVALID_ARGUMENT or INTERNAL if the task cannot be made, or no step of it is valid.
absl::StatusOr<ModelFit> MeasureFit(const std::string& task, const v1::TaskOptions& options, const FitPlay& play);

// "under random actions f + G u predicts the change of q's velocities over a control step with a median error of 125 %;
// contacts in 61 % of the steps".
std::string DescribeFit(const ModelFit& fit);
// What that means for a method that uses f and G.
std::string JudgeFit(const ModelFit& fit);

// The text task with finite differences. INVALID_ARGUMENT if it cannot have them.
absl::StatusOr<v1::TaskOptions> WithFiniteDifferences(const v1::TaskOptions& options);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PLAY_MODEL_FIT_H_
// SPDX-License-Identifier: Apache-2.0
