// datacom train: runs a local cluster on loopback and supervises it until the report is written.
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/shell_word.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/config/task_files.h"
#include "common/records/archive_place.h"
#include "common/records/message_json.h"
#include "common/records/updates_made.h"
#include "common/rpc/security.h"
#include "common/tasks/python/python_model.h"
#include "datacom/v1/python_task.pb.h"
#include "deploy/cli/answers.h"
#include "deploy/cli/archiving.h"
#include "deploy/cli/batch.h"
#include "deploy/cli/cluster.h"
#include "deploy/cli/display.h"
#include "deploy/cli/load_task.h"
#include "deploy/cli/progress.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/run_options.h"
#include "deploy/cli/summary.h"
#include "deploy/cli/sweep.h"
#include "deploy/cli/train_plan.h"
#include "deploy/cli/verbs.h"
#include "deploy/report/report.h"
#include "deploy/tools/maps/feasibility_map.h"

namespace datacom::cli {
namespace {

constexpr std::chrono::milliseconds kTick{100}, kLockPatience{30000}, kDrainGrace{60000};
constexpr std::chrono::milliseconds kStopGrace{10000};  // after a complete run nothing is left to save
constexpr std::chrono::seconds kAddressDeadline{120};
constexpr std::chrono::seconds kArchiveGrace{25};  // a scheduler that stops a run does not wait for long
constexpr uint64_t kSlowestDisk = 20'000'000;      // bytes in a second

struct Prepared {
  v1::Experiment experiment;
  Layout layout;
  std::string run_dir, run_id;
  std::string note;  // for the user, if not empty
  bool made_folder = false;
  uint64_t checkpoint_start = 0;
  uint64_t resumed_bytes = 0;  // of the folder of a run that resumes
  Security security;
  std::string host;
  std::unique_ptr<RunLock> lock;
};

// The address where the roles listen, for a name of this machine.
absl::StatusOr<std::string> HostAddress(const std::string& host, const Security& security) {
  constexpr char kLoopback[] = "127.0.0.1";
  if (host.empty() || host == kLoopback) return kLoopback;
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--host ", host, ": ", ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  std::array<char, NI_MAXHOST> text = {};
  ::getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  const std::string address = found->ai_family == AF_INET6 ? absl::StrCat("[", text.data(), "]") : text.data();
  const bool any = address == "0.0.0.0" || address == "[::]";
  if (any || IsLoopback(address + ":0")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--host ", host, " is ", any ? "no address that another machine can name" : address,
        any ? "" : " on this machine, which no other machine reaches", "; name one of this machine's other addresses"));
  }
  if (!security.enabled()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--host ", host, ": roles that other machines reach need --tls FOLDER (--help names what makes one)"));
  }
  return address;
}

absl::StatusOr<Prepared> Prepare(const TrainOptions& options) {
  Prepared run;
  ASSIGN_OR_RETURN(run.security, LoadSecurity(options.tls));
  ASSIGN_OR_RETURN(run.host, HostAddress(options.host, run.security));
  RETURN_IF_ERROR(CheckFolderName("--run-dir", options.run_dir));
  TrainOptions wanted = options;
  run.run_dir = options.run_dir;
  v1::Experiment stored;
  if (options.resume) {
    if (run.run_dir.empty()) {
      ASSIGN_OR_RETURN(const v1::Experiment named, NamedExperiment(options));
      ASSIGN_OR_RETURN(run.run_dir, DefaultRunFolder(named.name(), true));
    }
    RETURN_IF_ERROR(CheckRunFolder(run.run_dir, true));
    ASSIGN_OR_RETURN(stored, LoadExperiment(ExperimentFile(run.run_dir), ExperimentFolder()));
    RETURN_IF_ERROR(CheckTaskFiles(run.run_dir, stored.task_options()));
    wanted.run_dir = run.run_dir;
    ASSIGN_OR_RETURN(run.experiment, PlanResume(wanted, stored));
    run.note = ReplacedPolicyNote(run.run_dir, stored, run.experiment);
    RETURN_IF_ERROR(CheckStepsLeft(run.run_dir, run.experiment.run().env_steps()));
  } else {
    ASSIGN_OR_RETURN(run.experiment, PlanExperiment(options));
    if (run.run_dir.empty()) {
      ASSIGN_OR_RETURN(run.run_dir, DefaultRunFolder(run.experiment.name(), false));
    }
    RETURN_IF_ERROR(CheckRunFolder(run.run_dir, false));
  }
  RETURN_IF_ERROR(CheckApart(options.archive, run.run_dir));
  if (const auto& task = run.experiment.task_options(); task.HasExtension(v1::python_task)) {
    RETURN_IF_ERROR(python::CheckNamed(task.GetExtension(v1::python_task).environment()));
    if (options.resume) RETURN_IF_ERROR(CheckSameEnvironment(task));
  }
  if (const auto former = options.resume ? ReadLayout(run.run_dir) : std::nullopt; former) {
    if (wanted.actors == 0) wanted.actors = former->actors;
    if (wanted.environments == 0) wanted.environments = former->environments;
  }
  ASSIGN_OR_RETURN(run.layout, PlanLayout(wanted, run.experiment));
  ASSIGN_OR_RETURN(const Needs needs, EstimateNeeds(run.experiment, run.layout));
  RETURN_IF_ERROR(CheckResources(needs, run.run_dir));
  RETURN_IF_ERROR(Cluster::CheckBinaries(BinFolder()));
  run.made_folder = !FileExists(run.run_dir);
  RETURN_IF_ERROR(MakeFolders(run.run_dir));
  ASSIGN_OR_RETURN(run.lock, RunLock::Take(run.run_dir, kLockPatience));
  if (!options.resume && !HoldsNoRun(run.run_dir)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--run-dir ", run.run_dir, ": another `datacom train` has begun a run there meanwhile"));
  }
  if (options.resume) {
    RETURN_IF_ERROR(CheckStateKept(run.run_dir, run.experiment.members_size()));
    ASSIGN_OR_RETURN(run.checkpoint_start, CheckRecords(run.run_dir, run.experiment));
    RETURN_IF_ERROR(UnshareFiles(run.run_dir));
    run.resumed_bytes = FolderBytes(run.run_dir);
  }
  RETURN_IF_ERROR(WriteTaskFiles(run.run_dir, run.experiment.task_options()));
  ASSIGN_OR_RETURN(run.run_id, PrepareRunFolder(run.run_dir, PrintExperiment(run.experiment)));
  RETURN_IF_ERROR(WriteLayout(run.run_dir, run.layout));
  return run;
}

std::string ResumeHint(const TrainOptions& options, const Prepared& run) {
  const auto option = [](const char* name, const std::string& value) {
    return value.empty() ? "" : absl::StrCat(" --", name, " ", ShellWord(value));
  };
  return absl::StrCat("resume with: ", ResumeCommand(run.run_dir, run.experiment), option("archive", options.archive),
                      option("tls", options.tls));
}

// Whether there is something to lose: a row, or an update of pre-training.
bool HasBegun(const Answers& answers) {
  const auto has_rows = [](const v1::MemberInfo& member) { return member.inserted() > 0; };
  return (answers.learner && answers.learner->pretrain_update() + answers.learner->update() > 0) ||
         (answers.replay && std::any_of(answers.replay->members().begin(), answers.replay->members().end(), has_rows));
}

// Whether a new run holds no row and no update of pre-training yet, so that its folder can be cleared.
bool NothingStored(const std::string& run_dir, const Cluster& cluster, const Security& security) {
  if (const auto made = ReadUpdatesMade(UpdatesMadeFile(run_dir)); made.ok() && made->reached > 0) return false;
  if (cluster.learner_address().empty()) return true;  // no actor has been started
  const Answers answers = Ask(cluster.replay_address(), "", security);
  return answers.replay && !HasBegun(answers);
}

// Ends a run whose cluster has failed; returns the exit code.
int EndFailed(const TrainOptions& options, const Prepared& run, Cluster* cluster) {
  const int code = cluster->failure_exit_code();
  const bool discard = code == kExitUsage && !options.resume && NothingStored(run.run_dir, *cluster, run.security);
  const std::string why = ForTerminal(absl::StripSuffix(cluster->failure().message(), "\n"));  // with lines of its log
  std::fprintf(stderr, "datacom: %s\n", why.c_str());
  if (options.json) std::fputs(ErrorJson(cluster->failure().message(), code).c_str(), stdout);
  cluster->Drain(kStopGrace);
  if (discard) {  // so that the corrected command can use the folder
    ClearRunFolder(run.run_dir, run.made_folder);
    std::fprintf(stderr, "datacom: no row was stored; removed this run's files from %s\n", run.run_dir.c_str());
  }
  if (code != kExitUsage)
    std::fprintf(stderr, "datacom: the run's state is kept; %s\n", ResumeHint(options, run).c_str());
  return code;
}

int Supervise(const TrainOptions& options, const Prepared& run, Cluster* cluster, Archiving* archiving,
              Display* display) {
  ProgressWatch progress(options.stall_minutes, run.security);
  const Clock::Time start = Clock::Real().Now();
  while (true) {
    if (absl::IsNotFound(OpenedFile::Open(ExperimentFile(run.run_dir)).status())) {
      cluster->Drain(kStopGrace);
      return Finish(
          absl::NotFoundError(absl::StrCat(run.run_dir, ": the run folder was moved or removed; go on with it ",
                                           "where it is now: datacom train --run-dir FOLDER --resume")),
          options.json);
    }
    const Cluster::State state = cluster->Tick();
    for (const std::string& event : cluster->TakeEvents()) display->Say(event);
    const absl::Status archived = archiving->Tick(options.resume || HasBegun(progress.newest()));
    for (const std::string& event : archiving->TakeEvents()) display->Say(event);
    if (!archived.ok()) {
      cluster->Drain(kDrainGrace);
      return Finish(archived, options.json);
    }
    if (state == Cluster::State::kComplete) {
      cluster->Drain(kStopGrace);
      return kExitOk;
    }
    if (state == Cluster::State::kFailed) return EndFailed(options, run, cluster);
    if (!progress.Continues(cluster)) {
      Finish(absl::InternalError(progress.Reason()), options.json);
      cluster->Drain(kStopGrace);
      std::fprintf(stderr, "datacom: the run's state is kept; %s\n", ResumeHint(options, run).c_str());
      return kExitFailure;
    }
    display->Update(*cluster, progress.newest());
    const bool timeout = options.max_hours > 0 && Seconds(Clock::Real().Now() - start) > options.max_hours * 3600;
    if (timeout || Stop::Process().WaitFor(kTick)) {
      display->Say(timeout ? absl::StrCat("--max-hours ", options.max_hours, " reached: draining")
                           : "draining (a second Ctrl-C exits at once)");
      cluster->Drain(kDrainGrace);
      for (const std::string& event : cluster->TakeEvents()) display->Say(event);
      const absl::StatusOr<std::string> archived = archiving->Finish(kArchiveGrace);
      for (const std::string& event : archiving->TakeEvents()) display->Say(event);
      if (!archived.ok()) Finish(archived.status(), options.json);
      if (archived.ok() && !archived->empty()) display->Say(*archived);
      if (!options.json) std::printf("%s\n", ResumeHint(options, run).c_str());
      if (options.json) PrintResult(RecordedRunJson(run.run_dir));
      return kExitInterrupted;
    }
  }
}

// Films an episode of the best policy of the first member. Without a film the run is complete, too.
void MakeFilm(const std::string& run_dir, Display* display) {
  const std::string file = run_dir + "/film.html";
  const std::string said = absl::StrCat("film: ", file);
  std::error_code error;
  if (std::filesystem::is_symlink(file, error)) std::filesystem::remove(file, error);  // a stranger's, maybe
  if (ToolOutput({"render", run_dir, "--epoch", "best", "--out", file}).ok()) display->Conclude("film", file, said);
}

absl::Status FinishRun(const Prepared& run, const TrainOptions& options, Archiving* archiving, Display* display) {
  ASSIGN_OR_RETURN(const std::string table, FinalTable(run.run_dir, TerminalWidth(0)));
  if (!options.json) std::printf("%s%s", table.c_str(), RepeatedWorkOf(run.run_dir).c_str());
  std::fflush(stdout);
  if (!options.no_film && !run.experiment.task_options().HasExtension(v1::python_task)) MakeFilm(run.run_dir, display);
  const std::string file = run.run_dir + "/report.html";
  if (absl::Status status = report::WriteReport({run.run_dir}, file, &tools::WriteReportMap); !status.ok()) {
    return Annotate(status, "the run is complete, but its report could not be written");
  }
  display->Conclude("report", file, absl::StrCat("report: ", file));
  if (options.json) PrintResult(RecordedRunJson(run.run_dir));
  const absl::StatusOr<std::string> archived = archiving->Finish(std::nullopt);
  for (const std::string& event : archiving->TakeEvents()) display->Say(event);
  if (archived.ok() && !archived->empty()) display->Conclude("archive", options.archive, *archived);
  return archived.status();
}

int Train(const TrainOptions& given) {
  Stop::InstallSignalHandlers();
  const absl::StatusOr<Brought> brought = BringRun(given);
  if (!brought.ok()) return Finish(brought.status(), given.json);
  const TrainOptions& options = brought->options;
  absl::StatusOr<Prepared> run = Prepare(options);
  if (!run.ok()) return Finish(run.status(), options.json);
  Archiving archiving(run->run_dir, options.archive);
  Cluster cluster(
      Cluster::Options{.bin = BinFolder(),
                       .run_dir = run->run_dir,
                       .run_id = run->run_id,
                       .host = run->host,
                       .tls = options.tls,
                       .checkpoint_start = run->checkpoint_start,
                       .actors = run->layout.actors,
                       .environments = run->layout.environments,
                       // A service that resumes reads all of its files before it has an address.
                       .address_deadline = kAddressDeadline + std::chrono::seconds(run->resumed_bytes / kSlowestDisk),
                       .stall_minutes = options.stall_minutes / 2});  // leaves the restarted role the other half
  const v1::Experiment& experiment = run->experiment;
  const AlgorithmInfo* algorithm = FindAlgorithm(experiment.algorithm());
  Display display(absl::StrCat(experiment.name(), ", ", experiment.members_size(), " member",
                               experiment.members_size() == 1 ? "" : "s", ", ",
                               FormatCount(experiment.run().env_steps()), " steps each, in ", run->run_dir),
                  options, algorithm != nullptr && algorithm->learns_delta);
  display.Tell("run", run->run_dir,
               absl::StrCat(options.resume ? "resuming " : "training ", experiment.name(), " in ", run->run_dir));
  for (const std::string& note : brought->notes) display.Say(note);
  for (const std::string& note : {run->layout.note, run->note}) {
    if (!note.empty()) display.Say(note);
  }
  if (!options.resume) {
    for (const std::string& note : PlanNotes(experiment)) display.Say(note);
    const std::string fit = options.quiet ? "" : ModelFitLine(ExperimentFile(run->run_dir));
    if (!fit.empty()) display.Say(fit);
  }
  const bool complete = brought->copied && ReadRunState(run->run_dir, experiment).complete;
  const int code = complete ? kExitOk : Supervise(options, *run, &cluster, &archiving, &display);
  return code == kExitOk ? Finish(FinishRun(*run, options, &archiving, &display), options.json) : code;
}

absl::Status WriteRunFiles(const std::string& dir, const std::string& backend, const SweepRun& run,
                           const TrainOptions& options, const BatchOptions& batch) {
  RETURN_IF_ERROR(MakeFolders(dir + "/logs"));
  RETURN_IF_ERROR(WriteExperiment(ExperimentFile(dir), run.experiment));
  const SlurmJob job{"train", backend == kSlurm ? run.experiment.name() : FolderName(dir)};
  return WriteBatch(backend, dir, job, batch, options, {run});
}

// Writes the folder of a run, with the script for Slurm or the manifests for Kubernetes. If that fails, the corrected
// command can use the folder.
absl::Status WriteRun(const std::string& backend, TrainOptions options, const BatchOptions& batch) {
  const bool slurm = backend == kSlurm;
  if (options.resume || !options.host.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.resume ? "--resume" : "--host", ": ",
        slurm ? "the script for Slurm resumes and names its host by itself; submit it again"
              : "the pods resume and find each other by themselves; `kubectl apply -k` starts them again"));
  }
  if (slurm) options.overrides.insert(options.overrides.begin(), kSlurmSetting);
  options.network = !slurm && options.archive.empty();
  RETURN_IF_ERROR(LoadSecurity(options.tls).status());
  RETURN_IF_ERROR(CheckFolderName("--run-dir", options.run_dir));
  SweepRun run;
  ASSIGN_OR_RETURN(run.experiment, PlanExperiment(options));
  ASSIGN_OR_RETURN(const Layout layout, PlanLayout(options, run.experiment));
  ASSIGN_OR_RETURN(run.needs, EstimateNeeds(run.experiment, layout));
  std::string dir = options.run_dir;
  if (dir.empty()) {
    ASSIGN_OR_RETURN(dir, DefaultRunFolder(run.experiment.name(), false));
  }
  RETURN_IF_ERROR(CheckBatch(backend, dir, options, {run}));
  RETURN_IF_ERROR(CheckRunFolder(dir, false));
  for (const std::string& note : PlanNotes(run.experiment)) std::printf("%s\n", note.c_str());
  const bool fresh = !FileExists(dir);
  const absl::Status written = WriteRunFiles(dir, backend, run, options, batch);
  if (!written.ok()) ClearRunFolder(dir, fresh);
  return written;
}

}  // namespace

void AddTrain(CLI::App* app, const std::string& environment, int* exit_code) {
  auto options = std::make_shared<TrainOptions>();
  auto batch = std::make_shared<BatchOptions>();
  auto backend = std::make_shared<std::string>(kLocal);
  CLI::App* verb =
      app->add_subcommand("train", "Trains a population on a local cluster: replay, actors, learner, evaluator");
  verb->add_option("experiment", options->experiment,
                   "a shipped experiment, or a file; with --algorithm a task: its name or its task.textproto");
  AddAlgorithmOption(verb, options.get());
  auto taken = std::make_shared<std::string>();  // already, for every verb (command.cc)
  verb->add_option(
      "--python", *taken,
      "MODULE:CALLABLE, which makes a Gymnasium environment. Without an experiment trains in it, like the "
      "task python:MODULE:CALLABLE; with one, and for a run that goes on, lets its code run. DATACOM_PYTHON names "
      "the interpreter (python3)");
  verb->add_flag("--resume", options->resume,
                 "resume the run in its folder; of the experiment only the steps and the learner's device, kernels, "
                 "precision and threads may change");
  AddExperimentOptions(verb, options.get());
  AddProcessOptions(verb, options.get());
  verb->add_option("--archive", options->archive,
                   "copy each checkpoint with its rows and records to s3://BUCKET/PATH, gs://BUCKET/PATH, file:///PATH "
                   "or REMOTE:PATH (rclone); a resume whose folder is not here begins with a copy from there");
  verb->add_flag("--no-film", options->no_film, "do not film an episode of the best policy at the end");
  verb->add_option("--host", options->host,
                   "name or address of this machine where other machines reach the roles, for `datacom join`; only "
                   "with mutual TLS (default: loopback)");
  verb->add_option(
          "--backend", *backend,
          "local trains here; slurm writes the run's folder with a script for sbatch, kubernetes with manifests "
          "for kubectl apply -k (local)")
      ->check(CLI::IsMember({kLocal, kSlurm, kKubernetes}));
  AddBatchOptions(verb, batch.get());
  RefuseOptions(verb, {"--jobs", "--max-members"},
                "train runs one population and does not split it; use `datacom sweep FILE` for several");
  RefuseOptions(verb, {"--render-only"}, "train has no plan to print; use `datacom config EXPERIMENT`");
  verb->footer("Example: datacom train cartpole/datacom --seeds 0-4 --steps 200000 --run-dir runs/five");
  verb->callback([options, batch, backend, environment, taken, exit_code] {
    const bool names_run = options->resume && !options->run_dir.empty();
    if (!environment.empty() && options->experiment.empty() && !names_run) {
      options->experiment = python::kPythonTask + environment;
    }
    const absl::Status fits = CheckBackend(*backend, *batch, *options);
    *exit_code = !fits.ok()           ? Finish(fits, options->json)
                 : *backend == kLocal ? Train(*options)
                                      : Finish(WriteRun(*backend, *options, *batch), options->json);
  });
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
