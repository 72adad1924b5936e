#include "actor/eval_command.h"

#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "actor/csv.h"
#include "actor/episode_player.h"
#include "actor/policies.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/records/evaluation_means.h"

namespace datacom {
namespace {

void PrintEpisodes(uint32_t member, uint32_t epoch, const std::vector<v1::EvaluationEpisode>& episodes,
                   std::ostream* out) {
  for (size_t i = 0; i < episodes.size(); ++i) {
    const v1::EvaluationEpisode& e = episodes[i];
    *out << member << ',' << epoch << ',' << i << ',' << Exact(e.discounted_return()) << ',' << Exact(e.return_())
         << ',' << Exact(e.max_violation()) << ',' << Exact(e.sum_cost()) << ',' << Exact(MeanCost(e)) << ','
         << e.length() << ',' << (e.success() ? 1 : 0) << ',' << (e.abandoned() ? 1 : 0) << '\n';
  }
}

void PrintMeans(const Snapshot& snapshot, uint32_t epoch, const std::vector<v1::EvaluationEpisode>& episodes,
                std::ostream* out) {
  const EvaluationMeans means = MeansOf(episodes);
  char line[256];
  std::snprintf(line, sizeof line, "%6u %10llu %6u %9zu %18.4f %12.4f %14.4f %12.4f %10.5f %9.1f %8.2f %10d",
                snapshot.member, static_cast<unsigned long long>(snapshot.member_seed), epoch, episodes.size(),
                means.discounted_return, means.return_, means.max_violation, means.sum_cost, means.mean_cost,
                means.length, means.success_rate, means.abandoned);
  *out << line << '\n';
}

}  // namespace

absl::Status RunEvalCommand(const EvalCommand& command, std::ostream* out) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadRunExperiment(command.run_dir, command.set));
  ASSIGN_OR_RETURN(const std::vector<MemberPolicy> policies, ReadPolicies(command.run_dir, command.epoch));
  const uint32_t count = command.episodes.value_or(experiment.run().eval_episodes());
  if (count == 0) return absl::InvalidArgumentError("--episodes: 0 is too few");
  if (command.member.has_value()) RETURN_IF_ERROR(FindMember(policies, *command.member).status());
  bool header = false;
  for (const auto& [epoch, snapshot] : policies) {
    if (command.member.has_value() && snapshot.member != *command.member) continue;
    ASSIGN_OR_RETURN(const std::unique_ptr<EpisodePlayer> player, EpisodePlayer::Make(experiment, snapshot, count));
    const EpisodePlayer::Seeds seeds = {command.seed.value_or(experiment.run().seed()), snapshot.member_seed, epoch};
    ASSIGN_OR_RETURN(const std::vector<v1::EvaluationEpisode> episodes, player->Play(seeds, count, [] {
      return Stop::Process().requested() ? absl::CancelledError("stopping was requested") : absl::OkStatus();
    }));
    if (!header) {
      if (!command.csv && experiment.task_options().ByteSizeLong() > 0) {
        *out << "task_options { " << experiment.task_options().ShortDebugString() << " }\n";
      }
      *out << (command.csv
                   ? "member,epoch,episode,discounted_return,return,max_violation,sum_cost,mean_cost,length,success,"
                     "abandoned\n"
                   : "member       seed  epoch  episodes  discounted_return       return  max_violation     sum_cost  "
                     "mean_cost    length  success  abandoned\n");
      header = true;
    }
    if (command.csv) {
      PrintEpisodes(snapshot.member, epoch, episodes, out);
    } else {
      PrintMeans(snapshot, epoch, episodes, out);
    }
    out->flush();
  }
  return absl::OkStatus();
}

}  // namespace datacom
