// The verbs of the `datacom` command. Each file adds its subcommand to the application.
//
// A verb's callback stores the exit code: 0 done, 2 wrong usage or configuration, 75 interrupted, 1 any other failure.
#ifndef DATACOM_DEPLOY_CLI_VERBS_H_
#define DATACOM_DEPLOY_CLI_VERBS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace datacom::cli {

void AddTrain(CLI::App* app, const std::string& environment, int* exit_code);  // environment: the value of --python
void AddSweep(CLI::App* app, int* exit_code);
void AddJoin(CLI::App* app, int* exit_code);
void AddStatus(CLI::App* app, int* exit_code);
void AddWatch(CLI::App* app, int* exit_code);
void AddMonitor(CLI::App* app, int* exit_code);
void AddReport(CLI::App* app, int* exit_code);
void AddConfig(CLI::App* app, int* exit_code);
void AddExplain(CLI::App* app, int* exit_code);
void AddList(CLI::App* app, int* exit_code);
void AddBench(CLI::App* app, int* exit_code);

// Verbs that another program carries out. AddForwarded only lists them in the help of `datacom`. RunForwarded replaces
// this process by that program when argv[1] is such a verb: it returns an error, or nothing for any other verb.
void AddForwarded(CLI::App* app);
std::optional<absl::Status> RunForwarded(int argc, const char* const* argv);

// Prints "datacom: <message>" on stderr (nothing when OK) and returns the exit code of the status. json: programs read
// stdout, so it gets the message too (ErrorJson).
int Finish(const absl::Status& status, bool json = false);
inline int Finish(const absl::StatusOr<int>& code, bool json = false) {
  return code.ok() ? *code : Finish(code.status(), json);
}

// Prints text on stdout; a terminal gets lines that fit (common/base/standard_output.h).
void PrintWrapped(const std::string& text);

// Folder of the role binaries: $DATACOM_BIN, or the folder of this executable.
std::string BinFolder();

// The error, from errno, of a program that could not be started, with what to do about it.
absl::Status CannotRun(const std::string& path, int error);

// Replaces this process by a program of BinFolder(), with argv[0] included in `argv`. Returns only on an error.
absl::Status ReplaceProcess(const std::string& program, std::vector<std::string> argv);

// Parses the words that were typed and runs the verb: the body of main.
int RunCommand(int typed, const char* const* words);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_VERBS_H_
// SPDX-License-Identifier: Apache-2.0
