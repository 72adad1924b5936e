// An agent of `datacom demo`: a shipped policy in its task. It plays whole episodes, in which the shield may be
// switched and delta moved at any step.
//
// An episode is a pure function of (agent, seed, changes); agents of one task start from the same state for the same
// seed. Not thread-safe; owns its simulation. Play and Map block while they compute, for some tenths of a second.
#ifndef DATACOM_DEPLOY_TOOLS_DEMO_AGENT_H_
#define DATACOM_DEPLOY_TOOLS_DEMO_AGENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/acting/acting_rule.h"
#include "common/nn/snapshot.h"
#include "common/tasks/task.h"
#include "deploy/tools/render/scene_view.h"
#include "nlohmann/json.hpp"

namespace datacom::tools {

// From this step on.
struct ShieldChange {
  int step = 0;
  bool shield = true;
  double delta = 0;  // ignored by agents without a learned constraint
};

class Agent {
 public:
  // The last policy of a folder; `what` as for RunFolderOf. label: what the page calls it.
  static absl::StatusOr<std::unique_ptr<Agent>> Open(const std::string& what, const std::string& label);

  // {"label", "source", "shield": whether it has one, "delta": its own or null, "horizon", "period": seconds of a step,
  //  "absorbing"}
  nlohmann::json About() const;
  // What scene_json.h says of the start of an episode.
  absl::StatusOr<nlohmann::json> Scene();

  // {"every": steps from one frame to the next, "frames": [{"pose", "cost": the largest raw cost since the frame
  // before,
  //  "violating": steps so far, "sum": cost so far, "k": or null, "moved": the largest |a - u| since, "point": on the
  //  first slice of the task, or null}], "steps", "acts": steps in which the shield moves the action by more than
  //  kShieldActs, whether it is used or not, "success", "end": "horizon", "task" or "invalid"}
  absl::StatusOr<nlohmann::json> Play(uint64_t seed, const std::vector<ShieldChange>& changes);

  // {"title", "x_label", "y_label", "x_low", "x_high", "y_low", "y_high", "resolution", "cvar": [n * n or null]} over
  // the first slice of the task. INVALID_ARGUMENT for a policy without a learned constraint.
  absl::StatusOr<nlohmann::json> Map(int resolution) const;

  bool has_constraint() const { return rule_->has_constraint(); }

 private:
  Agent(std::string label, std::string source, Snapshot snapshot, TaskModel model)
      : label_(std::move(label)),
        source_(std::move(source)),
        snapshot_(std::move(snapshot)),
        model_(std::move(model)) {}
  absl::Status Apply(const ShieldChange& change);

  const std::string label_, source_;
  Snapshot snapshot_;  // with the delta of the last change
  const TaskModel model_;
  double delta_ = 0;  // the policy's own
  std::unique_ptr<Task> task_;
  std::unique_ptr<ActingRule> rule_;
  std::unique_ptr<SceneView> view_;
};

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_DEMO_AGENT_H_
// SPDX-License-Identifier: Apache-2.0
