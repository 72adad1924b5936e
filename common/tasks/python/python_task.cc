#include "common/tasks/python/python_task.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/tasks/python/python_model.h"

namespace datacom::python {
namespace {

enum Head { kSeed = 1, kReward, kCost, kTerminated, kTruncated, kSuccess };  // numbers of a slot (host.py)

// A word for files and labels: "my_env" for my_env:make, "my_env-fast" for my_env:fast.
std::string NameOf(absl::string_view environment) {
  const size_t colon = environment.find(':');
  const absl::string_view module = environment.substr(0, colon);
  const absl::string_view callable = colon == absl::string_view::npos ? "" : environment.substr(colon + 1);
  std::string name(module);
  const std::vector<std::string> registered = TaskNames();
  const bool taken = std::find(registered.begin(), registered.end(), name) != registered.end();
  if (callable != "make" || taken) absl::StrAppend(&name, "-", callable);
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  }
  return name;
}

}  // namespace

absl::Status LoadTaskOf(std::string* task, v1::TaskOptions* options) {
  absl::string_view environment = *task;
  if (!absl::ConsumePrefix(&environment, kPythonTask)) return absl::OkStatus();
  ASSIGN_OR_RETURN(v1::PythonTask facts, AskEnvironment(std::string(environment)));
  facts.set_name(NameOf(environment));
  *task = facts.name();
  *options->MutableExtension(v1::python_task) = std::move(facts);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options) {
  const v1::PythonTask& task = options.GetExtension(v1::python_task);
  ASSIGN_OR_RETURN(TaskModel model, MakeModel(options));
  ASSIGN_OR_RETURN(std::shared_ptr<PythonHost> host, PythonHost::Shared(task));
  ASSIGN_OR_RETURN(const uint32_t slot, host->Open());
  return std::make_unique<PythonTask>(std::move(model.spec), task, std::move(host), slot);
}

PythonTask::PythonTask(TaskSpec spec, const v1::PythonTask& task, std::shared_ptr<PythonHost> host, uint32_t slot)
    : spec_(std::move(spec)),
      host_(std::move(host)),
      slot_(slot),
      numbers_(host_->slot(slot)),
      q_(static_cast<int>(task.q())),
      drift_at_(static_cast<int>(task.observation() + task.q() + 2 * task.x())) {
  for (int i = 0; i < spec_.action_dim; ++i) {
    low_.push_back(task.action_low(i));
    high_.push_back(task.action_high(i));
    half_.push_back((task.action_high(i) - task.action_low(i)) / 2);
    middle_.push_back((task.action_high(i) + task.action_low(i)) / 2);
    rescales_ = rescales_ || half_[i] != 1 || middle_[i] != 0;
  }
}

void PythonTask::Reset(RandomStream* stream, double* observation) {
  numbers_[kSeed] = stream->NextUint32() >> 1;  // as a signed number of 32 bits, which every environment takes
  prepared_ = false;
  host_->Begin(slot_, PythonHost::kReset);
  Finish(observation);
}

absl::Status PythonTask::ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) {
  if (!init.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec_.name, " has no start value \"", init.begin()->first, "\": a Python environment has none"));
  }
  Reset(stream, observation);
  return absl::OkStatus();
}

void PythonTask::Prepare(const double* action) {
  prepared_ = true;
  finite_ = std::all_of(action, action + spec_.action_dim, [](double value) { return std::isfinite(value); });
  if (!finite_) return;
  double* const to = numbers_ + host_->action_at();
  for (int i = 0; i < spec_.action_dim; ++i) to[i] = std::clamp(middle_[i] + half_[i] * action[i], low_[i], high_[i]);
  host_->Begin(slot_, PythonHost::kStep);
}

StepResult PythonTask::Step(const double* action, double* observation) {
  if (!prepared_) Prepare(action);
  prepared_ = false;
  if (finite_) Finish(observation);
  StepResult result;
  result.reward = numbers_[kReward];
  result.cost = cost_;
  result.absorbing = numbers_[kTerminated] != 0;
  result.truncated = numbers_[kTruncated] != 0;
  result.valid = finite_ && status_.ok();
  return result;
}

void PythonTask::Finish(double* observation) {
  if (status_.ok()) status_ = host_->Finish(slot_);
  std::copy_n(numbers_ + host_->observation_at(), spec_.obs_dim, observation);
  if (rescales_) RescaleModel(observation);
  cost_ = numbers_[kCost];
  success_ = numbers_[kSuccess] != 0;
}

// q_dot = f + G (middle + half u)
void PythonTask::RescaleModel(double* observation) const {
  double* const f = observation + drift_at_;
  double* G = f + q_;
  const int n = spec_.action_dim;
  for (int i = 0; i < q_; ++i, G += n) {
    for (int j = 0; j < n; ++j) {
      f[i] += G[j] * middle_[j];
      G[j] *= half_[j];
    }
  }
}

}  // namespace datacom::python
// SPDX-License-Identifier: Apache-2.0
