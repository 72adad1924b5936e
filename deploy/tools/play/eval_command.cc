#include "deploy/tools/play/commands.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actor/actor_setup.h"
#include "actor/episode_player.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/config/carried_task.h"
#include "common/config/experiment.h"
#include "common/records/csv.h"
#include "common/records/evaluation_means.h"
#include "common/records/message_json.h"
#include "common/tasks/text/task_file.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task.pb.h"
#include "deploy/tools/play/actions.h"
#include "deploy/tools/policies/run_policies.h"

namespace datacom::tools {
namespace {

// Prints evaluations as CSV or as a table, with a header before the first one, or all of them as JSON at the end.
class Output {
 public:
  Output(const EvalCommand& command, const v1::Experiment& experiment, const TaskSpec& spec, std::ostream* out)
      : form_(command.form),
        width_(command.width),
        options_(experiment.task_options()),
        cost_names_(spec.cost_names),
        log_names_(spec.log_names),
        success_(DefinesSuccess(experiment.task_options())),
        out_(out) {
    options_.ClearExtension(v1::text_task);  // too long to print
    options_.ClearExtension(v1::python_task);
  }

  void Print(uint32_t member, uint64_t seed, uint32_t epoch, const std::vector<v1::EvaluationEpisode>& episodes,
             bool shield = true) {
    if (form_ == EvalCommand::Form::kJson) return AddJson(member, seed, epoch, shield, episodes);
    if (!begun_) Begin();
    IsCsv() ? PrintEpisodes(member, epoch, shield, episodes) : PrintMeans(member, seed, epoch, shield, episodes);
    begun_ = true;
    out_->flush();
  }

  // The table of named costs, after all evaluations.
  void PrintCosts() {
    if (IsCsv() || cost_names_.empty()) return;
    const auto name = [this](const std::string& word) { return NameCell(word, "cost", cost_names_); };
    std::vector<TableColumn> table = {{name("cost")},      {" member"},       {"  epoch"},
                                      {"  max_violation"}, {"     sum_cost"}, {"  violating steps"}};
    for (const auto& [member, epoch, shield, means] : evaluations_) {
      for (size_t i = 0; i < means.named.size(); ++i) {
        const NamedCostValue& cost = means.named[i];
        AddRow({name(cost_names_[i]), absl::StrFormat(" %6u", member), absl::StrFormat(" %6u", epoch),
                absl::StrFormat(" %14.4f", cost.max_violation), absl::StrFormat(" %12.4f", cost.sum_cost),
                absl::StrFormat(" %16.2f", cost.violating_steps)},
               &table);
      }
    }
    *out_ << "Each cost:\n" << JoinColumns(table, width_);
  }

  void PrintJson() { *out_ << JsonText(list_, 1) << '\n'; }

  // Says in the JSON why a member is not played.
  void AddError(uint32_t member, uint64_t seed, uint32_t epoch, const absl::Status& why) {
    const std::string text(why.message());
    if (form_ == EvalCommand::Form::kJson)
      list_.push_back({{"member", member}, {"seed", seed}, {"epoch", epoch}, {"error", text}});
  }

  bool any() const { return begun_ || !list_.empty(); }

  // The table of what the shield did, after all evaluations; nothing for policies without one.
  void PrintShield() {
    const bool any = std::any_of(evaluations_.begin(), evaluations_.end(), [](const Evaluation& evaluation) {
      return !std::isnan(evaluation.means.shield_share);
    });
    if (IsCsv() || !any) return;
    std::vector<TableColumn> table = {
        {"member shield"}, {"  epoch"},  {"  discounted_return"}, {"     sum_cost"}, {"  violating steps"},
        {"    acts"},      {"  change"}, {"  infeasible"},        {"  largest k"},   {""}};
    for (const auto& [member, epoch, shield, means] : evaluations_) {
      const std::string state = ShieldState(means);
      AddRow(
          {absl::StrFormat("%6u %6s", member, shield ? "on" : "off"), absl::StrFormat(" %6u", epoch),
           Number(19, 4, means.discounted_return), Number(13, 4, means.sum_cost), Number(17, 2, means.violating_steps),
           Number(8, 3, means.shield_share), Number(8, 4, means.shield_change), Number(12, 3, means.infeasible_share),
           OrDash(11, means.largest_constraint, absl::StrFormat("%.4g", means.largest_constraint)),
           shield && state != "acts" ? "  " + state : ""},
          &table);
    }
    *out_ << WrapLines("The shield, the learned part of the filter:\n", width_) << JoinColumns(table, width_)
          << WrapLines(absl::StrCat("acts: share of steps in which it changes the action by more than ", kShieldActs,
                                    ", or would; change: the mean change; infeasible: share of states with k > 0; "
                                    "largest k: the largest CVaR - delta of an episode, mean over episodes; "
                                    "idle: it acts in less than 0.1 % of the steps; "
                                    "locked: over half of the states are infeasible\n"),
                       width_);
  }

  // The table of quantities that the task logs, after all evaluations.
  void PrintLogs() {
    if (IsCsv() || log_names_.empty()) return;
    const auto name = [this](const std::string& word) { return NameCell(word, "quantity", log_names_); };
    std::vector<TableColumn> table = {{name("quantity")}, {" member"}, {"  epoch"}, {"           mean"}};
    for (const auto& [member, epoch, shield, means] : evaluations_) {
      for (size_t i = 0; i < means.logs.size(); ++i) {
        AddRow({name(log_names_[i]), absl::StrFormat(" %6u", member), absl::StrFormat(" %6u", epoch),
                absl::StrFormat(" %14.6g", means.logs[i])},
               &table);
      }
    }
    *out_ << "Means over steps:\n" << JoinColumns(table, width_);
  }

 private:
  bool IsCsv() const { return form_ == EvalCommand::Form::kCsv; }

  // A cell or the heading of the first column, which has names. All are as wide as the widest.
  static std::string NameCell(const std::string& word, const std::string& heading,
                              const std::vector<std::string>& names) {
    size_t width = heading.size();
    for (const std::string& name : names) width = std::max(width, name.size());
    return word + std::string(width - word.size(), ' ');
  }
  static void AddRow(const std::vector<std::string>& cells, std::vector<TableColumn>* table) {
    for (size_t i = 0; i < table->size(); ++i) (*table)[i].push_back(cells[i]);
  }
  static std::string OrDash(int width, double value, const std::string& text) {
    return absl::StrFormat(" %*s", width - 1, std::isnan(value) ? "-" : text);  // also behind a wide cell
  }
  static std::string Number(int width, int decimals, double value) {
    return OrDash(width, value, absl::StrFormat("%.*f", decimals, value));
  }

  // The values of each named cost, and of each quantity that the task logs.
  nlohmann::json CostsJson(const NamedCostValues& values) const {
    nlohmann::json costs = nlohmann::json::object();
    for (size_t i = 0; i < std::min(values.size(), cost_names_.size()); ++i) {
      costs[cost_names_[i]] = {{"max_violation", values[i].max_violation},
                               {"sum_cost", values[i].sum_cost},
                               {"violating_steps", values[i].violating_steps}};
    }
    return costs;
  }
  template <typename Values>
  nlohmann::json LogsJson(const Values& values) const {
    nlohmann::json logs = nlohmann::json::object();
    for (size_t i = 0; i < std::min(static_cast<size_t>(values.size()), log_names_.size()); ++i) {
      logs[log_names_[i]] = values[static_cast<int>(i)];
    }
    return logs;
  }
  // An episode: the fields of the message, but named costs and logs by their names.
  nlohmann::json EpisodeJson(const v1::EvaluationEpisode& episode) const {
    nlohmann::json one = MessageJson(episode);
    one["return"] = one["return_"];
    for (const char* key : {"return_", "named_max_violation", "named_sum_cost", "named_violating_steps", "log_mean"}) {
      one.erase(key);
    }
    one["mean_cost"] = MeanCost(episode);
    one["costs"] = CostsJson(NamedCostsOf(episode));
    one["logs"] = LogsJson(episode.log_mean());
    return one;
  }
  // The same keys for the means over the episodes: of what holds or not the share.
  nlohmann::json MeansJson(const EvaluationMeans& means) const {
    nlohmann::json json = {
        {"abandoned", means.abandoned}, {"costs", CostsJson(means.named)}, {"logs", LogsJson(means.logs)}};
    for (const EvaluationMean& each : kEvaluationMeans) json[std::string(each.key)] = means.*each.mean;
    if (!success_) json["success"] = json["reached"] = nullptr;
    return json;
  }
  void AddJson(uint32_t member, uint64_t seed, uint32_t epoch, bool shield,
               const std::vector<v1::EvaluationEpisode>& episodes) {
    const nlohmann::json head = {{"member", member}, {"seed", seed}, {"epoch", epoch}, {"shield", shield}};
    for (size_t i = 0; i < episodes.size(); ++i) {
      nlohmann::json one = head;
      one["episode"] = i;
      one.update(EpisodeJson(episodes[i]));
      list_.push_back(std::move(one));
    }
    nlohmann::json mean = head;
    mean["episode"] = nullptr;
    mean["episodes"] = episodes.size();
    mean.update(MeansJson(MeansOf(episodes)));
    list_.push_back(std::move(mean));
  }
  void Begin() {
    if (IsCsv()) {
      *out_ << "member,epoch,episode,discounted_return,return,max_violation,sum_cost,violating_steps,mean_cost,length,"
               "success,abandoned,reached,absorbed,shield,shield_share,shield_change,infeasible_share,"
               "largest_constraint";
      for (const std::string& column : NamedCostColumns(cost_names_)) *out_ << ',' << column;
      for (const std::string& column : LogColumns(log_names_)) *out_ << ',' << column;
      *out_ << '\n';
      return;
    }
    if (options_.ByteSizeLong() > 0) {
      *out_ << WrapLines(absl::StrCat("task_options { ", options_.ShortDebugString(), " }\n"), width_);
    }
  }
  void PrintEpisodes(uint32_t member, uint32_t epoch, bool shield, const std::vector<v1::EvaluationEpisode>& episodes) {
    for (size_t i = 0; i < episodes.size(); ++i) {
      const v1::EvaluationEpisode& e = episodes[i];
      *out_ << member << ',' << epoch << ',' << i << ',' << Cell(e.discounted_return()) << ',' << Cell(e.return_())
            << ',' << Cell(e.max_violation()) << ',' << Cell(e.sum_cost()) << ',' << e.violating_steps() << ','
            << Cell(MeanCost(e)) << ',' << e.length() << ',' << e.success() << ',' << e.abandoned() << ','
            << e.reached() << ',' << e.absorbed() << ',' << shield << ','
            << (e.has_shield_share() ? Cell(e.shield_share()) : "") << ','
            << (e.has_shield_change() ? Cell(e.shield_change()) : "") << ','
            << (e.has_infeasible_share() ? Cell(e.infeasible_share()) : "") << ','
            << (e.has_largest_constraint() ? Cell(e.largest_constraint()) : "");
      std::vector<std::string> named;
      AppendNamedCosts(NamedCostsOf(e), cost_names_.size(), &named);
      AppendLogs(e.log_mean(), log_names_.size(), &named);
      for (const std::string& cell : named) *out_ << ',' << cell;
      *out_ << '\n';
    }
  }
  void PrintMeans(uint32_t member, uint64_t seed, uint32_t epoch, bool shield,
                  const std::vector<v1::EvaluationEpisode>& episodes) {
    const EvaluationMeans means = MeansOf(episodes);
    const std::vector<TableColumn> columns = {{"member", absl::StrFormat("%6u", member)},
                                              {"       seed", absl::StrFormat(" %10u", seed)},
                                              {"  epoch", absl::StrFormat(" %6u", epoch)},
                                              {"  episodes", absl::StrFormat(" %9u", episodes.size())},
                                              {"  discounted_return", Number(19, 4, means.discounted_return)},
                                              {"       return", Number(13, 4, means.return_)},
                                              {"  max_violation", Number(15, 4, means.max_violation)},
                                              {"     sum_cost", Number(13, 4, means.sum_cost)},
                                              {"  violating steps", Number(17, 2, means.violating_steps)},
                                              {"  mean_cost", Number(11, 5, means.mean_cost)},
                                              {"    length", Number(10, 1, means.length)},
                                              {"  success", Share(means.success_rate)},
                                              {"  reached", Share(means.reached_rate)},
                                              {"  violated", Number(10, 2, means.violated_rate)},
                                              {"  absorbed", Number(10, 2, means.absorbed_rate)},
                                              {"  abandoned", absl::StrFormat(" %10d", means.abandoned)}};
    const std::string table = JoinColumns(columns, width_);
    const bool folded = std::count(table.begin(), table.end(), '\n') > 2;
    *out_ << (begun_ && !folded ? table.substr(table.find('\n') + 1) : table);
    evaluations_.push_back({member, epoch, shield, means});
  }

  // "-" if the task cannot say.
  std::string Share(double value) const { return Number(9, 2, success_ ? value : std::nan("")); }

  const EvalCommand::Form form_;
  nlohmann::json list_ = nlohmann::json::array();
  const int width_;
  v1::TaskOptions options_;
  const std::vector<std::string> cost_names_, log_names_;
  const bool success_;
  struct Evaluation {
    uint32_t member, epoch;
    bool shield;
    EvaluationMeans means;
  };
  std::vector<Evaluation> evaluations_;
  std::ostream* const out_;
  bool begun_ = false;
};

absl::StatusOr<std::vector<v1::EvaluationEpisode>> Play(const actor::EpisodePlayer::Seeds& seeds, uint32_t count,
                                                        actor::EpisodePlayer* player) {
  // MuJoCo's compiler cannot be asked to stop, so until here a signal ends the process.
  Stop::InstallSignalHandlers();
  return player->Play(seeds, count, [] {
    return Stop::Process().requested() ? absl::CancelledError("stopping was requested") : absl::OkStatus();
  });
}

// DATA_LOSS if no episode counts. who: what was played.
absl::Status CheckPlayed(const std::string& who, const std::vector<v1::EvaluationEpisode>& episodes) {
  if (MeansOf(episodes).episodes > 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(who, ": ", episodes.size(), " of ", episodes.size(),
                                          " episodes were abandoned, because the simulator warned or a number was not ",
                                          "usable; `datacom task check` names such numbers of a task file"));
}

absl::StatusOr<v1::Experiment> ReadExperiment(const EvalCommand& command) {
  const std::vector<std::string> tasks = TaskNames();
  if (command.policy.empty() && !IsRunFolder(command.what) &&
      (text::IsTaskFile(command.what) || std::find(tasks.begin(), tasks.end(), command.what) != tasks.end())) {
    return absl::InvalidArgumentError(
        absl::StrCat(command.what, " is a task, not a run: name a policy too, --policy zeros, random or scripted"));
  }
  if (command.policy.empty() || IsRunFolder(command.what)) return ReadRunExperiment(command.what, command.set);
  ASSIGN_OR_RETURN(const NamedTask task, FindTask(command.what, command.set));
  v1::Experiment experiment;
  experiment.set_task(task.name);
  *experiment.mutable_task_options() = task.options;
  return ResolveExperiment(std::move(experiment));
}

absl::Status EvaluateRun(const EvalCommand& command, const v1::Experiment& experiment, uint32_t count, Output* output) {
  ASSIGN_OR_RETURN(const auto init, ParseInit(command.init));
  ASSIGN_OR_RETURN(std::vector<MemberPolicy> policies, ReadPolicies(command.what, command.epoch.value_or("last")));
  RETURN_IF_ERROR(ChooseKnownRows(experiment, command.set, &policies));
  if (command.member.has_value()) RETURN_IF_ERROR(FindMember(policies, *command.member).status());
  absl::Status failed;  // the other members are evaluated
  for (const auto& [epoch, snapshot] : policies) {
    if (command.member.has_value() && snapshot.member != *command.member) continue;
    if (const absl::Status status = snapshot.CheckFinite(); !status.ok()) {
      output->AddError(snapshot.member, snapshot.member_seed, epoch, status);
      failed.Update(status);
      continue;
    }
    ASSIGN_OR_RETURN(const std::unique_ptr<actor::EpisodePlayer> player,
                     actor::MakeEpisodePlayer(experiment, snapshot, count));
    RETURN_IF_ERROR(player->StartAt(init));
    const actor::EpisodePlayer::Seeds seeds = {command.seed.value_or(experiment.run().seed()), snapshot.member_seed,
                                               epoch};
    if (command.shield != "on" && !player->has_shield()) {
      return absl::InvalidArgumentError(absl::StrCat("--shield ", command.shield, ": ", experiment.algorithm(),
                                                     " learns no part of a filter, so its policies have no shield"));
    }
    for (const bool shield : {true, false}) {
      if (command.shield != "both" && shield != (command.shield == "on")) continue;
      player->UseShield(shield);
      ASSIGN_OR_RETURN(const std::vector<v1::EvaluationEpisode> episodes, Play(seeds, count, player.get()));
      output->Print(snapshot.member, snapshot.member_seed, epoch, episodes, shield);
      failed.Update(CheckPlayed(absl::StrCat("member ", snapshot.member), episodes));
    }
  }
  return failed;
}

absl::Status EvaluateUntrained(const EvalCommand& command, const v1::Experiment& experiment, const TaskModel& model,
                               uint32_t count, std::ostream* out, Output* output) {
  if (command.member.has_value() || command.epoch.has_value() || command.shield != "on") {
    return absl::InvalidArgumentError(
        absl::StrCat("--member, --epoch and --shield belong to a run's policy, not to --policy ", command.policy));
  }
  ASSIGN_OR_RETURN(UntrainedPolicy policy, MakeUntrainedPolicy(command.policy, model));
  ASSIGN_OR_RETURN(const std::unique_ptr<actor::EpisodePlayer> player,
                   actor::MakeEpisodePlayer(experiment, std::move(policy.rule), count));
  ASSIGN_OR_RETURN(const auto init, ParseInit(command.init));
  RETURN_IF_ERROR(player->StartAt(init));
  if (command.form == EvalCommand::Form::kTable)
    *out << WrapLines(absl::StrCat(experiment.task(), ", ", policy.title, "\n"), command.width);
  const actor::EpisodePlayer::Seeds seeds = {command.seed.value_or(experiment.run().seed()), 0, 0};
  ASSIGN_OR_RETURN(const std::vector<v1::EvaluationEpisode> episodes, Play(seeds, count, player.get()));
  output->Print(0, 0, 0, episodes);
  return CheckPlayed(absl::StrCat("--policy ", command.policy), episodes);
}

}  // namespace

absl::Status RunEvalCommand(const EvalCommand& given, std::ostream* out) {
  EvalCommand command = given;
  ASSIGN_OR_RETURN(command.what, RunFolderOf(given.what));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadExperiment(command));
  absl::StatusOr<TaskModel> model = MakeTaskModel(experiment.task(), experiment.task_options());
  if (!model.ok()) return absl::InvalidArgumentError(model.status().message());
  const uint32_t count = command.episodes.value_or(experiment.run().eval_episodes());
  if (count == 0) return absl::InvalidArgumentError("--episodes: 0 is too few");
  Output output(command, experiment, model->spec, out);
  const absl::Status played = command.policy.empty()
                                  ? EvaluateRun(command, experiment, count, &output)
                                  : EvaluateUntrained(command, experiment, *model, count, out, &output);
  const bool partly = absl::IsDataLoss(played) && output.any();  // what is known is printed
  if (!played.ok() && !partly) return played;
  if (command.form == EvalCommand::Form::kJson) output.PrintJson();
  if (command.form != EvalCommand::Form::kTable) return played;
  output.PrintShield();
  output.PrintCosts();
  output.PrintLogs();
  *out << WrapLines(
      absl::StrCat(
          "Shares of episodes. success: at the end; reached: at some step; violated: a cost above 0; absorbed: ended ",
          model->spec.absorbing.empty() ? "early by the task (never in this task)" : "by " + model->spec.absorbing,
          "\n"),
      command.width);
  return played;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
