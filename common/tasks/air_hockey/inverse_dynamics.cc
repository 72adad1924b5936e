#include "common/tasks/air_hockey/inverse_dynamics.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/tasks/air_hockey/arm.h"

namespace datacom::air_hockey {
namespace {

// The arm of model.xml: the same masses, inertias and limits, without geometry.
constexpr char kArmXml[] = R"(
<mujoco model="arm">
  <compiler angle="radian" fusestatic="true"/>
  <size nstack="2000" njmax="8" nconmax="1"/>
  <default>
    <joint type="hinge" axis="0 0 1" limited="true"/>
  </default>
  <worldbody>
    <body name="link_1">
      <inertial pos="0.25 0 0" mass="3" diaginertia="0.064375 0.064375 0.00375"/>
      <joint range="-2.9670597283903604 2.9670597283903604"/>
      <body name="link_2" pos="0.55 0 0">
        <inertial pos="0.2 0 0" mass="2" diaginertia="0.0335 0.0335 0.003"/>
        <joint range="-1.8 1.8"/>
        <body name="link_3" pos="0.44 0 0">
          <inertial pos="0.2 0 0" mass="2" diaginertia="0.0335 0.0335 0.003"/>
          <joint range="-2.0943951023931953 2.0943951023931953"/>
          <body name="hand" pos="0.44 0 0">
            <inertial pos="0 0 0" mass="0.1" diaginertia="0.0008 0.0023 0.0023"/>
            <body name="mallet" pos="0 0 -0.15">
              <inertial pos="0 0 0" mass="0.1" diaginertia="0.0008 0.0023 0.0023"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>)";

}  // namespace

absl::StatusOr<InverseDynamics> InverseDynamics::Make() {
  static const auto* const compiled =
      new absl::StatusOr<MujocoModel>(CompileMujocoModel("air_hockey_inverse_dynamics", kArmXml));
  RETURN_IF_ERROR(compiled->status());
  ASSIGN_OR_RETURN(MujocoData data, MakeMujocoData(***compiled));
  return InverseDynamics(**compiled, std::move(data));
}

void InverseDynamics::Torque(const double* position, const double* velocity, const double* acceleration,
                             double* torque) {
  std::copy_n(position, kJoints, data_->qpos);
  std::copy_n(velocity, kJoints, data_->qvel);
  std::copy_n(acceleration, kJoints, data_->qacc);
  mj_inverse(model_.get(), data_.get());
  std::copy_n(data_->qfrc_inverse, kJoints, torque);
}

}  // namespace datacom::air_hockey
// SPDX-License-Identifier: Apache-2.0
