// The verbs of the `datacom` command: one file a verb, each adds its subcommand to the application.
//
// A verb's callback stores the exit code: 0 done, 2 wrong usage or configuration, 75 interrupted, 1 anything else.
#ifndef DATACOM_DEPLOY_CLI_VERBS_H_
#define DATACOM_DEPLOY_CLI_VERBS_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace datacom::cli {

void AddTrain(CLI::App* app, int* exit_code);
void AddSweep(CLI::App* app, int* exit_code);
void AddStatus(CLI::App* app, int* exit_code);
void AddEval(CLI::App* app, int* exit_code);
void AddRollout(CLI::App* app, int* exit_code);
void AddRender(CLI::App* app, int* exit_code);
void AddReplayViolation(CLI::App* app, int* exit_code);
void AddExport(CLI::App* app, int* exit_code);
void AddConfig(CLI::App* app, int* exit_code);
void AddList(CLI::App* app, int* exit_code);
void AddExportDataset(CLI::App* app, int* exit_code);
void AddBench(CLI::App* app, int* exit_code);
void AddReport(CLI::App* app, int* exit_code);

// Prints "datacom: <message>" on stderr (nothing when OK) and returns the exit code of the status.
int Finish(const absl::Status& status);

// Folder of the own executable (where the role binaries are), or $DATACOM_BIN.
std::string BinFolder();

// Replaces this process by a binary of BinFolder(); returns only on an error.
absl::Status Become(const std::string& program, std::vector<std::string> argv);

// Parses argv and runs the verb. The body of main, callable from tests.
int RunCommand(int argc, const char* const* argv);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_VERBS_H_
