// Parts of the rules that filter with a map or a barrier: the task's model, the gains in their snapshots, and the tasks
// in which they can act.
#ifndef DATACOM_COMMON_ACTING_MAP_PARTS_H_
#define DATACOM_COMMON_ACTING_MAP_PARTS_H_

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/acting/snapshot_form.h"
#include "common/base/status.h"
#include "common/safety/control_affine.h"
#include "common/safety/known_rows.h"
#include "common/safety/safe_map.h"
#include "common/tasks/task.h"

namespace datacom {

// The task's control-affine model at the states of a batch. Not thread-safe.
class ModelRows {
 public:
  ModelRows(const TaskModel& model, int max_batch)
      : dynamics_(model.dynamics),
        dims_(model.dynamics->dims()),
        obs_(model.spec.obs_dim),
        observations_(max_batch * obs_),
        states_(max_batch * (dims_.q + dims_.x)),
        f_(max_batch * dims_.q),
        G_(max_batch * dims_.q * dims_.action),
        x_dot_(max_batch * dims_.x),
        rounded_(states_.size()) {}

  const ControlAffineDims& dims() const { return dims_; }
  // observations: [batch, obs_dim]. What the functions below return is valid until the next call.
  void Evaluate(int batch, const float* observations) {
    std::copy_n(observations, batch * obs_, observations_.data());
    for (int r = 0; r < batch; ++r) {
      double* const q = states_.data() + r * (dims_.q + dims_.x);
      dynamics_->Evaluate(observations_.data() + r * obs_,
                          {q, q + dims_.q, x_dot_.data() + r * dims_.x, f_.data() + r * dims_.q,
                           G_.data() + r * dims_.q * dims_.action});
    }
    for (int i = 0; i < batch * (dims_.q + dims_.x); ++i) rounded_[i] = static_cast<float>(states_[i]);
  }
  KnownRowsInput Row(int r) const {
    const double* const q = states_.data() + r * (dims_.q + dims_.x);
    return {q,
            q + dims_.q,
            f_.data() + r * dims_.q,
            G_.data() + r * dims_.q * dims_.action,
            x_dot_.data() + r * dims_.x,
            observations_.data() + r * obs_};
  }
  const float* states() const { return rounded_.data(); }  // [batch, q + x], rounded

 private:
  std::shared_ptr<const ControlAffine> dynamics_;
  ControlAffineDims dims_;
  int obs_ = 0;
  std::vector<double> observations_, states_, f_, G_, x_dot_;
  std::vector<float> rounded_;
};

inline void DeclareGains(SnapshotForm* form) {
  form->scalars.push_back({"atacom_gain", /*example=*/60, /*above=*/0});
  form->scalars.push_back({"slack_beta", /*example=*/3, /*above=*/0});
}

inline SafeMapGains GainsOf(const Snapshot& snapshot) {
  return {ScalarOf(snapshot, "atacom_gain"), ScalarOf(snapshot, "slack_beta")};
}

// A Python environment may have no control-affine model; that of a text task may not hold.
inline absl::Status CheckHasModel(const TaskModel& model) {
  if (!model.without_map.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("task ", model.spec.name, " has no f and G, which this algorithm ", "needs: ", model.without_map));
  }
  if (model.dynamics->dims().q > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("task ", model.spec.name, " has no control-affine model (q, f, G), which this algorithm needs"));
}

inline absl::Status CheckTaskOfMap(const TaskModel& model) {
  RETURN_IF_ERROR(CheckHasModel(model));
  const int actions = model.dynamics->dims().action;
  if (actions <= kMaxSafeMapActions) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("task ", model.spec.name, " has ", actions,
                                                 " actions, the safe map takes at most ", kMaxSafeMapActions));
}

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_MAP_PARTS_H_
// SPDX-License-Identifier: Apache-2.0
