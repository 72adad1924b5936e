// Acting rule toy: the Gaussian policy's action, divided by 1 + toy_weight max(0, predicted cost).
#include <algorithm>
#include <vector>

#include "common/acting/gaussian_policy.h"
#include "common/acting/register_rule.h"

namespace datacom {
namespace {

class ToyRule : public SnapshotRule {
 public:
  ToyRule(const Snapshot& snapshot, const SnapshotForm& form, const TaskModel& model, int max_batch)
      : policy_(snapshot, form, model.spec, max_batch),
        cost_model_(snapshot, form.Net("cost_model"), max_batch),
        costs_(max_batch) {}

  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& /*diagnostics*/) override {
    policy_.Act(batch, inputs, actions);
    cost_model_.Forward(batch, inputs.observations, costs_.data());
    const int n = policy_.noise_dim();
    for (int i = 0; i < batch * n; ++i) {
      actions[i] /= 1 + static_cast<float>(weight_) * std::max(0.0f, costs_[i / n]);
    }
  }
  int noise_dim() const override { return policy_.noise_dim(); }

 protected:
  void Set(const Snapshot& snapshot) override {
    policy_.Set(snapshot);
    cost_model_.Set(snapshot);
    weight_ = ScalarOf(snapshot, "toy_weight");
  }

 private:
  GaussianPolicy policy_;
  Mlp cost_model_;
  double weight_ = 0;
  std::vector<float> costs_;
};

SnapshotForm Form(const SnapshotDims& dims, const Snapshot& /*like*/) {
  SnapshotForm form;
  GaussianPolicy::Declare(dims, &form);
  form.nets.push_back({"cost_model", dims.observation, 1});
  form.scalars.push_back({"toy_weight", /*example=*/2});
  return form;
}

std::vector<Column> Columns(uint32_t /*action_dim*/) { return {}; }

const RegisterActingRule kRegistered("toy", {&Form, &NewRule<ToyRule>, &Columns});

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
