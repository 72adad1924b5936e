#include "deploy/cli/sweep.h"

#include <algorithm>
#include <cstdio>
#include <regex>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/plugins.h"
#include "common/base/random.h"
#include "common/base/shared_files.h"
#include "common/base/shell_word.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/config/task_files.h"
#include "common/tasks/python/python_model.h"
#include "datacom/v1/plugin.pb.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task.pb.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/train_plan.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {
namespace {

constexpr size_t kMaxName = 40, kChecksum = 8;
constexpr size_t kMaxConfigMap = 1 << 20;      // Kubernetes' limit
constexpr uint64_t kRecordBytes = 1ull << 28;  // progress, episodes, TensorBoard
constexpr uint64_t kViolationBytes = 30;       // ledger bytes per step: a few hundred per violation, one step in ten
constexpr size_t kMaxAnnotation = 250000;      // in which `kubectl apply` keeps the object; Kubernetes takes 262,144
constexpr char kHead[] =
    "# Written by `datacom --backend kubernetes`. overlays/sweep makes the namespace and its queue;\n"
    "# with --plain, overlays/plain makes the namespace.\n"
    "apiVersion: kustomize.config.k8s.io/v1beta1\n"
    "kind: Kustomization\n"
    "namespace: datacom-sweeps\n"
    "generatorOptions:\n"
    "  disableNameSuffixHash: true\n";

// Whether YAML takes the word for another thing than a text.
bool IsYamlWord(const std::string& text) {
  static constexpr const char* kWords[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  return absl::c_any_of(kWords, [&text](const char* word) { return absl::EqualsIgnoreCase(text, word); });
}

// A text of letters, digits and "-_." that YAML takes for a text.
std::string YamlText(const std::string& text) {
  const bool plain = !text.empty() && absl::ascii_isalpha(text.front()) && !IsYamlWord(text);
  return plain ? text : absl::StrCat("\"", text, "\"");
}

// The value of a label for a name: at most 63 characters, letters and digits at its ends.
std::string LabelValue(const std::string& name) {
  std::string value = name.substr(0, 63);
  while (!value.empty() && !absl::ascii_isalnum(value.back())) value.pop_back();
  value.erase(value.begin(), absl::c_find_if(value, absl::ascii_isalnum));
  return YamlText(value);
}

std::string Quantity(uint64_t bytes) { return absl::StrCat(MebibytesFor(bytes), "Mi"); }

// The lines that apply, without their marks: those that end with "# MARK" where `on`, those with "# no MARK" otherwise,
// and all that have neither.
std::string Keep(const std::string& text, const std::string& mark, bool on) {
  std::string kept;
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    const bool with = absl::ConsumeSuffix(&line, "  # " + mark);
    const bool without = !with && absl::ConsumeSuffix(&line, "  # no " + mark);
    if ((!with || on) && (!without || !on)) absl::StrAppend(&kept, line, "\n");
  }
  return kept;
}

// Whether PodFields have tolerations.
bool Tolerates(const std::string& pod) { return absl::StrContains("\n" + pod, "\n              tolerations:"); }

// The name of a population's objects: of its sweep and itself, with their common first word once. A run by itself has
// no name as a population.
std::string PopulationName(const std::string& sweep, const std::string& population) {
  if (population.empty()) return ObjectName(sweep);
  // Sweeps and populations of a task begin with its name; once is enough.
  const size_t word = std::min(sweep.find_first_of("/-"), population.find('-'));
  const bool same =
      word != std::string::npos && word < sweep.size() && sweep.substr(0, word) == population.substr(0, word);
  return ObjectName(absl::StrCat(sweep, "-", same ? population.substr(word + 1) : population));
}

absl::StatusOr<std::string> Manifest(const std::string& text, const std::string& name, const SweepRun& population,
                                     const ManifestOptions& options, const std::string& pod) {
  const v1::Experiment& experiment = population.experiment;
  TrainOptions train;
  train.actors = options.actors;
  train.environments = options.environments;
  ASSIGN_OR_RETURN(const Layout layout, PlanLayout(train, experiment));
  const bool cuda = UsesGpu(population);
  const Needs& needs = population.needs;
  const uint64_t steps = experiment.run().env_steps() * experiment.members_size();
  const uint64_t run_bytes = needs.disk_bytes() - needs.ring_bytes + kRecordBytes + steps * kViolationBytes;
  const uint64_t pod_memory = needs.memory_bytes + needs.ring_bytes + kCopyBytes;
  const uint64_t pod_disk = 2 * (needs.ring_bytes + run_bytes);  // a copy writes what is new beside the run first
  const std::string secret =
      options.archive_secret.empty()
          ? ""
          : absl::StrCat("                  envFrom: [{secretRef: {name: ", YamlText(options.archive_secret), "}}]\n");
  // Nodes with GPUs are often kept for pods that tolerate this.
  const std::string gpu =
      !cuda || Tolerates(pod)
          ? ""
          : "              tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]\n";
  const std::string host = options.plain ? "" : absl::StrCat("-0-0.", name);  // of a JobSet's host names
  return absl::StrReplaceAll(text, {{"@NAME@", name},
                                    {"@SWEEP@", ObjectName(options.sweep)},
                                    {"@POD@", pod},
                                    {"@GPU@", gpu},
                                    {"@TLS@", YamlText(options.tls_secret)},
                                    {"@HEALTH@", options.tls_secret.empty() ? "7000" : "7001"},
                                    {"@REPLAY@", absl::StrCat(name, "-replay", host)},
                                    {"@LEARNER@", absl::StrCat(name, "-learner", host)},
                                    {"@ARCHIVE@", ArchiveOf(options.archive, population)},
                                    {"@SECRET@", secret},
                                    {"@STEPS@", absl::StrCat(experiment.run().env_steps())},
                                    {"@PROCESSORS@", absl::StrCat(1 + layout.actors)},
                                    {"@MEMORY@", Quantity(pod_memory)},
                                    {"@DISK@", Quantity(pod_disk)},
                                    {"@TASK@", LabelValue(experiment.task())},
                                    {"@ALGORITHM@", LabelValue(experiment.algorithm())},
                                    {"@ACTORS@", absl::StrCat(layout.actors)},
                                    {"@ENVIRONMENTS@", absl::StrCat(layout.environments)},
                                    {"@IMAGE@", cuda ? "datacom-learner-cuda" : "datacom-learner"},
                                    {"@PROCESSOR@", cuda ? "nvidia.com/gpu: \"1\"" : "cpu: \"1\""},
                                    {"@REPLAY_MEMORY@", Quantity(needs.replay_memory_bytes + needs.ring_bytes)},
                                    {"@LEARNER_MEMORY@", Quantity(needs.learner_memory_bytes)},
                                    {"@ACTOR_MEMORY@", Quantity(needs.actor_memory_bytes)},
                                    {"@REPLAY_DISK@", Quantity(needs.ring_bytes)},
                                    {"@RUN_DISK@", Quantity(run_bytes)}});
}

// `images` is "registry.example.org:5000/team:tag"; the tag is optional.
std::string Images(const ManifestOptions& options) {
  const std::string& images = options.images;
  if (images.empty()) return "";
  std::vector<std::string> names = {"datacom-replay", "datacom-learner", "datacom-learner-cuda", "datacom-actor"};
  if (!options.archive.empty()) names = {"datacom-run"};
  const size_t colon = images.rfind(':');
  const bool tagged = colon != std::string::npos && images.find('/', colon) == std::string::npos;
  const std::string place = tagged ? images.substr(0, colon) : images;
  std::string lines = "images:\n";
  for (const std::string& image : names) {
    absl::StrAppend(&lines, "  - name: ", image, "\n    newName: ", place, "/", image, "\n");
    if (tagged) absl::StrAppend(&lines, "    newTag: \"", images.substr(colon + 1), "\"\n");
  }
  return lines;
}

// The files of a population's ConfigMap, within its folder.
std::vector<std::string> ConfigMapFiles(const v1::Experiment& experiment) {
  std::vector<std::string> files = {"experiment.textproto"};
  if (!FitsConfigMap(experiment)) return files;
  for (const v1::TaskFile& file : experiment.task_options().GetExtension(v1::text_task).file()) {
    if (file.has_sha256()) files.push_back(absl::StrCat(kTaskFilesFolder, "/", file.sha256(), ".gz"));
  }
  return files;
}

}  // namespace

bool UsesGpu(const SweepRun& population) { return population.experiment.learner().device() == "cuda"; }

bool FitsConfigMap(const v1::Experiment& experiment) {
  size_t bytes = PrintExperiment(experiment).size();
  for (const v1::TaskFile& file : experiment.task_options().GetExtension(v1::text_task).file()) {
    if (file.has_sha256()) bytes += file.gzip().size();
  }
  return bytes <= kMaxConfigMap;
}

bool NeedsServerSide(const v1::Experiment& experiment) {
  size_t bytes = absl::CEscape(PrintExperiment(experiment)).size();
  for (const v1::TaskFile& file : experiment.task_options().GetExtension(v1::text_task).file()) {
    if (file.has_sha256() && FitsConfigMap(experiment)) bytes += file.gzip().size() * 4 / 3;
  }
  return bytes > kMaxAnnotation;
}

std::string ObjectName(const std::string& name) {
  std::string object;
  for (const char c : name) object.push_back(absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '-');
  if (object.empty() || !absl::ascii_isalpha(object.front())) object = "run-" + object;
  if (object.size() > kMaxName) {
    const uint64_t key = StreamKey(name, {});
    // Of a long name the end says more: method and values.
    const size_t end = object.size() - (kMaxName - kChecksum - 3);
    object = absl::StrCat("d", absl::StrFormat("%08x", key & 0xffffffff), "-", object.substr(end));
  }
  while (object.back() == '-') object.pop_back();
  return IsYamlWord(object) ? "run-" + object : object;
}

absl::StatusOr<std::string> PodFields(const std::string& file) {
  const std::set<std::string> taken = {"restartPolicy",
                                       "terminationGracePeriodSeconds",
                                       "automountServiceAccountToken",
                                       "securityContext",
                                       "enableServiceLinks",
                                       "containers",
                                       "volumes"};
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMaxConfigMap));
  std::string fields;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    ++number;
    const std::string key(line.substr(0, line.find(':')));
    const bool is_key = !key.empty() && absl::c_all_of(key, absl::ascii_isalpha) && key.size() < line.size();
    const bool is_rest = line.empty() || line[0] == ' ' || line[0] == '#' || line[0] == '-';
    if ((!is_key && !is_rest) || absl::StrContains(line, '\t') || absl::StartsWith(line, "---") ||
        taken.count(key) > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--pods ", file, ", line ", number, ": \"", line, "\" ",
          taken.count(key) > 0 ? "is set by datacom" : "is no field of a pod's spec, such as tolerations:"));
    }
    absl::StrAppend(&fields, line.empty() ? "" : "              ", line, "\n");
  }
  return fields;
}

absl::Status CheckImages(const std::string& images) {
  static const std::regex* const kForm = new std::regex(
      "[a-z0-9]+([._-]+[a-z0-9]+)*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?");
  if (images.size() <= 255 && std::regex_match(images, *kForm)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--images ", images,
                   ": write it as registry.example.org:5000/team:tag, in lower case; port and tag are optional"));
}

absl::Status WriteManifests(const std::string& dir, const ManifestOptions& options,
                            const std::vector<SweepRun>& populations) {
  const std::string source = options.archive.empty() ? "kubernetes/jobset.yaml.in" : "kubernetes/archive.yaml.in";
  ASSIGN_OR_RETURN(std::string text, ReadFile(FindSharedFile(source, "deploy/" + source)));
  text = Keep(Keep(text, "tls", !options.tls_secret.empty()), "set", !options.plain);
  ASSIGN_OR_RETURN(const std::string pod, options.pods.empty() ? "" : PodFields(options.pods));
  std::string resources = "resources:\n", experiments = "configMapGenerator:\n";
  std::set<std::string> names;
  for (const SweepRun& population : populations) {
    const std::string name = PopulationName(options.sweep, population.name);
    const std::string below = population.name.empty() ? "" : population.name + "/";
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat(population.name, ": another population would also be called ",
                                                     name, " in the cluster; use labels that differ more"));
    }
    const std::string experiment = PrintExperiment(population.experiment);
    if (experiment.size() > kMaxConfigMap) {
      return absl::InvalidArgumentError(absl::StrCat(population.name, ": its experiment has ", experiment.size(),
                                                     " bytes and a ConfigMap holds ", kMaxConfigMap,
                                                     "; lower --max-members"));
    }
    ASSIGN_OR_RETURN(const std::string manifest, Manifest(text, name, population, options, pod));
    const std::string folder = RunFolder(dir, population);
    RETURN_IF_ERROR(WriteExperiment(ExperimentFile(folder), population.experiment));
    RETURN_IF_ERROR(WriteFileAtomically(folder + "/population.yaml", manifest));
    absl::StrAppend(&resources, "  - ", below, "population.yaml\n");
    const auto in_folder = [&](std::string* out, const std::string& file) { absl::StrAppend(out, below, file); };
    absl::StrAppend(&experiments, "  - name: ", name, "\n    files: [",
                    absl::StrJoin(ConfigMapFiles(population.experiment), ", ", in_folder), "]\n");
  }
  return WriteFileAtomically(dir + "/kustomization.yaml", absl::StrCat(kHead, Images(options), resources, experiments));
}

absl::Status WriteCluster(const std::string& dir, const ManifestOptions& options,
                          const std::vector<SweepRun>& populations) {
  RETURN_IF_ERROR(WriteManifests(dir, options, populations));
  const std::string learner = options.archive.empty() ? "the learner's image" : "the image datacom-run";
  ASSIGN_OR_RETURN(const std::string pod, options.pods.empty() ? "" : PodFields(options.pods));
  std::set<std::string> said;  // populations may need the same
  const auto say = [&said](const std::string& sentence) {
    if (said.insert(sentence).second) PrintWrapped(sentence);
  };
  for (const SweepRun& population : populations) {
    const v1::Experiment& experiment = population.experiment;
    if (!FitsConfigMap(experiment)) {
      say(absl::StrCat(RunFolder(dir, population), "/task_files is too large for a ConfigMap: put it into ", learner,
                       " or a volume, and name its place in the environment variable ",
                       "DATACOM_TASK_FILES of that pod\n"));
    }
    if (experiment.has_pretrain()) {
      say(absl::StrCat("pretrain.dataset: the pods do not have ", experiment.pretrain().dataset(),
                       ": put it under the same path into ", learner, " or a volume of that pod\n"));
    }
    if (const auto& task = experiment.task_options(); task.HasExtension(v1::python_task)) {
      say(absl::StrCat("the images have no Python: put it with ", task.GetExtension(v1::python_task).environment(),
                       " into yours, and name that in their environment variable ", python::kNamedEnvironments, "\n"));
    }
    if (UsesGpu(population) && Tolerates(pod) && !absl::StrContains(pod, "nvidia.com/gpu")) {
      say(absl::StrCat("--pods ", options.pods,
                       ": its tolerations are all that the learner has; nodes with GPUs often ",
                       "take only pods with {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}\n"));
    }
    for (const std::string& plugin : experiment.task_options().GetRepeatedExtension(v1::plugin)) {
      say(absl::StrCat("the images do not have the plug-in ", plugin, ": put its files into yours, and name ", plugin,
                       ".so in their environment variable ", kPluginsVariable, "\n"));
    }
  }
  if (options.images.empty()) {
    say(absl::StrCat("without --images the nodes look in their default registry for ",
                     options.archive.empty() ? "datacom-learner:latest and the others\n" : "datacom-run:latest\n"));
  }
  const std::pair<std::string, std::string> secrets[] = {
      {options.tls_secret, "with ca.crt, tls.crt, tls.key and token"},
      {options.archive_secret, "with the environment variables of rclone"}};
  for (const auto& [name, content] : secrets) {
    if (name.empty()) continue;
    std::printf("the pods wait for the secret %s in namespace datacom-sweeps, %s\n", name.c_str(), content.c_str());
  }
  const bool server_side =
      absl::c_any_of(populations, [](const SweepRun& population) { return NeedsServerSide(population.experiment); });
  std::printf("start with: kubectl apply%s -k %s (apply %s once per cluster first)\n",
              server_side ? " --server-side" : "", ShellWord(dir).c_str(),
              SharedPath(options.plain ? "kubernetes/overlays/plain" : "kubernetes/overlays/sweep").c_str());
  const std::string archive = ArchiveOf(options.archive, populations.front());
  if (!archive.empty()) std::printf("copy a run with: datacom copy %s FOLDER\n", archive.c_str());
  return absl::OkStatus();
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
