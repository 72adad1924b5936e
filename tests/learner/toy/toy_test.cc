// The toy algorithm (toy_algorithm.cc), of whose files docs/developing.md has a list: its loss, its net and its acting
// rule. The tests over every algorithm also run on it (tests/learner/core.cmake).
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "datacom/v1/task_options.pb.h"
#include "gtest/gtest.h"
#include "tests/learner/algorithms/testing.h"
#include "tests/learner/nn/kernels_testing.h"
#include "tests/learner/toy/toy_kernels.h"
#include "tests/testing/acting_rules.h"
#include "tests/testing/snapshots.h"

namespace datacom::learner {
namespace {

class ToyKernelsTest : public EveryKernels {};
INSTANTIATE_TEST_SUITE_P(Both, ToyKernelsTest, ::testing::Values("fused", "tensor"),
                         [](const auto& info) { return info.param; });

TEST_P(ToyKernelsTest, LossAndGradientAreThoseOfTheFormula) {
  const int members = 2, rows = 5;
  const Numbers prediction = Random(1, members * rows, 3), cost = Random(2, members * rows, 3);
  const FloatView d_prediction = Upload(Numbers(members * rows), members, rows, 1);
  const DoubleView loss = UploadDoubles(Numbers(members), members, 1, 1);
  const Numbers weight{1, 3};
  kernels_->Group<ToyKernels>()->CostLoss(Upload(prediction, members, rows, 1), Upload(cost, members, rows, 1),
                                          UploadDoubles(weight, members, 1, 1), d_prediction, loss);
  const auto loss_of = [&](int member, const Numbers& predicted) {
    double sum = 0;
    for (int i = member * rows; i < (member + 1) * rows; ++i) sum += std::log(std::cosh(predicted[i] - cost[i])) / rows;
    return weight[member] * sum;
  };
  const auto total = [&](const Numbers& predicted) { return loss_of(0, predicted) + loss_of(1, predicted); };
  ExpectNear(Download(loss), {loss_of(0, prediction), loss_of(1, prediction)}, 1e-12, "loss");
  ExpectNear(Download(d_prediction), Differences(total, prediction), 1e-6, "gradient");
}

class ToyAlgorithmTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Both, ToyAlgorithmTest, ::testing::Values("fused", "tensor"),
                         [](const auto& info) { return info.param; });

TEST_P(ToyAlgorithmTest, GradientOfItsNetIsTheLosssFiniteDifference) {
  const AlgorithmConfig config = SmallConfig("toy", 1, GetParam());
  const Batch batch = RandomBatch(config, 1);
  const auto algorithm = MakeAlgorithm(config);
  const State start = algorithm->Save();
  algorithm->Update(batch);
  for (const std::string name : {"cost_model.0.weight", "cost_model.1.bias", "cost_model.2.weight"}) {
    const std::vector<float> gradient = GetArray(*algorithm, 0, "grad." + name);
    const auto probe = MakeAlgorithm(config);
    const auto loss = [&](const Numbers& values) {
      probe->Load(start);
      SetArray(probe.get(), 0, name, std::vector<float>(values.begin(), values.end()));
      probe->Update(batch);
      return probe->GetStats()[0].constraint_loss();
    };
    probe->Load(start);
    const std::vector<float> values = GetArray(*probe, 0, name);
    ExpectNear(Numbers(gradient.begin(), gradient.end()),
               Differences(loss, Numbers(values.begin(), values.end()), /*step=*/1e-3), 5e-3, name);
  }
}

TEST_P(ToyAlgorithmTest, RecordsTheMeanOfItsNetsOutputs) {
  const AlgorithmConfig config = SmallConfig("toy", 2, GetParam());
  const auto algorithm = MakeAlgorithm(config);
  const float biases[] = {0.75f, -2};  // of the members; with weights 0 they are the outputs
  for (int member = 0; member < 2; ++member) {
    const size_t weights = GetArray(*algorithm, member, "cost_model.2.weight").size();
    SetArray(algorithm.get(), member, "cost_model.2.weight", std::vector<float>(weights));
    SetArray(algorithm.get(), member, "cost_model.2.bias", {biases[member]});
    EXPECT_TRUE(std::isnan(algorithm->GetStats()[member].toy_prediction())) << "no update yet";
  }
  algorithm->Update(RandomBatch(config, 1));
  EXPECT_NEAR(algorithm->GetStats()[0].toy_prediction(), 0.75, 1e-6);
  EXPECT_NEAR(algorithm->GetStats()[1].toy_prediction(), -2, 1e-6);
}

TEST_P(ToyAlgorithmTest, TrainingOnOneBatchReducesItsLossToATenth) {
  AlgorithmConfig config = SmallConfig("toy", 2, GetParam());
  for (MemberConfig& member : config.members) member.hyper.set_constraint_lr(3e-3);
  const auto algorithm = MakeAlgorithm(config);
  const Batch batch = RandomBatch(config, 1);
  algorithm->Update(batch);
  const Stats first = algorithm->GetStats();
  for (int u = 0; u < 300; ++u) algorithm->Update(batch);
  algorithm->ResetStats();
  algorithm->Update(batch);
  const Stats last = algorithm->GetStats();
  for (int member = 0; member < 2; ++member) {
    EXPECT_GT(first[member].constraint_loss(), 0.1);
    EXPECT_LT(last[member].constraint_loss(), first[member].constraint_loss() / 10) << "of member " << member;
  }
}

TEST_P(ToyAlgorithmTest, ItsStateAndItsSnapshotAreCompleteAndResumeExactly) {
  const AlgorithmConfig config = SmallConfig("toy", 2, GetParam());
  const auto straight = MakeAlgorithm(config), resumed = MakeAlgorithm(config);
  straight->Update(RandomBatch(config, 1));
  resumed->Load(straight->Save());
  straight->Update(RandomBatch(config, 2));
  resumed->Update(RandomBatch(config, 2));
  EXPECT_EQ(resumed->Save(), straight->Save());
  EXPECT_EQ(GetArray(*resumed, 1, "cost_model.0.weight"), GetArray(*straight, 1, "cost_model.0.weight"));
}

TEST(ToyAlgorithm, BothBackendsAgree) {
  const AlgorithmConfig fused = SmallConfig("toy", 3, "fused"), tensor = SmallConfig("toy", 3, "tensor");
  const auto a = MakeAlgorithm(fused), b = MakeAlgorithm(tensor);
  for (int u = 0; u < 5; ++u) {
    a->Update(RandomBatch(fused, u));
    b->Update(RandomBatch(fused, u));
  }
  for (int member = 0; member < 3; ++member) {
    EXPECT_NEAR(a->GetStats()[member].constraint_loss(), b->GetStats()[member].constraint_loss(), 1e-6);
    for (const char* name : {"cost_model.0.weight", "cost_model.1.weight", "cost_model.2.bias"}) {
      const std::vector<float> x = GetArray(*a, member, name), y = GetArray(*b, member, name);
      for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-4) << name << " " << i;
    }
  }
}

TEST(ToyRule, ShrinksTheActionWherePredictedCostIsAboveZero) {
  const TaskModel model = MakeTaskModel("cartpole", v1::TaskOptions()).value();
  const int batch = 8;
  Snapshot snapshot = testing::SnapshotForRule("toy", 5, 1, 4, {8}, 1), plain = snapshot;
  plain.acting_rule = "gaussian_policy";
  const testing::RuleInputs in(batch, model.spec);
  const std::vector<float> u = testing::Act(testing::MakeRule(plain, model, batch).get(), in).stored;
  const std::vector<float> a = testing::Act(testing::MakeRule(snapshot, model, batch).get(), in).stored;
  Mlp net(snapshot, {"cost_model", 5, 1}, batch);
  std::vector<float> costs(batch);
  net.Forward(batch, in.observations.data(), costs.data());
  for (int r = 0; r < batch; ++r) EXPECT_NEAR(a[r], u[r] / (1 + 2 * std::max(0.0f, costs[r])), 1e-6) << r;
  EXPECT_GT(*std::max_element(costs.begin(), costs.end()), 0);
  testing::ExpectTheSameBitsInEveryBatch(snapshot, model, in);
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
