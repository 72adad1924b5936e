// The simulator, which actors and the tools load. A simulator may use any library; this one needs none.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "common/base/status.h"
#include "common/tasks/register_task.h"
#include "pendulum.h"

namespace pendulum {
namespace {

class Pendulum : public datacom::Task {
 public:
  explicit Pendulum(datacom::TaskSpec spec) : spec_(std::move(spec)) {}

  const datacom::TaskSpec& spec() const override { return spec_; }
  absl::Status ResetTo(const std::map<std::string, double>& init, datacom::RandomStream* stream,
                       double* observation) override {
    RETURN_IF_ERROR(datacom::CheckStartValues(spec_, init));
    angle_ = stream->Uniform(-0.2, 0.2), speed_ = 0;
    for (const auto& [key, value] : init) (key == "angle" ? angle_ : speed_) = value;
    Observe(observation);
    return absl::OkStatus();
  }
  datacom::StepResult Step(const double* action, double* observation) override {
    speed_ += kStep * (kTorque * std::clamp(action[0], -1.0, 1.0) / mass_ - kGravity * std::sin(angle_));
    angle_ += kStep * speed_;
    Observe(observation);
    datacom::StepResult result;
    result.reward = (1 - std::cos(angle_)) / 2;  // the height of the mass
    result.cost = Cost();
    result.valid = std::isfinite(speed_);
    return result;
  }
  double Cost() const override { return CostOf(speed_); }
  bool Success() const override { return std::cos(angle_) < -0.9; }
  void ScalePhysics(const datacom::PhysicsScale& scale) override { mass_ = scale.mass; }
  const datacom::Simulation* simulation() const override { return nullptr; }

 private:
  void Observe(double* observation) const {
    observation[0] = std::sin(angle_), observation[1] = std::cos(angle_), observation[kSpeed] = speed_;
  }

  const datacom::TaskSpec spec_;
  double angle_ = 0, speed_ = 0, mass_ = 1;
};

absl::StatusOr<std::unique_ptr<datacom::Task>> MakeTask(const datacom::v1::TaskOptions& options) {
  ASSIGN_OR_RETURN(datacom::TaskModel model, MakeModel(options));
  return std::make_unique<Pendulum>(std::move(model.spec));
}

const datacom::RegisterTask kRegistered("pendulum", &MakeTask);

}  // namespace
}  // namespace pendulum
// SPDX-License-Identifier: Apache-2.0
