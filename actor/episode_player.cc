#include "actor/episode_player.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr uint32_t kTickSteps = 256;

}  // namespace

EpisodePlayer::EpisodePlayer(std::unique_ptr<Task> task, std::unique_ptr<ActingRule> rule, double discount)
    : task_(std::move(task)),
      rule_(std::move(rule)),
      discount_(discount),
      observation_(task_->spec().obs_dim),
      noise_(std::max(1, rule_->noise_dim())),
      action_(task_->spec().action_dim),
      wide_observation_(task_->spec().obs_dim),
      wide_action_(task_->spec().action_dim) {}

absl::StatusOr<std::unique_ptr<EpisodePlayer>> EpisodePlayer::Make(const v1::Experiment& experiment,
                                                                   const Snapshot& snapshot) {
  if (snapshot.task != experiment.task()) {
    return absl::FailedPreconditionError(absl::StrCat("snapshot of member ", snapshot.member, " is for task ",
                                                      snapshot.task, ", not ", experiment.task()));
  }
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(experiment.task(), experiment.task_options()));
  absl::StatusOr<std::unique_ptr<ActingRule>> rule = MakeActingRule(snapshot, model, 1);
  if (!rule.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("snapshot of member ", snapshot.member, " at update ",
                                                      snapshot.version.update, ": ", rule.status().message()));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Task> task, MakeTask(experiment.task(), experiment.task_options()));
  return std::make_unique<EpisodePlayer>(std::move(task), *std::move(rule), experiment.learner().discount());
}

void EpisodePlayer::Round() {
  for (size_t i = 0; i < wide_observation_.size(); ++i) observation_[i] = static_cast<float>(wide_observation_[i]);
}

absl::StatusOr<v1::EvaluationEpisode> EpisodePlayer::PlayOne(const Seeds& seeds, uint32_t episode,
                                                             const std::function<absl::Status()>& tick) {
  RandomStream stream(StreamKey("eval.episode", {seeds.run, seeds.member, seeds.epoch, episode}));
  task_->Reset(&stream, wide_observation_.data());
  Round();
  v1::EvaluationEpisode result;
  double discount = 1;  // discount^t
  const uint32_t horizon = static_cast<uint32_t>(task_->spec().horizon);
  for (uint32_t step = 0; step < horizon; ++step) {
    if (step % kTickSteps == 0) RETURN_IF_ERROR(tick());
    FillNormal(StreamKey("eval.noise", {seeds.run, seeds.member, seeds.epoch, episode, step}), noise_.data(),
               rule_->noise_dim());
    rule_->Act(1, observation_.data(), noise_.data(), action_.data(), ActingDiagnostics());
    for (size_t i = 0; i < action_.size(); ++i) wide_action_[i] = action_[i];
    const StepResult reached = task_->Step(wide_action_.data(), wide_observation_.data());
    if (!reached.valid) {
      spdlog::warn("evaluation episode={} step={}: the simulator called the step invalid, the episode ends here",
                   episode, step);
      break;
    }
    Round();
    const double violation = std::max(reached.cost, 0.0);
    result.set_discounted_return(result.discounted_return() + discount * reached.reward);
    result.set_return_(result.return_() + reached.reward);
    result.set_max_violation(std::max(result.max_violation(), violation));
    result.set_sum_cost(result.sum_cost() + violation);
    result.set_length(step + 1);
    discount *= discount_;
    if (reached.absorbing) break;
  }
  result.set_success(task_->Success());
  return result;
}

absl::StatusOr<std::vector<v1::EvaluationEpisode>> EpisodePlayer::Play(const Seeds& seeds, uint32_t count,
                                                                       const std::function<absl::Status()>& tick) {
  std::vector<v1::EvaluationEpisode> results;
  for (uint32_t episode = 0; episode < count; ++episode) {
    ASSIGN_OR_RETURN(v1::EvaluationEpisode result, PlayOne(seeds, episode, tick));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace datacom
