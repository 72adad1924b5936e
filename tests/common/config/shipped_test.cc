#include "tests/common/config/testing.h"

namespace datacom {
namespace {

constexpr char kFolder[] = "deploy/experiments";  // tests run in the source tree

TEST(ShippedExperiments, ParseValidateResolveAndAreNamedAsTheirFile) {
  const std::vector<std::string> names = ListTextprotos(kFolder);
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const absl::StatusOr<v1::Experiment> experiment = LoadExperiment(name, kFolder);
    ASSERT_TRUE(experiment.ok()) << experiment.status();
    EXPECT_EQ(experiment->name(), name);
    EXPECT_FALSE(experiment->description().empty());
    EXPECT_TRUE(Validate(*experiment).ok()) << Validate(*experiment);
    EXPECT_TRUE(Validate(ResolveExperiment(*experiment)).ok()) << Validate(ResolveExperiment(*experiment));
  }
}

TEST(ShippedExperiments, CartPoleHasThePapersValues) {  // algorithms.md 17
  const v1::Experiment experiment = ResolveExperiment(LoadExperiment("cartpole/datacom", kFolder).value());
  const v1::Hyper hyper = MemberHyper(experiment, 0);
  EXPECT_EQ(hyper.actor_lr(), 5e-4);
  EXPECT_EQ(hyper.critic_lr(), 5e-4);
  EXPECT_EQ(hyper.constraint_lr(), 5e-4);
  EXPECT_EQ(hyper.alpha_lr(), 5e-4);
  EXPECT_EQ(hyper.target_entropy(), -1);
  EXPECT_EQ(hyper.atacom_gain(), 60);
  EXPECT_EQ(hyper.slack_beta(), 3);
  EXPECT_EQ(hyper.accepted_risk(), 0.9);
  EXPECT_EQ(hyper.cost_budget(), 40);
  EXPECT_EQ(hyper.init_delta(), 6);
  EXPECT_EQ(hyper.delta_lr(), 0.05);
  EXPECT_EQ(hyper.delta_warmup(), 50000u);
  EXPECT_EQ(experiment.learner().discount(), 0.99);
  EXPECT_EQ(experiment.learner().tau(), 0.001);
  EXPECT_EQ(experiment.learner().batch_size(), 64u);
  EXPECT_EQ(experiment.learner().failure_batch_size(), 6u);
  EXPECT_EQ(experiment.replay().min_size(), 2000u);
  EXPECT_EQ(experiment.replay().capacity(), 200000u);
  EXPECT_EQ(experiment.run().env_steps(), 1000000u);
  EXPECT_EQ(experiment.run().eval_episodes(), 25u);
  EXPECT_EQ(LoadExperiment("cartpole/sac", kFolder).value().hyper().target_entropy(), -3);
}

}  // namespace
}  // namespace datacom
