// Loads, overrides, validates, resolves and prints an experiment (proto/datacom/v1/experiment.proto).
// Pure functions; thread-safe. Errors are INVALID_ARGUMENT (NOT_FOUND for a missing file) and name file, field path and
// value.
#ifndef DATACOM_COMMON_CONFIG_EXPERIMENT_H_
#define DATACOM_COMMON_CONFIG_EXPERIMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/textproto.h"
#include "common/transitions/replay_layout.h"
#include "common/transitions/update_schedule.h"
#include "datacom/v1/experiment.pb.h"
#include "google/protobuf/message.h"

namespace datacom {

// Loads the experiment of a name or path, see FindTextproto, with the large files that are beside it.
absl::StatusOr<v1::Experiment> LoadExperiment(const std::string& name_or_path, const std::string& folder);
absl::StatusOr<v1::Experiment> ParseExperiment(const std::string& text, const std::string& where);
// Without the contents of a text task's large files, which are beside the text (task_files.h).
std::string PrintExperiment(const v1::Experiment& experiment);
// Writes the text to `path` and the large files beside it; only the text to what is no file (output_file.h).
absl::Status WriteExperiment(const std::string& path, const v1::Experiment& experiment);
// INVALID_ARGUMENT, with the experiment's task, if an experiment is named where a task belongs.
absl::Status CheckNamesNoExperiment(const std::string& task);
// INVALID_ARGUMENT: the folder has no experiment.textproto, so no run wrote it, or why that cannot be found out.
absl::Status NotARunFolder(const std::string& path);
// Folder of the shipped experiments: $DATACOM_EXPERIMENTS, else the one that came with the program (shared_files.h).
std::string ExperimentFolder();

// "hyper.delta_warmup=3000", "network.actor_hidden=[64,64]", "members[1].hyper.actor_lr=1e-3".
absl::Status ApplyOverride(const std::string& assignment, v1::Experiment* experiment);
// "0-4", "3", "0,2,5-7" -> seeds, one per member. The caller says in an error where the text is.
absl::StatusOr<std::vector<uint64_t>> ParseSeeds(const std::string& text);
absl::Status SetSeeds(const std::vector<uint64_t>& seeds, v1::Experiment* experiment);

// Refuses a setting that the experiment gives and its algorithm does not read (Rule.used_by). The error names the
// setting, the algorithms that read it, and the hyper-parameters of this one.
absl::Status CheckSettingsAreRead(const v1::Experiment& experiment);
// Settings of a valid, resolved experiment that have another value than their default and that nothing reads
// (Rule.noted), as sentences.
std::vector<std::string> UnreadNotes(const v1::Experiment& resolved);
// INVALID_ARGUMENT unless the name of an experiment or a sweep can be part of a folder's name and of a line of text: it
// is neither "." nor "..", has no control character, is UTF-8 and at most 200 bytes long.
absl::Status CheckTitle(const std::string& place, const std::string& name);
// Checks the rules of an experiment and conditions that no single rule can express: algorithm and task are among the
// names given (a task also is if it is the text task of the options), publish_period <= max_policy_lag (except in
// lockstep), env_steps > min_size, capacities, the schedule of an on-policy algorithm, the row counts of planning,
// settings that the algorithm or the mode of delta does not read, distinct members. Errors name the field path.
absl::Status ValidateExperiment(const v1::Experiment& experiment, const std::vector<std::string>& tasks,
                                const std::vector<std::string>& algorithms);
// The part for task_options: rules and ranges. The task itself checks which options it has.
absl::Status ValidateTaskOptions(const v1::TaskOptions& options);
// Fills every default of a setting that the algorithm reads, adds a member if there is none, and applies lockstep's
// settings (lag 0, tolerance 1, publish_period 1). On-policy algorithms have defaults of their own (proto Schedule).
// Idempotent.
v1::Experiment ResolveExperiment(v1::Experiment experiment);
// The settings that a resumed run may change; CopyFreeSettings copies them.
inline constexpr char kFreeOnResume[] =
    "run.env_steps, learner.device, learner.kernels, learner.precision, learner.threads and learner.pin_threads";
void CopyFreeSettings(const v1::Experiment& from, v1::Experiment* to);
// All other settings of a resolved experiment, as text.
std::string FixedSettings(v1::Experiment resolved);

// Layout of the replay's files for rows of `row_bytes`. The slack, rows kept beyond replay.capacity, is only for a
// learner that resumes from the older of two checkpoints.
ReplayLayout ReplayLayoutOf(const v1::Experiment& resolved, uint64_t row_bytes);

// Experiment.hyper overridden by the member's own.
v1::Hyper MemberHyper(const v1::Experiment& resolved, int member);
// Rows of a member before the first step of delta: hyper.delta_warmup. In mode peak it is at most 20
// episodes of `horizon` rows, or `min_size` (replay.min_size) if that is more, because updates must have begun.
uint64_t DeltaWarmup(const v1::Hyper& hyper, uint64_t min_size, int horizon);

// The weight of a row's reward in J, relative to the row before it: run.return_discount, or else learner.discount, for
// each control step that a decision holds (docs/tasks.md 4.2). Learners discount by learner.discount.
double DiscountOfReturns(const v1::Experiment& resolved);

// When the run updates.
UpdateSchedule UpdatesOf(const v1::Experiment& resolved);

// Rows of a member in a draw: learner.batch_size + learner.failure_batch_size, or the rows of an update.
uint64_t RowsPerDraw(const v1::Experiment& resolved);

}  // namespace datacom

#endif  // DATACOM_COMMON_CONFIG_EXPERIMENT_H_
// SPDX-License-Identifier: Apache-2.0
