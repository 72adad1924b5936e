#include "learner/run_records.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/records/evaluation_means.h"
#include "common/records/named_costs.h"
#include "learner/build_text.h"

namespace datacom::learner {
namespace {

const std::vector<std::string>& ProgressHeader() {
  static const auto* const kHeader = new std::vector<std::string>{"member",
                                                                  "seed",
                                                                  "epoch",
                                                                  "env_steps",
                                                                  "updates",
                                                                  "wall_seconds",
                                                                  "eval_episodes",
                                                                  "eval_discounted_return",
                                                                  "eval_return",
                                                                  "eval_max_violation",
                                                                  "eval_sum_cost",
                                                                  "eval_mean_cost",
                                                                  "eval_success_rate",
                                                                  "train_episodes",
                                                                  "train_return",
                                                                  "train_max_violation",
                                                                  "train_sum_cost",
                                                                  "delta",
                                                                  "alpha",
                                                                  "multiplier",
                                                                  "policy_loss",
                                                                  "critic_loss",
                                                                  "constraint_loss",
                                                                  "constraint_mean",
                                                                  "entropy",
                                                                  "policy_lag",
                                                                  "samples_per_insert",
                                                                  "lanes",
                                                                  "status",
                                                                  "q_mean",
                                                                  "q_min",
                                                                  "q_gap",
                                                                  "actor_gradient_norm",
                                                                  "critic_gradient_norm",
                                                                  "constraint_gradient_norm"};
  return *kHeader;
}

const std::vector<std::string>& EpisodesHeader() {
  static const auto* const kHeader = new std::vector<std::string>{
      "member", "session",       "environment", "episode",       "env_steps", "length", "discounted_return",
      "return", "max_violation", "sum_cost",    "policy_version"};
  return *kHeader;
}

// Updates per inserted row beyond replay.min_size; NaN before the first such row.
double SamplesPerInsert(const v1::Experiment& experiment, const v1::EpochRecord& record, int member) {
  const uint64_t min_size = experiment.replay().min_size(), inserted = record.members(member).inserted();
  if (inserted <= min_size) return std::nan("");
  return static_cast<double>(record.updates()) / static_cast<double>(inserted - min_size);
}

// What the training episodes' sums are divided by. NaN without an episode: then the cell of a mean is empty.
double EpisodeCount(const v1::MemberEpoch& member) {
  return member.train_episodes() > 0 ? static_cast<double>(member.train_episodes()) : std::nan("");
}

// The header and one column pair for each named cost.
std::vector<std::string> WithNamedCosts(std::vector<std::string> header, const std::vector<std::string>& names,
                                        const std::string& prefix) {
  for (std::string& column : NamedCostColumns(names, prefix)) header.push_back(std::move(column));
  return header;
}

// One member's row of progress.csv, in the order of ProgressHeader, without named costs.
std::vector<std::string> ProgressRow(const v1::Experiment& experiment, const v1::EpochRecord& record,
                                     const EvaluationMeans& eval, int index) {
  const v1::MemberEpoch& member = record.members(index);
  const double count = EpisodeCount(member);
  return {Cell(index),
          Cell(experiment.members(index).seed()),
          Cell(record.epoch()),
          Cell(record.env_steps()),
          Cell(record.updates()),
          Cell(record.wall_seconds()),
          Cell(eval.episodes),
          Cell(eval.discounted_return),
          Cell(eval.return_),
          Cell(eval.max_violation),
          Cell(eval.sum_cost),
          Cell(eval.mean_cost),
          Cell(eval.success_rate),
          Cell(member.train_episodes()),
          Cell(member.train_return() / count),
          Cell(member.train_max_violation() / count),
          Cell(member.train_sum_cost() / count),
          Cell(member.delta()),
          Cell(member.alpha()),
          Cell(member.multiplier()),
          Cell(member.policy_loss()),
          Cell(member.critic_loss()),
          Cell(member.constraint_loss()),
          Cell(member.constraint_mean()),
          Cell(member.entropy()),
          Cell(member.policy_lag() / count),
          Cell(SamplesPerInsert(experiment, record, index)),
          Cell(member.lanes()),
          member.diverged()         ? "diverged"
          : member.critic_runaway() ? "runaway"
                                    : "ok",
          Cell(member.q_mean()),
          Cell(member.q_min()),
          Cell(member.q_gap()),
          Cell(member.actor_gradient_norm()),
          Cell(member.critic_gradient_norm()),
          Cell(member.constraint_gradient_norm())};
}

// One member's TensorBoard scalars.
std::vector<std::pair<std::string, double>> Scalars(const v1::Experiment& experiment, const v1::EpochRecord& record,
                                                    const EvaluationMeans& eval, int index) {
  const v1::MemberEpoch& member = record.members(index);
  const double count = EpisodeCount(member);
  return {{"eval/discounted_return", eval.discounted_return},
          {"eval/return", eval.return_},
          {"eval/max_violation", eval.max_violation},
          {"eval/sum_cost", eval.sum_cost},
          {"eval/mean_cost", eval.mean_cost},
          {"eval/success_rate", eval.success_rate},
          {"train/return", member.train_return() / count},
          {"train/max_violation", member.train_max_violation() / count},
          {"train/sum_cost", member.train_sum_cost() / count},
          {"train/episodes", static_cast<double>(member.train_episodes())},
          {"learner/delta", member.delta()},
          {"learner/alpha", member.alpha()},
          {"learner/multiplier", member.multiplier()},
          {"learner/policy_loss", member.policy_loss()},
          {"learner/critic_loss", member.critic_loss()},
          {"learner/constraint_loss", member.constraint_loss()},
          {"learner/constraint_mean", member.constraint_mean()},
          {"learner/entropy", member.entropy()},
          {"learner/q_mean", member.q_mean()},
          {"learner/q_min", member.q_min()},
          {"learner/q_gap", member.q_gap()},
          {"learner/actor_gradient_norm", member.actor_gradient_norm()},
          {"learner/critic_gradient_norm", member.critic_gradient_norm()},
          {"learner/constraint_gradient_norm", member.constraint_gradient_norm()},
          {"learner/policy_lag", member.policy_lag() / count},
          {"learner/samples_per_insert", SamplesPerInsert(experiment, record, index)},
          {"actor/lanes", static_cast<double>(member.lanes())}};
}

}  // namespace

RunRecords::RunRecords(const v1::Experiment& experiment, std::vector<std::string> cost_names,
                       std::unique_ptr<CsvWriter> progress, std::unique_ptr<CsvWriter> episodes, Events events)
    : experiment_(experiment),
      cost_names_(std::move(cost_names)),
      progress_(std::move(progress)),
      episodes_(std::move(episodes)),
      events_(std::move(events)) {}

absl::StatusOr<std::unique_ptr<RunRecords>> RunRecords::Open(const std::string& run_dir, const v1::Experiment& resolved,
                                                             const std::vector<std::string>& cost_names,
                                                             const std::vector<v1::FileOffset>& offsets) {
  std::map<std::string, uint64_t> at;
  for (const v1::FileOffset& offset : offsets) at[offset.path()] = offset.bytes();
  RETURN_IF_ERROR(MakeFolders(run_dir));
  ASSIGN_OR_RETURN(auto progress,
                   CsvWriter::Resume(run_dir + "/progress.csv", WithNamedCosts(ProgressHeader(), cost_names, "eval_"),
                                     at["progress.csv"]));
  ASSIGN_OR_RETURN(auto episodes,
                   CsvWriter::Resume(run_dir + "/episodes.csv", WithNamedCosts(EpisodesHeader(), cost_names, ""),
                                     at["episodes.csv"]));
  Events events;
  for (int member = 0; member < resolved.members_size(); ++member) {
    const std::string folder = absl::StrCat("tensorboard/member_", member);
    ASSIGN_OR_RETURN(auto writer, EventWriter::Open(absl::StrCat(run_dir, "/", folder), at[folder]));
    events.emplace_back(folder, std::move(writer));
  }
  const std::string build = run_dir + "/build.txt";
  RETURN_IF_ERROR(WriteFileAtomically(build, BuildText(ReadFile(build).value_or(""))));
  return std::unique_ptr<RunRecords>(
      new RunRecords(resolved, cost_names, std::move(progress), std::move(episodes), std::move(events)));
}

absl::Status RunRecords::AppendEpisode(int member, const v1::Episode& episode) {
  std::vector<std::string> cells = {Cell(member),
                                    Cell(episode.session()),
                                    Cell(episode.environment()),
                                    Cell(episode.episode()),
                                    Cell(episode.last_row()),
                                    Cell(episode.length()),
                                    Cell(episode.discounted_return()),
                                    Cell(episode.return_()),
                                    Cell(episode.max_violation()),
                                    Cell(episode.sum_cost()),
                                    Cell(episode.policy_update())};
  AppendNamedCosts(NamedCostsOf(episode), cost_names_.size(), &cells);
  return episodes_->Append(cells);
}

absl::Status RunRecords::AppendEpoch(const v1::EpochRecord& record) {
  for (int member = 0; member < record.members_size(); ++member) {
    const EvaluationMeans eval = MeansOf(record.members(member).evaluation());
    std::vector<std::string> row = ProgressRow(experiment_, record, eval, member);
    AppendNamedCosts(eval.named, cost_names_.size(), &row);
    RETURN_IF_ERROR(progress_->Append(row));
    auto scalars = Scalars(experiment_, record, eval, member);
    for (size_t i = 0; i < std::min(eval.named.size(), cost_names_.size()); ++i) {
      scalars.emplace_back("eval/max_violation." + cost_names_[i], eval.named[i].first);
      scalars.emplace_back("eval/sum_cost." + cost_names_[i], eval.named[i].second);
    }
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    RETURN_IF_ERROR(events_[member].second->Append(static_cast<int64_t>(record.env_steps()), now, scalars));
  }
  return Flush(/*sync=*/false);
}

absl::Status RunRecords::Sync() { return Flush(/*sync=*/true); }

absl::Status RunRecords::Flush(bool sync) {
  RETURN_IF_ERROR(progress_->Flush(sync));
  RETURN_IF_ERROR(episodes_->Flush(sync));
  for (const auto& [folder, writer] : events_) RETURN_IF_ERROR(writer->Flush(sync));
  return absl::OkStatus();
}

std::vector<v1::FileOffset> RunRecords::Offsets() const {
  std::vector<v1::FileOffset> offsets;
  const auto add = [&offsets](const std::string& path, uint64_t bytes) {
    offsets.emplace_back();
    offsets.back().set_path(path);
    offsets.back().set_bytes(bytes);
  };
  add("progress.csv", progress_->Offset());
  add("episodes.csv", episodes_->Offset());
  for (const auto& [folder, writer] : events_) add(folder, writer->Offset());
  return offsets;
}

}  // namespace datacom::learner
