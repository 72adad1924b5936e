#include "tests/common/config/testing.h"
#include "tests/testing/is_ok.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;

TEST(ApplyOverride, SetsScalarsOfEveryType) {
  v1::Experiment experiment = Minimal();
  for (const char* assignment :
       {"hyper.delta_warmup=3000", "hyper.actor_lr=1e-3", "run.env_steps=2e4", "run.lockstep=true",
        "learner.device = cuda", "description=\"a=b, c\"", "hyper.target_entropy=-2.5"}) {
    ASSERT_THAT(ApplyOverride(assignment, &experiment), IsOk()) << assignment << ApplyOverride(assignment, &experiment);
  }
  EXPECT_EQ(experiment.hyper().delta_warmup(), 3000u);
  EXPECT_EQ(experiment.hyper().actor_lr(), 1e-3);
  EXPECT_EQ(experiment.run().env_steps(), 20000u);
  EXPECT_TRUE(experiment.run().lockstep());
  EXPECT_EQ(experiment.learner().device(), "cuda");
  EXPECT_EQ(experiment.description(), "a=b, c");
  EXPECT_EQ(experiment.hyper().target_entropy(), -2.5);
}

TEST(ApplyOverride, ReplacesListsWhole) {
  v1::Experiment experiment = Minimal("network { actor_hidden: [1, 2, 3] }");
  ASSERT_THAT(ApplyOverride("network.actor_hidden=[64, 64]", &experiment), IsOk());
  EXPECT_THAT(experiment.network().actor_hidden(), ::testing::ElementsAre(64, 64));
  ASSERT_THAT(ApplyOverride("network.actor_hidden=[]", &experiment), IsOk());
  EXPECT_EQ(experiment.network().actor_hidden_size(), 0);
  ExpectInvalid(ApplyOverride("network.actor_hidden=64", &experiment), {"network.actor_hidden", "[64,64], numbers"});
  ExpectInvalid(ApplyOverride("constraints.known=wall", &experiment), {"constraints.known", "[one,two], names"});
  ExpectInvalid(ApplyOverride("network.actor_hidden=[64,x]", &experiment), {"network.actor_hidden", "\"x\""});
  ExpectInvalid(ApplyOverride("network.actor_hidden[0]=64", &experiment), {"whole list"});
}

TEST(ApplyOverride, ReachesMembersByIndex) {
  v1::Experiment experiment = Minimal("members { seed: 1 } members { seed: 2 }");
  ASSERT_THAT(ApplyOverride("members[1].hyper.actor_lr=1e-3", &experiment), IsOk());
  EXPECT_FALSE(experiment.members(0).has_hyper());
  EXPECT_EQ(experiment.members(1).hyper().actor_lr(), 1e-3);
  ExpectInvalid(ApplyOverride("members[2].seed=3", &experiment),
                {"members[2].seed", "2 members", "index 2", "--seeds"});
  ExpectInvalid(ApplyOverride("members.seed=3", &experiment), {"members[0]", "--seeds makes one member per seed"});
  ExpectInvalid(ApplyOverride("members[x].seed=3", &experiment), {"members[x]"});
  ExpectInvalid(ApplyOverride("run[0].seed=3", &experiment), {"\"run\" is not a list"});
}

TEST(ApplyOverride, AnUnknownPathListsTheFields) {
  v1::Experiment experiment = Minimal();
  ExpectInvalid(ApplyOverride("hyper.learning_rate=1", &experiment),
                {"hyper.learning_rate", "learning_rate", "actor_lr", "slack_beta"});
  ExpectInvalid(ApplyOverride("nonsense=1", &experiment), {"nonsense", "the experiment", "hyper", "schedule"});
  ExpectInvalid(ApplyOverride("hyper=1", &experiment), {"hyper", "group", "actor_lr"});
  ExpectInvalid(ApplyOverride("hyper.actor_lr.x=1", &experiment), {"actor_lr", "has no fields"});
  ExpectInvalid(ApplyOverride("hyper..actor_lr=1", &experiment), {"hyper..actor_lr"});
  ExpectInvalid(ApplyOverride("hyper.actor_lr", &experiment), {"path=value"});
}

TEST(ApplyOverride, StatesTheExpectedType) {
  v1::Experiment experiment = Minimal();
  ExpectInvalid(ApplyOverride("hyper.cost_budget=ten", &experiment), {"\"ten\" is not a number"});
  ExpectInvalid(ApplyOverride("run.env_steps=-3", &experiment), {"\"-3\" is not a whole number from 0"});
  ExpectInvalid(ApplyOverride("learner.batch_size=1e10", &experiment), {"is not a whole number from 0 to 4294967295"});
  ExpectInvalid(ApplyOverride("run.lockstep=perhaps", &experiment), {"is not a boolean: true or false"});
}

TEST(ApplyOverride, AValueOfAnotherTypeChangesNothing) {
  v1::Experiment experiment = Minimal();
  const std::string before = experiment.SerializeAsString();
  for (const char* assignment : {"run.env_steps=-1", "run.env_steps=1.5", "run.env_steps=many",
                                 "run.env_steps=", "learner.batch_size=4294967296", "hyper.actor_lr=fast",
                                 "run.lockstep=perhaps", "run.env_steps=1e30", "network.actor_hidden=[1,x]"}) {
    const absl::Status status = ApplyOverride(assignment, &experiment);
    ExpectInvalid(status, {std::string(assignment).substr(0, std::string(assignment).find('='))});
  }
  EXPECT_EQ(experiment.SerializeAsString(), before);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
