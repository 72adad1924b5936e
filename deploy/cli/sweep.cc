// datacom sweep: expands a sweep file into populations and trains them, --jobs at a time, each with `datacom train` in
// its own folder. Running the same command again resumes the sweep.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/shared_files.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/rpc/channel.h"
#include "deploy/cli/archiving.h"
#include "deploy/cli/batch.h"
#include "deploy/cli/display.h"
#include "deploy/cli/process.h"
#include "deploy/cli/progress.h"
#include "deploy/cli/run_options.h"
#include "deploy/cli/summary.h"
#include "deploy/cli/sweep.h"
#include "deploy/cli/verbs.h"
#include "deploy/report/report.h"
#include "deploy/tools/maps/feasibility_map.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {
namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr double kLineSeconds = 10;

// The options as they were typed; zero or empty = not given.
struct SweepOptions {
  TrainOptions run;  // those that `train` has too; run_dir is the folder of the sweep
  BatchOptions batch;
  std::string file, backend = kLocal;
  int max_members = 0, jobs = 0;
  bool render_only = false, status = false;
};

absl::StatusOr<SweepInput> ReadInput(const SweepOptions& options) {
  const TrainOptions& run = options.run;
  RETURN_IF_ERROR(CheckBackend(options.backend, options.batch, run));
  if (options.jobs > 0 && options.backend == kList) {
    return absl::InvalidArgumentError("--jobs: the program that reads the list decides how many run at a time");
  }
  if (options.jobs > 0 && options.backend == kKubernetes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--jobs: the cluster decides how many populations run; set the quota in ",
                     SharedPath("kubernetes/overlays/sweep/quota.yaml"), ", or use --backend local"));
  }
  ASSIGN_OR_RETURN(SweepInput input, LoadSweep(options.file));
  if (!run.seeds.empty()) input.sweep.set_seeds(run.seeds);
  if (options.backend == kSlurm) input.sweep.add_set(kSlurmSetting);
  for (const std::string& assignment : run.overrides) input.sweep.add_set(assignment);
  input.network = (options.backend == kKubernetes && run.archive.empty()) || options.batch.join > 0;
  if (!run.device.empty()) input.sweep.add_set(absl::StrCat("learner.device=", run.device));
  if (run.steps > 0) input.sweep.add_set(absl::StrCat("run.env_steps=", run.steps));
  if (run.lockstep) input.sweep.add_set("run.lockstep=true");
  if (options.max_members > 0) {
    input.sweep.mutable_limits()->set_max_members(static_cast<uint32_t>(options.max_members));
  }
  input.actors = run.actors;
  input.environments = run.environments;
  return input;
}

double UpdatesLeft(const SweepRun& population, const RunState& state) {
  const v1::Experiment& experiment = population.experiment;
  const double steps = static_cast<double>(experiment.run().env_steps() - state.env_steps);
  return state.complete ? 0 : steps * experiment.members_size() * experiment.schedule().updates_per_step();
}

std::string Describe(const RunState& state) {
  if (state.complete) return "complete";
  if (state.env_steps == 0) return "not started";
  return absl::StrFormat("%.0f %% done", 100 * state.done);
}

void PrintPlan(const SweepInput& input, const std::string& dir, const std::vector<SweepRun>& populations) {
  int members = 0;
  size_t width = sizeof "population";
  for (const SweepRun& population : populations) {
    members += population.experiment.members_size();
    width = std::max(width, population.name.size());
  }
  PrintWrapped(absl::StrCat("sweep ", input.sweep.name(), " in ", dir, ": ", populations.size(), " population",
                            populations.size() == 1 ? "" : "s", ", ", members, " members\n"));
  std::vector<TableColumn> table = {{"population"},  {"  members"},   {"        steps"}, {"     memory"},
                                    {"       disk"}, {"       time"}, {"  state"}};
  table[0][0].resize(width, ' ');
  double seconds = 0;
  std::string measured;
  for (const SweepRun& population : populations) {
    const RunState state = ReadRunState(RunFolder(dir, population), population.experiment);
    std::string time = "unknown";
    if (const std::optional<MeasuredRate> rate = FindRate(dir, population.experiment); rate) {
      const double own = UpdatesLeft(population, state) / rate->updates_per_second;
      seconds += own;
      time = FormatDuration(own);
      measured =
          absl::StrFormat("the %.0f updates/s of all members measured in %s", rate->updates_per_second, rate->folder);
    }
    const std::string cells[] = {population.name + std::string(width - population.name.size(), ' '),
                                 absl::StrCat(population.experiment.members_size()),
                                 " " + FormatCount(population.experiment.run().env_steps()),  // may fill it
                                 FormatBytes(population.needs.memory_bytes),
                                 FormatBytes(population.needs.disk_bytes()),
                                 time,
                                 "  " + Describe(state)};
    for (size_t i = 0; i < table.size(); ++i) {
      table[i].push_back(absl::StrFormat("%*s", static_cast<int>(table[i].front().size()), cells[i]));
    }
  }
  std::printf("%s", JoinColumns(table, TerminalWidth(0)).c_str());
  if (!measured.empty()) {
    PrintWrapped(absl::StrCat("one after another they take about ", FormatDuration(seconds), ", at ", measured, "\n"));
  }
  std::fflush(stdout);
}

// The plan for programs: the state of the sweep with what each population needs.
absl::Status PrintPlanJson(const std::string& dir, const std::vector<SweepRun>& populations) {
  ASSIGN_OR_RETURN(nlohmann::json sweep, SweepJson(dir));
  for (size_t i = 0; i < populations.size(); ++i) {
    nlohmann::json& one = sweep["populations"][i];
    one["memory_bytes"] = populations[i].needs.memory_bytes;
    one["disk_bytes"] = populations[i].needs.disk_bytes();
    if (const std::optional<MeasuredRate> rate = FindRate(dir, populations[i].experiment)) {
      const RunState state = ReadRunState(RunFolder(dir, populations[i]), populations[i].experiment);
      one["eta_seconds"] = UpdatesLeft(populations[i], state) / rate->updates_per_second;
    }
  }
  PrintJson(sweep);
  return absl::OkStatus();
}

// Trains populations as child processes and says so on the display; when quiet, only failures.
class Jobs {
 public:
  // Passes the options for processes on to the `train` of each run.
  Jobs(const std::string& dir, const std::vector<SweepRun>& populations, int at_once, const TrainOptions& options,
       Display* display)
      : dir_(dir), populations_(populations), at_once_(at_once), options_(options), display_(display) {}

  // Runs until all have ended, a stop was requested, or --max-hours are over. Returns the exit code of the first that
  // failed, else 75 when populations are left, else 0.
  int Run() {
    while (true) {
      StartMore();
      if (running_.empty()) return code_ == kExitOk && AnyLeft() ? kExitInterrupted : code_;
      const bool stop = Stop::Process().WaitFor(kTick);
      const bool late = options_.max_hours > 0 && Seconds(clock_.Now() - start_) > options_.max_hours * 3600;
      if ((stop || late) && !stopping_) {
        display_->Say(late ? absl::StrCat("--max-hours ", options_.max_hours, " reached: draining")
                           : "draining (interrupt again to exit at once)");
        stopping_ = true;
        for (const auto& job : running_) job->process.Signal(SIGTERM);
      }
      Reap();
      if (Seconds(clock_.Now() - said_) < kLineSeconds) continue;
      said_ = clock_.Now();
      for (const auto& job : running_) SayProgress(*job);
    }
  }

 private:
  struct Job {
    size_t index = 0;
    std::string log;
    Process process;
  };

  // The newest line of a population: of `train --json` an object, here with the key "population".
  void SayProgress(const Job& job) const {
    const std::string line(absl::StripAsciiWhitespace(TailOfFile(job.log, 1)));
    nlohmann::json progress =
        options_.json ? nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false) : nlohmann::json();
    if (!progress.is_object()) return display_->Say(Title(job) + line);
    progress["population"] = populations_[job.index].name;
    if (!options_.quiet) PrintJson(progress);
    std::fflush(stdout);
  }

  void SayFailure(const Job& job, int code) {
    const std::string what = absl::StrCat("failed (", DescribeExit(code), "). ", LastLines(job.log));
    if (!options_.json) return display_->Conclude("message", "", Title(job) + what);
    PrintJson({{"population", populations_[job.index].name}, {"error", what}, {"code", code}});
    std::fflush(stdout);
  }

  std::string Title(const Job& job) const {
    return absl::StrCat("[", job.index + 1, "/", populations_.size(), "] ", populations_[job.index].name, ": ");
  }

  bool IsComplete(const SweepRun& population) const {
    return ReadRunState(RunFolder(dir_, population), population.experiment).complete;
  }

  // Whether a stop kept a population from being started.
  bool AnyLeft() const {
    for (size_t i = next_; i < populations_.size(); ++i) {
      if (!IsComplete(populations_[i]) || !options_.archive.empty()) return true;
    }
    return false;
  }

  // Trains it or, if it is complete, copies its end to the archive, which a stop may have kept away.
  std::vector<std::string> CommandFor(const SweepRun& population, bool complete) const {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string archive = ArchiveOf(options_.archive, population);
    if (complete) return {program, "copy", RunFolder(dir_, population), archive, "--keep-state"};
    TrainOptions own = options_;
    own.archive = archive;
    own.max_hours = 0;  // the sweep's own
    std::vector<std::string> words =
        TrainWords(own, RunFolder(dir_, population), population.experiment.run().env_steps());
    words.insert(words.begin(), program);
    if (options_.json) words.emplace_back("--json");
    return words;
  }

  void StartMore() {
    while (!stopping_ && next_ < populations_.size() && static_cast<int>(running_.size()) < at_once_) {
      const SweepRun& population = populations_[next_];
      auto job = std::make_unique<Job>();
      job->index = next_++;
      const std::string run_dir = RunFolder(dir_, population);
      const bool complete = IsComplete(population);
      if (complete && options_.archive.empty()) continue;
      job->log = run_dir + "/logs/train.log";
      const absl::Status status = job->process.Start(CommandFor(population, complete), job->log);
      if (!status.ok()) {
        const std::string why = absl::StrCat(Title(*job), status.message());
        display_->Conclude("message", why, why);
        if (code_ == kExitOk) code_ = ExitCode(status);
        continue;
      }
      const std::string what =
          complete ? "copying its end to the archive" : absl::StrCat(population.experiment.members_size(), " members");
      display_->Say(absl::StrCat(Title(*job), what, ", log in ", job->log));
      running_.push_back(std::move(job));
    }
  }

  void Reap() {
    std::erase_if(running_, [this](const std::unique_ptr<Job>& job) {
      const std::optional<int> code = job->process.Poll();
      if (code) OnExit(*job, *code);
      return code.has_value();
    });
  }

  // When a population fails, the others are still trained; when one is interrupted, the sweep ends.
  void OnExit(const Job& job, int code) {
    if (code == kExitOk) return display_->Say(absl::StrCat(Title(job), "complete"));
    if (stopping_ && code == 128 + SIGTERM) code = kExitInterrupted;  // `train` was stopped before it had begun
    if (code == kExitInterrupted) {
      display_->Say(absl::StrCat(Title(job), "interrupted and drained"));
      Stop::Process().Request();
    } else {
      SayFailure(job, code);
    }
    if (code_ == kExitOk || code_ == kExitInterrupted)
      code_ = code == kExitUsage || code == kExitInterrupted ? code : kExitFailure;
  }

  const std::string& dir_;
  const std::vector<SweepRun>& populations_;
  const int at_once_;
  const TrainOptions& options_;
  Display* const display_;
  const Clock& clock_ = Clock::Real();
  const Clock::Time start_ = clock_.Now();
  Clock::Time said_ = start_;
  std::vector<std::unique_ptr<Job>> running_;
  size_t next_ = 0;
  bool stopping_ = false;
  int code_ = kExitOk;
};

absl::Status Conclude(const std::string& dir, bool json, Display* display) {
  ASSIGN_OR_RETURN(const std::string table, GroupTable({dir}, TerminalWidth(0)));
  if (!json) std::printf("%s", table.c_str());
  const std::string file = dir + "/report.html";
  if (absl::Status status = report::WriteReport({dir}, file, &tools::WriteReportMap); !status.ok()) {
    return Annotate(status, "the sweep is complete, but its report could not be written");
  }
  display->Conclude("report", file, absl::StrCat("report: ", file));
  if (json) PrintResult(SweepJson(dir));
  return absl::OkStatus();
}

absl::StatusOr<int> Sweep(const SweepOptions& options) {
  Stop::InstallSignalHandlers();
  const TrainOptions& run = options.run;
  ASSIGN_OR_RETURN(const SweepInput input, ReadInput(options));
  RETURN_IF_ERROR(LoadSecurity(run.tls).status());
  RETURN_IF_ERROR(CheckFolderName("--run-dir", run.run_dir));
  ASSIGN_OR_RETURN(const std::vector<SweepRun> populations, ExpandSweep(input));
  const std::string dir =
      !run.run_dir.empty() ? run.run_dir : absl::StrCat("runs/", absl::StrReplaceAll(input.sweep.name(), {{"/", "-"}}));
  if (options.status) {
    RETURN_IF_ERROR(PrintSweepStatus(dir, run.json));
    return kExitOk;
  }
  RETURN_IF_ERROR(CheckBatch(options.backend, dir, run, populations));
  RETURN_IF_ERROR(CheckSweepFolder(dir, populations));
  if (options.backend == kLocal && !run.archive.empty()) RETURN_IF_ERROR(CheckPlace(run.archive));
  RETURN_IF_ERROR(MakeFolders(dir));
  ASSIGN_OR_RETURN(const std::unique_ptr<FolderLock> lock, FolderLock::Take(dir));
  RETURN_IF_ERROR(PrepareSweepFolder(dir, input.sweep, populations));
  if (run.json && options.render_only) {
    RETURN_IF_ERROR(PrintPlanJson(dir, populations));
  } else if ((!run.quiet && !run.json) || options.render_only) {
    PrintPlan(input, dir, populations);
  }
  if (options.backend != kLocal) {
    const SlurmJob job{"sweep", input.sweep.name(), options.jobs};
    RETURN_IF_ERROR(WriteBatch(options.backend, dir, job, options.batch, run, populations));
    return kExitOk;
  }
  if (options.render_only) return kExitOk;
  Display display("", run, /*learns_delta=*/false);
  const int code = Jobs(dir, populations, std::max(1, options.jobs), run, &display).Run();
  if (code == kExitInterrupted && !run.json) std::printf("run the same command again to resume\n");
  if (code == kExitInterrupted && run.json) PrintResult(SweepJson(dir));
  if (code != kExitOk) return code;
  RETURN_IF_ERROR(Conclude(dir, run.json, &display));
  return kExitOk;
}

}  // namespace

void AddSweep(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* verb = app->add_subcommand(
      "sweep", "Trains every population of a sweep file; running the same command again resumes it");
  verb->add_option("file", options->file, "a shipped sweep, or a file")->required();
  verb->add_option("--backend", options->backend,
                   "local trains here; slurm writes an array of jobs for sbatch; list writes one command per line, for "
                   "GNU parallel and other schedulers; kubernetes writes one JobSet per population, for kubectl apply "
                   "-k (local)");
  verb->add_flag("--render-only", options->render_only, "write the experiments and print the plan, but train nothing");
  verb->add_flag("--status", options->status, "print how far the sweep is, and do nothing else");
  verb->add_option("--jobs", options->jobs,
                   "populations trained at a time (1); with --backend slurm the limit of the array")
      ->check(CLI::Range(1, 1024));
  verb->add_option("--max-members", options->max_members, "most members of one population, instead of the file's limit")
      ->check(CLI::Range(1, 65536));
  verb->add_option("--archive", options->run.archive,
                   "copy each population to PLACE/POPULATION while it trains (places: `train --help`); on a machine "
                   "without its run it goes on from there");
  AddExperimentOptions(verb, &options->run);
  AddProcessOptions(verb, &options->run);
  AddBatchOptions(verb, &options->batch);
  RefuseOptions(verb, {"--resume"}, "a sweep resumes by itself; run the same command again without --resume");
  verb->footer("Example: datacom sweep cartpole/cost_budgets --seeds 0-2 --steps 200000");
  verb->callback([options, exit_code] { *exit_code = Finish(Sweep(*options), options->run.json); });
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
