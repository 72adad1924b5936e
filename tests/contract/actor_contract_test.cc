// Tests every registered task inside an actor: rows depend only on (run seed, member, session, environment, episode),
// and a step that the simulator calls invalid gives no row.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "actor/actor_setup.h"
#include "actor/episode_player.h"
#include "actor/rollout.h"
#include "deploy/tools/play/commands.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/endless_actor_peers.h"
#include "tests/testing/fake_actor_peers.h"
#include "tests/testing/is_ok.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using testing::FakeInsertSession;
using testing::ReceivedRow;

constexpr int kHorizon = 25;
constexpr char kNominal[] = "horizon: 25";
constexpr char kRandomised[] =
    "horizon: 25 randomisation { mass { low: 0.8 high: 1.25 } action_delay { low: 0 high: 3 } "
    "observation_noise { low: 0.001 high: 0.01 } }";
constexpr char kRepeated[] = "horizon: 75 action_repeat: 3";  // 25 decisions
// No simulator stays valid when bodies have almost no mass.
constexpr char kUnbearable[] = "horizon: 25 randomisation { mass { low: 1e-14 high: 1e-14 } }";

struct Key {
  uint64_t run = 7, member = 100;
  uint32_t session = 3;
};

class ActorContract : public ::testing::TestWithParam<std::string> {
 protected:
  static v1::Experiment Experiment(const std::string& options, const Key& key = {}) {
    v1::Experiment experiment = testing::ExperimentOf(GetParam());
    experiment.set_algorithm("sac");
    experiment.mutable_run()->set_seed(key.run);
    experiment.mutable_members(0)->set_seed(key.member);
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(options, experiment.mutable_task_options())) << options;
    return experiment;
  }
  static Snapshot Policy(const std::string& rule = "gaussian_policy") {
    Snapshot snapshot = testing::SnapshotOf(GetParam(), rule);
    if (rule != "safe_layer") snapshot.scalars["delta"] = 20;  // far from the constraint the safe map passes actions on
    return snapshot;
  }
  // Runs the acting loop until it made `rows` rows or as many iterations, and returns the rows.
  std::vector<ReceivedRow> Act(actor::Rollout::Parts parts, uint32_t environments, uint64_t rows, const Key& key = {},
                               const Snapshot& policy = Policy()) {
    v1::RegisterReply registration;
    registration.set_session(key.session);
    registration.mutable_assignment()->set_number(1);
    registration.mutable_assignment()->add_members()->set_lanes(environments);
    FakeInsertSession session(parts.schema, registration);
    session.limit[0] = rows;
    testing::OneSnapshot subscriber(policy);
    actor::Rollout::Options options;
    options.wait = [&session](std::chrono::nanoseconds) { session.run_finished = true; };
    uint64_t iterations = 0;
    options.stop = [&] { return ++iterations > rows; };
    const auto rollout = actor::Rollout::Make(std::move(parts), &session, &subscriber, &series_, options);
    EXPECT_THAT(rollout, IsOk());
    if (rollout.ok()) (*rollout)->Run().IgnoreError();  // the rows show whether it finished or stopped
    return session.rows;
  }
  std::vector<ReceivedRow> Act(const std::string& options, uint32_t environments, uint64_t rows, const Key& key = {}) {
    return Act(actor::MakeParts(Experiment(options, key)).value(), environments, rows, key);
  }
  static std::vector<ReceivedRow> Of(const std::vector<ReceivedRow>& rows, uint32_t environment) {
    std::vector<ReceivedRow> own;
    for (const ReceivedRow& row : rows) {
      if (row.environment == environment) own.push_back(row);
    }
    return own;
  }
  // Length of an environment's first episode, which the actor ends early: 1..kHorizon.
  static uint32_t FirstLength(uint32_t environment) {
    return 1 + static_cast<uint32_t>(
                   RandomStream(StreamKey("actor.first_length", {7, 100, 3, environment})).Below(kHorizon));
  }
  static std::unique_ptr<Task> MakeOne(const std::string& options) {
    const v1::Experiment experiment = Experiment(options);
    return MakeTask(experiment.task(), experiment.task_options()).value();
  }

  std::unique_ptr<Metrics> metrics_ = Metrics::Start({"actor", "contract", "", "", ""}).value();
  actor::ActorMetrics series_{metrics_.get()};
};

TEST_P(ActorContract, AnEnvironmentsRowsDoNotDependOnTheNumberOfEnvironments) {
  for (const char* options : {kNominal, kRandomised, kRepeated}) {
    const std::vector<ReceivedRow> many = Act(options, 7, 7 * 80);
    for (const uint32_t count : {1u, 2u, 5u}) {
      const std::vector<ReceivedRow> few = Act(options, count, count * 80);
      ASSERT_EQ(few.size(), count * 80);
      for (uint32_t e = 0; e < count; ++e) EXPECT_EQ(Of(few, e), Of(many, e)) << count << " environments, number " << e;
    }
  }
}

TEST_P(ActorContract, RowsDependOnSeedMemberSessionEnvironmentAndEpisode) {
  for (const char* options : {kNominal, kRandomised}) {
    const std::vector<ReceivedRow> rows = Act(options, 2, 160);
    EXPECT_EQ(Act(options, 2, 160), rows);
    const auto first = [&](const Key& key) { return Act(options, 2, 160, key).front().action; };
    EXPECT_NE(first({8, 100, 3}), rows[0].action);
    EXPECT_NE(first({7, 101, 3}), rows[0].action);
    EXPECT_NE(first({7, 100, 4}), rows[0].action);
    const std::vector<ReceivedRow> zero = Of(rows, 0), one = Of(rows, 1);
    EXPECT_NE(zero[0].action, one[0].action) << "environments";
    for (const ReceivedRow& row : zero) {
      EXPECT_TRUE(row.episode != 1 || row.step > 0 || row.action != zero[0].action) << "episodes";
    }
  }
}

// Plays the rows' actions in one task.
TEST_P(ActorContract, RowsHoldTheTasksNumbersIncludingTerminalOnes) {
  for (const char* options : {kNominal, kRandomised, kRepeated}) {
    const auto task = MakeOne(options);
    std::vector<double> seen(task->spec().obs_dim);
    const auto rounded = [&seen] { return std::vector<float>(seen.begin(), seen.end()); };
    int ended = 0;
    for (const ReceivedRow& row : Of(Act(options, 3, 3 * 120), 1)) {
      if (row.step == 0) {
        RandomStream stream(StreamKey("actor.episode", {7, 100, 3, 1, row.episode}));
        task->Reset(&stream, seen.data());
      }
      ASSERT_EQ(row.observation, rounded());
      const StepResult result =
          task->Step(std::vector<double>(row.action.begin(), row.action.end()).data(), seen.data());
      ASSERT_TRUE(result.valid);
      ASSERT_EQ(row.next_observation, rounded());
      EXPECT_EQ(row.reward, static_cast<float>(result.reward));
      EXPECT_EQ(row.cost, static_cast<float>(result.cost));
      EXPECT_EQ(row.absorbing, result.absorbing) << "the time limit is not absorbing";
      EXPECT_EQ(row.last, result.absorbing || row.step + 1 == (row.episode == 0 ? FirstLength(1) : kHorizon));
      ended += row.last;
    }
    EXPECT_GE(ended, 4);
  }
}

// The rule filters after the policy and uses the previous step's cost.
TEST_P(ActorContract, FilteredRowsHoldTheTasksNumbersForTheExecutedAction) {
  v1::Experiment experiment = Experiment(kNominal);
  experiment.set_algorithm("safe_layer_td3");
  actor::Rollout::Parts parts = actor::MakeParts(experiment).value();
  const std::vector<ReceivedRow> rows = Of(Act(std::move(parts), 3, 3 * 120, {}, Policy("safe_layer")), 2);
  ASSERT_EQ(rows.size(), 120u);
  const TaskModel model = MakeTaskModel(GetParam(), experiment.task_options()).value();
  const auto rule = MakeActingRule(Policy("safe_layer"), model, 1).value();
  const auto task = MakeOne(kNominal);
  std::vector<double> seen(task->spec().obs_dim);
  std::vector<float> noise(rule->noise_dim()), action(task->spec().action_dim);
  float previous = 0;
  int filtered = 0;
  for (const ReceivedRow& row : rows) {
    if (row.step == 0) {
      RandomStream stream(StreamKey("actor.episode", {7, 100, 3, 2, row.episode}));
      task->Reset(&stream, seen.data());
      previous = 0;  // even if the start has a cost
    }
    ASSERT_EQ(row.observation, std::vector<float>(seen.begin(), seen.end()));
    EXPECT_EQ(row.previous_cost, previous);
    FillNormal(StreamKey("actor.noise", {7, 100, 3, 2, row.episode, row.step}), noise.data(), rule->noise_dim());
    rule->Act(1, {row.observation.data(), noise.data(), &previous}, action.data(), {});
    EXPECT_EQ(row.action, action);
    EXPECT_EQ(row.executed, std::vector<float>(rule->executed(), rule->executed() + action.size()));
    const StepResult result =
        task->Step(std::vector<double>(row.executed.begin(), row.executed.end()).data(), seen.data());
    ASSERT_TRUE(result.valid);
    previous = static_cast<float>(result.cost);
    EXPECT_EQ(row.cost, previous);
    filtered += row.action != row.executed;
  }
  EXPECT_GT(filtered, 0);
}

TEST_P(ActorContract, ARepeatedEpisodeContinuesWithTheSameBits) {
  for (const char* options : {kNominal, kRandomised, kRepeated}) {
    const std::vector<ReceivedRow> rows = Act(options, 1, 100);
    const RowSchema schema =
        RowSchema::For(static_cast<uint32_t>(rows[0].observation.size()), static_cast<uint32_t>(rows[0].action.size()));
    for (size_t at = 0; at + 1 < rows.size(); at += 3) {
      v1::OpenEpisode open;
      open.set_episode(rows[at].episode);
      open.set_steps(rows[at].step);
      for (size_t i = at - rows[at].step; i < at; ++i) {
        open.mutable_actions()->append(reinterpret_cast<const char*>(rows[i].action.data()),
                                       rows[i].action.size() * sizeof(float));
      }
      actor::EnvironmentBatch again([&] { return MakeOne(options); }, {7, 100, 3});
      ASSERT_THAT(again.SetWanted(1), IsOk());
      ASSERT_THAT(again.Continue(open), IsOk());
      ASSERT_EQ(std::memcmp(again.observation(0), rows[at].observation.data(), 4 * rows[at].observation.size()), 0);
      actor::RowChunk chunk(schema, 4);
      actor::ActedBatch acted;
      acted.actions = acted.executed = rows[at].action.data();
      again.Step(0, acted, 0, &chunk);
      EXPECT_EQ(std::memcmp(again.observation(0), rows[at + 1].observation.data(), 4 * rows[at].observation.size()), 0);
    }
  }
}

TEST_P(ActorContract, AnActionDoesNotDependOnItsBatch) {
  const TaskModel model = MakeTaskModel(GetParam(), v1::TaskOptions()).value();
  const size_t obs_dim = model.spec.obs_dim, action_dim = model.spec.action_dim;
  const std::vector<ReceivedRow> rows = Act(kNominal, 1, 96);
  std::vector<std::string> rules{"safe_map", "gaussian_policy", "safe_layer", "normalised_gaussian"};
  if (model.dynamics->dims().x == 0) rules.emplace_back("cbf_qp");
  if (model.cost) rules.emplace_back("planner");
  for (const std::string& rule_name : rules) {
    const Snapshot snapshot = Policy(rule_name);
    const auto alone = MakeActingRule(snapshot, model, 1).value();
    std::vector<float> observations, costs, expected(rows.size() * action_dim);
    std::vector<float> noise(rows.size() * alone->noise_dim());
    FillNormal(1, noise.data(), static_cast<int64_t>(noise.size()));
    for (size_t i = 0; i < rows.size(); ++i) {
      observations.insert(observations.end(), rows[i].observation.begin(), rows[i].observation.end());
      costs.push_back(rows[i].cost);
      const ActingInputs inputs{&observations[i * obs_dim], &noise[i * alone->noise_dim()], &costs[i]};
      alone->Act(1, inputs, &expected[i * action_dim], {});
      if (alone->executed() != nullptr) std::copy_n(alone->executed(), action_dim, &expected[i * action_dim]);
    }
    EXPECT_GT(std::set<float>(expected.begin(), expected.end()).size(), rows.size() / 2)
        << "otherwise the test proves little";
    for (const int batch : {2, 3, 8, 16, 32}) {
      const auto rule = MakeActingRule(snapshot, model, batch).value();
      std::vector<float> actions(expected.size());
      for (size_t i = 0; i < rows.size(); i += batch) {
        const ActingInputs inputs{&observations[i * obs_dim], &noise[i * rule->noise_dim()], &costs[i]};
        rule->Act(batch, inputs, &actions[i * action_dim], {});
        if (rule->executed() != nullptr) std::copy_n(rule->executed(), batch * action_dim, &actions[i * action_dim]);
      }
      EXPECT_EQ(actions, expected) << rule_name << " in batches of " << batch;
    }
  }
}

// Passes the simulator a NaN action at steps 10, 20, ... of every third episode.
class BreaksNowAndThen : public Task {
 public:
  explicit BreaksNowAndThen(std::unique_ptr<Task> task, int* broken) : task_(std::move(task)), broken_(broken) {}
  const TaskSpec& spec() const override { return task_->spec(); }
  void Reset(RandomStream* stream, double* observation) override {
    ++episode_;
    step_ = 0;
    task_->Reset(stream, observation);
  }
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override {
    return task_->ResetTo(init, stream, observation);
  }
  StepResult Step(const double* action, double* observation) override {
    if (episode_ % 3 != 0 || ++step_ % 10 != 0) return task_->Step(action, observation);
    ++*broken_;
    const std::vector<double> none(spec().action_dim, std::numeric_limits<double>::quiet_NaN());
    return task_->Step(none.data(), observation);
  }
  double Cost() const override { return task_->Cost(); }
  bool Success() const override { return task_->Success(); }
  void ScalePhysics(const PhysicsScale& scale) override { task_->ScalePhysics(scale); }
  const Simulation* simulation() const override { return task_->simulation(); }

 private:
  const std::unique_ptr<Task> task_;
  int* const broken_;
  int episode_ = 0, step_ = 0;
};

TEST_P(ActorContract, EveryControllerOfATaskPlaysTheEpisodesThatTheExperimentGivesIt) {
  v1::Experiment experiment = Experiment(kRepeated);
  const TaskModel model = MakeTaskModel(experiment.task(), experiment.task_options()).value();
  for (const ScriptedPolicy& controller : model.scripted) {
    experiment.mutable_demonstrations()->set_controller(controller.name);
    experiment.mutable_demonstrations()->set_share(1);
    const std::vector<ReceivedRow> rows = Act(actor::MakeParts(experiment).value(), 2, 200);
    ASSERT_EQ(rows.size(), 200u);
    for (const ReceivedRow& row : rows) {
      const std::vector<double> seen(row.observation.begin(), row.observation.end());
      std::vector<double> command(row.action.size());
      controller.act(seen.data(), command.data());
      EXPECT_EQ(row.action, std::vector<float>(command.begin(), command.end())) << controller.name;
    }
  }
  experiment.mutable_demonstrations()->set_controller("nobody");
  EXPECT_THAT(std::string(actor::MakeParts(experiment).status().message()), ::testing::HasSubstr("\"nobody\""));
}

TEST_P(ActorContract, AnEpisodeWithAnInvalidStepIsAbandonedCountedAndTheStepNotInserted) {
  actor::Rollout::Parts parts = actor::MakeParts(Experiment(kNominal)).value();
  int broken = 0;
  parts.make_task = [make = parts.make_task, &broken]() -> absl::StatusOr<std::unique_ptr<Task>> {
    return std::make_unique<BreaksNowAndThen>(make().value(), &broken);
  };
  const std::vector<ReceivedRow> rows = Act(std::move(parts), 2, 600);
  ASSERT_EQ(rows.size(), 600u) << "missing rows are replaced by later ones";
  ASSERT_GT(broken, 5);
  EXPECT_EQ(series_.abandoned_invalid.Value(), broken);
  EXPECT_EQ(series_.rows.Value(), 600);
  EXPECT_EQ(series_.env_steps.Value(), 600 + broken);
  // Up to the fault, the rows equal the rows of a run without faults.
  const std::vector<ReceivedRow> sound = Act(kNominal, 2, 1200);
  for (const uint32_t e : {0u, 1u}) {
    std::map<std::pair<uint32_t, uint32_t>, ReceivedRow> expected;
    for (const ReceivedRow& row : Of(sound, e)) expected[{row.episode, row.step}] = row;
    for (const ReceivedRow& row : Of(rows, e)) {
      EXPECT_EQ(row, (expected[{row.episode, row.step}]));
      EXPECT_FALSE(row.episode % 3 == 2 && row.step >= 9) << "the third episode broke at its tenth step";
    }
  }
}

TEST_P(ActorContract, ATaskThatIsAlwaysInvalidGivesNoRowAndAbandonedEvaluations) {
  const std::vector<ReceivedRow> rows = Act(kUnbearable, 2, 50);
  EXPECT_GT(series_.abandoned_invalid.Value(), 0);
  EXPECT_EQ(series_.rows.Value(), static_cast<double>(rows.size()));
  for (const ReceivedRow& row : rows) {
    for (const std::vector<float>* values : {&row.observation, &row.action, &row.next_observation}) {
      for (const float value : *values) EXPECT_TRUE(std::isfinite(value));
    }
    EXPECT_TRUE(std::isfinite(row.reward) && std::isfinite(row.cost));
  }
  const auto player = actor::MakeEpisodePlayer(Experiment(kUnbearable), Policy(), 4).value();
  const auto episodes = player->Play({7, 100, 0}, 6, [] { return absl::OkStatus(); }).value();
  for (const v1::EvaluationEpisode& episode : episodes) {
    EXPECT_TRUE(episode.abandoned());
    EXPECT_EQ(episode.attempts(), 10u);
    EXPECT_LT(episode.length(), static_cast<uint32_t>(kHorizon));
    EXPECT_TRUE(std::isfinite(episode.return_()) && std::isfinite(episode.sum_cost()));
  }
}

TEST_P(ActorContract, TheDiscountedReturnWeighsADecisionByTheControlStepsBeforeIt) {
  v1::Experiment experiment = Experiment("horizon: 20 action_repeat: 3");  // seven decisions, the last of two steps
  experiment.mutable_learner()->set_discount(0.9);
  const auto player = actor::MakeEpisodePlayer(experiment, Policy(), 1).value();
  double j = 0;
  const auto add = [&j](const actor::EpisodeState& state) {
    if (state.step > 0) j += std::pow(0.9, 3 * (state.step - 1)) * state.reached.reward;
    return absl::OkStatus();
  };
  ASSERT_THAT(player->Watch({7, 100, 0}, 0, add), IsOk());
  const auto episodes = player->Play({7, 100, 0}, 1, [] { return absl::OkStatus(); }).value();
  EXPECT_NEAR(episodes[0].discounted_return(), j, 1e-9);
  if (GetParam() == "navigation") {
    EXPECT_LT(j, -1) << "every step of it costs";
  }
}

// `eval RUN_DIR --set task_options...`: every option takes effect or is refused by name.
TEST_P(ActorContract, APolicyCanBeEvaluatedWithOtherTaskOptions) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / ("eval_" + GetParam());
  fs::create_directories(folder / "policies");
  std::ofstream((folder / "experiment.textproto").string()) << PrintExperiment(Experiment("horizon: 400"));
  Snapshot policy = Policy();
  policy.version.update = 0;
  policy.member_seed = Experiment("").members(0).seed();
  ASSERT_THAT(WriteSnapshotFile((folder / "policies" / "epoch_0000.snapshot").string(), {policy}), IsOk());
  const auto evaluate = [&](const std::vector<std::string>& set, bool csv, std::string* text) {
    tools::EvalCommand command;
    command.what = folder.string();
    command.episodes = 4;
    for (const std::string& option : set) command.set.push_back("task_options." + option);
    command.form = csv ? tools::EvalCommand::Form::kCsv : tools::EvalCommand::Form::kTable;
    std::ostringstream out;
    const absl::Status status = tools::RunEvalCommand(command, &out);
    *text = out.str();
    return status;
  };
  std::string own, other;
  ASSERT_THAT(evaluate({}, true, &own), IsOk());
  int taken = 0;
  for (const std::vector<std::string>& set : std::vector<std::vector<std::string>>{
           {"horizon=30"},
           {"puck_region=adjusted"},
           {"mismatch_sigma=0.5"},
           {"reward=paper"},
           {"observation=robot_frame"},
           {"action_repeat=3"},
           {"randomisation.mass.low=2", "randomisation.mass.high=3"},
           {"randomisation.action_delay.low=2", "randomisation.action_delay.high=2"}}) {
    const std::string name = set[0].substr(0, set[0].find_first_of("=."));
    const absl::Status status = evaluate(set, true, &other);
    if (!status.ok()) {
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("task_options." + name + ": task " + GetParam()));
      continue;
    }
    ++taken;
    EXPECT_NE(other, own) << set[0];
    ASSERT_THAT(evaluate(set, false, &other), IsOk());
    EXPECT_THAT(other.substr(0, other.find('\n')), ::testing::HasSubstr(name));
  }
  EXPECT_GE(taken, 4) << "every task has horizon, randomisation and action_repeat";
  EXPECT_FALSE(evaluate({"randomisation.mass.low=2"}, true, &other).ok()) << "a range needs both ends";
}

INSTANTIATE_TEST_SUITE_P(AllTasks, ActorContract, ::testing::ValuesIn(TaskNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
