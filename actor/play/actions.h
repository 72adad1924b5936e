// What people hand in to be played: recorded actions and start values. Pure functions but for reading the file.
// INVALID_ARGUMENT (NOT_FOUND for a file) naming the file, row, column or value.
#ifndef DATACOM_ACTOR_PLAY_ACTIONS_H_
#define DATACOM_ACTOR_PLAY_ACTIONS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom {

// [row][action_dim] of a CSV file with columns action0.. | a0.. | action | a_v,a_w. Left out are rows whose action
// cells are all empty and, where there is a column step, step 0: that is the start, which no action led to.
absl::StatusOr<std::vector<std::vector<double>>> ReadActions(const std::string& path, const TaskSpec& spec);

// "x=-1,theta=0.1"; empty for an empty text.
absl::StatusOr<std::map<std::string, double>> ParseInit(const std::string& text);

// Applies the assignments "path=value" of an experiment's task options, and refuses any other.
absl::Status ApplyTaskOptions(const std::vector<std::string>& set, v1::Experiment* experiment);

// The task of that name with the assignments "path=value" applied to its options.
absl::StatusOr<std::unique_ptr<Task>> MakeTaskWith(const std::string& name, const std::vector<std::string>& set);

}  // namespace datacom

#endif  // DATACOM_ACTOR_PLAY_ACTIONS_H_
