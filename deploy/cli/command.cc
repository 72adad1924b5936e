#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/machine.h"
#include "common/base/near_miss.h"
#include "common/base/plugins.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/records/message_json.h"
#include "common/tasks/python/identity.h"
#include "common/tasks/python/python_model.h"
#include "deploy/cli/verbs.h"
#include "deploy/tools/mistake.h"

namespace datacom::cli {

int Finish(const absl::Status& status, bool json) {
  if (status.ok()) return kExitOk;
  if (json) std::fputs(ErrorJson(status.message(), ExitCode(status)).c_str(), stdout);
  std::fflush(stdout);
  std::fprintf(stderr, "datacom: %s\n", ForTerminal(status.message()).c_str());
  return ExitCode(status);
}

// By std::cout, which keeps the error of a text that is larger than its buffer.
void PrintWrapped(const std::string& text) { std::cout << WrapLines(ForTerminal(text), TerminalWidth(0)); }

std::string BinFolder() {
  if (const char* folder = std::getenv("DATACOM_BIN")) return folder;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

absl::Status CannotRun(const std::string& path, int error) {
  const absl::Status status = ErrnoStatus(error, absl::StrCat("run ", path));
  return absl::Status(status.code(), absl::StrCat(status.message(),
                                                  "; build it with ./datacom build, or set DATACOM_BIN to its folder"));
}

absl::Status ReplaceProcess(const std::string& program, std::vector<std::string> argv) {
  const std::string path = absl::StrCat(BinFolder(), "/", program);
  std::vector<char*> raw;
  for (std::string& argument : argv) raw.push_back(argument.data());
  raw.push_back(nullptr);
  RETURN_IF_ERROR(FlushStandardOutput());
  ::execv(path.c_str(), raw.data());
  return CannotRun(path, errno);
}

namespace {

// CLI11's own error for a missing or unknown verb does not list the verbs.
absl::Status CheckVerb(const CLI::App& app, int argc, const char* const* argv) {
  if (argc > 1 && argv[1][0] == '-') return absl::OkStatus();
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (argc > 1 && verb->get_name() == argv[1]) return absl::OkStatus();
    verbs.push_back(verb->get_name());
  }
  return absl::InvalidArgumentError(
      absl::StrCat(argc > 1 ? absl::StrCat("unknown verb \"", argv[1], "\"") : "name a verb",
                   "; the verbs are: ", absl::StrJoin(verbs, ", "), argc > 1 ? DidYouMean(argv[1], verbs) : ""));
}

// What a script means by DATACOM_X="$PLACE" while PLACE is not set is a default, for every process of a run.
void ForgetEmptyVariables() {
  std::vector<std::string> empty;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const absl::string_view text = *variable;
    const bool has_value = text.find('=') + 1 != text.size();
    if (absl::StartsWith(text, "DATACOM_") && !has_value) empty.emplace_back(text.substr(0, text.size() - 1));
  }
  for (const std::string& name : empty) ::unsetenv(name.c_str());
}

constexpr char kPlugin[] = "--plugin", kPython[] = "--python", kAccept[] = "--accept-environment";

// Removes each `option VALUE` and `option=VALUE` from the arguments and returns the values. `missing`: says what to
// name.
absl::StatusOr<std::vector<std::string>> Take(const std::string& option, const char* missing,
                                              std::vector<const char*>* arguments) {
  std::vector<std::string> values;
  for (auto at = arguments->begin(); at != arguments->end() && *at != absl::string_view("--");) {
    absl::string_view value = *at;
    if (value != option && !absl::ConsumePrefix(&value, option + "=")) {
      ++at;
      continue;
    }
    if (value == option) {
      at = arguments->erase(at);
      value = at == arguments->end() ? "" : *at;
    }
    if (value.empty() || value[0] == '-') return absl::InvalidArgumentError(absl::StrCat(option, ": name ", missing));
    values.emplace_back(value);
    at = arguments->erase(at);
  }
  return values;
}

// Moves the plug-ins to DATACOM_PLUGINS, which every process of a run inherits, and loads them.
absl::Status TakePlugins(std::vector<const char*>* arguments) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, Take(kPlugin, "the file of a plug-in", arguments));
  for (const std::string& file : files) {
    const char* const before = std::getenv(kPluginsVariable);
    const std::string path = AbsolutePath(file);
    ::setenv(kPluginsVariable, absl::StrCat(before == nullptr ? "" : before, ":", path).c_str(), /*overwrite=*/1);
  }
  return LoadPlugins({});
}

// Moves the Python environments that the user names, by option or as a task, to kNamedEnvironments, which every process
// of a run inherits, and --accept-environment to kAcceptEnvironment. Returns the first that an option names.
absl::StatusOr<std::string> TakePython(std::vector<const char*>* arguments) {
  ASSIGN_OR_RETURN(std::vector<std::string> named, Take(kPython, "MODULE:CALLABLE of an environment", arguments));
  const std::string first = named.empty() ? "" : named.front();
  const auto end =
      std::find_if(arguments->begin(), arguments->end(), [](absl::string_view word) { return word == "--"; });
  const auto kept = std::remove_if(arguments->begin(), end, [](absl::string_view word) { return word == kAccept; });
  if (kept != end) ::setenv(python::kAcceptEnvironment, "1", /*overwrite=*/1);
  arguments->erase(kept, end);
  for (absl::string_view word : *arguments) {
    if (absl::ConsumePrefix(&word, python::kPythonTask)) named.emplace_back(word);
  }
  if (!named.empty()) ::setenv(python::kNamedEnvironments, absl::StrJoin(named, ",").c_str(), /*overwrite=*/1);
  return first;
}

// "hyper.cost_budget=10": a path of settings and a value.
bool IsAssignment(absl::string_view word) {
  const size_t equals = word.find('=');
  return equals != absl::string_view::npos && equals > 0 && absl::ascii_isalpha(word[0]) &&
         std::all_of(word.begin(), word.begin() + equals,
                     [](char c) { return absl::ascii_isalnum(c) || absl::StrContains("_.[]", c); });
}

// CLI11 would take the second value of --set for the experiment, and the word behind `--option=` for its value. What a
// script means by "$PLACE" while PLACE is not set would be a default.
absl::Status CheckValues(const std::vector<const char*>& arguments) {
  bool set = false;  // whether the word before is a value of --set
  for (size_t i = 0; i < arguments.size(); ++i) {
    const absl::string_view word = arguments[i];
    if (word == "--") break;
    if (absl::StartsWith(word, "--") && word.find('=') == word.size() - 1) {
      return absl::InvalidArgumentError(absl::StrCat(word, ": there is no value after ="));
    }
    const absl::string_view before = i == 0 ? "" : arguments[i - 1];
    if (word.empty() && absl::StartsWith(before, "--") && before != "--grafana") {  // which is then not started
      return absl::InvalidArgumentError(absl::StrCat(before, ": must not be empty"));
    }
    if (set && IsAssignment(word)) {
      return absl::InvalidArgumentError(absl::StrCat(word, ": each assignment needs a --set of its own: --set ",
                                                     absl::StripPrefix(before, "--set="), " --set ", word));
    }
    set = absl::StartsWith(word, "--set=") || before == "--set";
  }
  return absl::OkStatus();
}

// `help VERB` is `VERB --help`.
void AskVerbForHelp(std::vector<const char*>* arguments) {
  if (arguments->size() < 3 || (*arguments)[1] != absl::string_view("help")) return;
  arguments->erase(arguments->begin() + 1);
  const auto is_option = [](const char* word) { return word[0] == '-'; };
  arguments->erase(std::find_if(arguments->begin() + 1, arguments->end(), is_option), arguments->end());
  arguments->push_back("--help");
}

void AddVerbs(CLI::App* app, const std::string& environment, int* exit_code) {
  AddTrain(app, environment, exit_code);
  AddSweep(app, exit_code);
  AddJoin(app, exit_code);
  AddStatus(app, exit_code);
  AddWatch(app, exit_code);
  AddMonitor(app, exit_code);
  AddForwarded(app);
  AddReport(app, exit_code);
  AddConfig(app, exit_code);
  AddExplain(app, exit_code);
  AddList(app, exit_code);
  AddBench(app, exit_code);
}

}  // namespace

int RunCommand(int typed, const char* const* words) {
  EndWithoutMemory(kExitUsage);
  ForgetEmptyVariables();
  InitLog("datacom");
  std::vector<const char*> arguments(words, words + typed);
  const bool json = tools::WantsJson(typed, words);
  if (const absl::Status status = TakePlugins(&arguments); !status.ok()) return Finish(status, json);
  const absl::StatusOr<std::string> environment = TakePython(&arguments);
  if (!environment.ok()) return Finish(environment.status(), json);
  AskVerbForHelp(&arguments);
  const int argc = static_cast<int>(arguments.size());
  const char* const* const argv = arguments.data();
  CLI::App app{"Safe reinforcement learning with D-ATACOM, as a distributed actor-learner system.", "datacom"};
  app.set_version_flag("--version", absl::StrCat("datacom ", BuildName()));
  app.require_subcommand(1);
  std::string taken;  // already, by TakePlugins and TakePython
  app.add_option(kPython, taken,
                 "MODULE:CALLABLE of a Gymnasium environment whose code may run, for any verb; an experiment or a run "
                 "folder that names another one is refused; repeatable")
      ->option_text("MODULE:CALLABLE");
  bool accepts = false;  // likewise
  app.add_flag(kAccept, accepts, "Step a Python environment that is not the one of the run any more, for any verb");
  app.add_option(
         kPlugin, taken,
         "File NAME.so of a plug-in with tasks or algorithms, for any verb; repeatable; also DATACOM_PLUGINS=FILE:FILE")
      ->option_text("FILE");
  const std::string first = argc > 1 ? argv[1] : "";
  app.failure_message(
      [&first](const CLI::App* root, const CLI::Error& error) { return tools::DescribeMistake(*root, first, error); });
  app.footer(
      "Example: datacom train cartpole/datacom --seeds 0-4 --steps 200000 --run-dir runs/five\n"
      "Exit codes: 0 complete, 2 wrong usage or configuration, 75 interrupted and drained (can be resumed), 1 any "
      "other failure.\n"
      "`datacom VERB --help` lists the options of a verb.");
  int exit_code = kExitOk;
  AddVerbs(&app, *environment, &exit_code);
  ::setenv("DATACOM_PYTHON", "python3", /*overwrite=*/0);  // whoever types the command trusts the one on the PATH
  ::setenv("PYTHONHASHSEED", "0", /*overwrite=*/0);        // a set of words has one order in every process
  if (first == "help") {
    PrintWrapped(app.help());
    return kExitOk;
  }
  if (const absl::Status status = CheckVerb(app, argc, argv); !status.ok()) return Finish(status, json);
  if (const absl::Status status = CheckValues(arguments); !status.ok()) return Finish(status, json);
  if (const std::optional<absl::Status> status = RunForwarded(argc, argv)) return Finish(*status, json);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    const int code = app.exit(error, text, std::cerr);  // help, version or the problem
    PrintWrapped(text.str());
    if (code != 0 && json) std::fputs(ErrorJson(error.what(), kExitUsage).c_str(), stdout);
    return code == 0 ? kExitOk : kExitUsage;
  }
  return exit_code;
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
