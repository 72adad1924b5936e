// Acting must not allocate in a control loop.
#include <memory>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/base/random.h"
#include "common/nn/mlp.h"
#include "common/safety/safe_map.h"
#include "datacom/v1/task_options.pb.h"
#include "gtest/gtest.h"
#include "tests/testing/counting_allocator.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/snapshots.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using testing::CountAllocations;

TEST(Allocation, TheCounterSeesNewMallocAndEigen) {
  EXPECT_GE(CountAllocations([] { std::make_unique<std::vector<int>>(100); }), 1u);
  EXPECT_GE(CountAllocations([] { Eigen::VectorXf::Zero(64).eval(); }), 1u);
  EXPECT_EQ(CountAllocations([] {}), 0u);
}

TEST(Allocation, TheSafeMapMakesNoneAtAnySize) {
  for (const int K : {1, 3, 17}) {
    for (const int n : {1, 3, 8}) {
      std::vector<double> k(K, -0.5), J_k(K * n), J_x(K), f(n, 0.1), G(n * n), x_dot(1, 0.2), u(n, 0.3), action(n);
      RandomStream random(7);
      for (std::vector<double>* values : {&J_k, &J_x, &G}) {
        for (double& v : *values) v = random.Normal();
      }
      SafeMap map({K, n, n, 1});
      EXPECT_EQ(CountAllocations([&] {
                  map.Set({k.data(), J_k.data(), J_x.data(), f.data(), G.data(), x_dot.data()}, {25, 3});
                  map.SetBySingularValues({k.data(), J_k.data(), k.data()}, {25, 3});
                  map.Apply(u.data(), action.data());
                }),
                0u)
          << "K = " << K << ", n = " << n;
    }
  }
}

TEST(Allocation, APerceptronMakesNoneAfterConstruction) {
  Snapshot snapshot;
  testing::AddNet("net", {5, 40, 40, 1}, 1, &snapshot);
  Mlp mlp(snapshot, {"net", 5, 1, Mlp::Hidden::kSigmoid, Mlp::Output::kSoftplus, true}, 16);
  std::vector<float> in(16 * 5, 0.5f), out(16), gradient(16 * 5);
  EXPECT_EQ(CountAllocations([&] {
              mlp.Set(snapshot);
              for (int batch = 1; batch <= 16; ++batch) {
                mlp.Forward(batch, in.data(), out.data());
                mlp.ForwardWithGradient(batch, in.data(), out.data(), gradient.data());
              }
            }),
            0u);
}

TEST(Allocation, EveryRuleLoadsAndActsWithoutAny) {
  const TaskModel model = MakeTaskModel("air_hockey", v1::TaskOptions()).value();  // every rule can act in it
  for (const std::string& name : ActingRuleNames()) {
    Snapshot snapshot = testing::SnapshotForRule(name, 16, 3, 6, {128, 128}, 1);
    snapshot.scalars["known_constraint.mallet_x_lower"] = snapshot.scalars["known_constraint.joint_1_upper"] = 1;
    const auto rule = MakeActingRule(snapshot, model, 16).value();
    std::vector<float> observations(16 * 16, 0.1f), noise(16 * rule->noise_dim(), 0.2f), actions(16 * 3);
    const std::vector<float> costs(16, 0.3f);
    std::vector<float> memory(16 * rule->memory_dim());
    const ActingInputs inputs{observations.data(), noise.data(), costs.data(), memory.data()};
    std::vector<double> k(16), cvar(16), intervention(16);
    EXPECT_EQ(CountAllocations([&] {
                EXPECT_TRUE(rule->Load(snapshot).ok());  // a matcher allocates
                rule->Act(16, inputs, actions.data(), {});
                rule->Act(3, inputs, actions.data(), {k.data(), cvar.data(), intervention.data()});
              }),
              0u)
        << name;
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
