// Datasets for tests: recognisable rows of a small schema, written like an export.
#ifndef DATACOM_TESTS_TESTING_DATASETS_H_
#define DATACOM_TESTS_TESTING_DATASETS_H_

#include <cstring>
#include <string>
#include <vector>

#include "common/config/experiment.h"
#include "common/records/dataset.h"
#include "common/transitions/row_schema.h"

namespace datacom::testing {

// Stored rows of a schema. Row i of `count`: every float32 value is first + i (its next observation's half of that),
// cost is 0.25 for every third row and -1 for others, all else 0.
class StoredRows {
 public:
  StoredRows(const RowSchema& schema, int count, float first)
      : bytes_(static_cast<size_t>(count) * schema.stored_row_bytes()) {
    for (int i = 0; i < count; ++i) {
      char* row = &bytes_[i * schema.stored_row_bytes()];
      rows_.push_back(row);
      for (const Column& column : schema.stored()) {
        if (column.type != ColumnType::kFloat32) continue;
        float value = first + static_cast<float>(i);
        if (column.name == "next_observation") value /= 2;
        if (column.name == "cost") value = i % 3 == 0 ? 0.25f : -1.0f;
        for (uint32_t v = 0; v < column.width; ++v)
          std::memcpy(row + schema.offset(column.name) + v * sizeof value, &value, sizeof value);
      }
    }
  }
  const std::vector<const char*>& rows() const { return rows_; }
  void Set(const RowSchema& schema, int row, absl::string_view column, float value) {
    std::memcpy(&bytes_[row * schema.stored_row_bytes() + schema.offset(column)], &value, sizeof value);
  }

 private:
  std::vector<char> bytes_;
  std::vector<const char*> rows_;
};

// One member per entry of `counts`; member m's rows start at 1000 m.
inline absl::Status MakeDataset(const std::string& folder, const RowSchema& schema, const std::vector<int>& counts,
                                const std::string& task = "cartpole") {
  v1::DatasetManifest manifest;
  manifest.set_run_id("recorded");
  manifest.mutable_experiment()->set_name("recorded");
  manifest.mutable_experiment()->set_task(task);
  manifest.mutable_experiment()->set_algorithm("sac");
  std::vector<StoredRows> stored;
  std::vector<std::vector<const char*>> rows;
  for (size_t m = 0; m < counts.size(); ++m) {
    manifest.add_members()->set_member(static_cast<uint32_t>(m));
    stored.emplace_back(schema, counts[m], 1000.0f * static_cast<float>(m));
    rows.push_back(stored.back().rows());
  }
  return WriteDataset(folder, schema, rows, &manifest);
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_DATASETS_H_
// SPDX-License-Identifier: Apache-2.0
