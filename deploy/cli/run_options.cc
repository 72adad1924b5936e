#include "deploy/cli/run_options.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/flag_checks.h"
#include "common/base/shared_files.h"

namespace datacom::cli {
namespace {

constexpr char kUsualHeading[] = "Options";  // of CLI11, in the help

}  // namespace

void AddExperimentOptions(CLI::App* verb, TrainOptions* options) {
  verb->option_defaults()->group("Options of the experiment");
  verb->add_option("--seeds", options->seeds,
                   "seeds, instead of those in the file: 0-4, 3 or 0,2,5-7; one member for each, in a sweep for each "
                   "point and seed");
  verb->add_option("--steps", options->steps, "exact number of environment steps of each member")
      ->check(WholeNumber<uint64_t>(1));
  verb->add_option("--set", options->overrides,
                   "path=value, e.g. hyper.cost_budget=10; repeatable; a sweep refuses a path that an axis sets")
      ->allow_extra_args(false);
  verb->add_flag("--lockstep", options->lockstep,
                 "bit-reproducible, with one environment per member and policy lag 0: every run gives the same "
                 "records, also after a kill and a resume, and on every processor with AVX2");
  verb->add_option("--device", options->device, "device of the learner: cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  verb->option_defaults()->group(kUsualHeading);
}

void AddAlgorithmOption(CLI::App* verb, TrainOptions* options) {
  verb->add_option(
      "--algorithm", options->algorithm,
      "run this algorithm on a task, with default settings, but a target entropy of -1 for each action, normalised "
      "observations and critics, and a delta that follows the risk of acceptable episodes (hyper.delta_mode=peak)");
}

void AddProcessOptions(CLI::App* verb, TrainOptions* options) {
  verb->option_defaults()->group("Options of the processes");
  verb->add_option("--actors", options->actors, "actor processes of each run (1; a resume keeps the run's number)")
      ->check(CLI::Range(1, 10000));
  verb->add_option("--envs", options->environments,
                   "environments of each actor, rounded up to a multiple of the members (default: one per member; a "
                   "resume keeps the run's number)")
      ->check(CLI::Range(1, 65536));
  verb->add_option("--run-dir", options->run_dir,
                   "folder of the run (runs/<experiment>-<n>), or of the whole sweep (runs/<sweep>)");
  verb->add_option("--max-hours", options->max_hours, "drain and exit with 75 after this time")->check(AboveZero);
  verb->add_option(
          "--stall-minutes", options->stall_minutes,
          "end with exit code 1 and the reason after so many minutes without a row, update or evaluation; a role "
          "that hangs for half of that is restarted")
      ->capture_default_str()
      ->check(AboveZero);
  verb->add_option("--tls", options->tls,
                   absl::StrCat("folder with ca.crt, tls.crt, tls.key and token, as ", SharedPath("dev/make_tls.sh"),
                                " makes it: mutual TLS between the roles"));
  verb->add_flag("--quiet", options->quiet, "print only failures and the final table");
  verb->add_flag("--json", options->json, "print a JSON object on each line, for programs");
  verb->option_defaults()->group(kUsualHeading);
}

void AddBatchOptions(CLI::App* verb, BatchOptions* options) {
  verb->option_defaults()->group("Options of the other backends");
  verb->add_option("--program", options->program,
                   "what starts this command on a node, e.g. \"apptainer run /shared/datacom.sif\" (this program)");
  verb->add_option("--sbatch", options->sbatch,
                   "options of sbatch for the script that trains, e.g. --sbatch=\"--partition=long --time=2-0\"");
  verb->add_option("--join", options->join,
                   "Slurm: also write actors.sbatch, with this many actors in jobs of their own, and certificates for "
                   "mutual TLS between the nodes")
      ->check(CLI::Range(1, 10000));
  ManifestOptions* const manifests = &options->manifests;
  verb->add_option("--images", manifests->images,
                   "Kubernetes: registry of the images, e.g. registry.example.org/team:tag");
  verb->add_flag("--plain", manifests->plain,
                 "Kubernetes: Jobs and Services, for clusters with neither JobSet nor Kueue");
  verb->add_option("--pods", manifests->pods,
                   "Kubernetes: file of YAML with fields for the spec of every pod, e.g. tolerations, nodeSelector, "
                   "priorityClassName, imagePullSecrets");
  verb->add_option("--tls-secret", manifests->tls_secret,
                   "Kubernetes: Secret with ca.crt, tls.crt, tls.key and token, for mutual TLS between the roles");
  verb->add_option("--archive-secret", manifests->archive_secret,
                   "Kubernetes: Secret whose entries become environment variables of the run, such as "
                   "AWS_ACCESS_KEY_ID, with which rclone reaches the place of --archive");
  verb->option_defaults()->group(kUsualHeading);
}

void RefuseOptions(CLI::App* verb, const std::vector<std::string>& flags, const std::string& reason) {
  for (const std::string& flag : flags) {
    const auto refuse = [flag, reason](const std::vector<std::string>&) -> bool {
      throw CLI::ValidationError(flag, reason);
    };
    verb->add_option(flag, refuse)->expected(0, 1)->group("");
  }
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
