// datacom-tools: the verbs of `datacom` that are no roles of a run. They play, draw, check and export runs and tasks.
// It starts without a display and without a GPU: a verb that draws loads OpenGL by itself.
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>

#include "CLI/CLI.hpp"
#include "common/base/log.h"
#include "common/base/machine.h"
#include "common/base/plugins.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/records/message_json.h"
#include "deploy/tools/mistake.h"
#include "deploy/tools/verbs.h"

namespace datacom::tools {

int Finish(const absl::Status& status, bool json, int not_found) {
  if (status.ok()) return kExitOk;
  const int code = absl::IsNotFound(status) ? not_found : ExitCode(status);
  if (json) std::cout << ErrorJson(status.message(), code);
  std::fflush(stdout);
  std::cout.flush();
  std::cerr << "datacom: " << ForTerminal(status.message()) << '\n';
  return code;
}

namespace {

int Main(int argc, char** argv) {
  std::string message;
  if (!CheckProcessor(&message)) {
    std::cerr << "datacom: " << message << '\n';
    return kExitFailure;
  }
  if (const absl::Status status = LoadPlugins({PluginPart::kSimulator}); !status.ok()) return Finish(status);
  // `datacom` passes its own name as argv[0], so that the help shows what to type.
  CLI::App app("Plays, draws, checks and exports runs and tasks.", std::filesystem::path(argv[0]).filename().string());
  app.set_version_flag("--version", "datacom-tools " + BuildName());
  app.require_subcommand(1);
  const std::string verb = argc > 1 ? argv[1] : "";
  app.failure_message(
      [&verb](const CLI::App* root, const CLI::Error& error) { return DescribeMistake(*root, verb, error); });
  int exit_code = kExitOk;
  for (auto* add : {AddTask, AddEval, AddRollout, AddRender, AddDemo, AddReplayViolation, AddExport, AddExportDataset,
                    AddVerify, AddCopy, AddLoadTask, AddModelFit}) {
    add(&app, &exit_code);
  }
  EndWithoutMemory(kExitUsage);
  RaiseOpenFileLimit();
  InitLog("tools");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    const int code = app.exit(error, text, std::cerr);
    std::cout << WrapLines(text.str(), TerminalWidth(0));
    if (code != 0 && WantsJson(argc, argv)) std::cout << ErrorJson(error.what(), kExitUsage);
    return code == 0 ? kExitOk : kExitUsage;
  }
  return exit_code;
}

}  // namespace
}  // namespace datacom::tools

int main(int argc, char** argv) {
  return datacom::RunWatched([&] { return datacom::tools::Main(argc, argv); });
}
// SPDX-License-Identifier: Apache-2.0
