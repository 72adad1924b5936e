#include "deploy/python/native/datacom_records.h"

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/acting/acting_rule.h"
#include "common/base/plugins.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/tasks/task.h"
#include "deploy/report/statistics.h"

namespace {

std::string TypeName(datacom::ColumnType type) {
  switch (type) {
    case datacom::ColumnType::kFloat32:
      return "float32";
    case datacom::ColumnType::kUint8:
      return "uint8";
    case datacom::ColumnType::kUint32:
      return "uint32";
    case datacom::ColumnType::kUint64:
      return "uint64";
  }
  return "";
}

absl::StatusOr<std::string> Columns(const std::string& path) {
  RETURN_IF_ERROR(datacom::LoadPlugins({datacom::PluginPart::kSimulator}));
  ASSIGN_OR_RETURN(const datacom::v1::Experiment experiment, datacom::LoadExperiment(path, ""));
  ASSIGN_OR_RETURN(const datacom::TaskModel model,
                   datacom::MakeTaskModel(experiment.task(), experiment.task_options()));
  const datacom::AlgorithmInfo* const algorithm = datacom::FindAlgorithm(experiment.algorithm());
  if (algorithm == nullptr) return absl::NotFoundError(absl::StrCat("unknown algorithm ", experiment.algorithm()));
  ASSIGN_OR_RETURN(const datacom::RowSchema schema, datacom::ActingRuleSchema(algorithm->acting_rule, model.spec));
  std::string text = absl::StrCat("row ", schema.stored_row_bytes(), "\n");
  for (const datacom::Column& column : schema.stored()) {
    absl::StrAppend(&text, column.name, " ", TypeName(column.type), " ", column.width, " ", schema.offset(column.name),
                    "\n");
  }
  return text;
}

}  // namespace

int datacom_records_columns(const char* experiment, char* text, size_t text_bytes) {
  std::string said;
  int code = 1;
  try {
    const absl::StatusOr<std::string> columns = Columns(experiment);
    said = columns.ok() ? *columns : std::string(columns.status().message());
    code = columns.ok() && said.size() < text_bytes ? 0 : 1;
  } catch (const std::exception& error) {
    said = error.what();
  }
  std::snprintf(text, text_bytes, "%s", said.c_str());
  return code;
}

int datacom_records_interquartile_mean(const double* values, int count, double out[3]) {
  const datacom::report::InterquartileMean result =
      datacom::report::ComputeInterquartileMean(std::vector<double>(values, values + count));
  out[0] = result.mean, out[1] = result.low, out[2] = result.high;
  return result.count;
}

double datacom_records_student_t(double freedom, double level) { return datacom::report::StudentT(freedom, level); }
// SPDX-License-Identifier: Apache-2.0
