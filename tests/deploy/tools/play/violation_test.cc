// Records episodes of real environments in a ledger and simulates them again, for every task and random option.
#include "deploy/tools/play/violation.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "actor/environment_batch.h"
#include "common/base/files.h"
#include "common/config/experiment.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/step_files.h"

namespace datacom::tools {
namespace {

namespace fs = std::filesystem;
using ::datacom::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint32_t kSession = 3, kEnvironments = 2;

// Reads one column of a chunk of one row.
class RowReader {
 public:
  RowReader(const RowSchema& schema, std::string columns) : schema_(schema), columns_(std::move(columns)) {}
  template <typename T>
  std::vector<T> Read(const std::string& name) const {
    size_t at = 0;
    for (const Column& column : schema_.wire()) {
      if (column.name == name) {
        std::vector<T> values(column.width);
        std::memcpy(values.data(), columns_.data() + at, column.bytes());
        return values;
      }
      at += column.bytes();
    }
    ADD_FAILURE() << "no column " << name;
    return {};
  }

 private:
  const RowSchema& schema_;
  const std::string columns_;
};

class Violations : public ::testing::Test {
 protected:
  // Makes a run folder with an experiment and the ledger of `rows` rows: random actions in two alternating
  // environments. `options`: TaskOptions in text format.
  void Train(const std::string& task, const std::string& options, int rows) {
    folder_ = (fs::path(::testing::TempDir()) / ("violations_" + task)).string();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    v1::Experiment experiment;
    experiment.set_name(task + "/test");
    experiment.set_task(task);
    experiment.set_algorithm("datacom");
    experiment.mutable_run()->set_seed(5);
    experiment.add_members()->set_seed(41);
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(options, experiment.mutable_task_options()));
    experiment = ResolveExperiment(experiment);
    std::ofstream(folder_ + "/experiment.textproto") << PrintExperiment(experiment);

    const auto make_task = [&] { return MakeTask(task, experiment.task_options()); };
    const TaskSpec spec = (*make_task())->spec();
    actor::EnvironmentBatch environments(make_task, {5, 41, kSession});
    ASSERT_THAT(environments.SetWanted(kEnvironments), IsOk());
    const auto action_dim = static_cast<uint32_t>(spec.action_dim);
    const RowSchema schema = RowSchema::For(static_cast<uint32_t>(spec.obs_dim), action_dim);
    actor::RowChunk chunk(schema, 1);
    auto writer = *LedgerWriter::Open({folder_, 1, action_dim, "run"}, {});
    RandomStream stream(7);
    std::vector<float> action(action_dim);
    for (int row = 0; row < rows; ++row) {
      for (float& value : action) value = static_cast<float>(stream.Uniform(-1, 1));
      actor::ActedBatch acted;
      acted.actions = acted.executed = action.data();
      if (environments.Step(row % kEnvironments, acted, 0, &chunk) == actor::EnvironmentBatch::Outcome::kAbandoned)
        continue;
      Record(RowReader(schema, chunk.Take()), spec.obs_dim, writer.get());
    }
    ASSERT_THAT(writer->Flush(false), IsOk());
  }

  void Record(const RowReader& row, int obs_dim, LedgerWriter* writer) {
    LedgerStep step;
    step.session = kSession;
    step.environment = row.Read<uint32_t>("environment")[0];
    step.episode = row.Read<uint32_t>("episode")[0];
    step.step = row.Read<uint32_t>("step")[0];
    step.cost = row.Read<float>("cost")[0];
    step.check = StepCheck(row.Read<float>("observation").data(), row.Read<float>("next_observation").data(), obs_dim,
                           row.Read<float>("reward")[0], row.Read<uint8_t>("absorbing")[0] != 0);
    step.execution = row.Read<float>("action");
    ASSERT_THAT(writer->AppendStep(0, step), IsOk());
    last_episode_ = std::max(last_episode_, step.episode);
    if (!(step.cost > 0)) return;
    LedgerViolation violation;
    violation.seed = 41;
    violation.actor = "actor-0";
    violation.session = step.session;
    violation.environment = step.environment;
    violation.episode = step.episode;
    violation.step = step.step;
    violation.env_steps = writer->transitions(0);
    violation.cost = step.cost;
    violation.raw_action = violation.executed_action = step.execution;
    ASSERT_THAT(writer->AppendViolation(violation), IsOk());
    ++violations_;
  }

  absl::Status Replay(uint64_t id, bool csv = false) {
    out_.str("");
    notes_.str("");
    return RunViolationCommand({folder_, id, csv}, &out_, &notes_);
  }

  std::string folder_;
  uint64_t violations_ = 0;
  uint32_t last_episode_ = 0;
  std::ostringstream out_, notes_;
};

struct Setting {
  const char* task;
  const char* options;
};

class EveryTask : public Violations, public ::testing::WithParamInterface<Setting> {};

TEST_P(EveryTask, ViolationsAreSimulatedAgainBitForBit) {
  ASSERT_NO_FATAL_FAILURE(Train(GetParam().task, GetParam().options, 3000));
  ASSERT_GT(violations_, 10u);
  ASSERT_GT(last_episode_, 1u);
  for (uint64_t id = 1; id <= violations_; id += violations_ / 8) {
    const absl::Status status = Replay(id);
    EXPECT_THAT(status, IsOk());
    EXPECT_THAT(out_.str(), HasSubstr("bit for bit"));
  }
}

constexpr char kRandomised[] =
    "horizon: 200 randomisation { mass { low: 0.7 high: 1.3 } damping { low: 0.5 high: 2 } "
    "friction { low: 0.5 high: 1 } action_delay { low: 0 high: 3 } observation_noise { low: 0 high: 0.01 } }";

INSTANTIATE_TEST_SUITE_P(Tasks, EveryTask,
                         ::testing::Values(Setting{"cartpole", "horizon: 200"}, Setting{"cartpole", kRandomised},
                                           Setting{"air_hockey", "horizon: 200 mismatch_sigma: 0.5"},
                                           Setting{"air_hockey", kRandomised}, Setting{"navigation", "horizon: 200"},
                                           Setting{"navigation", kRandomised}),
                         [](const ::testing::TestParamInfo<Setting>& info) {
                           return std::string(info.param.task) +
                                  (info.param.options == kRandomised ? "_randomised" : "");
                         });

TEST_F(Violations, WritesTheEpisodesStatesInRolloutsFormat) {
  ASSERT_NO_FATAL_FAILURE(Train("cartpole", "horizon: 200", 1000));
  const LedgerViolation violation = *ReadViolation(folder_, violations_ / 2);
  ASSERT_THAT(Replay(violation.id, /*csv=*/true), IsOk());
  EXPECT_THAT(notes_.str(), AllOf(HasSubstr("violation "), HasSubstr("bit for bit")));
  const std::string path = folder_ + "/states.csv";
  std::ofstream(path) << out_.str();
  const testing::GoldenTable states = testing::ReadGoldenCsv(path);
  EXPECT_EQ(states.rows.size(), ReadEpisode(folder_, violation)->size() + 1);
  EXPECT_EQ(static_cast<float>(states.value(violation.step + 1, "cost")), violation.cost);
  EXPECT_EQ(static_cast<float>(states.value(violation.step + 1, "action0")), violation.executed_action[0]);
  EXPECT_EQ(states.text(0, "action0"), "");
}

TEST_F(Violations, ADifferingEpisodeNamesStepAndDifference) {
  ASSERT_NO_FATAL_FAILURE(
      Train("cartpole", "horizon: 200", 400));  // the shortened first episode of an environment, and the next
  const std::string path = folder_ + "/ledger/member_0.steps", steps = *ReadFile(path);
  const LedgerViolation violation = *ReadViolation(folder_, 1);
  RandomStream first_length(StreamKey("actor.first_length", {5, 41, kSession, violation.environment}));
  const uint64_t start = violation.episode == 0 ? 0 : 1 + first_length.Below(200) + 200 * (violation.episode - 1);
  const auto message = [&](uint32_t step, size_t field, float value) {
    std::string damaged = steps;
    const size_t row = 2 * (start + step) + violation.environment;
    std::memcpy(&damaged[testing::StepOffset(row, 1) + field], &value, sizeof value);
    testing::SealStep(row, 1, &damaged);
    EXPECT_THAT(WriteFileAtomically(path, damaged), IsOk());
    const absl::Status status = Replay(violation.id);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_EQ(out_.str().find("bit for bit"), std::string::npos);
    return std::string(status.message());
  };
  const uint32_t other = violation.step == 7 ? 8 : 7;  // any step but the violating one
  EXPECT_THAT(message(other, 16, -123.0f), AllOf(HasSubstr("step " + std::to_string(other) + " of its episode"),
                                                 HasSubstr("cost -123 recorded"), HasSubstr("difference 12")));
  EXPECT_THAT(message(other, 20, 0.0f),
              AllOf(HasSubstr("step " + std::to_string(other) + " of its episode: observation, reward or end"),
                    HasSubstr("CRC-32C 0 recorded")));
  EXPECT_THAT(message(other, 24, 0.001f), HasSubstr("step " + std::to_string(other) + " of its episode"));
}

TEST_F(Violations, NamesAMissingRunOrViolation) {
  ASSERT_NO_FATAL_FAILURE(Train("cartpole", "", 300));
  const absl::Status none = Replay(violations_ + 1);
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound) << none;
  fs::remove_all(folder_ + "/ledger");
  EXPECT_THAT(std::string(Replay(1).message()), HasSubstr("has no ledger"));
  fs::remove_all(folder_);
  EXPECT_FALSE(Replay(1).ok());
}

}  // namespace
}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
