#include "common/transitions/row_schema.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"

namespace datacom {

size_t SizeOf(ColumnType type) {
  switch (type) {
    case ColumnType::kUint8:
      return 1;
    case ColumnType::kFloat32:
    case ColumnType::kUint32:
      return 4;
    case ColumnType::kUint64:
      return 8;
  }
  std::abort();
}

ColumnPlace PlaceOf(const std::vector<Column>& columns, absl::string_view name) {
  ColumnPlace place;
  for (const Column& column : columns) {
    place.bytes = column.bytes();
    if (column.name == name) return place;
    place.before += place.bytes;
  }
  return {};
}

RowSchema RowSchema::For(uint32_t obs_dim, uint32_t action_dim, const std::vector<Column>& extra,
                         const NamedNumbers& costs, const NamedNumbers& logs) {
  RowSchema schema;
  schema.obs_dim_ = obs_dim;
  schema.action_dim_ = action_dim;
  schema.named_costs_ = costs;
  schema.logs_ = logs;
  // EnvironmentBatch::Step gives the values of all columns in this order.
  schema.wire_ = {
      {"observation", ColumnType::kFloat32, obs_dim, true},
      {"action", ColumnType::kFloat32, action_dim, true},
      {"reward", ColumnType::kFloat32, 1, true},
      {"cost", ColumnType::kFloat32, 1, true},
      {"next_observation", ColumnType::kFloat32, obs_dim, true},
  };
  schema.wire_.insert(schema.wire_.end(), extra.begin(), extra.end());
  for (const Column& column :
       {Column{"absorbing", ColumnType::kUint8, 1, true}, Column{"last", ColumnType::kUint8, 1, true},
        Column{"environment", ColumnType::kUint32, 1, false}, Column{"episode", ColumnType::kUint32, 1, false},
        Column{"step", ColumnType::kUint32, 1, false}, Column{"policy_incarnation", ColumnType::kUint32, 1, false},
        Column{"policy_update", ColumnType::kUint64, 1, false}}) {
    schema.wire_.push_back(column);
  }
  schema.stored_ = schema.wire_;
  schema.stored_.push_back({"session", ColumnType::kUint32, 1, false});
  schema.stored_.push_back({"sequence", ColumnType::kUint64, 1, false});
  std::string canonical;
  for (const Column& column : schema.wire_) {
    schema.wire_row_bytes_ += column.bytes();
    if (column.learning) {
      schema.learning_.push_back(column);
      schema.learning_row_bytes_ += column.bytes();
    }
  }
  size_t offset = 0;
  for (const Column& column : schema.stored_) {
    const size_t size = SizeOf(column.type);
    offset = (offset + size - 1) / size * size;
    schema.offsets_.push_back(offset);
    offset += column.bytes();
    absl::StrAppend(&canonical, column.name, ":", static_cast<int>(column.type), ":", column.width, ":",
                    column.learning, ";");
  }
  schema.stored_row_bytes_ = (offset + 7) / 8 * 8;
  schema.fingerprint_ = StreamKey(canonical, {}) | 1;
  return schema;
}

size_t RowSchema::offset(absl::string_view stored_column) const {
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (stored_[i].name == stored_column) return offsets_[i];
  }
  std::abort();
}

bool RowSchema::has(absl::string_view stored_column) const {
  return std::any_of(stored_.begin(), stored_.end(),
                     [&](const Column& column) { return column.name == stored_column; });
}

absl::string_view RowSchema::executed_column() const { return has(kExecutedAction) ? kExecutedAction : "action"; }

absl::string_view RowSchema::raw_column() const { return has(kRawAction) ? kRawAction : "action"; }

absl::Status CheckDrawSize(const RowSchema& schema, uint64_t rows) {
  const uint64_t bytes = rows * schema.learning_row_bytes();
  if (bytes <= kMaxDrawBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a member's draw of ", rows,
                                                 " rows (learner.batch_size + learner.failure_batch_size) of ",
                                                 schema.learning_row_bytes(), " bytes has ", bytes, " bytes; at most ",
                                                 kMaxDrawBytes, " fit in a message: lower the batch sizes"));
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
