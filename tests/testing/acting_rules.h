// Makes acting rules, drives them with random inputs and compares batches, for the tests of the rules.
#ifndef DATACOM_TESTS_TESTING_ACTING_RULES_H_
#define DATACOM_TESTS_TESTING_ACTING_RULES_H_

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/base/random.h"
#include "datacom/v1/task_options.pb.h"
#include "gtest/gtest.h"

namespace datacom::testing {

inline TaskModel Hockey() { return MakeTaskModel("air_hockey", v1::TaskOptions()).value(); }

// Throws what MakeActingRule refuses.
inline std::unique_ptr<ActingRule> MakeRule(const Snapshot& snapshot, const TaskModel& model, int max_batch) {
  auto rule = MakeActingRule(snapshot, model, max_batch);
  if (!rule.ok()) throw std::runtime_error(std::string(rule.status().message()));
  return *std::move(rule);
}

// Standard normal inputs of `batch` environments. The noise has one number per action.
struct RuleInputs {
  RuleInputs(int rows, const TaskSpec& spec)
      : batch(rows),
        obs_dim(static_cast<int>(spec.obs_dim)),
        action_dim(static_cast<int>(spec.action_dim)),
        observations(static_cast<size_t>(rows) * spec.obs_dim),
        noise(static_cast<size_t>(rows) * spec.action_dim),
        costs(rows) {
    FillNormal(3, observations.data(), observations.size());
    FillNormal(4, noise.data(), noise.size());
    FillNormal(5, costs.data(), costs.size());
  }
  ActingInputs From(int row = 0) const {
    return {observations.data() + row * obs_dim, noise.data() + row * action_dim, costs.data() + row};
  }

  int batch, obs_dim, action_dim;
  std::vector<float> observations, noise, costs;
};

// Actions of one call, [batch, action_dim]. A rule that executes what it stores leaves `executed` empty.
struct RuleActions {
  std::vector<float> stored, executed;
  bool operator==(const RuleActions&) const = default;
};

inline RuleActions Act(ActingRule* rule, const RuleInputs& in, const ActingDiagnostics& diagnostics = {}) {
  RuleActions out;
  out.stored.resize(static_cast<size_t>(in.batch) * in.action_dim);
  rule->Act(in.batch, in.From(), out.stored.data(), diagnostics);
  if (const float* executed = rule->executed()) out.executed.assign(executed, executed + out.stored.size());
  return out;
}

// Each row gets the same bits alone and together with all others.
inline void ExpectTheSameBitsInEveryBatch(const Snapshot& snapshot, const TaskModel& model, const RuleInputs& in) {
  const auto whole = MakeRule(snapshot, model, in.batch), single = MakeRule(snapshot, model, 1);
  const RuleActions together = Act(whole.get(), in);
  for (int r = 0; r < in.batch; ++r) {
    std::vector<float> alone(in.action_dim);
    single->Act(1, in.From(r), alone.data(), {});
    for (int i = 0; i < in.action_dim; ++i) {
      const int at = r * in.action_dim + i;
      EXPECT_EQ(alone[i], together.stored[at]) << snapshot.acting_rule << " row " << r;
      ASSERT_EQ(single->executed() == nullptr, together.executed.empty()) << snapshot.acting_rule;
      if (!together.executed.empty()) {
        EXPECT_EQ(single->executed()[i], together.executed[at]) << snapshot.acting_rule << " row " << r;
      }
    }
  }
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_ACTING_RULES_H_
// SPDX-License-Identifier: Apache-2.0
