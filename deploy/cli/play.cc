// datacom eval, rollout, render, replay-violation and export: all play a policy or get it ready to be played, so they
// hand their flags to datacom-actor or datacom-render. The options are stated here too, for --help and so that a
// mistyped one is refused before anything is loaded.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/records/best_epoch.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {
namespace {

// Options as typed, to be handed on: what is not given is not passed.
struct Passed {
  std::vector<std::string> positional, overrides;
  std::vector<std::pair<std::string, std::string>> values;  // --name, value
  std::string flag;                                         // --name
  bool flagged = false;

  std::vector<std::string> Arguments() const {
    std::vector<std::string> arguments = positional;
    for (const auto& [name, value] : values) {
      if (value.empty()) continue;
      arguments.push_back(name);
      arguments.push_back(value);
    }
    for (const std::string& assignment : overrides) {
      arguments.push_back("--set");
      arguments.push_back(assignment);
    }
    if (flagged) arguments.push_back(flag);
    return arguments;
  }
};

using Described = std::pair<std::string, std::string>;  // --name, what it is

struct Play {
  std::string name, about;
  std::string program, mode;    // what runs it; no mode: the program has only one
  std::vector<Described> what;  // the positionals
  std::vector<Described> options;
  std::string required;   // of the options
  Described flag;         // may be absent
  bool overrides = true;  // takes --set
};

CLI::App* AddPlay(CLI::App* app, int* exit_code, const Play& play) {
  auto passed = std::make_shared<Passed>();
  passed->positional.resize(play.what.size());
  passed->values.resize(play.options.size());
  passed->flag = play.flag.first;
  CLI::App* verb = app->add_subcommand(play.name, play.about);
  for (size_t i = 0; i < play.what.size(); ++i) {
    verb->add_option(play.what[i].first, passed->positional[i], play.what[i].second)->required();
  }
  for (size_t i = 0; i < play.options.size(); ++i) {
    const auto& [option_name, description] = play.options[i];
    passed->values[i].first = option_name;
    CLI::Option* option = verb->add_option(option_name, passed->values[i].second, description);
    if (option_name == play.required) option->required();
  }
  if (play.overrides) {
    verb->add_option("--set", passed->overrides,
                     "path=value, e.g. task_options.horizon=100, .puck_region=adjusted, .mismatch_sigma=0.5, "
                     ".randomisation.mass.low=0.8; may be repeated")
        ->allow_extra_args(false);
  }
  if (!play.flag.first.empty()) verb->add_flag(play.flag.first, passed->flagged, play.flag.second);
  verb->callback([passed, program = play.program, mode = play.mode, exit_code] {
    std::vector<std::string> arguments = passed->Arguments();
    if (!mode.empty()) arguments.insert(arguments.begin(), mode);
    *exit_code = Finish(Become(program, std::move(arguments)));
  });
  return verb;
}

std::string BestEpochAnd(const std::string& footer) { return absl::StrCat(kBestEpochRule, "\n", footer); }

// What --policy takes, the scripted ones as the tasks have them.
std::string Policies() {
  std::string text =
      "--policy zeros does nothing, random draws every action anew and uniformly, scripted is the first of a task's "
      "controllers written by hand:\n";
  for (const std::string& task : TaskNames()) {
    const absl::StatusOr<TaskModel> model = MakeTaskModel(task, v1::TaskOptions());
    if (!model.ok()) continue;
    for (const ScriptedPolicy& policy : model->scripted) {
      absl::StrAppend(&text, "  ", task, " ", policy.name, ": ", policy.summary, "\n");
    }
  }
  return text;
}

}  // namespace

void AddEval(CLI::App* app, int* exit_code) {
  AddPlay(app, exit_code,
          {"eval",
           "Plays a policy of a run, or one that nobody trained, and prints the paper's metrics",
           "datacom-actor",
           "eval",
           {{"what", "run folder; with --policy also a task's name"}},
           {{"--policy", "in place of a run's policy: zeros, random, scripted, or the name of a scripted one"},
            {"--member", "of a run's policy: member of the population; default: every one"},
            {"--epoch", "of a run's policy: epoch number, last or best (last)"},
            {"--episodes", "how many"},
            {"--seed", "of the start states and actions"}},
           "",
           {"--csv", "machine-readable"}})
      ->footer(BestEpochAnd(absl::StrCat(
          "--set changes the task options from those the run was trained with, or from the task's own.\n", Policies(),
          "Example: datacom eval runs/five --member 0 --epoch best --episodes 25\n"
          "         datacom eval navigation --policy scripted --episodes 100")));
}

void AddRollout(CLI::App* app, int* exit_code) {
  AddPlay(app, exit_code,
          {"rollout",
           "Plays a recorded sequence of actions, or one episode of a policy that nobody trained",
           "datacom-actor",
           "rollout",
           {{"task", "name, as `datacom list tasks` has it"}},
           {{"--actions", "CSV with columns action0.. (or action; a0..; a_v,a_w)"},
            {"--policy", "in place of --actions: zeros, random, scripted, or the name of a scripted one"},
            {"--seed", "of what the reset draws, and of random actions; default: always the same"},
            {"--init", "start state, e.g. x=0,theta=0.1"}},
           "",
           {"--csv", "machine-readable"}})
      ->footer(Policies() +
               "Example: datacom rollout cartpole --actions tests/golden/tasks/cartpole_lcg.csv --csv\n"
               "         datacom rollout navigation --policy turn_and_drive --seed 3");
}

void AddRender(CLI::App* app, int* exit_code) {
  AddPlay(app, exit_code,
          {"render",
           "Writes a film or picture of an episode, or a map of the learned constraint",
           "datacom-render",
           "",
           {{"what", "run folder, or a task's name"}},
           {{"--out", "FILE.mp4 or FILE.png; of a map FILE.png, .json or .csv"},
            {"--member", "of a run: member of the population (0)"},
            {"--epoch", "of a run: epoch number, last or best (last); of a map several: 0,2,last, or all"},
            {"--episode", "of a run: number within the epoch's evaluation, or within a longer eval --episodes (0)"},
            {"--seed", "of the start state and actions"},
            {"--actions", "of a task: CSV file, zero or random (random)"},
            {"--init", "of a task: start state, e.g. x=0,theta=0.1"},
            {"--camera", "one of the model's (the first that is fixed)"},
            {"--width", "of a frame, pixels"},
            {"--height", "of a frame, pixels"},
            {"--fps", "of a film, which is real time (30)"},
            {"--frames", "of a PNG: a sheet of so many frames, evenly spaced (1: the last alone)"},
            {"--step", "the last step to show (the episode's)"},
            {"--slice", "of a map: the task's slice (its first)"},
            {"--resolution", "of a map: points a side"}},
           "--out",
           {"--map", "a map of CVaR - delta over a slice of the constraint state"}})
      ->footer(BestEpochAnd("Example: datacom render runs/five --epoch last --out episode.mp4\n"
                            "         datacom render runs/five --map --epoch 0,2,10,last --out map.png\n"
                            "         datacom render cartpole --actions zero --frames 6 --out sheet.png"));
}

void AddReplayViolation(CLI::App* app, int* exit_code) {
  AddPlay(app, exit_code,
          {"replay-violation",
           "Simulates a violation of training again, bit for bit, from the run's safety ledger",
           "datacom-render",
           "replay-violation",
           {{"run_dir", "run folder"}, {"id", "of the run's ledger/violations.csv"}},
           {{"--out", "FILE.mp4: a film of its episode; FILE.png: the violation"},
            {"--camera", "one of the model's (the first that is fixed)"},
            {"--frames", "of a PNG: a sheet of so many frames of the whole episode"}},
           "",
           {"--csv", "the episode's states on standard output, machine-readable"},
           /*overrides=*/false})
      ->footer(
          "Every observation, reward and cost must equal the recorded one in every bit; else it says which step does "
          "not, and exits with 1.\n"
          "Example: datacom replay-violation runs/five 17 --out violation.mp4");
}

void AddExport(CLI::App* app, int* exit_code) {
  AddPlay(app, exit_code,
          {"export",
           "Writes a run's policy, nets and safety filter, as one file for a robot",
           "datacom-actor",
           "export",
           {{"run_dir", "run folder"}},
           {{"--member", "member of the population (0)"},
            {"--epoch", "epoch number, last or best (last)"},
            {"--out", "file to write"}},
           "--out",
           {},
           /*overrides=*/false})
      ->footer(BestEpochAnd(
          "The file is loaded by build/release/lib/libdatacom_policy.so, which deploy/robot/datacom_policy.h "
          "describes: an observation in, the action out that an actor would have had executed.\n"
          "Example: datacom export runs/five --member 3 --epoch best --out arm.policy"));
}

}  // namespace datacom::cli
