#include "actor/episode_player.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actor/checked_step.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr size_t kTickSteps = 256;
constexpr uint32_t kMaxBatch = 64;  // more gains nothing, and a task takes memory

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
  wide_action_.resize(spec.action_dim);
  for (std::unique_ptr<Task>& task : tasks) {
    Seat seat;
    seat.observation.resize(task->spec().obs_dim);
    seat.task = std::move(task);
    seats_.push_back(std::move(seat));
  }
}

absl::StatusOr<std::unique_ptr<EpisodePlayer>> EpisodePlayer::Make(const v1::Experiment& experiment,
                                                                   const Snapshot& snapshot, uint32_t batch) {
  if (snapshot.task != experiment.task()) {
    return absl::FailedPreconditionError(absl::StrCat("snapshot of member ", snapshot.member, " is for task ",
                                                      snapshot.task, ", not ", experiment.task()));
  }
  batch = std::clamp(batch, 1u, kMaxBatch);
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(experiment.task(), experiment.task_options()));
  absl::StatusOr<std::unique_ptr<ActingRule>> rule = MakeActingRule(snapshot, model, static_cast<int>(batch));
  if (!rule.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("snapshot of member ", snapshot.member, " at update ",
                                                      snapshot.version.update, ": ", rule.status().message()));
  }
  return Around(experiment, *std::move(rule), batch);
}

absl::StatusOr<std::unique_ptr<EpisodePlayer>> EpisodePlayer::Around(const v1::Experiment& experiment,
                                                                     std::unique_ptr<ActingRule> rule, uint32_t batch) {
  std::vector<std::unique_ptr<Task>> tasks;
  for (uint32_t i = 0; i < std::clamp(batch, 1u, kMaxBatch); ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<Task> task, MakeTask(experiment.task(), experiment.task_options()));
    tasks.push_back(std::move(task));
  }
  return std::make_unique<EpisodePlayer>(std::move(tasks), std::move(rule), experiment.learner().discount());
}

void EpisodePlayer::Begin(const Seeds& seeds, uint32_t episode, uint32_t attempt, Seat* seat) {
  RandomStream stream(attempt == 0
                          ? StreamKey("eval.episode", {seeds.run, seeds.member, seeds.epoch, episode})
                          : StreamKey("eval.episode.again", {seeds.run, seeds.member, seeds.epoch, episode, attempt}));
  seat->task->Reset(&stream, seat->observation.data());
  seat->episode = episode;
  seat->attempt = attempt;
  seat->step = 0;
  seat->reached = StepResult();
  seat->reached.cost = seat->task->Cost();
  seat->discount = 1;
}

const float* EpisodePlayer::Act(const Seeds& seeds, const ActingDiagnostics& diagnostics) {
  const int noise_dim = rule_->noise_dim();
  float* observation = observations_.data();
  float* noise = noise_.data();
  float* cost = costs_.data();
  for (const Seat* seat : seated_) {
    for (const double value : seat->observation) *observation++ = static_cast<float>(value);
    const uint64_t key =
        seat->attempt == 0 ? StreamKey("eval.noise", {seeds.run, seeds.member, seeds.epoch, seat->episode, seat->step})
                           : StreamKey("eval.noise.again", {seeds.run, seeds.member, seeds.epoch, seat->episode,
                                                            seat->attempt, seat->step});
    FillNormal(key, noise, noise_dim);
    noise += noise_dim;
    *cost++ = seat->step == 0 ? 0.0f : static_cast<float>(seat->reached.cost);  // as in training
  }
  rule_->Act(static_cast<int>(seated_.size()), {observations_.data(), noise_.data(), costs_.data()}, actions_.data(),
             diagnostics);
  return rule_->executed() != nullptr ? rule_->executed() : actions_.data();
}

bool EpisodePlayer::Step(const float* action, Seat* seat, v1::EvaluationEpisode* result) {
  std::copy_n(action, wide_action_.size(), wide_action_.begin());
  seat->reached = CheckedStep(seat->task.get(), wide_action_.data(), seat->observation.data());
  const StepResult& reached = seat->reached;
  result->set_attempts(seat->attempt + 1);
  if (!reached.valid) {
    result->set_abandoned(true);
    if (seat->attempt + 1 == kMaxAttempts) {
      spdlog::warn("evaluation episode={}: the simulator called a step invalid in each of {} attempts, at last step={}",
                   seat->episode, kMaxAttempts, seat->step);
    }
    result->set_success(seat->task->Success());
    return false;
  }
  const double violation = std::max(reached.cost, 0.0);
  result->set_discounted_return(result->discounted_return() + seat->discount * reached.reward);
  result->set_return_(result->return_() + reached.reward);
  result->set_max_violation(std::max(result->max_violation(), violation));
  result->set_sum_cost(result->sum_cost() + violation);
  result->set_length(++seat->step);
  const bool success = seat->task->Success();
  result->set_success(success);
  result->set_reached(result->reached() || success);
  result->set_absorbed(reached.absorbing);
  seat->discount *= discount_;
  return !reached.absorbing && seat->step < static_cast<uint32_t>(seat->task->spec().horizon);
}

bool EpisodePlayer::BeginAgain(const Seeds& seeds, Seat* seat, v1::EvaluationEpisode* result) {
  if (!result->abandoned() || seat->attempt + 1 == kMaxAttempts) return false;
  result->Clear();
  Begin(seeds, seat->episode, seat->attempt + 1, seat);
  return true;
}

absl::StatusOr<std::vector<v1::EvaluationEpisode>> EpisodePlayer::Play(const Seeds& seeds, uint32_t count,
                                                                       const std::function<absl::Status()>& tick) {
  std::vector<v1::EvaluationEpisode> results(count);
  uint32_t begun = 0;
  seated_.clear();
  for (Seat& seat : seats_) {
    if (begun == count) break;
    Begin(seeds, begun++, 0, &seat);
    seated_.push_back(&seat);
  }
  const size_t action_dim = wide_action_.size();
  size_t since_tick = kTickSteps;
  while (!seated_.empty()) {
    if (since_tick >= kTickSteps) {
      RETURN_IF_ERROR(tick());
      since_tick = 0;
    }
    since_tick += seated_.size();
    const float* const actions = Act(seeds, ActingDiagnostics());
    size_t kept = 0;
    for (size_t i = 0; i < seated_.size(); ++i) {
      Seat* const seat = seated_[i];
      v1::EvaluationEpisode* const result = &results[seat->episode];
      bool goes_on = Step(actions + i * action_dim, seat, result) || BeginAgain(seeds, seat, result);
      if (!goes_on && begun < count) {
        Begin(seeds, begun++, 0, seat);
        goes_on = true;
      }
      if (goes_on) seated_[kept++] = seat;
    }
    seated_.resize(kept);
  }
  return results;
}

absl::Status EpisodePlayer::Watch(const Seeds& seeds, uint32_t episode, const Watcher& watcher) {
  Seat* const seat = &seats_.front();
  seated_.assign(1, seat);
  v1::EvaluationEpisode result;
  Begin(seeds, episode, 0, seat);
  do {
    while (Step(Act(seeds, ActingDiagnostics()), seat, &result)) {
    }
  } while (BeginAgain(seeds, seat, &result));
  Begin(seeds, episode, seat->attempt, seat);
  result.Clear();
  for (bool goes_on = true;;) {
    Moment::Judgement judgement;
    // Of the last state, too: to be seen.
    const float* const action = Act(seeds, {&judgement.constraint, &judgement.cvar, &judgement.intervention});
    Moment moment;
    moment.task = seat->task.get();
    moment.step = seat->step;
    moment.reached = seat->reached;
    moment.sum_reward = result.return_();
    moment.last = !goes_on;
    if (rule_->has_constraint()) moment.judgement = judgement;
    RETURN_IF_ERROR(watcher(moment));
    if (!goes_on) return absl::OkStatus();
    goes_on = Step(action, seat, &result);
  }
}

}  // namespace datacom
