#include "actor/episode_player.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/records/evaluation_means.h"
#include "common/tasks/checked_step.h"

namespace datacom::actor {
namespace {

constexpr size_t kTickSteps = 256;

}  // namespace

EpisodePlayer::EpisodePlayer(std::vector<std::unique_ptr<Task>> tasks, std::unique_ptr<ActingRule> rule,
                             double discount)
    : rule_(std::move(rule)), discount_(discount) {
  const TaskSpec& spec = tasks.front()->spec();
  const size_t batch = tasks.size();
  observations_.resize(batch * spec.obs_dim);
  noise_.resize(batch * rule_->noise_dim());
  actions_.resize(batch * spec.action_dim);
  costs_.resize(batch);
  memory_.resize(batch * rule_->memory_dim());
  wide_action_.resize(spec.action_dim);
  if (rule_->has_constraint()) constraints_.resize(batch);
  if (rule_->has_shield()) shield_changes_.resize(batch);
  for (std::unique_ptr<Task>& task : tasks) {
    Slot slot;
    slot.observation.resize(task->spec().obs_dim);
    slot.memory.resize(rule_->memory_dim());
    slot.task = std::move(task);
    slots_.push_back(std::move(slot));
  }
}

absl::Status EpisodePlayer::StartAt(const std::map<std::string, double>& init) {
  if (!init.empty()) {  // a task may refuse them
    RandomStream stream(StreamKey("eval.start", {}));
    RETURN_IF_ERROR(slots_.front().task->ResetTo(init, &stream, slots_.front().observation.data()));
  }
  init_ = init;
  return absl::OkStatus();
}

void EpisodePlayer::Begin(const Seeds& seeds, uint32_t episode, uint32_t attempt, Slot* slot) {
  RandomStream stream(attempt == 0
                          ? StreamKey("eval.episode", {seeds.run, seeds.member, seeds.epoch, episode})
                          : StreamKey("eval.episode.again", {seeds.run, seeds.member, seeds.epoch, episode, attempt}));
  if (init_.empty()) {
    slot->task->Reset(&stream, slot->observation.data());
  } else {
    slot->task->ResetTo(init_, &stream, slot->observation.data()).IgnoreError();  // StartAt has tried them
  }
  slot->episode = episode;
  slot->attempt = attempt;
  slot->step = 0;
  slot->reached = StepResult();
  slot->reached.cost = slot->task->Cost();
  slot->discount = 1;
  std::fill(slot->memory.begin(), slot->memory.end(), 0.0f);
}

const float* EpisodePlayer::Act(const Seeds& seeds, const ActingDiagnostics& diagnostics) {
  const int noise_dim = rule_->noise_dim();
  float* observation = observations_.data();
  float* noise = noise_.data();
  float* cost = costs_.data();
  float* memory = memory_.data();
  for (const Slot* slot : active_) {
    for (const double value : slot->observation) *observation++ = static_cast<float>(value);
    const uint64_t key =
        slot->attempt == 0 ? StreamKey("eval.noise", {seeds.run, seeds.member, seeds.epoch, slot->episode, slot->step})
                           : StreamKey("eval.noise.again", {seeds.run, seeds.member, seeds.epoch, slot->episode,
                                                            slot->attempt, slot->step});
    FillNormal(key, noise, noise_dim);
    noise += noise_dim;
    memory = std::copy(slot->memory.begin(), slot->memory.end(), memory);
    *cost++ = slot->step == 0 ? 0.0f : static_cast<float>(slot->reached.cost);  // as in training
  }
  const ActingInputs inputs{observations_.data(), noise_.data(), costs_.data(), memory_.data()};
  rule_->Act(static_cast<int>(active_.size()), inputs, actions_.data(), diagnostics);
  const float* kept = memory_.data();
  for (Slot* const slot : active_) {
    std::copy_n(kept, slot->memory.size(), slot->memory.begin());
    kept += slot->memory.size();
  }
  return rule_->executed() != nullptr ? rule_->executed() : actions_.data();
}

bool EpisodePlayer::Step(const float* action, Slot* slot, v1::EvaluationEpisode* result) {
  std::copy_n(action, wide_action_.size(), wide_action_.begin());
  slot->reached = CheckedStep(slot->task.get(), wide_action_.data(), slot->observation.data());
  const StepResult& reached = slot->reached;
  result->set_attempts(slot->attempt + 1);
  if (!reached.valid) {
    result->set_abandoned(true);
    if (slot->attempt + 1 == kMaxAttempts) {
      spdlog::warn("evaluation episode={}: each of {} attempts met an invalid simulator step, the last one at step={}",
                   slot->episode, kMaxAttempts, slot->step);
    }
    result->set_success(slot->task->Success());
    return false;
  }
  const double violation = std::max(reached.cost, 0.0);
  result->set_discounted_return(result->discounted_return() + slot->discount * reached.reward);
  result->set_return_(result->return_() + reached.reward);
  result->set_max_violation(std::max(result->max_violation(), violation));
  result->set_sum_cost(result->sum_cost() + violation);
  result->set_violating_steps(result->violating_steps() + (violation > 0 ? 1 : 0));
  const TaskSpec& spec = slot->task->spec();
  const int named = static_cast<int>(spec.cost_names.size());
  result->mutable_named_max_violation()->Resize(named, 0);
  result->mutable_named_sum_cost()->Resize(named, 0);
  result->mutable_named_violating_steps()->Resize(named, 0);
  for (int i = 0; i < named; ++i) {
    const double part = std::max(slot->observation[spec.costs_at + i], 0.0);
    result->set_named_max_violation(i, std::max(result->named_max_violation(i), part));
    result->set_named_sum_cost(i, result->named_sum_cost(i) + part);
    result->set_named_violating_steps(i, result->named_violating_steps(i) + (part > 0 ? 1 : 0));
  }
  result->set_length(++slot->step);
  const int logs = static_cast<int>(spec.log_names.size());
  result->mutable_log_mean()->Resize(logs, 0);
  for (int i = 0; i < logs; ++i) {
    const double mean = result->log_mean(i);
    result->set_log_mean(i, mean + (slot->observation[spec.logs_at + i] - mean) / slot->step);
  }
  const bool success = slot->task->Success();
  result->set_success(success);
  result->set_reached(result->reached() || success);
  result->set_absorbed(reached.absorbing);
  slot->discount *= discount_;
  return !reached.ends() && slot->step < static_cast<uint32_t>(slot->task->spec().horizon);
}

void EpisodePlayer::AddShield(size_t i, v1::EvaluationEpisode* result) const {
  const double steps = result->length();
  const auto mean = [steps](double before, double value) { return before + (value - before) / steps; };
  if (!shield_changes_.empty()) {
    const double change = shield_changes_[i];
    result->set_shield_share(mean(result->shield_share(), change > kShieldActs ? 1 : 0));
    result->set_shield_change(mean(result->shield_change(), change));
  }
  if (!constraints_.empty()) {
    result->set_infeasible_share(mean(result->infeasible_share(), constraints_[i] > 0 ? 1 : 0));
    const double largest = result->has_largest_constraint() ? result->largest_constraint() : constraints_[i];
    result->set_largest_constraint(std::max(largest, constraints_[i]));
  }
}

bool EpisodePlayer::BeginAgain(const Seeds& seeds, Slot* slot, v1::EvaluationEpisode* result) {
  if (!result->abandoned() || slot->attempt + 1 == kMaxAttempts) return false;
  result->Clear();
  Begin(seeds, slot->episode, slot->attempt + 1, slot);
  return true;
}

absl::StatusOr<std::vector<v1::EvaluationEpisode>> EpisodePlayer::Play(const Seeds& seeds, uint32_t count,
                                                                       const std::function<absl::Status()>& tick) {
  std::vector<v1::EvaluationEpisode> results(count);
  uint32_t begun = 0;
  active_.clear();
  for (Slot& slot : slots_) {
    if (begun == count) break;
    Begin(seeds, begun++, 0, &slot);
    active_.push_back(&slot);
  }
  const size_t action_dim = wide_action_.size();
  size_t since_tick = kTickSteps;
  while (!active_.empty()) {
    if (since_tick >= kTickSteps) {
      RETURN_IF_ERROR(tick());
      since_tick = 0;
    }
    since_tick += active_.size();
    ActingDiagnostics diagnostics;
    if (!constraints_.empty()) diagnostics.constraint = constraints_.data();
    if (!shield_changes_.empty()) diagnostics.shield_change = shield_changes_.data();
    const float* const actions = Act(seeds, diagnostics);
    size_t kept = 0;
    for (size_t i = 0; i < active_.size(); ++i) {
      std::copy_n(actions + i * action_dim, action_dim, wide_action_.begin());
      active_[i]->task->Prepare(wide_action_.data());
    }
    for (size_t i = 0; i < active_.size(); ++i) {
      Slot* const slot = active_[i];
      v1::EvaluationEpisode* const result = &results[slot->episode];
      bool continues = Step(actions + i * action_dim, slot, result);
      if (!result->abandoned()) AddShield(i, result);
      continues = continues || BeginAgain(seeds, slot, result);
      if (!continues && begun < count) {
        Begin(seeds, begun++, 0, slot);
        continues = true;
      }
      RETURN_IF_ERROR(slot->task->status());
      if (continues) active_[kept++] = slot;
    }
    active_.resize(kept);
  }
  return results;
}

absl::Status EpisodePlayer::Watch(const Seeds& seeds, uint32_t episode, const Watcher& watcher) {
  Slot* const slot = &slots_.front();
  active_.assign(1, slot);
  v1::EvaluationEpisode result;
  Begin(seeds, episode, 0, slot);
  do {
    while (Step(Act(seeds, ActingDiagnostics()), slot, &result)) {
    }
  } while (BeginAgain(seeds, slot, &result));
  Begin(seeds, episode, slot->attempt, slot);
  result.Clear();
  for (bool continues = true;;) {
    EpisodeState::Judgement judgement;
    // Also evaluate the terminal state, so that the viewer can show it.
    const float* const action = Act(seeds, {&judgement.constraint, &judgement.cvar, &judgement.intervention});
    EpisodeState state;
    state.task = slot->task.get();
    state.observation = slot->observation.data();
    state.step = slot->step;
    state.reached = slot->reached;
    state.sum_reward = result.return_();
    state.last = !continues;
    if (rule_->has_constraint()) state.judgement = judgement;
    RETURN_IF_ERROR(watcher(state));
    if (!continues) return absl::OkStatus();
    continues = Step(action, slot, &result);
    RETURN_IF_ERROR(slot->task->status());
  }
}

}  // namespace datacom::actor
// SPDX-License-Identifier: Apache-2.0
