// The verbs of datacom-tools. Each function adds a subcommand to the application; its callback runs the verb, which may
// block for minutes, and stores the exit code. Call them on the main thread.
#ifndef DATACOM_DEPLOY_TOOLS_VERBS_H_
#define DATACOM_DEPLOY_TOOLS_VERBS_H_

#include "absl/status/status.h"
#include "common/base/status.h"

namespace CLI {
class App;
}

namespace datacom::tools {

// Prints "datacom: <message>" on stderr (nothing when OK) and returns the exit code. json: programs read stdout, so it
// gets the message too (ErrorJson). `not_found` is the code of NOT_FOUND: most verbs miss only what the user named, a
// run, task, epoch or file.
int Finish(const absl::Status& status, bool json = false, int not_found = kExitUsage);

// Play policies and actions.
void AddEval(CLI::App* app, int* exit_code);
void AddRollout(CLI::App* app, int* exit_code);
void AddExport(CLI::App* app, int* exit_code);
void AddLoadTask(CLI::App* app, int* exit_code);
void AddModelFit(CLI::App* app, int* exit_code);

// Draw, and make and check tasks.
void AddRender(CLI::App* app, int* exit_code);
void AddReplayViolation(CLI::App* app, int* exit_code);
void AddTask(CLI::App* app, int* exit_code);
void AddDemo(CLI::App* app, int* exit_code);

// Read or copy all files of a run.
void AddExportDataset(CLI::App* app, int* exit_code);
void AddVerify(CLI::App* app, int* exit_code);
void AddCopy(CLI::App* app, int* exit_code);

// What the verbs of datacom-tools do, one line each, for the help of `datacom` and of the program itself.
inline constexpr char kAboutTask[] = "Makes a task of a MuJoCo model without C++, or checks one";
inline constexpr char kAboutEval[] = "Plays a run's policy, or an untrained one, and prints the paper's metrics";
inline constexpr char kAboutRollout[] = "Plays recorded actions, or one episode of an untrained policy";
inline constexpr char kAboutRender[] = "Writes a film or picture of an episode, or a map of the learned constraint";
inline constexpr char kAboutReplayViolation[] =
    "Simulates a violation of training again, bit for bit, from the run's safety ledger";
inline constexpr char kAboutDemo[] = "Plays trained policies on a page in the browser, with a switch for their shields";
inline constexpr char kAboutExport[] = "Writes a run's policy (nets and safety filter) as one file for a robot";
inline constexpr char kAboutExportDataset[] =
    "Copies the transitions that an ended run still holds into a dataset, for pre-training";
inline constexpr char kAboutCopy[] = "Copies a run, which may be running, to a bucket or a folder, or such a copy back";
inline constexpr char kAboutVerify[] = "Checks every part of a run folder, and the parts against each other";

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_VERBS_H_
// SPDX-License-Identifier: Apache-2.0
