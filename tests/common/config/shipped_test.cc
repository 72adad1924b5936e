#include "common/config/algorithms.h"
#include "tests/common/config/testing.h"

namespace datacom {
namespace {

constexpr char kFolder[] = "deploy/experiments";  // tests run in the source tree

TEST(ShippedExperiments, ParseValidateResolveAndHaveTheirFilesName) {
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

// D-ATACOM's settings on one task (learner/algorithms/README.md 14).
struct Column {
  const char* name;
  double rate, target_entropy, gain, beta, risk, budget, init_delta;
};

void ExpectColumn(const Column& column) {
  SCOPED_TRACE(column.name);
  const v1::Experiment experiment = ResolveExperiment(LoadExperiment(column.name, kFolder).value());
  const v1::Hyper hyper = MemberHyper(experiment, 0);
  for (const double rate : {hyper.actor_lr(), hyper.critic_lr(), hyper.constraint_lr(), hyper.alpha_lr()}) {
    EXPECT_EQ(rate, column.rate);
  }
  EXPECT_EQ(hyper.target_entropy(), column.target_entropy);
  EXPECT_EQ(hyper.atacom_gain(), column.gain);
  EXPECT_EQ(hyper.slack_beta(), column.beta);
  EXPECT_EQ(hyper.accepted_risk(), column.risk);
  EXPECT_EQ(hyper.cost_budget(), column.budget);
  EXPECT_EQ(hyper.init_delta(), column.init_delta);
  EXPECT_EQ(hyper.delta_mode(), "learned");
  EXPECT_EQ(hyper.delta_lr(), 0.05);
  EXPECT_EQ(hyper.delta_warmup(), 50000u);
  EXPECT_EQ(experiment.replay().min_size(), 2000u);
}

TEST(ShippedExperiments, DatacomHasThePapersValues) {
  ExpectColumn({"cartpole/datacom", 5e-4, -1, 60, 3, 0.9, 40, 6});
  ExpectColumn({"navigation/datacom", 1e-4, -2, 30, 1, 0.5, 0, 3});
  ExpectColumn({"air_hockey/datacom", 5e-4, -3, 25, 3, 0.9, 1, 3});
}

TEST(ShippedExperiments, SacHasTheReferencesValues) {
  for (const char* name : {"cartpole/sac", "navigation/sac"}) {
    SCOPED_TRACE(name);
    const v1::Experiment experiment = ResolveExperiment(LoadExperiment(name, kFolder).value());
    EXPECT_EQ(experiment.hyper().actor_lr(), 5e-4);
    EXPECT_EQ(experiment.hyper().critic_lr(), 5e-4);
    EXPECT_EQ(experiment.hyper().alpha_lr(), 5e-4);
    EXPECT_EQ(experiment.hyper().target_entropy(), -3);
    EXPECT_EQ(experiment.replay().min_size(), 2000u);
  }
  const v1::Experiment hockey = ResolveExperiment(LoadExperiment("air_hockey/sac", kFolder).value());
  EXPECT_EQ(hockey.hyper().actor_lr(), 2e-4);
  EXPECT_EQ(hockey.hyper().critic_lr(), 2e-4);
  EXPECT_EQ(hockey.hyper().alpha_lr(), 3e-5);
  EXPECT_EQ(hockey.hyper().target_entropy(), -3);
  EXPECT_EQ(hockey.replay().min_size(), 10000u);
}

TEST(ShippedExperiments, MatchedSacSharesEverySettingThatItReadsWithDatacom) {
  for (const std::string task : {"cartpole", "air_hockey", "navigation"}) {
    SCOPED_TRACE(task);
    v1::Experiment matched = ResolveExperiment(LoadExperiment(task + "/sac_matched", kFolder).value());
    v1::Experiment datacom = ResolveExperiment(LoadExperiment(task + "/datacom", kFolder).value());
    EXPECT_EQ(matched.hyper().actor_lr(), datacom.hyper().actor_lr());
    EXPECT_EQ(matched.hyper().critic_lr(), datacom.hyper().critic_lr());
    EXPECT_EQ(matched.hyper().alpha_lr(), datacom.hyper().alpha_lr());
    EXPECT_EQ(matched.hyper().target_entropy(), datacom.hyper().target_entropy());
    for (v1::Experiment* experiment : {&matched, &datacom}) {
      experiment->clear_hyper();
      experiment->clear_name();
      experiment->clear_description();
      experiment->clear_algorithm();
    }
    EXPECT_EQ(PrintExperiment(matched), PrintExperiment(datacom));
  }
}

TEST(ShippedExperiments, ShareTheValuesThatThePaperShares) {
  for (const std::string& name : ListTextprotos(kFolder)) {
    SCOPED_TRACE(name);
    const v1::Experiment experiment = ResolveExperiment(LoadExperiment(name, kFolder).value());
    if (FindAlgorithm(experiment.algorithm())->new_rows) continue;  // below
    EXPECT_EQ(experiment.learner().discount(), 0.99);
    const bool beyond_the_paper = name.find("_robot_frame") != std::string::npos;
    EXPECT_EQ(experiment.learner().tau(), beyond_the_paper ? 0.02 : 0.001);
    EXPECT_EQ(experiment.learner().batch_size(), 64u);
    EXPECT_EQ(experiment.learner().failure_batch_size(), 6u);
    EXPECT_EQ(experiment.replay().capacity(), 200000u);
    EXPECT_EQ(experiment.run().env_steps(), 1000000u);
    EXPECT_EQ(experiment.run().steps_per_epoch(), 10000u);
    EXPECT_EQ(experiment.run().eval_episodes(), 25u);
  }
}

TEST(ShippedExperiments, OnPolicyMethodsHaveThePapersValues) {
  struct Column {
    const char* task;
    double ppo_rate, rcpo_rate, cost_budget;
  };
  for (const Column& column :
       {Column{"cartpole", 1e-4, 5e-4, 5}, Column{"navigation", 1e-4, 1e-4, 0}, Column{"air_hockey", 1e-3, 5e-4, 0}}) {
    for (const std::string algorithm : {"ppo_lag", "rcpo"}) {
      const std::string name = std::string(column.task) + "/" + algorithm;
      SCOPED_TRACE(name);
      const v1::Experiment experiment = ResolveExperiment(LoadExperiment(name, kFolder).value());
      const bool ppo = algorithm == "ppo_lag";
      const v1::Hyper hyper = MemberHyper(experiment, 0);
      EXPECT_EQ(experiment.run().env_steps(), 2000000u);
      EXPECT_EQ(experiment.run().steps_per_epoch(), 20000u);
      EXPECT_EQ(experiment.run().eval_episodes(), 25u);
      EXPECT_EQ(experiment.learner().batch_size(), ppo ? 64u : 128u);
      EXPECT_EQ(experiment.learner().passes(), ppo ? 40u : 10u);
      EXPECT_EQ(experiment.learner().discount(), 0.99);
      EXPECT_EQ(hyper.critic_lr(), ppo ? column.ppo_rate : column.rcpo_rate);
      EXPECT_EQ(hyper.constraint_lr(), hyper.critic_lr());
      EXPECT_EQ(hyper.actor_lr(), ppo ? column.ppo_rate : 5e-4) << "rcpo does not read it";
      EXPECT_EQ(hyper.multiplier_lr(), 0.035);
      EXPECT_EQ(hyper.cost_budget(), column.cost_budget);
      EXPECT_EQ(hyper.target_kl(), ppo ? 0.02 : 0.01);
      EXPECT_EQ(hyper.gae_lambda(), 0.95);
      EXPECT_EQ(hyper.clip_ratio(), 0.2);
      EXPECT_EQ(hyper.fisher_damping(), 0.1);
      EXPECT_EQ(hyper.critic_decay(), 0.001);
      EXPECT_EQ(hyper.gradient_clip(), 40);
    }
  }
}

TEST(ShippedExperiments, SafeLoopHasThePapersValuesInDecisionsOfFiveControlSteps) {
  const v1::Experiment experiment = ResolveExperiment(LoadExperiment("air_hockey/safe_loop", kFolder).value());
  const uint64_t repeat = experiment.task_options().action_repeat();
  EXPECT_EQ(repeat, 5u);
  EXPECT_EQ(experiment.run().env_steps() * repeat, 500000u);
  EXPECT_EQ(experiment.replay().capacity(), experiment.run().env_steps()) << "the learner keeps all rows";
  const v1::Planning& planning = experiment.planning();
  EXPECT_EQ(planning.random_rows() * repeat, 10000u);
  EXPECT_EQ(planning.policy_period() * repeat, 250u);
  EXPECT_EQ(planning.policy_updates(), 50u);
  EXPECT_EQ(planning.model_period() * repeat, 1200u);
  EXPECT_EQ(planning.ensemble(), 5u);
  EXPECT_EQ(std::vector<uint32_t>(planning.hidden().begin(), planning.hidden().end()),
            (std::vector<uint32_t>{200, 200, 200, 200}));
  EXPECT_EQ(planning.samples(), 100u);
  EXPECT_EQ(planning.particles(), 4u);
  EXPECT_EQ(planning.iterations(), 5u);
  EXPECT_EQ(experiment.learner().batch_size(), 256u);
  EXPECT_EQ(experiment.learner().tau(), 0.005);
  EXPECT_EQ(experiment.learner().discount(), 0.99);
  const v1::Hyper hyper = MemberHyper(experiment, 0);
  EXPECT_EQ(hyper.actor_lr(), 5e-4);
  EXPECT_EQ(hyper.critic_lr(), 5e-4);
  EXPECT_EQ(hyper.constraint_lr(), 1e-3);
  EXPECT_EQ(hyper.cost_budget(), 1);
}

TEST(ShippedExperiments, LagrangianMethodsHaveThePapersValues) {
  struct Column {
    const char* task;
    double rate, target_entropy, cost_budget, accepted_risk;
  };
  const Column columns[] = {
      {"cartpole", 5e-4, -1, 5, 0.9}, {"navigation", 1e-4, -2, 0, 0.5}, {"air_hockey", 5e-4, -3, 0, 0.9}};
  for (const Column& column : columns) {
    for (const std::string algorithm : {"lag_sac", "wcsac"}) {
      const std::string name = std::string(column.task) + "/" + algorithm;
      SCOPED_TRACE(name);
      const v1::Hyper hyper = MemberHyper(ResolveExperiment(LoadExperiment(name, kFolder).value()), 0);
      for (const double rate :
           {hyper.actor_lr(), hyper.critic_lr(), hyper.constraint_lr(), hyper.alpha_lr(), hyper.multiplier_lr()}) {
        EXPECT_EQ(rate, column.rate);
      }
      EXPECT_EQ(hyper.target_entropy(), column.target_entropy);
      EXPECT_EQ(hyper.cost_budget(), column.cost_budget);
      EXPECT_EQ(hyper.cost_damping(), 1);
      EXPECT_EQ(hyper.accepted_risk(), algorithm == "wcsac" ? column.accepted_risk : 0.9);  // the schema's default
    }
  }
}

TEST(ShippedExperiments, AnalyticBaselinesHaveThePapersValues) {
  for (const char* name : {"air_hockey/atacom_fi", "air_hockey/atacom_nfi"}) {
    const v1::Hyper hyper = ResolveExperiment(LoadExperiment(name, kFolder).value()).hyper();
    for (const double rate : {hyper.actor_lr(), hyper.critic_lr(), hyper.alpha_lr()}) EXPECT_EQ(rate, 5e-4) << name;
    EXPECT_EQ(hyper.target_entropy(), -3) << name;
    EXPECT_EQ(hyper.atacom_gain(), 25) << name;
    EXPECT_EQ(hyper.slack_beta(), 3) << name;
  }
}

TEST(ShippedExperiments, TheSafetyLayerHasThePapersValues) {
  for (const char* name : {"air_hockey/safe_layer_td3", "cartpole/safe_layer_td3"}) {
    SCOPED_TRACE(name);
    const v1::Experiment experiment = ResolveExperiment(LoadExperiment(name, kFolder).value());
    const v1::Hyper& hyper = experiment.hyper();
    for (const double rate : {hyper.actor_lr(), hyper.critic_lr(), hyper.constraint_lr()}) EXPECT_EQ(rate, 5e-4);
    EXPECT_EQ(hyper.exploration_noise(), 0.5);  // the paper's covariance 0.25
    EXPECT_EQ(hyper.target_noise(), 0.2);
    EXPECT_EQ(hyper.target_noise_clip(), 0.5);
    EXPECT_EQ(hyper.projection_threshold(), 1e-6);
    EXPECT_EQ(experiment.schedule().policy_warmup(), 50000u);
    EXPECT_EQ(experiment.schedule().policy_delay(), 2u);
    EXPECT_EQ(experiment.replay().min_size(), 2000u);
  }
}

TEST(ShippedExperiments, TheBarrierFunctionHasThePapersValues) {
  const v1::Experiment experiment = ResolveExperiment(LoadExperiment("air_hockey/cbf_sac", kFolder).value());
  const v1::Hyper& hyper = experiment.hyper();
  for (const double rate : {hyper.actor_lr(), hyper.critic_lr(), hyper.constraint_lr(), hyper.alpha_lr()}) {
    EXPECT_EQ(rate, 5e-4);
  }
  EXPECT_EQ(hyper.target_entropy(), -3);
  EXPECT_EQ(hyper.barrier_margin(), 0.01);
  EXPECT_EQ(hyper.barrier_safe_weight(), 100);
  EXPECT_EQ(hyper.barrier_unsafe_weight(), 100);
  EXPECT_EQ(hyper.barrier_relaxation_weight(), 1);
  EXPECT_EQ(hyper.barrier_decay(), 1);
  EXPECT_EQ(hyper.relaxation_penalty(), 1000);
}

// The budget of IQN-ATACOM is a discounted sum; that of D-ATACOM is undiscounted.
TEST(ShippedExperiments, QuantileNetworksHaveTheirOwnBudgets) {
  struct Expected {
    const char* name;
    double budget, delta_lr;
  };
  for (const Expected& expected : {Expected{"cartpole/iqn_datacom", 4, 0.05},
                                   {"air_hockey/iqn_datacom", 0, 0.01},
                                   {"navigation/iqn_datacom", 0, 0.05}}) {
    const v1::Hyper hyper = ResolveExperiment(LoadExperiment(expected.name, kFolder).value()).hyper();
    EXPECT_EQ(hyper.cost_budget(), expected.budget) << expected.name;
    EXPECT_EQ(hyper.delta_lr(), expected.delta_lr) << expected.name;
  }
}

// Not in the paper: observation and action_repeat differ; for D-ATACOM also the values that the search chose.
TEST(ShippedExperiments, RobotFrameDiffersOnlyInObservationDecisionsAndSearchedValues) {
  for (const std::string algorithm : {"datacom", "sac"}) {
    SCOPED_TRACE(algorithm);
    v1::Experiment plain = LoadExperiment("navigation/" + algorithm, kFolder).value();
    v1::Experiment seen = LoadExperiment("navigation/" + algorithm + "_robot_frame", kFolder).value();
    EXPECT_EQ(seen.task_options().ShortDebugString(), "observation: \"robot_frame_all\" action_repeat: 5");
    EXPECT_EQ(seen.learner().tau(), 0.02);
    EXPECT_EQ(seen.constraints().known_size(), algorithm == "datacom" ? 2 : 0);
    EXPECT_FALSE(plain.has_task_options());
    if (algorithm == "datacom") {
      const v1::Hyper hyper = seen.hyper();
      for (const double rate : {hyper.actor_lr(), hyper.critic_lr(), hyper.constraint_lr(), hyper.alpha_lr()}) {
        EXPECT_EQ(rate, 5e-4);
      }
      EXPECT_EQ(hyper.target_entropy(), -3);
      EXPECT_EQ(hyper.atacom_gain(), 6);
      EXPECT_EQ(hyper.accepted_risk(), 0.9);
      EXPECT_EQ(hyper.cost_budget(), 1);
      EXPECT_EQ(hyper.slack_beta(), plain.hyper().slack_beta());
      EXPECT_EQ(hyper.init_delta(), plain.hyper().init_delta());
      EXPECT_EQ(hyper.delta_lr(), plain.hyper().delta_lr());
      *seen.mutable_hyper() = plain.hyper();
    }
    seen.clear_task_options();
    seen.clear_constraints();
    EXPECT_FALSE(plain.has_learner());
    seen.clear_learner();
    seen.set_name(plain.name());
    seen.set_description(plain.description());
    EXPECT_EQ(PrintExperiment(seen), PrintExperiment(plain));
  }
}

TEST(ShippedExperiments, QuantileNetworkHasDatacomsValuesOnNavigation) {
  const v1::Experiment quantile = LoadExperiment("navigation/iqn_datacom", kFolder).value();
  const v1::Experiment gaussian = LoadExperiment("navigation/datacom", kFolder).value();
  EXPECT_EQ(quantile.hyper().SerializeAsString(), gaussian.hyper().SerializeAsString());
  EXPECT_EQ(quantile.network().constraint_hidden_size(), 3);
}

}  // namespace
}  // namespace datacom
