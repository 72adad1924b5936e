// Tests the static side of tasks that are Python environments; tests/deploy/python/python_env_test.py runs Python.
#include "common/tasks/python/python_model.h"

#include <vector>

#include "common/acting/acting_rule.h"
#include "common/tasks/task.h"
#include "datacom/v1/python_task.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom::python {
namespace {

using ::datacom::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kArm[] =
    "name: 'arm' environment: 'arm:make' observation: 3 action_low: [-1, 0] action_high: [1, 4] horizon: 50 "
    "control_dt: 0.1 q: 2 x: 1 cost: ['near', 'fast']";

// kArm with the fields of `change` set.
v1::TaskOptions Arm(const std::string& change = "") {
  v1::TaskOptions options;
  v1::PythonTask* const task = options.MutableExtension(v1::python_task);
  v1::PythonTask changes;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kArm, task));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(change, &changes)) << change;
  task->MergeFrom(changes);
  return options;
}

TEST(PythonModel, ReadsItsTermsFromTheRow) {
  const TaskModel model = MakeTaskModel("arm", Arm()).value();
  EXPECT_EQ(model.spec.seen_dim(), 3);
  EXPECT_EQ(model.spec.obs_dim, 3 + 2 + 1 + 1 + 2 + 2 * 2 + 2);
  EXPECT_THAT(model.spec.cost_names, ElementsAre("near", "fast"));
  std::vector<double> observation;
  for (int i = 0; i < model.spec.obs_dim; ++i) observation.push_back(i);
  std::vector<double> q(2), x(1), x_dot(1), f(2), G(4);
  model.dynamics->Evaluate(observation.data(), {q.data(), x.data(), x_dot.data(), f.data(), G.data()});
  EXPECT_THAT(q, ElementsAre(3, 4));
  EXPECT_THAT(x, ElementsAre(5));
  EXPECT_THAT(x_dot, ElementsAre(6));
  EXPECT_THAT(f, ElementsAre(7, 8));
  EXPECT_THAT(G, ElementsAre(9, 10, 11, 12));
  EXPECT_EQ(model.spec.costs_at, 13);
  std::vector<double> alone(4);
  model.dynamics->Evaluate(observation.data(), {nullptr, nullptr, nullptr, nullptr, alone.data()});
  EXPECT_EQ(alone, G) << "a part alone is the same";
}

TEST(PythonModel, ActionsAreOneWhateverBoundsTheEnvironmentHas) {
  const TaskModel model = MakeTaskModel("arm", Arm()).value();
  EXPECT_THAT(model.spec.action_low, ElementsAre(-1, -1));
  EXPECT_THAT(model.spec.action_high, ElementsAre(1, 1));
  EXPECT_THAT(model.spec.action_names, ElementsAre("action 0", "action 1, -1 to 1 for 0 to 4"));
}

TEST(PythonModel, FactsThatDoNotFitAreRefusedByName) {
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"observation: 0", "python_task.observation"},
      {"observation: 70000", "python_task.observation"},
      {"action_low: 0", "python_task.action_low"},
      {"action_high: 0", "python_task.action_low"},
      {"q: 5000", "python_task.q"},
      {"observation_name: 'x'", "python_task.observation_name"},
      {"control_dt: 0", "python_task.control_dt"},
      {"environment: ''", "python_task.environment"},
      {"cost: 'near'", "python_task.cost: \"near\" stands twice"},
      {"cost: 'a,b'", "python_task.cost: \"a,b\""},
      {"cost: '2nd'", "python_task.cost: \"2nd\""},
      {"observation_name: ['x', 'y', 'z\\n']", "\"z\\n\" has a control character"},
      {"fact: 'a\\033[2J'", "has a control character"},
      {"identity { file { name: 'a\\n' } }", "has a control character"},
      {"action_name: 'u'", "python_task.action_name"}};
  for (const auto& [change, field] : wrong) {
    const absl::Status status = MakeTaskModel("arm", Arm(change)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << change;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }
}

TEST(PythonModel, AHorizonComesFromTheEnvironmentOrTheOptions) {
  v1::TaskOptions options = Arm();
  options.set_horizon(7);
  EXPECT_EQ(MakeTaskModel("arm", options)->spec.horizon, 7);
  EXPECT_EQ(MakeTaskModel("arm", Arm())->spec.horizon, 50);
  v1::TaskOptions endless = Arm();
  endless.MutableExtension(v1::python_task)->clear_horizon();
  EXPECT_THAT(std::string(MakeTaskModel("arm", endless).status().message()), HasSubstr("task_options.horizon=N"));
}

TEST(PythonModel, AControlPeriodComesFromTheEnvironmentOrTheOptions) {
  v1::TaskOptions options = Arm();
  options.set_control_dt(0.25);
  EXPECT_EQ(MakeTaskModel("arm", options)->spec.control_dt, 0.25);
  EXPECT_EQ(MakeTaskModel("arm", Arm())->spec.control_dt, 0.1);
  v1::TaskOptions unstated = Arm("without_control_dt: 'its render_fps is a film\\'s'");
  unstated.MutableExtension(v1::python_task)->clear_control_dt();
  EXPECT_THAT(std::string(MakeTaskModel("arm", unstated).status().message()),
              HasSubstr("states no control period (its render_fps is a film's); set the seconds of a step with --set "
                        "task_options.control_dt=S"));
}

TEST(PythonModel, PhysicsAreTheEnvironmentsOwn) {
  v1::TaskOptions options = Arm();
  options.mutable_randomisation()->mutable_observation_noise()->set_high(0.1);
  EXPECT_THAT(MakeTaskModel("arm", options).status(), IsOk());
  options.mutable_randomisation()->mutable_mass()->set_high(2);
  EXPECT_THAT(std::string(MakeTaskModel("arm", options).status().message()), HasSubstr("draws mass, damping and"));
}

TEST(PythonModel, RulesWithAMapRefuseATaskWithoutAModel) {
  v1::TaskOptions options = Arm();
  options.MutableExtension(v1::python_task)->clear_q();
  options.MutableExtension(v1::python_task)->clear_x();
  const TaskModel model = MakeTaskModel("arm", options).value();
  EXPECT_EQ(model.spec.obs_dim, 5);
  for (const char* rule : {"safe_map", "cbf_qp"}) {
    EXPECT_THAT(std::string(CheckActingRuleTask(rule, model).message()), HasSubstr("arm has no control-affine model"));
  }
  for (const char* rule : {"gaussian_policy", "normalised_gaussian", "safe_layer"}) {
    EXPECT_THAT(CheckActingRuleTask(rule, model), IsOk());
  }
}

}  // namespace
}  // namespace datacom::python
// SPDX-License-Identifier: Apache-2.0
