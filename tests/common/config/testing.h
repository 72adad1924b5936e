// Helpers of the tests in this folder.
#ifndef DATACOM_TESTS_COMMON_CONFIG_TESTING_H_
#define DATACOM_TESTS_COMMON_CONFIG_TESTING_H_

#include <string>

#include "absl/status/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/tasks/task.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace datacom {

inline v1::Experiment Minimal(const std::string& more = "") {
  return ParseExperiment("name: 'x' task: 'cartpole' algorithm: 'datacom' " + more, "test").value();
}

inline absl::Status Validate(const v1::Experiment& experiment) {
  return ValidateExperiment(experiment, TaskNames(), AlgorithmNames());
}

// Expects INVALID_ARGUMENT with a message that contains every part.
inline void ExpectInvalid(const absl::Status& status, const std::vector<std::string>& parts) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(part));
}

}  // namespace datacom

#endif  // DATACOM_TESTS_COMMON_CONFIG_TESTING_H_
// SPDX-License-Identifier: Apache-2.0
