// What policy and critics see of a text task (proto TaskDefinition.observation): measured numbers, numbers that
// expressions know and expressions, each clipped and scaled, and their values of earlier control steps.
//
// Not thread-safe: holds the history of one environment. Write neither blocks nor allocates.
#ifndef DATACOM_COMMON_TASKS_TEXT_OBSERVED_H_
#define DATACOM_COMMON_TASKS_TEXT_OBSERVED_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tasks/text/expression.h"
#include "datacom/v1/task.pb.h"

namespace datacom::text {

class Observed {
 public:
  // `names` and `values` [names]: the numbers that expressions know; they begin with those of the measured entries of
  // the observation, and entry i has those from begins[i] up to begins[i + 1]. `values` must outlive this.
  // INVALID_ARGUMENT "observation[i].field: why".
  static absl::StatusOr<Observed> Make(const v1::TaskDefinition& definition, const std::vector<int>& begins,
                                       const std::vector<std::string>& names, double* values);

  const std::vector<std::string>& names() const { return names_; }  // of what is seen
  // Writes what is seen at the present values [names()]. start: the episode begins here.
  void Write(bool start, double* out);

 private:
  struct Entry {
    std::vector<const double*> numbers;
    std::optional<Expression> value;
    double low, high, scale;
    std::vector<double> past;  // of earlier control steps, the newest first
  };
  std::vector<Entry> entries_;
  std::vector<std::string> names_;
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_OBSERVED_H_
// SPDX-License-Identifier: Apache-2.0
