#include "actor/environment_batch.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tasks/checked_step.h"

namespace datacom::actor {
namespace {

// Gives a shortened episode its length: the first (0) of an environment, or the first one after a pause.
RandomStream FirstEpisodeLength(const EnvironmentBatch::Seeds& seeds, uint64_t environment, uint32_t episode) {
  constexpr char kName[] = "actor.first_length";
  return RandomStream(episode == 0 ? StreamKey(kName, {seeds.run, seeds.member, seeds.session, environment})
                                   : StreamKey(kName, {seeds.run, seeds.member, seeds.session, environment, episode}));
}

}  // namespace

RowChunk::RowChunk(const RowSchema& schema, uint32_t capacity)
    : capacity_(capacity), buffer_(schema.wire_row_bytes() * capacity) {
  for (const Column& column : schema.wire()) places_.push_back(PlaceOf(schema.wire(), column.name));
}

void RowChunk::Append(std::initializer_list<const void*> before, const std::vector<const float*>& columns, size_t row,
                      std::initializer_list<const void*> after) {
  const ColumnPlace* place = places_.data();
  const auto put = [&](const void* value) {
    std::memcpy(buffer_.data() + place->before * capacity_ + place->bytes * rows_, value, place->bytes);
    ++place;
  };
  for (const void* const value : before) put(value);
  for (const float* const column : columns) put(column + row * place->bytes / sizeof(float));
  for (const void* const value : after) put(value);
  ++rows_;
}

std::string RowChunk::Take() {
  size_t bytes = 0;
  for (const ColumnPlace& place : places_) bytes += place.bytes * rows_;
  std::string columns;
  columns.reserve(bytes);
  for (const ColumnPlace& place : places_) {
    columns.append(buffer_.data() + place.before * capacity_, place.bytes * rows_);
  }
  rows_ = 0;
  return columns;
}

absl::Status EnvironmentBatch::SetWanted(int count) {
  wanted_ = count;
  if (size() < count) environments_.resize(count);
  acting_.clear();
  for (int e = 0; e < size(); ++e) {
    Environment& environment = environments_[e];
    if (e < count && environment.task == nullptr) RETURN_IF_ERROR(Start(e));
    if (e >= count && environment.step == 0) environment.task.reset();
    if (environment.task != nullptr) acting_.push_back(e);
  }
  return absl::OkStatus();
}

absl::Status EnvironmentBatch::Start(int index) {
  Environment& environment = environments_[index];
  ASSIGN_OR_RETURN(environment.task, make_task_());
  const TaskSpec& spec = environment.task->spec();
  environment.observation.resize(spec.obs_dim);
  environment.next_observation.resize(spec.obs_dim);
  wide_observation_.resize(spec.obs_dim);
  wide_action_.resize(spec.action_dim);
  RandomStream stream = FirstEpisodeLength(seeds_, static_cast<uint64_t>(index), environment.episode);
  environment.limit = 1 + static_cast<uint32_t>(stream.Below(static_cast<uint32_t>(spec.horizon)));
  environment.memory.resize(memory_);
  Reset(index);
  return environment.task->status();
}

void EnvironmentBatch::SetMemory(int count) {
  memory_ = count;
  for (Environment& environment : environments_) {
    if (static_cast<int>(environment.memory.size()) != count) environment.memory.assign(count, 0.0f);
  }
}

void EnvironmentBatch::BeginEpisode(int index, uint32_t episode) {
  Environment& environment = environments_[index];
  environment.episode = episode;
  if (index >= wanted_) {
    environment.step = 0;
    environment.task.reset();
    acting_.erase(std::find(acting_.begin(), acting_.end(), index));
    return;
  }
  if (episode > 0) environment.limit = static_cast<uint32_t>(environment.task->spec().horizon);
  Reset(index);
}

void EnvironmentBatch::Reset(int index) {
  Environment& environment = environments_[index];
  RandomStream stream =
      EpisodeStart(seeds_.run, seeds_.member, seeds_.session, static_cast<uint32_t>(index), environment.episode);
  environment.task->Reset(&stream, wide_observation_.data());
  for (size_t i = 0; i < wide_observation_.size(); ++i)
    environment.observation[i] = static_cast<float>(wide_observation_[i]);
  environment.previous_cost = 0;
  environment.draw = RandomStream(StreamKey("actor.share", {seeds_.run, seeds_.member, seeds_.session,
                                                            static_cast<uint64_t>(index), environment.episode}))
                         .Uniform();
  std::fill(environment.memory.begin(), environment.memory.end(), 0.0f);
  environment.step = 0;
}

void EnvironmentBatch::Prepare(int index, const float* action) {
  std::copy_n(action, wide_action_.size(), wide_action_.begin());
  environments_[index].task->Prepare(wide_action_.data());
}

absl::Status EnvironmentBatch::status() const {
  for (const int index : acting_) RETURN_IF_ERROR(environments_[index].task->status());
  return absl::OkStatus();
}

StepResult EnvironmentBatch::Advance(Environment* environment, const float* action) {
  std::copy_n(action, wide_action_.size(), wide_action_.begin());
  const StepResult result = CheckedStep(environment->task.get(), wide_action_.data(), wide_observation_.data());
  for (size_t i = 0; i < wide_observation_.size(); ++i) {
    environment->next_observation[i] = static_cast<float>(wide_observation_[i]);
  }
  return result;
}

void EnvironmentBatch::CommitStep(const StepResult& reached, Environment* environment) {
  environment->observation.swap(environment->next_observation);
  environment->previous_cost = static_cast<float>(reached.cost);
  ++environment->step;
}

absl::Status EnvironmentBatch::Continue(const v1::OpenEpisode& open) {
  if (open.environment() >= environments_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("open episode of environment ", open.environment(), ", but member ",
                                                   open.member(), " has ", environments_.size(), " environments"));
  }
  const size_t action_bytes = wide_action_.size() * sizeof(float);
  if (open.actions().size() != open.steps() * action_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("open episode with ", open.steps(), " steps carries ",
                                                   open.actions().size(), " bytes of actions, not ",
                                                   open.steps() * action_bytes));
  }
  Environment& environment = environments_[open.environment()];
  BeginEpisode(static_cast<int>(open.environment()), open.episode());
  std::vector<float> action(wide_action_.size());
  for (uint32_t step = 0; step < open.steps(); ++step) {
    std::memcpy(action.data(), open.actions().data() + step * action_bytes, action_bytes);
    const StepResult result = Advance(&environment, action.data());
    RETURN_IF_ERROR(environment.task->status());
    CommitStep(result, &environment);
    if (!result.valid || result.ends() || environment.step >= environment.limit) {
      return absl::InternalError(absl::StrCat("open episode ", open.episode(), " of environment ", open.environment(),
                                              " has ", open.steps(), " steps, but its replay ends at step ",
                                              environment.step));
    }
  }
  environment.memory.resize(open.memory().size() / sizeof(float));
  if (!environment.memory.empty()) {  // memcpy must not get a null pointer
    std::memcpy(environment.memory.data(), open.memory().data(), environment.memory.size() * sizeof(float));
  }
  return absl::OkStatus();
}

void EnvironmentBatch::FillNoise(int index, int count, float* noise) const {
  const Environment& environment = environments_[index];
  FillNormal(StreamKey("actor.noise", {seeds_.run, seeds_.member, seeds_.session, static_cast<uint64_t>(index),
                                       environment.episode, environment.step}),
             noise, count);
}

EnvironmentBatch::Outcome EnvironmentBatch::Step(int index, const ActedBatch& acted, int row, RowChunk* rows) {
  Environment& environment = environments_[index];
  const size_t at = row * wide_action_.size();
  const StepResult result = Advance(&environment, acted.executed + at);
  if (!result.valid) {
    if (first_fault_.empty()) {
      first_fault_ = absl::StrCat("in step ", environment.step + 1, " ",
                                  WhatIsInvalid(environment.task->spec(), result, wide_observation_.data()));
    }
    BeginEpisode(index, environment.episode + 1);
    return Outcome::kAbandoned;
  }
  const auto reward = static_cast<float>(result.reward), cost = static_cast<float>(result.cost);
  const bool last = result.ends() || environment.step + 1 >= environment.limit;
  const auto number = static_cast<uint32_t>(index);
  static_assert(sizeof last == 1 && sizeof result.absorbing == 1);  // columns of bytes
  rows->Append(
      {environment.observation.data(), acted.actions + at, &reward, &cost, environment.next_observation.data()},
      acted.columns, row,
      {&result.absorbing, &last, &number, &environment.episode, &environment.step, &acted.policy.incarnation,
       &acted.policy.update});
  if (last) {
    BeginEpisode(index, environment.episode + 1);
    return Outcome::kEnded;
  }
  CommitStep(result, &environment);
  std::copy_n(acted.memory + row * memory_, environment.memory.size(), environment.memory.begin());
  return Outcome::kContinues;
}

}  // namespace datacom::actor
// SPDX-License-Identifier: Apache-2.0
