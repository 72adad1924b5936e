#include "deploy/cli/batch.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/shared_files.h"
#include "common/base/shell_word.h"
#include "common/base/status.h"
#include "common/records/archive_place.h"
#include "common/tasks/python/identity.h"
#include "common/tasks/python/python_model.h"
#include "deploy/cli/process.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/sweep.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kDefaultMaxArraySize = 1001;  // of Slurm
constexpr char kRunOfLine[] = "\"$folder/$(sed -n \"${number}p\" \"$folder/populations.txt\")\"";
constexpr char kFindHost[] =
    "# Actors of other jobs reach this node where Slurm reaches it.\n"
    "host=\"$(scontrol show node \"$SLURMD_NODENAME\" | sed -n 's/.*NodeAddr=\\([^ ]*\\).*/\\1/p')\"\n";

std::string ProgramOf(const BatchOptions& batch) {
  return batch.program.empty() ? ShellWord(AbsolutePath(BinFolder() + "/datacom")) : batch.program;
}

// A name as Slurm's tables show it.
std::string JobName(const std::string& name) {
  std::string job = "datacom-";
  for (const char c : name) job.push_back(absl::ascii_isalnum(c) ? c : '-');
  return job;
}

std::string OptionLines(const std::string& options) {
  const absl::string_view text = absl::StripAsciiWhitespace(options);
  return text.empty() ? "" : absl::StrCat("#SBATCH ", text, "\n");
}

absl::StatusOr<std::string> Template(const std::string& name) {
  const std::string folder = FindSharedFile("slurm", "deploy/slurm");
  ASSIGN_OR_RETURN(const std::string text, ReadFile(absl::StrCat(folder, "/", name)));
  ASSIGN_OR_RETURN(std::string end, ReadFile(folder + "/end.sh.in"));
  end.resize(end.rfind("# SPDX"));  // the script has that line too
  return absl::StrReplaceAll(text, {{"@DRAIN@", end}});
}

absl::Status MakeCertificates(const std::string& folder) {
  if (FileExists(folder + "/token")) return absl::OkStatus();
  const std::string script = FindSharedFile("dev/make_tls.sh", "deploy/dev/make_tls.sh");
  int code = 0;
  RETURN_IF_ERROR(OutputOf({"/usr/bin/env", "bash", script, folder}, &code).status());
  if (code == 0) {  // a copy of the folder must not be able to make certificates
    std::error_code error;
    fs::remove(folder + "/ca.key", error);
    return error ? ErrnoStatus(error.value(), absl::StrCat("remove ", folder, "/ca.key")) : absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat(script, " ", folder, " failed (", DescribeExit(code),
                   "); it needs openssl. Actors of other jobs are reached over mutual TLS only"));
}

// The options of this command that let code run, for another one, each after a space. Empty without any.
std::string CodeOptions() {
  const char* const named = std::getenv(python::kNamedEnvironments);
  const bool accepts = std::getenv(python::kAcceptEnvironment) != nullptr;
  return absl::StrCat(named == nullptr || *named == '\0' ? "" : absl::StrCat(" --python ", ShellWord(named)),
                      accepts ? " --accept-environment" : "", PluginOptions());
}

using Words = std::vector<std::pair<std::string, std::string>>;  // @WORD@ of a template and what stands there

// What all scripts of a sweep or run share.
Words CommonWords(const std::string& folder, const SlurmJob& job, const BatchOptions& batch,
                  const TrainOptions& options, const std::vector<SweepRun>& populations) {
  uint64_t memory = 0, actor_memory = 0;
  for (const SweepRun& population : populations) {
    // The rings are mapped files: their cached pages count.
    memory = std::max(memory, population.needs.memory_bytes + population.needs.ring_bytes);
    actor_memory = std::max(actor_memory, population.needs.actor_memory_bytes);
  }
  if (!options.archive.empty()) memory += kCopyBytes;
  return {{"@VERB@", job.verb},
          {"@NAME@", JobName(job.name)},
          {"@FOLDER@", folder},
          {"@ACTORS@", absl::StrCat(batch.join)},
          {"@MEMORY@", absl::StrCat(MebibytesFor(memory))},
          {"@ACTOR_MEMORY@", absl::StrCat(MebibytesFor(actor_memory))},
          {"@GPU@", std::any_of(populations.begin(), populations.end(), UsesGpu) ? " --gres=gpu:1" : ""}};
}

// The archive of a pod: a place that is the same from every node, and that a manifest can name without a secret.
absl::Status CheckBucket(const std::string& place, bool has_secret) {
  static const std::regex* const kBucket = new std::regex("(s3|gs)://\\w[\\w.+=@/-]*");
  static const std::regex* const kRemote = new std::regex("\\w+:(?!//)[\\w.+=@/-]*");
  if (std::regex_match(place, *kBucket)) return absl::OkStatus();
  if (!std::regex_match(place, *kRemote)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--archive ", place, ": a pod keeps nothing on its node, and its manifest names no secret; use ",
                     "s3://BUCKET/PATH, gs://BUCKET/PATH or REMOTE:PATH, of letters, digits and . _ + = @ / -"));
  }
  if (has_secret) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--archive ", place, ": a pod has no configuration of rclone; name a Secret with variables such as ",
      "RCLONE_CONFIG_", absl::AsciiStrToUpper(place.substr(0, place.find(':'))), "_TYPE by --archive-secret"));
}

// sbatch replaces "%" in file names, and splits its lines at blanks.
absl::Status CheckSlurmPath(const std::string& path) {
  const std::string dir = AbsolutePath(path);
  const auto wrong = std::find_if(dir.begin(), dir.end(), [](char c) { return !IsPlainInShell(c) || c == '%'; });
  if (wrong == dir.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--run-dir ", dir, ": Slurm's scripts cannot name a folder with \"",
                                                 std::string(1, *wrong), "\" in its path; choose another --run-dir"));
}

// Writes <dir>/jobs.txt and returns its absolute path.
absl::StatusOr<std::string> WriteJobList(const std::string& dir, const BatchOptions& batch, const TrainOptions& options,
                                         const std::vector<SweepRun>& populations) {
  std::string lines;
  TrainOptions own = options;
  for (const SweepRun& population : populations) {
    own.archive = ArchiveOf(options.archive, population);
    absl::StrAppend(
        &lines, TrainCommand(batch, own, RunFolder(dir, population), population.experiment.run().env_steps()), "\n");
  }
  const std::string file = AbsolutePath(dir) + "/jobs.txt";
  RETURN_IF_ERROR(WriteFileAtomically(file, lines));
  return file;
}

}  // namespace

absl::Status CheckBackend(const std::string& backend, const BatchOptions& batch, const TrainOptions& options) {
  const bool is_batch = backend == kSlurm || backend == kList, kubernetes = backend == kKubernetes;
  const ManifestOptions& manifests = batch.manifests;
  const std::pair<bool, std::string> refusals[] = {
      {!is_batch && !kubernetes && backend != kLocal,
       absl::StrCat("--backend ", backend, ": unknown backend; use ", kLocal, ", ", kSlurm, ", ", kList, " or ",
                    kKubernetes)},
      {!manifests.images.empty() && !kubernetes,
       absl::StrCat("--images: --backend ", backend, " uses no images; use --backend kubernetes")},
      {manifests.plain && !kubernetes, "--plain: use it with --backend kubernetes"},
      {!manifests.pods.empty() && !kubernetes, "--pods: use it with --backend kubernetes"},
      {!manifests.tls_secret.empty() && !kubernetes, "--tls-secret: use it with --backend kubernetes"},
      {!batch.program.empty() && !is_batch, "--program: use it with --backend slurm or list"},
      {batch.join > 0 && backend != kSlurm, "--join: use it with --backend slurm"},
      {!batch.sbatch.empty() && backend != kSlurm, "--sbatch: use it with --backend slurm"},
      {backend != kLocal && options.json, absl::StrCat("--json: --backend ", backend,
                                                       " trains nothing here, so there is no progress to print; "
                                                       "`datacom status RUN --json` shows that of the run")},
      {kubernetes && options.max_hours > 0,
       "--max-hours: this command only writes manifests and cannot stop the cluster; stop it with kubectl delete -k, "
       "or use --backend local"},
      {kubernetes && options.stall_minutes != kStallMinutes,
       "--stall-minutes: the roles of a cluster keep their default; use --backend local, or edit the manifests"},
      {!manifests.archive_secret.empty() && (!kubernetes || options.archive.empty()),
       "--archive-secret: use it with --archive and --backend kubernetes"},
      {!options.archive.empty() && !manifests.tls_secret.empty(),
       "--tls-secret: with --archive the roles of a run share a pod and use no network; leave it out"},
      {kubernetes && !options.tls.empty(),
       absl::StrCat("--tls: the pods read a secret of the cluster; name it with --tls-secret (",
                    SharedPath("kubernetes/overlays/secure"), " says how to make it)")}};
  for (const auto& [refused, why] : refusals) {
    if (refused) return absl::InvalidArgumentError(why);
  }
  static const std::regex* const kName = new std::regex("([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?");
  const std::pair<std::string, std::string> secrets[] = {{"--tls-secret ", manifests.tls_secret},
                                                         {"--archive-secret ", manifests.archive_secret}};
  for (const auto& [option, name] : secrets) {
    if (!std::regex_match(name, *kName)) {
      return absl::InvalidArgumentError(absl::StrCat(option, name, " is no name of a Secret"));
    }
  }
  if (kubernetes && !options.archive.empty()) {
    RETURN_IF_ERROR(CheckBucket(options.archive, !manifests.archive_secret.empty()));
  }
  if (!manifests.pods.empty() && !FileExists(manifests.pods)) {
    return absl::InvalidArgumentError(absl::StrCat("--pods: there is no file ", manifests.pods));
  }
  if (!manifests.pods.empty()) RETURN_IF_ERROR(PodFields(manifests.pods).status());
  return manifests.images.empty() ? absl::OkStatus() : CheckImages(manifests.images);
}

std::vector<std::string> TrainWords(const TrainOptions& options, const std::string& run_dir, uint64_t steps) {
  std::vector<std::string> words = {"train", "--resume", "--no-film",        "--run-dir",
                                    run_dir, "--steps",  absl::StrCat(steps)};
  const auto add = [&words](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--actors", options.actors > 0 ? absl::StrCat(options.actors) : "");
  add("--envs", options.environments > 0 ? absl::StrCat(options.environments) : "");
  add("--tls", options.tls);
  add("--archive", options.archive);
  add("--max-hours", options.max_hours > 0 ? absl::StrCat(options.max_hours) : "");
  add("--stall-minutes", absl::StrCat(options.stall_minutes));
  return words;
}

std::string TrainCommand(const BatchOptions& batch, const TrainOptions& options, const std::string& run_dir,
                         uint64_t steps) {
  TrainOptions there = options;
  if (!there.tls.empty()) there.tls = AbsolutePath(there.tls);
  if (!there.archive.empty() && !IsRemote(there.archive)) there.archive = AbsolutePath(there.archive);
  std::string command = ProgramOf(batch);
  for (const std::string& word : TrainWords(there, AbsolutePath(run_dir), steps)) {
    absl::StrAppend(&command, " ", ShellWord(word));
  }
  return command + CodeOptions();
}

int MaxArraySize() {
  const std::string text = OutputOf("scontrol show config 2>/dev/null").value_or("");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, '=');
    int size = 0;
    if (parts.size() == 2 && absl::StripAsciiWhitespace(parts[0]) == "MaxArraySize" &&
        absl::SimpleAtoi(parts[1], &size) && size > 1) {
      return size;
    }
  }
  return kDefaultMaxArraySize;
}

absl::StatusOr<std::vector<std::string>> WriteSlurmScripts(const std::string& dir, const SlurmJob& job,
                                                           const BatchOptions& batch, const TrainOptions& options,
                                                           const std::vector<SweepRun>& populations) {
  const std::string folder = AbsolutePath(dir);
  RETURN_IF_ERROR(MakeFolders(folder + "/slurm"));
  TrainOptions own = options;
  if (batch.join > 0 && own.tls.empty()) {
    own.tls = folder + "/tls";
    RETURN_IF_ERROR(MakeCertificates(own.tls));
  }
  RETURN_IF_ERROR(WriteJobList(folder, batch, own, populations).status());
  ASSIGN_OR_RETURN(const std::string text, Template("run.sbatch.in"));
  const Words common = CommonWords(folder, job, batch, options, populations);
  const bool array = populations.size() > 1 || !populations.front().name.empty();
  const size_t fits = static_cast<size_t>(job.max_array_size);
  std::vector<std::string> scripts;
  for (size_t first = 0; first < populations.size(); first += fits) {
    const size_t last = std::min(fits, populations.size() - first) - 1;
    const std::string limit = job.at_once > 0 ? absl::StrCat("%", job.at_once) : "";
    Words words = {{"@ARRAY@", array ? absl::StrCat("#SBATCH --array=0-", last, limit, "\n") : ""},
                   {"@LOG@", array ? "%A_%a" : "%j"},
                   {"@PROCESSORS@", absl::StrCat(1 + std::max(1, options.actors))},
                   {"@OPTIONS@", OptionLines(batch.sbatch)},
                   {"@FIRST@", absl::StrCat(first + 1)},
                   {"@RUN@", array ? kRunOfLine : "$folder"},
                   {"@HOST@", batch.join > 0 ? kFindHost : ""},
                   {"@HOST_OPTION@", batch.join > 0 ? " --host \"$host\"" : ""}};
    const std::string number = first == 0 ? "" : absl::StrCat("-", first / fits + 1);
    scripts.push_back(absl::StrCat(folder, "/", job.verb, number, ".sbatch"));
    words.insert(words.end(), common.begin(), common.end());  // one pass: what stands for a word is not read again
    RETURN_IF_ERROR(WriteFileAtomically(scripts.back(), absl::StrReplaceAll(text, words)));
  }
  if (batch.join > 0) {
    ASSIGN_OR_RETURN(const std::string actors, Template("actors.sbatch.in"));
    Words words = {{"@OPTIONS@", ""},
                   {"@PROGRAM@", ProgramOf(batch)},
                   {"@TLS@", ShellWord(AbsolutePath(own.tls))},
                   {"@CODE@", CodeOptions()}};
    words.insert(words.end(), common.begin(), common.end());
    scripts.push_back(folder + "/actors.sbatch");
    RETURN_IF_ERROR(WriteFileAtomically(scripts.back(), absl::StrReplaceAll(actors, words)));
  }
  return scripts;
}

absl::Status CheckBatch(const std::string& backend, const std::string& dir, const TrainOptions& options,
                        const std::vector<SweepRun>& populations) {
  if (backend == kSlurm) return CheckSlurmPath(dir);
  const bool cuda = std::any_of(populations.begin(), populations.end(), UsesGpu);
  if (backend != kKubernetes || options.archive.empty() || !cuda) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--archive: learner.device=cuda: the image datacom-run, which has all roles, has no LibTorch for a GPU; use "
      "--device cpu, or leave out --archive");
}

absl::Status WriteBatch(const std::string& backend, const std::string& dir, SlurmJob job, const BatchOptions& batch,
                        const TrainOptions& options, const std::vector<SweepRun>& populations) {
  if (backend == kKubernetes) {
    ManifestOptions manifests = batch.manifests;
    manifests.sweep = job.name;
    manifests.actors = std::max(1, options.actors);
    manifests.environments = options.environments;
    manifests.archive = options.archive;
    return WriteCluster(dir, manifests, populations);
  }
  if (backend == kList) {
    ASSIGN_OR_RETURN(const std::string file, WriteJobList(dir, batch, options, populations));
    std::printf(
        "%zu command%s in %s; each resumes its run and exits with 75 when it was interrupted, e.g.\n"
        "parallel --jobs 4 <%s\n",
        populations.size(), populations.size() == 1 ? "" : "s", file.c_str(), ShellWord(file).c_str());
    return absl::OkStatus();
  }
  job.max_array_size = MaxArraySize();
  ASSIGN_OR_RETURN(const auto scripts, WriteSlurmScripts(dir, job, batch, options, populations));
  std::printf("start with:\n");
  for (const std::string& script : scripts) std::printf("  sbatch %s\n", script.c_str());
  std::printf("follow with: datacom status %s\n", ShellWord(dir).c_str());
  return absl::OkStatus();
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
