#include "deploy/python/native/environments.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/plugins.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/config/textproto.h"
#include "common/tasks/checked_step.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/python/python_model.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::python {
namespace {

// Pieces of work for each thread: environments of one task need about the same time, unless some of them reset.
constexpr int kPieces = 4;

RandomStream EpisodeStream(uint64_t seed, uint64_t episode) {
  return RandomStream(StreamKey("python.episode", {seed, episode}));
}

void Round(const std::vector<double>& values, float* out) {
  std::transform(values.begin(), values.end(), out, [](double value) { return static_cast<float>(value); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Environments>> Environments::Make(const Settings& settings) {
  if (settings.count < 1) return absl::InvalidArgumentError(absl::StrCat("num_envs is ", settings.count, ", not >= 1"));
  if (settings.threads < 1) {
    return absl::InvalidArgumentError(absl::StrCat("threads is ", settings.threads, ", not >= 1"));
  }
  std::string name = settings.task;
  if (absl::StartsWith(name, python::kPythonTask)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is an environment in Python already; use it directly"));
  }
  RETURN_IF_ERROR(LoadPlugins({PluginPart::kSimulator}));
  v1::TaskOptions options;
  RETURN_IF_ERROR(ParseTextproto(settings.options, "options", &options));
  RETURN_IF_ERROR(ValidateTaskOptions(options));
  RETURN_IF_ERROR(LoadTaskOf("", &name, &options));
  ASSIGN_OR_RETURN(TaskModel model, MakeTaskModel(name, options));
  std::vector<Slot> slots(settings.count);
  for (Slot& slot : slots) {
    ASSIGN_OR_RETURN(slot.task, MakeTask(name, options));
    slot.observation.resize(model.spec.obs_dim);
    slot.action.resize(model.spec.action_dim);
    slot.seed = SystemRandomNumber();
  }
  return std::unique_ptr<Environments>(new Environments(std::move(model), std::move(slots), settings));
}

Environments::Environments(TaskModel model, std::vector<Slot> slots, const Settings& settings)
    : model_(std::move(model)), autoreset_(settings.autoreset), slots_(std::move(slots)) {
  const int threads = std::min(settings.threads, count());
  if (threads > 1) team_ = std::make_unique<Team>(threads);
}

absl::Status Environments::Begin(const std::map<std::string, double>& init, Slot* slot) {
  RandomStream stream = EpisodeStream(slot->seed, slot->episode);
  RETURN_IF_ERROR(slot->task->ResetTo(init, &stream, slot->observation.data()));
  ++slot->episode;
  slot->step = 0;
  slot->finished = false;
  slot->cost = slot->task->Cost();
  return absl::OkStatus();
}

void Environments::WriteNamedCosts(int index, const datacom_env_result& out) const {
  const int costs = static_cast<int>(model_.spec.cost_names.size());
  if (out.named_cost == nullptr || costs == 0) return;
  const double* const from = slots_[index].observation.data() + model_.spec.costs_at;
  std::transform(from, from + costs, out.named_cost + static_cast<int64_t>(index) * costs,
                 [](double value) { return static_cast<float>(value); });
}

void Environments::WriteStart(int index, const datacom_env_result& out) {
  const Slot& slot = slots_[index];
  Round(slot.observation, out.observation + index * slot.observation.size());
  WriteNamedCosts(index, out);
  out.reward[index] = 0;
  out.cost[index] = slot.cost;
  out.terminated[index] = out.truncated[index] = out.invalid[index] = 0;
  out.success[index] = slot.task->Success() ? 1 : 0;
}

absl::Status Environments::Reset(const datacom_env_start& start, const datacom_env_result& out) {
  std::map<std::string, double> init;
  for (int i = 0; i < start.inits; ++i) init[start.init_names[i]] = start.init_values[i];
  for (int i = 0; i < count(); ++i) {
    if (start.mask != nullptr && start.mask[i] == 0) continue;
    Slot& slot = slots_[i];
    if (start.seeds != nullptr && (start.has_seed == nullptr || start.has_seed[i] != 0)) {
      slot.seed = start.seeds[i];
      slot.episode = 0;
    }
    RETURN_IF_ERROR(Begin(init, &slot));
    WriteStart(i, out);
  }
  return absl::OkStatus();
}

void Environments::StepOne(int index, const float* action, const datacom_env_result& out) {
  Slot& slot = slots_[index];
  if (slot.finished) {
    (void)Begin({}, &slot);  // fails only for start values
    return WriteStart(index, out);
  }
  const size_t actions = slot.action.size(), observations = slot.observation.size();
  std::copy_n(action + index * actions, actions, slot.action.begin());
  const StepResult result = CheckedStep(slot.task.get(), slot.action.data(), slot.observation.data());
  ++slot.step;
  const bool limit = slot.step >= model_.spec.horizon;
  if (result.valid) {
    slot.cost = result.cost;
    Round(slot.observation, out.observation + index * observations);
    WriteNamedCosts(index, out);
  }  // else the caller's arrays keep the state before
  out.reward[index] = result.valid ? result.reward : 0;
  out.cost[index] = slot.cost;
  out.terminated[index] = result.valid && result.absorbing ? 1 : 0;
  out.truncated[index] = !result.valid || ((limit || result.truncated) && !result.absorbing) ? 1 : 0;
  out.invalid[index] = result.valid ? 0 : 1;
  out.success[index] = slot.task->Success() ? 1 : 0;
  slot.finished = out.terminated[index] != 0 || out.truncated[index] != 0;
  if (!slot.finished || autoreset_ != DATACOM_ENV_SAME_STEP) return;
  float* const observation = out.observation + index * observations;
  if (out.final_observation != nullptr) {
    std::copy_n(observation, observations, out.final_observation + index * observations);
  }
  (void)Begin({}, &slot);
  Round(slot.observation, observation);
}

absl::Status Environments::Step(const float* action, const datacom_env_result& out) {
  const int64_t numbers = static_cast<int64_t>(count()) * model_.spec.action_dim;
  for (int64_t i = 0; i < numbers; ++i) {
    if (std::isfinite(action[i])) continue;
    return absl::InvalidArgumentError(absl::StrCat("the action of environment ", i / model_.spec.action_dim,
                                                   " has the value ", action[i], " at index ",
                                                   i % model_.spec.action_dim));
  }
  for (int i = 0; autoreset_ == DATACOM_ENV_DISABLED && i < count(); ++i) {
    if (!slots_[i].finished) continue;
    return absl::FailedPreconditionError(absl::StrCat("the episode of environment ", i, " has ended; reset it"));
  }
  const int pieces = team_ == nullptr ? 1 : std::min(count(), kPieces * team_->threads());
  Share(team_.get(), pieces, [&](int piece) {
    const int end = static_cast<int>(static_cast<int64_t>(count()) * (piece + 1) / pieces);
    for (int i = static_cast<int>(static_cast<int64_t>(count()) * piece / pieces); i < end; ++i)
      StepOne(i, action, out);
  });
  return absl::OkStatus();
}

absl::Status Environments::Draw(int index, const Look& look, uint8_t* rgb) {
  if (index < 0 || index >= count()) return absl::InvalidArgumentError(absl::StrCat("there is no environment ", index));
  constexpr int kLargest = 4096;
  if (std::min(look.width, look.height) < 1 || std::max(look.width, look.height) > kLargest) {
    return absl::InvalidArgumentError(
        absl::StrCat("a picture of ", look.width, " x ", look.height, " pixels: a side has 1 to ", kLargest));
  }
  const Slot& slot = slots_[index];
  const Simulation* const simulation = slot.task->simulation();
  if (slot.episode == 0) return absl::InternalError("there is no state to draw before the first reset");
  if (renderer_ == nullptr || !(look == look_)) {
    ASSIGN_OR_RETURN(renderer_, tools::Renderer::WithRays(simulation->model(), look.camera, look.width, look.height));
    look_ = look;
    pixels_.resize(size_t{4} * look.width * look.height);
  }
  RETURN_IF_ERROR(renderer_->Render(*simulation, pixels_.data()));
  for (size_t i = 0; i < pixels_.size(); i += 4, rgb += 3) {
    for (int colour = 0; colour < 3; ++colour) rgb[colour] = pixels_[i + 2 - colour];
  }
  return absl::OkStatus();
}

}  // namespace datacom::python
// SPDX-License-Identifier: Apache-2.0
