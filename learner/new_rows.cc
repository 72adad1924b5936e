#include "learner/new_rows.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom::learner {
namespace {

constexpr size_t kPlaceBytes = 4 * sizeof(uint32_t);

}  // namespace

absl::StatusOr<std::vector<NewRows>> NewRows::Split(const RowSchema& schema, const v1::DrawReply& reply, int members) {
  std::vector<NewRows> rows;
  for (int member = 0; member < members; ++member) rows.push_back(NewRows(schema, member));
  for (const v1::MemberBatch& batch : reply.batches()) {
    if (batch.member() >= rows.size()) {
      return absl::DataLossError(
          absl::StrCat("draw of update ", reply.update(), ": rows of member ", batch.member(), " of ", members));
    }
    RETURN_IF_ERROR(Annotate(rows[batch.member()].Add(batch), absl::StrCat("draw of update ", reply.update())));
  }
  for (const NewRows& own : rows) {
    if (!own.batches_.empty() && own.first_row() + own.count() == own.last().rows_seen()) continue;
    return absl::DataLossError(
        absl::StrCat("draw of update ", reply.update(), ": the newest rows of member ", own.member_, " are missing"));
  }
  return rows;
}

absl::Status NewRows::Add(const v1::MemberBatch& batch) {
  const size_t rows = batch.row_count();
  if (!batches_.empty() && batch.first_row() != first_row() + count_) {
    return absl::DataLossError(absl::StrCat("rows of member ", member_, " from ", batch.first_row(),
                                            " on follow rows up to ", first_row() + count_));
  }
  if (batch.main().size() != rows * schema_->learning_row_bytes() || batch.places().size() != rows * kPlaceBytes) {
    return absl::DataLossError(absl::StrCat(rows, " rows of member ", member_, " have ", batch.main().size(), " and ",
                                            batch.places().size(), " bytes, expected ",
                                            rows * schema_->learning_row_bytes(), " and ", rows * kPlaceBytes));
  }
  batches_.push_back(&batch);
  count_ += rows;
  return absl::OkStatus();
}

void NewRows::Copy(absl::string_view column, void* out) const {
  size_t before = 0;  // bytes of a row's earlier columns
  for (const Column& own : schema_->learning()) {
    if (own.name == column) {
      char* to = static_cast<char*>(out);
      for (const v1::MemberBatch* batch : batches_) {
        const size_t bytes = own.bytes() * batch->row_count();
        std::memcpy(to, batch->main().data() + before * batch->row_count(), bytes);
        to += bytes;
      }
      return;
    }
    before += own.bytes();
  }
}

std::vector<RowPlace> NewRows::Places() const {
  std::vector<RowPlace> places;
  places.reserve(count_);
  for (const v1::MemberBatch* batch : batches_) {
    const size_t rows = batch->row_count();
    const auto value = [&](size_t column, size_t row) {
      return At<uint32_t>(batch->places().data(), (column * rows + row) * sizeof(uint32_t));
    };
    for (size_t row = 0; row < rows; ++row)
      places.push_back({value(0, row), value(1, row), value(2, row), value(3, row)});
  }
  return places;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
