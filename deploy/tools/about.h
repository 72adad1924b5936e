// What the verbs of datacom-tools do, one line each, for the help of `datacom` and of the program itself.
#ifndef DATACOM_DEPLOY_TOOLS_ABOUT_H_
#define DATACOM_DEPLOY_TOOLS_ABOUT_H_

namespace datacom::tools {

inline constexpr char kAboutTask[] = "Makes a task of a MuJoCo model without C++, or checks one";
inline constexpr char kAboutEval[] = "Plays a run's policy, or an untrained one, and prints the paper's metrics";
inline constexpr char kAboutRollout[] = "Plays recorded actions, or one episode of an untrained policy";
inline constexpr char kAboutRender[] = "Writes a film or picture of an episode, or a map of the learned constraint";
inline constexpr char kAboutReplayViolation[] =
    "Simulates a violation of training again, bit for bit, from the run's safety ledger";
inline constexpr char kAboutExport[] = "Writes a run's policy (nets and safety filter) as one file for a robot";
inline constexpr char kAboutExportDataset[] =
    "Copies the transitions that an ended run still holds into a dataset, for pre-training";
inline constexpr char kAboutVerify[] = "Checks every part of a run folder, and the parts against each other";

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_ABOUT_H_
// SPDX-License-Identifier: Apache-2.0
