// The verbs of datacom-tools. That program declares the options, prints their help and refuses a mistyped one.
//
// The arguments are passed on before CLI11 parses them: its prefix_command drops "--" and takes a run folder that is
// named like a verb for that verb.
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "deploy/cli/verbs.h"
#include "deploy/tools/verbs.h"

namespace datacom::cli {
namespace {

struct Forwarded {
  const char* verb;
  const char* about;
  const char* notes;  // printed before the program's own help
  bool lists_policies = false;
};

constexpr Forwarded kForwarded[] = {
    {"task", tools::kAboutTask,
     "Example: datacom task new my_robot --model arm.xml\n"
     "         datacom task check my_robot/task.textproto\n"
     "`new` makes the folder my_robot with a copy of the model and a task.textproto to edit. `check` plays random\n"
     "actions in the task and prints the ranges of all numbers, violated costs, the speed and more.\n"},
    {"demo", tools::kAboutDemo,
     "Example: datacom demo --port 8080\n"
     "         ssh -L 8080:127.0.0.1:8080 HOST datacom demo --port 8080    # then http://127.0.0.1:8080/ shows it "
     "here\n"
     "The page needs no network and no training. It is served only on this machine.\n"},
    {"eval", tools::kAboutEval,
     "Example: datacom eval runs/five --member 0 --epoch best --episodes 25\n"
     "         datacom eval navigation --policy scripted --episodes 100\n"
     "         datacom eval runs/hockey --set task_options.puck_region=adjusted --set "
     "task_options.mismatch_sigma=0.5\n",
     true},
    {"rollout", tools::kAboutRollout,
     "Example: datacom rollout cartpole --actions actions.csv --init x=0,theta=0.1 --csv\n"
     "         datacom rollout navigation --policy turn_and_drive --seed 3\n"
     "         datacom rollout cartpole --policy random --set task_options.randomisation.mass.low=0.8 "
     "--set task_options.randomisation.mass.high=1.2\n"
     "The columns of the --actions file are action0, action1, ...; or a0, a1, ...; or action; or a_v, a_w.\n",
     true},
    {"render", tools::kAboutRender,
     "Example: datacom render runs/five --epoch last --out episode.html\n"
     "         datacom render runs/five --map --epoch 0,2,10,last --out map.png\n"
     "         datacom render navigation --policy scripted --frames 6 --out sheet.png\n"
     "         datacom render cartpole --init x=0,theta=0.1 --set task_options.horizon=100 --out fall.html\n",
     true},
    {"replay-violation", tools::kAboutReplayViolation,
     "Example: datacom replay-violation runs/five 17 --out violation.html\n"
     "Every observation, reward and cost must equal the recorded one in every bit. Otherwise the command names the\n"
     "first step that differs and exits with 1.\n"},
    {"export", tools::kAboutExport,
     "Example: datacom export runs/five --member 3 --epoch best --out arm.policy\n"
     "libdatacom_policy.so loads the file; its header datacom_policy.h describes the functions. An observation gives\n"
     "the action that an actor would have had executed.\n"},
    {"export-dataset", tools::kAboutExportDataset,
     "Example: datacom export-dataset runs/five --out datasets/five\n"
     "         datacom train air_hockey/datacom --set pretrain.dataset=datasets/five --set pretrain.updates=5000\n"
     "The rows are grouped by episode; proto/datacom/v1/dataset.proto of the sources describes the files.\n"},
    {"copy", tools::kAboutCopy,
     "Example: datacom copy runs/five s3://bucket/runs/five\n"
     "         datacom copy s3://bucket/runs/five runs/again\n"
     "         datacom copy s3://bucket/runs/five\n"
     "Places: s3://BUCKET/PATH, gs://BUCKET/PATH and REMOTE:PATH need the program rclone; file:///PATH and folders do\n"
     "not. A later copy to the same place copies what is new. Without TO it says what the place holds.\n"
     "`train` and `sweep --archive PLACE` copy each checkpoint.\n"},
    {"verify", tools::kAboutVerify,
     "Example: datacom verify runs/five\n"
     "         datacom verify runs/five --repair\n"
     "Prints one line for each kind of part and one for each finding. Exits with 0 when no damage was found, with 1\n"
     "otherwise. The run's processes may keep running, except with --repair.\n"},
};

// The values that --policy takes.
std::string Policies() {
  std::string text =
      "--policy zeros plays zero actions, random draws every action uniformly within its bounds, scripted plays the\n"
      "task's first hand-written controller. The hand-written controllers:\n";
  for (const std::string& task : TaskNames()) {
    const absl::StatusOr<TaskModel> model = MakeTaskModel(task, v1::TaskOptions());
    if (!model.ok()) continue;
    for (const ScriptedPolicy& policy : model->scripted) {
      absl::StrAppend(&text, "  ", task, " ", policy.name, ": ", policy.summary, "\n");
    }
  }
  return text;
}

bool AsksForHelp(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return false;
    if (argument == "--help" || argument == "-h") return true;
  }
  return false;
}

}  // namespace

void AddForwarded(CLI::App* app) {
  for (const Forwarded& forwarded : kForwarded) app->add_subcommand(forwarded.verb, forwarded.about);
}

std::optional<absl::Status> RunForwarded(int argc, const char* const* argv) {
  for (const Forwarded& forwarded : kForwarded) {
    const std::string verb = forwarded.verb;
    if (argc < 2 || argv[1] != verb) continue;
    const std::vector<std::string> arguments(argv + 2, argv + argc);
    if (AsksForHelp(arguments)) {
      PrintWrapped(absl::StrCat(forwarded.notes, forwarded.lists_policies ? Policies() : "", "\n"));
    }
    // The program's help calls it by its first word: "Usage: datacom eval [OPTIONS] what".
    std::vector<std::string> words = {"datacom", verb};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return ReplaceProcess("datacom-tools", std::move(words));
  }
  return std::nullopt;
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
