// A C program with the robot's library plays an evaluation episode with the same bits as the evaluator:
// `datacom export` -> file -> library -> action.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actor/actor_setup.h"
#include "actor/episode_player.h"
#include "common/acting/policy_file.h"
#include "common/base/files.h"
#include "common/base/random.h"
#include "common/config/algorithms.h"
#include "common/tasks/checked_step.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/tools/play/commands.h"
#include "deploy/tools/policies/run_policies.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/run_folders.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;

// The program as a child process, connected by two pipes.
class Driver {
 public:
  explicit Driver(const std::string& file) {
    int in[2], out[2];
    EXPECT_EQ(::pipe(in), 0);
    EXPECT_EQ(::pipe(out), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      for (const int end : {in[0], in[1], out[0], out[1]}) ::close(end);
      ::execl(DATACOM_POLICY_DRIVER, DATACOM_POLICY_DRIVER, file.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = ::fdopen(in[1], "w");
    from_ = ::fdopen(out[0], "r");
  }
  ~Driver() { Finish(); }

  std::string Line() {
    char line[256] = "";
    if (std::fgets(line, sizeof line, from_) == nullptr) return "";
    return std::string(line, std::strcspn(line, "\n"));
  }
  template <typename T>
  void Send(const std::vector<T>& values) {
    std::fwrite(values.data(), sizeof(T), values.size(), to_);
  }
  std::vector<double> Ask(int count) {
    std::fflush(to_);
    std::vector<double> answer(count);
    EXPECT_EQ(std::fread(answer.data(), sizeof(double), count, from_), static_cast<size_t>(count));
    return answer;
  }
  // Waits for the child and returns its exit code.
  int Finish() {
    if (child_ < 0) return -1;
    std::fclose(to_);
    int status = 0;
    ::waitpid(child_, &status, 0);
    std::fclose(from_);
    child_ = -1;
    return WEXITSTATUS(status);
  }

 private:
  pid_t child_ = -1;
  FILE *to_ = nullptr, *from_ = nullptr;
};

constexpr uint32_t kHorizon = 150;

struct Case {
  std::string rule;  // "quantiles": safe_map with the nets of IQN-ATACOM
  std::string task;
  std::string acting_rule() const { return rule == "quantiles" ? "safe_map" : rule; }
};

// Every acting rule, on air hockey, where every rule can act; and some on other tasks.
std::vector<Case> Cases() {
  std::vector<Case> cases = {{"safe_map", "cartpole"},
                             {"safe_map", "navigation"},
                             {"quantiles", "cartpole"},
                             {"normalised_gaussian", "navigation"}};
  for (const std::string& rule : ActingRuleNames()) cases.push_back({rule, "air_hockey"});
  return cases;
}

// An algorithm whose policies have this acting rule.
std::string AlgorithmOf(const std::string& acting_rule) {
  for (const AlgorithmInfo& algorithm : Algorithms()) {
    if (algorithm.acting_rule == acting_rule) return algorithm.name;
  }
  ADD_FAILURE() << "no algorithm acts with " << acting_rule;
  return "";
}

// A run folder with epoch 3 of member 1: random parameters for `rule`.
std::string RunOf(const Case& c) {
  const std::string folder =
      testing::MakeRunFolder("export_" + c.rule + c.task, c.task, {3}, kHorizon, AlgorithmOf(c.acting_rule()));
  const v1::Experiment experiment = *tools::ReadRunExperiment(folder, {});
  const TaskModel model = *MakeTaskModel(c.task, experiment.task_options());
  const ControlAffineDims dims = model.dynamics->dims();
  std::vector<Snapshot> snapshots;
  for (uint32_t member = 0; member < 2; ++member) {
    const std::string rule = c.acting_rule();
    snapshots.push_back(rule == c.rule
                            ? testing::SnapshotForRule(rule, dims.obs, dims.action, dims.q + dims.x, {16, 16}, member)
                            : testing::QuantileSnapshot(dims.obs, dims.action, dims.q + dims.x, {16, 16}, member));
    snapshots.back().task = c.task;
    snapshots.back().member = member;
    snapshots.back().member_seed = 40 + member;
    snapshots.back().version = {2, UpdatesOf(experiment).UpdatesAt(3 * experiment.run().steps_per_epoch())};
  }
  EXPECT_THAT(WriteSnapshotFile(folder + "/policies/epoch_0003.snapshot", snapshots), IsOk());
  return folder;
}

std::string Export(const std::string& run_dir, uint64_t update) {
  const std::string file = run_dir + "/robot.policy";
  std::ostringstream out;
  const absl::Status status = tools::RunExportCommand({run_dir, /*member=*/1, "last", file}, &out);
  EXPECT_THAT(status, IsOk());
  EXPECT_THAT(out.str(), ::testing::HasSubstr(absl::StrCat("member 1 (seed 41), epoch 3, update ", update)));
  return file;
}

// The expected answer of the driver, from an actor's rule in this process: action, cvar, constraint, intervention.
class OwnRule {
 public:
  OwnRule(const Snapshot& snapshot, const TaskModel& model)
      : rule_(*MakeActingRule(snapshot, model, 1)),
        rounded_(model.spec.obs_dim),
        action_(model.spec.action_dim),
        memory_(rule_->memory_dim()) {}
  int noise_dim() const { return rule_->noise_dim(); }
  std::vector<double> Act(const std::vector<double>& observation, const std::vector<float>& noise,
                          float previous_cost) {
    std::transform(observation.begin(), observation.end(), rounded_.begin(),
                   [](double v) { return static_cast<float>(v); });
    double k = 0, cvar = 0, intervention = 0;
    rule_->Act(1, {rounded_.data(), noise.data(), &previous_cost, memory_.data()}, action_.data(),
               {&k, &cvar, &intervention});
    const float* const executed = rule_->executed() != nullptr ? rule_->executed() : action_.data();
    std::vector<double> answer(executed, executed + action_.size());
    const double none = std::nan("");
    answer.insert(answer.end(), {rule_->has_constraint() ? cvar : none, rule_->has_constraint() ? k : none});
    answer.push_back(intervention);
    return answer;
  }

 private:
  const std::unique_ptr<ActingRule> rule_;
  std::vector<float> rounded_, action_, memory_;
};

class ExportedPolicy : public ::testing::TestWithParam<Case> {};

TEST_P(ExportedPolicy, PlaysAnEvaluationEpisodeWithTheActorsActions) {
  const std::string run_dir = RunOf(GetParam());
  const v1::Experiment experiment = *tools::ReadRunExperiment(run_dir, {});
  const Snapshot snapshot = tools::ReadPolicies(run_dir, "last")->at(1).snapshot;
  const TaskModel model = *MakeTaskModel(GetParam().task, experiment.task_options());
  const std::unique_ptr<Task> task = *MakeTask(GetParam().task, experiment.task_options());
  const int n = model.spec.action_dim;
  OwnRule own(snapshot, model);
  Driver driver(Export(run_dir, snapshot.version.update));
  EXPECT_EQ(driver.Line(), absl::StrCat(model.spec.name, " ", snapshot.acting_rule, " 1 ", snapshot.version.update, " ",
                                        model.spec.obs_dim, " ", n, " ", own.noise_dim()));

  // Plays episode 0 of epoch 3 as EpisodePlayer does.
  const actor::EpisodePlayer::Seeds seeds = {experiment.run().seed(), snapshot.member_seed, 3};
  std::vector<double> observation(model.spec.obs_dim);
  std::vector<float> noise(own.noise_dim());
  RandomStream stream(StreamKey("eval.episode", {seeds.run, seeds.member, seeds.epoch, 0}));
  task->Reset(&stream, observation.data());
  float previous_cost = 0;
  v1::EvaluationEpisode driven;
  double interventions = 0;
  StepResult reached;
  for (uint32_t step = 0; step < kHorizon && !reached.absorbing; ++step) {
    FillNormal(StreamKey("eval.noise", {seeds.run, seeds.member, seeds.epoch, 0, step}), noise.data(), own.noise_dim());
    driver.Send(observation);
    driver.Send(noise);
    driver.Send(std::vector<double>{previous_cost});
    const std::vector<double> answer = driver.Ask(n + 3), expected = own.Act(observation, noise, previous_cost);
    ASSERT_THAT(answer, ::testing::Pointwise(::testing::NanSensitiveDoubleEq(), expected)) << "step " << step;
    ASSERT_TRUE(std::equal(answer.begin(), answer.begin() + n, expected.begin())) << "step " << step;
    interventions += answer.back();
    reached = CheckedStep(task.get(), answer.data(), observation.data());
    ASSERT_TRUE(reached.valid);
    driven.set_return_(driven.return_() + reached.reward);
    driven.set_sum_cost(driven.sum_cost() + std::max(reached.cost, 0.0));
    driven.set_length(step + 1);
    previous_cost = static_cast<float>(reached.cost);
  }
  EXPECT_EQ(driver.Finish(), 0);
  const std::set<std::string> plain = {"gaussian_policy", "normalised_gaussian", "planner"};
  const std::set<std::string> filters = {"safe_map", "quantiles", "atacom_fi", "atacom_nfi", "safe_layer", "cbf_qp"};
  if (plain.contains(GetParam().rule)) {
    EXPECT_EQ(interventions, 0);
  }
  if (filters.contains(GetParam().rule)) {
    EXPECT_GT(interventions, 0);
  }

  // The evaluator's result for the same episode.
  const auto player = *actor::MakeEpisodePlayer(experiment, snapshot, 1);
  const v1::EvaluationEpisode played = (*player->Play(seeds, 1, [] { return absl::OkStatus(); })).at(0);
  EXPECT_EQ(driven.length(), played.length());
  EXPECT_EQ(driven.return_(), played.return_());
  EXPECT_EQ(driven.sum_cost(), played.sum_cost());
}

INSTANTIATE_TEST_SUITE_P(Rules, ExportedPolicy, ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           return info.param.rule + "_" + info.param.task;
                         });

TEST(PolicyDriver, ExitsWithTheCodeOfTheLoadError) {
  const std::string file = Export(RunOf({"safe_map", "cartpole"}), testing::LastUpdateOf(3));
  EXPECT_EQ(Driver(file).Finish(), 0);
  EXPECT_EQ(Driver(file + ".none").Finish(), 11);
  const std::string content = *ReadFile(file);
  ASSERT_THAT(WriteFileAtomically(file, content.substr(0, content.size() / 2)), IsOk());
  EXPECT_EQ(Driver(file).Finish(), 12);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
