// An acting rule, and the facts of the algorithm that acts with it: the policy's action, but the motor brakes when the
// pendulum turns too fast.
#include <cmath>
#include <vector>

#include "common/acting/gaussian_policy.h"
#include "common/acting/register_rule.h"
#include "common/config/algorithms.h"
#include "pendulum.h"

namespace pendulum {
namespace {

class Brake : public datacom::SnapshotRule {
 public:
  Brake(const datacom::Snapshot& snapshot, const datacom::SnapshotForm& form, const datacom::TaskModel& model,
        int max_batch)
      : policy_(snapshot, form, model.spec, max_batch) {}

  void Act(int batch, const datacom::ActingInputs& inputs, float* actions,
           const datacom::ActingDiagnostics& /*diagnostics*/) override {
    policy_.Act(batch, inputs, actions);
    for (int i = 0; i < batch; ++i) {
      const float speed = inputs.observations[3 * i + kSpeed];
      if (CostOf(speed) > -0.1) actions[i] = speed > 0 ? -1 : 1;
    }
  }
  int noise_dim() const override { return policy_.noise_dim(); }

 protected:
  void Set(const datacom::Snapshot& snapshot) override { policy_.Set(snapshot); }

 private:
  datacom::GaussianPolicy policy_;
};

datacom::SnapshotForm Form(const datacom::SnapshotDims& dims, const datacom::Snapshot& /*like*/) {
  datacom::SnapshotForm form;
  datacom::GaussianPolicy::Declare(dims, &form);
  return form;
}

std::vector<datacom::Column> Columns(uint32_t /*action_dim*/) { return {}; }

absl::Status CheckTask(const datacom::TaskModel& model) {
  if (model.spec.name == "pendulum") return absl::OkStatus();
  return absl::InvalidArgumentError("acting rule brake knows only the pendulum");
}

const datacom::RegisterActingRule kRule("brake", {&Form, &datacom::NewRule<Brake>, &Columns, &CheckTask});
const datacom::RegisterAlgorithmFacts kFacts(R"(
  name: "braked_sac" title: "Braked SAC" colour: "#3a6b35"
  summary: "SAC on reward minus cost, whose motor brakes when the pendulum turns too fast"
  acting_rule: "brake" extends: "sac")");

}  // namespace
}  // namespace pendulum
// SPDX-License-Identifier: Apache-2.0
