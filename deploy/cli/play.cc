// datacom eval and rollout: both simulate, so both hand their flags to datacom-actor, the only role that links MuJoCo.
// The options are stated here too, for --help and so that a mistyped one is refused before anything is loaded.
#include <errno.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {
namespace {

// Replaces this process; returns only on an error.
absl::Status BecomeActor(const std::string& mode, const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {absl::StrCat(BinFolder(), "/datacom-actor"), mode};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::vector<char*> raw;
  for (std::string& argument : argv) raw.push_back(argument.data());
  raw.push_back(nullptr);
  std::fflush(stdout);
  ::execv(raw[0], raw.data());
  return ErrnoStatus(errno, absl::StrCat("run ", argv[0]));
}

// Options as typed, to be handed on: what is not given is not passed.
struct Passed {
  std::vector<std::string> positional, overrides;
  std::vector<std::pair<std::string, std::string>> values;  // --name, value
  bool csv = false;

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
    if (csv) arguments.push_back("--csv");
    return arguments;
  }
};

CLI::App* AddPlay(CLI::App* app, int* exit_code, const std::string& name, const std::string& about,
                  const std::string& what, const std::vector<std::pair<std::string, std::string>>& options,
                  const std::string& required) {
  auto passed = std::make_shared<Passed>();
  passed->positional.resize(1);
  passed->values.resize(options.size());
  CLI::App* verb = app->add_subcommand(name, about);
  verb->add_option(what, passed->positional[0])->required();
  for (size_t i = 0; i < options.size(); ++i) {
    passed->values[i].first = options[i].first;
    CLI::Option* option = verb->add_option(options[i].first, passed->values[i].second, options[i].second);
    if (options[i].first == required) option->required();
  }
  verb->add_option("--set", passed->overrides, "path=value, e.g. task_options.horizon=100; may be repeated")
      ->allow_extra_args(false);
  verb->add_flag("--csv", passed->csv, "machine-readable");
  verb->callback([passed, name, exit_code] { *exit_code = Finish(BecomeActor(name, passed->Arguments())); });
  return verb;
}

}  // namespace

void AddEval(CLI::App* app, int* exit_code) {
  AddPlay(app, exit_code, "eval", "Plays a policy of a run and prints the paper's metrics", "run_dir",
          {{"--member", "member of the population (0)"},
           {"--epoch", "epoch number, or last"},
           {"--episodes", "how many"},
           {"--seed", "of the start states and actions"}},
          "")
      ->footer("Example: datacom eval runs/five --member 0 --epoch last --episodes 25");
}

void AddRollout(CLI::App* app, int* exit_code) {
  AddPlay(app, exit_code, "rollout", "Plays a recorded sequence of actions", "task",
          {{"--actions", "CSV with columns action0.. (or action; a0..; a_v,a_w)"},
           {"--init", "start state, e.g. x=0,theta=0.1"}},
          "--actions")
      ->footer("Example: datacom rollout cartpole --actions tests/golden/tasks/cartpole_lcg.csv --csv");
}

}  // namespace datacom::cli
