// The verbs of datacom-tools that play, export and check. Each has a source of its own. They block while they play, on
// the disk and while a model compiles; thread-safe.
#ifndef DATACOM_DEPLOY_TOOLS_PLAY_COMMANDS_H_
#define DATACOM_DEPLOY_TOOLS_PLAY_COMMANDS_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "deploy/tools/onnx/rule_graphs.h"

namespace datacom::tools {

// `eval`: plays the policy of a run, or an untrained one, and prints the paper's metrics
// (docs/algorithms.md 15).
struct EvalCommand {
  std::string what;                  // a run folder; with `policy` also a task's name
  std::string policy;                // name of an untrained policy (MakeUntrainedPolicy); empty: the run's policy
  std::optional<uint32_t> member;    // for a run's policy: its member; absent: all members
  std::optional<std::string> epoch;  // for a run's policy: number, last or best; absent: last
  std::optional<uint32_t> episodes;  // absent: as many as in the run's evaluation; for a task the schema's default
  std::optional<uint64_t> seed;      // replaces the run's seed; absent: the same episodes as in the run's evaluation
  std::string init;                  // start values of every episode, "x=-1,theta=0.1"; empty: drawn
  std::vector<std::string> set;      // "task_options.horizon=500", replaces the run's own
  std::string shield = "on";         // or off; both: plays every episode with the shield and without it
  // table: the task options and one line per member. csv: one row per episode, full precision. json: a list with an
  // object for each episode and, behind those of a member, one with "episode": null for their means.
  enum class Form { kTable, kCsv, kJson } form = Form::kTable;
  int width = 0;  // of a table's lines; 0: any (JoinColumns)
};

// An untrained policy is printed as member 0 with seed 0 at epoch 0. NOT_FOUND or INVALID_ARGUMENT, naming the missing
// folder, task, policy, epoch or member; DATA_LOSS, after the print, for a member that diverged or whose episodes were
// all abandoned; CANCELLED when the process is stopped.
absl::Status RunEvalCommand(const EvalCommand& command, std::ostream* out);

// `rollout`: plays recorded actions, or an episode of an untrained policy, in a task and prints every step.
struct RolloutCommand {
  std::string task;
  std::string actions;  // CSV; action columns: action0.. | action | a0.. | a_v,a_w; rows without an action are skipped
  std::string policy;   // instead of actions: a name for MakeUntrainedPolicy
  std::optional<uint64_t> seed;  // seed of the reset and of random actions; absent: always the same
  std::string init;              // "x=-1,theta=0.1"; empty = the task's own reset
  std::vector<std::string> set;  // "task_options.horizon=500"
  bool csv = false;              // comma-separated, full precision; else aligned columns
  int width = 0;                 // of a line of aligned columns; 0: any (JoinColumns)
};

// Prints step,action0..,obs0..,reward,cost,absorbing. Row 0 is the state after the reset; its action and reward are
// empty. Recorded actions continue after an absorbing state; a policy's episode ends there or at the horizon.
// INVALID_ARGUMENT (NOT_FOUND for a file or task), naming what cannot be used, before anything is printed; INTERNAL for
// an invalid simulator step.
absl::Status RunRolloutCommand(const RolloutCommand& command, std::ostream* out);

// `export`: writes a policy of a run to one file, for the C library or as an ONNX model, or what results keep of a run.
struct ExportCommand {
  std::string run_dir;
  std::optional<uint32_t> member;    // absent: the first one, of the format stored all
  std::optional<std::string> epoch;  // number, last or best; default last, of the format stored both
  std::string file;                  // the file to write, of the format violations the folder
  std::string format = "policy";     // or onnx; stored: all members (run_policies.h); violations (ledger.h)
  onnx::GraphInput input = onnx::GraphInput::kNothing;  // of the ONNX graph, beside the observation
  uint32_t pairs = 1000;                                // recorded inputs and outputs beside an ONNX file
  uint32_t largest = 10;                                // violations to keep
};

// Checks that the policy's acting rule can be made, writes the file and prints on `out` what it holds. NOT_FOUND or
// INVALID_ARGUMENT, naming the missing folder, epoch or member.
absl::Status RunExportCommand(const ExportCommand& command, std::ostream* out);

// `task new`: makes a folder with a copy of a MuJoCo model and a first task.textproto.
struct NewTaskCommand {
  std::string folder;      // the folder to make; the task is named after it
  std::string model;       // MJCF file; the files that it needs are copied next to it
  bool no_visual = false;  // without meshes that only draw
};

// Prints what was written. INVALID_ARGUMENT, naming what is wrong with the model; FAILED_PRECONDITION if the folder
// exists and is not empty.
absl::Status RunNewTaskCommand(const NewTaskCommand& command, std::ostream* out);

// `task check`: loads a task file, plays random actions and prints what a training would meet: the specification, the
// range of each number, violated costs, the conditioning of G, how well f and G predict the simulator (model_fit.h),
// and the speed compared with bare MuJoCo.
struct CheckTaskCommand {
  std::string file;  // task.textproto
  uint32_t steps = 5000;
  uint64_t seed = 0;
  int width = 0;  // of a line; 0: any (WrapLines)
};

// INVALID_ARGUMENT naming file, line and field of a wrong task; INTERNAL after the print if a number is not finite,
// MuJoCo reports a step as invalid, or every episode ends in its first step.
absl::Status RunCheckTaskCommand(const CheckTaskCommand& command, std::ostream* out);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PLAY_COMMANDS_H_
// SPDX-License-Identifier: Apache-2.0
