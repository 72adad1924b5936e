#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "tests/common/config/testing.h"
#include "tests/testing/is_ok.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;

TEST(ValidateExperiment, AcceptsTheMinimalExperiment) {
  EXPECT_THAT(Validate(Minimal()), IsOk()) << Validate(Minimal());
}

TEST(ValidateExperiment, RequiresFieldsWithoutADefault) {
  ExpectInvalid(Validate(ParseExperiment("task: 'cartpole' algorithm: 'sac'", "t").value()), {"name: must be set"});
  ExpectInvalid(Validate(ParseExperiment("name: '' task: 'cartpole' algorithm: 'sac'", "t").value()),
                {"name: must not be empty"});
  ExpectInvalid(Validate(Minimal("members { }")), {"members[0].seed: must be set"});
}

TEST(ValidateExperiment, RefusesANameThatCannotBePartOfAFolder) {
  v1::Experiment experiment = Minimal();
  for (const std::string name : {".", "..", "a\nb", "\x1b[2J", "\xff", "x\x7f"}) {
    experiment.set_name(name);
    ExpectInvalid(Validate(experiment), {"name: "});
  }
  experiment.set_name(std::string(201, 'n'));
  ExpectInvalid(Validate(experiment), {"name: a name of 201 bytes, at most 200"});
  for (const std::string& name :
       {std::string("cartpole/datacom"), std::string("my run"), std::string("größe"), std::string(200, 'n')}) {
    experiment.set_name(name);
    EXPECT_TRUE(Validate(experiment).ok()) << name << Validate(experiment);
  }
}

TEST(ValidateExperiment, NamesThePathTheValueAndTheBound) {
  ExpectInvalid(Validate(Minimal("hyper { actor_lr: 2 }")), {"hyper.actor_lr", "2 is above 1"});
  ExpectInvalid(Validate(Minimal("hyper { actor_lr: 1.0000001 }")), {"hyper.actor_lr", "1.0000001 is above 1"});
  ExpectInvalid(Validate(Minimal("hyper { actor_lr: -0.5 }")), {"hyper.actor_lr", "-0.5 is below 0"});
  ExpectInvalid(Validate(Minimal("hyper { accepted_risk: 1 }")),
                {"hyper.accepted_risk: 1 is not below 1 (datacom explain hyper.accepted_risk: rho = 1 - alpha of the "
                 "paper)"});
  ExpectInvalid(Validate(Minimal("hyper { accepted_risk: 0 }")), {"hyper.accepted_risk", "0 is not above 0"});
  ExpectInvalid(Validate(Minimal("hyper { actor_lr: nan }")), {"hyper.actor_lr", "not finite"});
  ExpectInvalid(Validate(Minimal("hyper { actor_lr: inf }")), {"hyper.actor_lr"});
  ExpectInvalid(Validate(Minimal("learner { batch_size: 0 }")), {"learner.batch_size", "0 is below 1"});
  ExpectInvalid(Validate(Minimal("learner { device: 'tpu' }")), {"learner.device", "tpu", "cpu, cuda"});
  ExpectInvalid(Validate(Minimal("network { critic_hidden: [64, 0] }")), {"network.critic_hidden[1]", "0"});
  ExpectInvalid(Validate(Minimal("members { seed: 1 } members { seed: 2 hyper { delta_mode: 'none' } }")),
                {"members[1].hyper.delta_mode", "none", "learned, fixed, peak"});
  ExpectInvalid(Validate(Minimal("hyper { delta_mode: 'peek' }")),
                {"\"peek\" is not one of", "; did you mean peak? ("});
}

TEST(ValidateExperiment, RefusesTextThatNoMessageCouldCarry) {
  v1::Experiment experiment = Minimal();
  experiment.set_description("gr\xf6ne Wand");
  ExpectInvalid(Validate(experiment), {"description: \"gr\xf6ne Wand\" is not UTF-8"});
}

TEST(ValidateExperiment, ChecksTasksAndAlgorithmsAgainstTheRegisters) {
  v1::Experiment experiment = Minimal();
  experiment.set_task("pendulum");
  ExpectInvalid(ValidateExperiment(experiment, {"cartpole", "navigation"}, AlgorithmNames()),
                {"task", "pendulum", "cartpole, navigation"});
  experiment = Minimal();
  experiment.set_algorithm("dqn");
  ExpectInvalid(Validate(experiment), {"algorithm", "dqn"});
  experiment.set_algorithm("datcom");
  ExpectInvalid(Validate(experiment), {"algorithm: \"datcom\" is not one of", "; did you mean datacom?"});
}

TEST(ValidateExperiment, SafeLoopNeedsWholeUpdatesAndAMemoryOfAtMostTenMillionRows) {
  const auto planning = [](const std::string& more) {
    v1::Experiment experiment = Minimal("replay { min_size: 0 } schedule { updates_per_step: 0.1 } " + more);
    experiment.set_algorithm("safe_loop");
    return experiment;
  };
  EXPECT_THAT(Validate(planning("")), IsOk());
  ExpectInvalid(Validate(planning("planning { model_period: 235 }")), {"planning.model_period", "235", "10"});
  ExpectInvalid(Validate(planning("planning { random_rows: 1999 }")), {"planning.random_rows", "1999", "10"});
  v1::Experiment experiment = planning("");
  experiment.mutable_schedule()->set_updates_per_step(0.3);
  ExpectInvalid(Validate(experiment), {"schedule.updates_per_step", "0.3", "whole number"});
  experiment = planning("");
  experiment.mutable_replay()->set_min_size(10);
  ExpectInvalid(Validate(experiment), {"replay.min_size", "10"});
  for (const uint64_t capacity : {uint64_t{10'000'001}, uint64_t{3'000'000'000}, uint64_t{4'294'967'396}}) {
    experiment = planning("");
    experiment.mutable_replay()->set_capacity(capacity);
    ExpectInvalid(Validate(experiment), {"replay.capacity", std::to_string(capacity), "at most 10000000"});
  }
  experiment.mutable_replay()->set_capacity(10'000'000);
  EXPECT_THAT(Validate(experiment), IsOk());
}

TEST(ValidateExperiment, ChecksFieldsAgainstEachOther) {
  ExpectInvalid(Validate(Minimal("schedule { publish_period: 129 }")), {"schedule.publish_period", "129", "128"});
  EXPECT_THAT(Validate(Minimal("schedule { publish_period: 128 }")), IsOk());
  EXPECT_THAT(Validate(Minimal("schedule { publish_period: 129 } run { lockstep: true }")), IsOk())
      << "lockstep sets both";
  ExpectInvalid(Validate(Minimal("run { env_steps: 2000 }")), {"run.env_steps", "2000"});
  EXPECT_THAT(Validate(Minimal("run { env_steps: 2001 }")), IsOk());
  ExpectInvalid(Validate(Minimal("replay { capacity: 63 min_size: 10 }")), {"replay.capacity", "63", "64"});
  ExpectInvalid(Validate(Minimal("replay { newest_share: 0 }")), {"replay.newest_share", "0"});
  ExpectInvalid(Validate(Minimal("replay { newest_share: 1.5 }")), {"replay.newest_share", "1.5"});
  ExpectInvalid(Validate(Minimal("replay { newest_share: 0.03 }")),  // 60.03 rows
                {"replay.newest_share", "0.03", "61 of 2001 rows", "batch_size 64"});
  EXPECT_THAT(Validate(Minimal("replay { newest_share: 0.032 }")), IsOk());
  ExpectInvalid(Validate(Minimal("replay { capacity: 1999 }")), {"replay.capacity", "1999", "2000"});
  ExpectInvalid(Validate(Minimal("replay { failure_capacity: 6 }")), {"replay.failure_capacity", "6"});
}

v1::Experiment OnPolicy(const std::string& more) {
  v1::Experiment experiment = Minimal(more);
  experiment.set_algorithm("ppo_lag");
  return experiment;
}

TEST(ValidateExperiment, AnOnPolicyAlgorithmMakesOneUpdateForEachWholeEpoch) {
  const std::string run = "run { env_steps: 1500 steps_per_epoch: 500 } ";
  EXPECT_THAT(Validate(OnPolicy(run)), IsOk());
  EXPECT_THAT(Validate(ResolveExperiment(OnPolicy(run))), IsOk());
  EXPECT_THAT(Validate(OnPolicy(run + "schedule { tolerance_steps: 7 } replay { capacity: 900 }")), IsOk());
  EXPECT_THAT(Validate(OnPolicy("run { env_steps: 1500 steps_per_epoch: 500 lockstep: true }")), IsOk());
  ExpectInvalid(Validate(OnPolicy("run { env_steps: 1600 steps_per_epoch: 500 }")),
                {"run.env_steps", "1600 is not a multiple of run.steps_per_epoch 500", "whole epochs"});
  ExpectInvalid(Validate(OnPolicy(run + "schedule { updates_per_step: 0.004 }")),
                {"schedule.updates_per_step", "0.004", "ppo_lag needs 1 / run.steps_per_epoch"});
  ExpectInvalid(Validate(OnPolicy(run + "schedule { max_policy_lag: 1 }")), {"schedule.max_policy_lag", "needs 0"});
  ExpectInvalid(Validate(OnPolicy(run + "schedule { publish_period: 2 }")), {"schedule.publish_period", "needs 1"});
  ExpectInvalid(Validate(OnPolicy(run + "replay { min_size: 100 }")), {"replay.min_size", "100", "needs 0"});
  ExpectInvalid(Validate(OnPolicy(run + "replay { newest_share: 0.5 }")),
                {"replay.newest_share", "0.5: ppo_lag does not draw rows"});
  ExpectInvalid(Validate(OnPolicy(run + "replay { capacity: 499 }")), {"replay.capacity", "499", "500"});
  ExpectInvalid(Validate(OnPolicy(run + "pretrain { dataset: 'd' updates: 5 }")), {"pretrain", "ppo_lag"});
  ExpectInvalid(Validate(OnPolicy(run + "demonstrations { controller: 'back_off' }")), {"demonstrations", "ppo_lag"});
}

TEST(ValidateExperiment, TheScheduleOfAnOnPolicyRunIsExactAtAnyLength) {
  for (const uint64_t epoch : {1, 3, 7, 1000, 20000, 99999}) {
    v1::Experiment experiment = OnPolicy("");
    experiment.mutable_run()->set_steps_per_epoch(epoch);
    experiment.mutable_run()->set_env_steps(100 * epoch);
    EXPECT_THAT(Validate(experiment), IsOk()) << epoch << ": " << Validate(experiment);
  }
}

TEST(ValidateExperiment, AllowsKnownConstraintsOnlyWithALearnedOne) {
  const auto with = [](const std::string& algorithm, const std::string& constraints) {
    v1::Experiment experiment = Minimal("constraints { " + constraints + " }");
    experiment.set_algorithm(algorithm);
    return Validate(experiment);
  };
  for (const std::string algorithm : {"datacom", "iqn_datacom"}) {
    EXPECT_THAT(with(algorithm, "known: ['joint_position', 'a row']"), IsOk()) << "the task checks the names";
  }
  EXPECT_THAT(with("sac", ""), IsOk());
  ExpectInvalid(with("sac", "known: 'wall'"), {"constraints.known: sac does not read it (datacom, iqn_datacom do)"});
  ExpectInvalid(with("atacom_fi", "known: 'wall'"), {"constraints.known", "atacom_fi"});
}

TEST(ValidateExperiment, ALowerPrecisionNeedsLibTorchAndTf32AGpu) {
  for (const char* learner : {"precision: 'bf16' kernels: 'tensor'", "precision: 'bf16' device: 'cuda'",
                              "precision: 'tf32' device: 'cuda'", "precision: 'float32'"}) {
    EXPECT_THAT(Validate(Minimal(absl::StrCat("learner { ", learner, " }"))), IsOk()) << learner;
  }
  ExpectInvalid(Validate(Minimal("learner { precision: 'bf16' }")),
                {"learner.precision: \"bf16\" needs LibTorch: set learner.kernels=tensor or learner.device=cuda"});
  for (const char* kernels : {"auto", "tensor"}) {
    ExpectInvalid(Validate(Minimal(absl::StrCat("learner { precision: 'tf32' kernels: '", kernels, "' }"))),
                  {"learner.precision: \"tf32\" needs learner.device=cuda"});
  }
  ExpectInvalid(Validate(Minimal("learner { precision: 'half' }")),
                {"learner.precision", "half", "float32, tf32, bf16"});
}

TEST(ValidateExperiment, DemonstrationsNeedAController) {
  const v1::Experiment experiment = Minimal("demonstrations { controller: 'back_off' }");
  EXPECT_THAT(Validate(experiment), IsOk()) << "the task checks the name";
  EXPECT_EQ(ResolveExperiment(experiment).demonstrations().share(), 0.5);
  EXPECT_FALSE(ResolveExperiment(Minimal()).has_demonstrations());
  ExpectInvalid(Validate(Minimal("demonstrations { share: 0.5 }")), {"demonstrations.controller: must be set"});
  ExpectInvalid(Validate(Minimal("demonstrations { controller: 'c' share: 0 }")), {"demonstrations.share", "0"});
  ExpectInvalid(Validate(Minimal("demonstrations { controller: 'c' imitation: -1 }")), {"demonstrations.imitation"});
}

TEST(ValidateExperiment, PretrainingNeedsADatasetAndUpdates) {
  EXPECT_THAT(Validate(Minimal("pretrain { dataset: 'd' updates: 5 }")), IsOk());
  EXPECT_FALSE(ResolveExperiment(Minimal()).has_pretrain());
  ExpectInvalid(Validate(Minimal("pretrain { updates: 5 }")), {"pretrain.dataset: must be set"});
  ExpectInvalid(Validate(Minimal("pretrain { dataset: '' updates: 5 }")), {"pretrain.dataset: must not be empty"});
  ExpectInvalid(Validate(Minimal("pretrain { dataset: 'd' updates: 0 }")), {"pretrain.updates", "0 is below 1"});
}

TEST(ValidateExperiment, RefusesASettingThatNoMembersModeReads) {
  for (const char* setting : {"multiplier_proportional", "multiplier_integral", "multiplier_limit", "cost_unit"}) {
    v1::Experiment experiment = Minimal();
    experiment.set_algorithm("datacom");
    ASSERT_THAT(ApplyOverride(absl::StrCat("hyper.", setting, "=0.25"), &experiment), IsOk());
    ExpectInvalid(Validate(experiment),
                  {absl::StrCat("hyper.", setting, ": 0.25: only members with hyper.multiplier_mode=pi")});
    ExpectInvalid(Validate(ResolveExperiment(experiment)), {setting});
    ASSERT_THAT(ApplyOverride("hyper.multiplier_mode=pi", &experiment), IsOk());
    EXPECT_THAT(Validate(experiment), IsOk()) << Validate(experiment);
  }
  const char* one = "hyper { delta_margin: 2 } members { seed: 1 } members { seed: 2 hyper { delta_mode: 'peak' } }";
  EXPECT_THAT(Validate(Minimal(one)), IsOk()) << "a member reads it";
  v1::Experiment margin = Minimal("hyper { delta_mode: 'fixed' delta_margin: 2 }");
  margin.set_algorithm("datacom");
  ExpectInvalid(Validate(margin), {"hyper.delta_margin: 2: only members with hyper.delta_mode=peak read it"});
  margin.mutable_hyper()->set_delta_mode("peak");
  EXPECT_THAT(Validate(margin), IsOk());
  margin.mutable_hyper()->set_delta_margin(0.9);
  ExpectInvalid(Validate(margin), {"hyper.delta_margin", "0.9 is below 1"});
  v1::Experiment experiment = Minimal("members { seed: 1 } members { seed: 2 hyper { cost_unit: 3 } }");
  experiment.set_algorithm("datacom");
  ExpectInvalid(Validate(experiment), {"members[1].hyper.cost_unit: 3: only members with "
                                       "hyper.multiplier_mode=pi read it"});
}

// "FIELD=VALUE" of Rule.read_if: a string of Hyper and one of its values.
TEST(Schema, ASettingThatOnlySomeMembersReadNamesAFieldAndAValueThatExist) {
  std::vector<std::string> conditional;
  for (int i = 0; i < v1::Hyper::descriptor()->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* const field = v1::Hyper::descriptor()->field(i);
    const auto& conditions = field->options().GetExtension(v1::rule).read_if();
    if (!conditions.empty()) conditional.push_back(field->name());
    for (const std::string& condition : conditions) {
      const size_t equals = condition.find('=');
      const auto* const other = v1::Hyper::descriptor()->FindFieldByName(condition.substr(0, equals));
      ASSERT_NE(other, nullptr) << condition;
      EXPECT_THAT(other->options().GetExtension(v1::rule).one_of(), ::testing::Contains(condition.substr(equals + 1)));
    }
  }
  EXPECT_THAT(conditional,
              ::testing::UnorderedElementsAre("cost_unit", "delta_lr", "delta_margin", "multiplier_proportional",
                                              "multiplier_integral", "multiplier_limit"));
}

TEST(DeltaWarmup, IsShorterWhereEpisodesDecideButUpdatesHaveBegun) {
  v1::Hyper hyper;
  EXPECT_EQ(DeltaWarmup(hyper, 3000, 100), 50000u);
  hyper.set_delta_mode("peak");
  EXPECT_EQ(DeltaWarmup(hyper, 3000, 1000), 20000u);
  EXPECT_EQ(DeltaWarmup(hyper, 3000, 100), 3000u);
  hyper.set_delta_warmup(7);
  EXPECT_EQ(DeltaWarmup(hyper, 3000, 1000), 7u);
}

TEST(ValidateExperiment, RequiresRisingRangesAndPositiveMasses) {
  const auto drawn = [](const std::string& what, const std::string& range) {
    return Validate(Minimal("task_options { randomisation { " + what + " { " + range + " } } }"));
  };
  EXPECT_THAT(drawn("mass", "low: 0.8 high: 1.2"), IsOk());
  EXPECT_THAT(drawn("damping", "low: 0 high: 0"), IsOk());
  ExpectInvalid(drawn("mass", "low: 1.2 high: 0.8"), {"task_options.randomisation.mass.high: 0.8 is below low, 1.2"});
  ExpectInvalid(drawn("mass", "low: 0 high: 0.8"), {"task_options.randomisation.mass.low: 0 is not above 0"});
  ExpectInvalid(drawn("friction", "low: 1"), {"task_options.randomisation.friction.high: must be set"});
  ExpectInvalid(drawn("damping", "high: 1"), {"task_options.randomisation.damping.low: must be set"});
  ExpectInvalid(drawn("observation_noise", "low: -1 high: 1"), {"observation_noise.low", "-1 is below 0"});
  ExpectInvalid(drawn("action_delay", "low: 1 high: 1001"), {"action_delay.high", "1001 is above 1000"});
  ExpectInvalid(ValidateTaskOptions(Minimal("task_options { reward: 'none' }").task_options()),
                {"task_options.reward", "none", "code, paper"});
}

TEST(ValidateExperiment, ChecksARangeWhenOverridesSetOnlyOneEnd) {
  v1::Experiment experiment = Minimal();
  ASSERT_THAT(ApplyOverride("task_options.randomisation.mass.low=0.8", &experiment), IsOk());
  ExpectInvalid(Validate(experiment), {"task_options.randomisation.mass.high: must be set"});
  ASSERT_THAT(ApplyOverride("task_options.randomisation.mass.high=0.7", &experiment), IsOk());
  ExpectInvalid(Validate(experiment), {"task_options.randomisation.mass.high: 0.7 is below low, 0.8"});
  ASSERT_THAT(ApplyOverride("task_options.randomisation.mass.high=1.2", &experiment), IsOk());
  EXPECT_THAT(Validate(experiment), IsOk());
}

TEST(ValidateExperiment, RequiresDifferentMembers) {
  ExpectInvalid(Validate(Minimal("members { seed: 1 } members { seed: 2 } members { seed: 1 }")),
                {"members[2].seed", "1", "members[0]"});
  EXPECT_THAT(Validate(Minimal("members { seed: 1 } members { seed: 1 hyper { actor_lr: 0.1 } }")), IsOk());
}

// Checks every field of the schema, except the defaults of task options, which are the task's. Every other number needs
// a bound, unless any value is valid.
void ExpectRules(const google::protobuf::Descriptor* descriptor) {
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = descriptor->field(i);
    if (field->message_type() != nullptr) {
      ExpectRules(field->message_type());
      continue;
    }
    const v1::Rule& rule = field->options().GetExtension(v1::rule);
    const bool number = field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_STRING &&
                        field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_BOOL;
    EXPECT_TRUE(!number || field->name() == "seed" || rule.has_max() || rule.has_below()) << field->full_name();
    EXPECT_TRUE(field->is_repeated() || field->has_default_value() || rule.required() ||
                field->name() == "description" || field->name() == "label" || field->name() == "return_discount" ||
                field->containing_type() == v1::TaskOptions::descriptor())
        << field->full_name() << " has no default and no reason for that";
  }
}

TEST(Schema, EveryNumberHasABoundAndEveryFieldADefaultOrAnException) { ExpectRules(v1::Experiment::descriptor()); }

TEST(Schema, DefaultsObeyTheirOwnRules) {
  v1::Experiment resolved = ResolveExperiment(Minimal());
  EXPECT_THAT(Validate(resolved), IsOk());
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
