#include "common/tasks/randomised_task.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace datacom {
namespace {

double DrawFrom(const v1::Range& range, const char* name, const RandomStream& episode) {
  return episode.Child(name).Uniform(range.low(), range.high());
}

}  // namespace

RandomisedTask::RandomisedTask(std::unique_ptr<Task> task, const v1::Randomisation& ranges)
    : task_(std::move(task)), ranges_(ranges), capacity_(static_cast<int>(ranges.action_delay().high()) + 1) {
  commanded_.resize(static_cast<size_t>(capacity_) * task_->spec().action_dim);
}

void RandomisedTask::Draw(const RandomStream& episode) {
  PhysicsScale scale = base_;
  if (ranges_.has_mass()) scale.mass *= DrawFrom(ranges_.mass(), "task.mass", episode);
  if (ranges_.has_damping()) scale.damping *= DrawFrom(ranges_.damping(), "task.damping", episode);
  if (ranges_.has_friction()) scale.friction *= DrawFrom(ranges_.friction(), "task.friction", episode);
  task_->ScalePhysics(scale);
  std::fill(commanded_.begin(), commanded_.end(), 0.0);
  slot_ = 0;
  if (ranges_.has_action_delay()) {
    delay_ = static_cast<int>(DrawFrom(ranges_.action_delay(), "task.action_delay", episode));
  }
  if (!ranges_.has_observation_noise()) return;
  deviation_ = DrawFrom(ranges_.observation_noise(), "task.observation_deviation", episode);
  noise_ = episode.Child("task.observation_noise");
}

absl::Status RandomisedTask::ResetTo(const std::map<std::string, double>& init, RandomStream* stream,
                                     double* observation) {
  Draw(*stream);
  RETURN_IF_ERROR(task_->ResetTo(init, stream, observation));
  Disturb(observation);
  return absl::OkStatus();
}

StepResult RandomisedTask::Step(const double* action, double* observation) {
  const StepResult result = task_->Step(Delayed(action), observation);
  Disturb(observation);
  return result;
}

const double* RandomisedTask::Delayed(const double* action) {
  const int width = task_->spec().action_dim;
  std::copy_n(action, width, &commanded_[static_cast<size_t>(slot_) * width]);
  const int due = (slot_ + capacity_ - delay_) % capacity_;
  slot_ = (slot_ + 1) % capacity_;
  return &commanded_[static_cast<size_t>(due) * width];
}

void RandomisedTask::Disturb(double* observation) {
  if (deviation_ == 0) return;
  for (int i = 0; i < task_->spec().seen_dim(); ++i) observation[i] += deviation_ * noise_.Normal();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
