#include "deploy/tools/play/violation.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actor/environment_batch.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/tasks/checked_step.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/tools/play/step_table.h"
#include "deploy/tools/policies/run_policies.h"

namespace datacom::tools {
namespace {

bool SameBits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

std::string Vector(const std::vector<float>& values) { return absl::StrCat("[", absl::StrJoin(values, ", "), "]"); }

std::string Describe(const ViolationEpisode& episode) {
  const LedgerViolation& v = episode.violation();
  std::string text = absl::StrCat("violation ", v.id, ": member ", v.member, " (seed ", v.seed, "), environment step ",
                                  v.env_steps, ", policy ", v.policy_version, "\n  ", v.actor, ", session ", v.session,
                                  ", environment ", v.environment, ", episode ", v.episode, ", step ", v.step, " of ",
                                  episode.steps(), " recorded\n  cost ", v.cost, "\n");
  if (v.judgement.has_value()) {
    absl::StrAppend(&text, "  CVaR ", v.judgement->cvar, ", delta ", v.judgement->delta, ", slack ", v.judgement->slack,
                    "\n");
  }
  return absl::StrCat(text, "  policy action ", Vector(v.raw_action), ", executed ", Vector(v.executed_action), "\n");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ViolationEpisode>> ViolationEpisode::Load(const std::string& run_dir, uint64_t id) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadRunExperiment(run_dir, {}));
  std::unique_ptr<ViolationEpisode> episode(new ViolationEpisode);
  episode->run_ = experiment.name();
  episode->run_seed_ = experiment.run().seed();
  ASSIGN_OR_RETURN(episode->violation_, ReadViolation(run_dir, id));
  ASSIGN_OR_RETURN(episode->recorded_, ReadEpisode(run_dir, episode->violation_));
  ASSIGN_OR_RETURN(episode->model_, MakeTaskModel(experiment.task(), experiment.task_options()));
  ASSIGN_OR_RETURN(episode->task_, MakeTask(experiment.task(), experiment.task_options()));
  const size_t actions = episode->violation_.executed_action.size();
  if (actions != static_cast<size_t>(episode->spec().action_dim)) {
    return absl::DataLossError(absl::StrCat(run_dir, "/ledger: ", actions, " action values per step, task ",
                                            experiment.task(), " has ", episode->spec().action_dim));
  }
  return episode;
}

std::string ViolationEpisode::title() const {
  return absl::StrCat(run_, "   violation ", violation_.id, "   member ", violation_.member, "   step ",
                      violation_.env_steps, " of training");
}

absl::Status ViolationEpisode::Play(const StateWatcher& watcher) {
  std::vector<double> wide(spec().obs_dim), action(spec().action_dim);
  std::vector<float> before(wide.size()), after(wide.size());
  RandomStream stream =
      actor::EpisodeStart(run_seed_, violation_.seed, violation_.session, violation_.environment, violation_.episode);
  task_->Reset(&stream, wide.data());
  const auto round = [](double value) { return static_cast<float>(value); };
  std::transform(wide.begin(), wide.end(), before.begin(), round);
  actor::EpisodeState state;
  state.task = task_.get();
  state.observation = wide.data();
  state.reached.cost = task_->Cost();
  RETURN_IF_ERROR(watcher(state, nullptr));
  for (uint32_t step = 0; step < steps(); ++step) {
    std::copy(recorded_[step].execution.begin(), recorded_[step].execution.end(), action.begin());
    state.reached = CheckedStep(task_.get(), action.data(), wide.data());
    RETURN_IF_ERROR(task_->status());
    std::transform(wide.begin(), wide.end(), after.begin(), round);
    RETURN_IF_ERROR(Compare(step, before, after, state.reached));
    state.sum_reward += state.reached.reward;
    state.step = step + 1;
    state.last = state.step == steps();
    RETURN_IF_ERROR(watcher(state, action.data()));
    before.swap(after);
  }
  return absl::OkStatus();
}

absl::Status ViolationEpisode::Compare(uint32_t step, const std::vector<float>& before, const std::vector<float>& after,
                                       const StepResult& result) const {
  const LedgerStep& recorded = recorded_[step];
  const std::string where = absl::StrCat("violation ", violation_.id, ", step ", step, " of its episode: ");
  const std::string hint = "; the run's build.txt names the build that recorded it";
  if (!result.valid) return absl::InternalError(absl::StrCat(where, "the simulator reports it as invalid", hint));
  const auto cost = static_cast<float>(result.cost);
  if (!SameBits(cost, recorded.cost)) {
    return absl::InternalError(absl::StrCat(where, "cost ", recorded.cost, " recorded, ", cost,
                                            " simulated, difference ", static_cast<double>(cost) - recorded.cost,
                                            hint));
  }
  const uint32_t check =
      StepCheck(before.data(), after.data(), spec().obs_dim, static_cast<float>(result.reward), result.absorbing);
  if (check == recorded.check) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(where, "observation, reward or end differ from the record (CRC-32C ",
                                          absl::Hex(recorded.check), " recorded, ", absl::Hex(check),
                                          " simulated), but the cost, ", cost, ", is equal", hint));
}

absl::Status RunViolationCommand(const ViolationCommand& command, std::ostream* out, std::ostream* notes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ViolationEpisode> episode,
                   ViolationEpisode::Load(command.run_dir, command.id));
  Stop::InstallSignalHandlers();  // only now, as in eval_command.cc
  std::ostream* const about = command.csv ? notes : out;
  *about << WrapLines(Describe(*episode), command.width);
  std::optional<StepTable> table;
  if (command.csv) table.emplace(episode->spec(), /*csv=*/true, out);
  RETURN_IF_ERROR(episode->Play([&table](const actor::EpisodeState& state, const double* action) {
    if (Stop::Process().requested()) return absl::CancelledError("stopping was requested");
    if (table) table->Add(state, action);
    return absl::OkStatus();
  }));
  *about << WrapLines(absl::StrCat("simulated again: ", episode->steps(),
                                   " steps; every observation, reward and cost equals the record bit for bit\n"),
                      command.width);
  return absl::OkStatus();
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
