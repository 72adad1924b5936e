#include "learner/run_records.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/files.h"
#include "common/base/machine.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/records/evaluation_means.h"
#include "google/protobuf/stubs/common.h"
#include "grpcpp/version_info.h"
#include "learner/algorithms/algorithm.h"
#include "spdlog/version.h"

namespace datacom::learner {
namespace {

// The statistic before the column status.
constexpr int kBeforeStatus = v1::MemberEpoch::kLanesFieldNumber;

std::vector<std::string> ProgressHeader(const RunRecords::Options& options) {
  std::vector<std::string> header = {"member",  "seed",         "epoch",        "env_steps",
                                     "updates", "wall_seconds", "eval_episodes"};
  for (const EvaluationMean& mean : kEvaluationMeans) {
    if (!mean.name.empty()) header.push_back(absl::StrCat("eval_", mean.name));
  }
  for (const EpochStatistic& statistic : StatisticsOf(options.algorithm)) {
    header.push_back(statistic.name());
    if (statistic.number() == kBeforeStatus) header.insert(header.end(), {"status", "abandoned_reason"});
  }
  for (std::string& column : NamedCostColumns(options.cost_names, "eval_")) header.push_back(std::move(column));
  for (std::string& column : LogColumns(options.log_names, "eval_")) header.push_back(std::move(column));
  return header;
}

// NaN for a count of 0; the cell of the mean is empty then.
double Mean(double sum, uint64_t count) { return count > 0 ? sum / static_cast<double>(count) : std::nan(""); }

// The number that records show for a statistic (v1::Statistic::Fold).
double Shown(const EpochStatistic& statistic, const v1::EpochRecord& record, int index, uint64_t min_size) {
  const v1::MemberEpoch& member = record.members(index);
  const double value = statistic.Get(member);
  if (statistic.about().fold() == v1::Statistic::EPISODE_MEAN) return Mean(value, member.train_episodes());
  if (statistic.about().fold() != v1::Statistic::PER_ROW) return value;
  const auto rows = static_cast<uint64_t>(value);
  return Mean(static_cast<double>(record.updates()), rows > min_size ? rows - min_size : 0);
}

std::string EventFolder(size_t member) { return absl::StrCat("tensorboard/member_", member); }
std::string EventFile(size_t member) { return absl::StrCat(EventFolder(member), "/", kEventFile); }

constexpr absl::string_view kSimulators = "simulators ";

// The simulators of the run, oldest first: those in the text before, and this build's.
std::string Simulators(const std::string& before) {
  if (before.empty()) return Simulator();
  std::string earlier = "not recorded";
  for (const absl::string_view line : absl::StrSplit(before, '\n')) {
    if (absl::StartsWith(line, kSimulators)) earlier = std::string(line.substr(kSimulators.size()));
  }
  return absl::EndsWith(earlier, Simulator()) ? earlier : absl::StrCat(earlier, ", ", Simulator());
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunRecords>> RunRecords::Open(const Options& options, const FileEnds& ends) {
  RETURN_IF_ERROR(MakeFolders(options.run_dir));
  std::unique_ptr<RunRecords> records(new RunRecords(options));
  ASSIGN_OR_RETURN(const FileEnd end_of_progress, EndOf(ends, "progress.csv"));
  ASSIGN_OR_RETURN(const FileEnd end_of_episodes, EndOf(ends, "episodes.csv"));
  ASSIGN_OR_RETURN(records->progress_,
                   CsvWriter::Open(options.run_dir + "/progress.csv", ProgressHeader(options), end_of_progress));
  ASSIGN_OR_RETURN(records->episodes_,
                   CsvWriter::Open(options.run_dir + "/episodes.csv",
                                   EpisodeColumns(options.cost_names, options.log_names), end_of_episodes));
  for (size_t member = 0; member < options.seeds.size(); ++member) {
    ASSIGN_OR_RETURN(const FileEnd end, EndOf(ends, EventFile(member)));
    ASSIGN_OR_RETURN(records->events_.emplace_back(),
                     EventWriter::Open(absl::StrCat(options.run_dir, "/", EventFolder(member)), end));
  }
  return records;
}

absl::Status RunRecords::Begin() {
  RETURN_IF_ERROR(Flush(/*sync=*/false));
  const std::string build = options_.run_dir + "/build.txt";
  const std::string& line = options_.environment;
  return WriteFileAtomically(build,
                             absl::StrCat(BuildText(ReadFile(build).value_or("")), line, line.empty() ? "" : "\n"));
}

absl::Status RunRecords::AppendEpisode(int member, const v1::Episode& episode) {
  return episodes_->Append(EpisodeCells(member, episode, options_.cost_names.size(), options_.log_names.size()));
}

absl::Status RunRecords::AppendEpoch(const v1::EpochRecord& record) {
  for (int i = 0; i < record.members_size(); ++i) {
    const v1::MemberEpoch& member = record.members(i);
    const EvaluationMeans eval = MeansOf(member.evaluation());
    std::vector<std::string> row = {Cell(i),
                                    Cell(options_.seeds[i]),
                                    Cell(record.epoch()),
                                    Cell(record.env_steps()),
                                    Cell(record.updates()),
                                    Cell(record.wall_seconds()),
                                    Cell(eval.episodes)};
    std::vector<std::pair<std::string, double>> scalars;
    for (const auto& [key, name, mean, of] : kEvaluationMeans) {
      if (name.empty()) continue;
      row.push_back(Cell(eval.*mean));
      scalars.emplace_back(absl::StrCat("eval/", name), eval.*mean);
    }
    for (const EpochStatistic& statistic : statistics_) {
      const double value = Shown(statistic, record, i, options_.min_size);
      const bool whole = statistic.is_count() && statistic.about().fold() != v1::Statistic::PER_ROW;
      row.push_back(whole ? Cell(static_cast<uint64_t>(value)) : Cell(value));
      scalars.emplace_back(statistic.tag(), value);
      if (statistic.number() == kBeforeStatus) {
        row.emplace_back(StatusOf(member.diverged(), member.critic_runaway(), member.abandons(), member.locked()));
        row.push_back(absl::StrReplaceAll(member.abandoned_reason(), {{",", ";"}, {"\n", " "}, {"\r", " "}}));
      }
    }
    AppendNamedCosts(eval.named, options_.cost_names.size(), &row);
    for (size_t c = 0; c < std::min(eval.named.size(), options_.cost_names.size()); ++c) {
      scalars.emplace_back("eval/max_violation." + options_.cost_names[c], eval.named[c].max_violation);
      scalars.emplace_back("eval/sum_cost." + options_.cost_names[c], eval.named[c].sum_cost);
      scalars.emplace_back("eval/violating_steps." + options_.cost_names[c], eval.named[c].violating_steps);
    }
    AppendLogs(eval.logs, options_.log_names.size(), &row);
    for (size_t l = 0; l < std::min(eval.logs.size(), options_.log_names.size()); ++l) {
      scalars.emplace_back("eval/log." + options_.log_names[l], eval.logs[l]);
    }
    RETURN_IF_ERROR(progress_->Append(row));
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    RETURN_IF_ERROR(events_[i]->Append(static_cast<int64_t>(record.env_steps()), now, scalars));
  }
  return Flush(/*sync=*/false);
}

absl::Status RunRecords::Flush(bool sync) {
  RETURN_IF_ERROR(progress_->Flush(sync));
  RETURN_IF_ERROR(episodes_->Flush(sync));
  for (const auto& writer : events_) RETURN_IF_ERROR(writer->Flush(sync));
  return absl::OkStatus();
}

FileEnds RunRecords::Ends() const {
  FileEnds ends = {{"progress.csv", progress_->end()}, {"episodes.csv", episodes_->end()}};
  for (size_t member = 0; member < events_.size(); ++member) ends[EventFile(member)] = events_[member]->end();
  return ends;
}

const char* StatusOf(bool diverged, bool runaway, bool abandons, bool locked) {
  return diverged ? "diverged" : runaway ? "runaway" : abandons ? "abandoned" : locked ? "locked" : "ok";
}

std::string BuildText(const std::string& before) {
  const std::string torch = TorchVersion();
  return absl::StrCat(
      "version ", Version(), "\nrevision ", Revision(), "\nprotocol ", kProtocolVersion, "\ngrpc ",
      GRPC_CPP_VERSION_STRING, "\nprotobuf ", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION),
      "\nlibtorch ", torch.empty() ? "not loaded" : torch, "\n", kSimulators, Simulators(before), "\nspdlog ",
      SPDLOG_VER_MAJOR, ".", SPDLOG_VER_MINOR, ".", SPDLOG_VER_PATCH, "\ncompiler ", __VERSION__, "\narithmetic ",
      CpuArithmetic(), "\nmachine ", ProcessorName(), ", ", std::thread::hardware_concurrency(),
      " processors\nstarted ", absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()), "\n");
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
