// A pendulum that a weak motor swings up; it must not turn faster than kMostSpeed. Angle 0 hangs down.
#ifndef DATACOM_DEPLOY_EXAMPLES_PLUGIN_PENDULUM_H_
#define DATACOM_DEPLOY_EXAMPLES_PLUGIN_PENDULUM_H_

#include "absl/status/statusor.h"
#include "common/tasks/task.h"

namespace pendulum {

inline constexpr double kGravity = 9.81;  // m/s^2; the pendulum is a mass of 1 kg at 1 m
inline constexpr double kTorque = 3;      // N m per unit of action
inline constexpr double kStep = 0.05;     // s
inline constexpr double kMostSpeed = 4;   // rad/s
inline constexpr int kSpeed = 2;          // observation: sine and cosine of the angle, speed

inline double CostOf(double speed) { return (speed < 0 ? -speed : speed) / kMostSpeed - 1; }

absl::StatusOr<datacom::TaskModel> MakeModel(const datacom::v1::TaskOptions& options);

}  // namespace pendulum

#endif  // DATACOM_DEPLOY_EXAMPLES_PLUGIN_PENDULUM_H_
// SPDX-License-Identifier: Apache-2.0
