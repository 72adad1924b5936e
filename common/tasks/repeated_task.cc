#include "common/tasks/repeated_task.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status.h"

namespace datacom {
namespace {

// `next` if it is NaN.
double Larger(double before, double next) { return next <= before ? before : next; }

}  // namespace

RepeatedTask::RepeatedTask(std::unique_ptr<Task> task, int repeat)
    : task_(std::move(task)),
      repeat_(repeat),
      spec_(RepeatedSpec(task_->spec(), repeat)),
      named_(spec_.cost_names.size()),
      logs_(spec_.log_names.size()) {
  Begin();
}

void RepeatedTask::Begin() {
  left_ = task_->spec().horizon;
  cost_ = task_->Cost();
}

absl::Status RepeatedTask::ResetTo(const std::map<std::string, double>& init, RandomStream* stream,
                                   double* observation) {
  RETURN_IF_ERROR(task_->ResetTo(init, stream, observation));
  Begin();
  return absl::OkStatus();
}

StepResult RepeatedTask::Step(const double* action, double* observation) {
  const int steps = left_ > 0 ? std::min(repeat_, left_) : repeat_;
  left_ -= std::min(left_, steps);
  double *const named = observation + spec_.costs_at, *const logs = observation + spec_.logs_at;
  int made = 1;
  StepResult decision = task_->Step(action, observation);
  std::copy_n(logs, logs_.size(), logs_.begin());
  // A NaN cost ends the decision too, because the next cost would hide it from the caller.
  for (int i = 1; i < steps && decision.valid && !decision.ends() && !std::isnan(decision.cost); ++i) {
    std::copy_n(named, named_.size(), named_.begin());
    const StepResult step = task_->Step(action, observation);
    for (size_t c = 0; c < named_.size(); ++c) named[c] = Larger(named_[c], named[c]);
    for (size_t l = 0; l < logs_.size(); ++l) logs_[l] += logs[l];
    ++made;
    decision.reward += step.reward;
    decision.cost = Larger(decision.cost, step.cost);
    decision.absorbing = step.absorbing;
    decision.truncated = step.truncated;
    decision.valid = step.valid;
  }
  for (size_t l = 0; l < logs_.size(); ++l) logs[l] = logs_[l] / made;
  cost_ = decision.cost;
  return decision;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
