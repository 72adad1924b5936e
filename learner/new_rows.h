// The rows of one member in a draw of new rows (proto DrawReply), which come in one or more batches.
//
// Refers to the reply and the schema, which must outlive it. Immutable; thread-safe.
#ifndef DATACOM_LEARNER_NEW_ROWS_H_
#define DATACOM_LEARNER_NEW_ROWS_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/replay.pb.h"

namespace datacom::learner {

// The episode and step of a row. Rows of one episode have equal lanes and successive steps.
struct RowPlace {
  uint32_t session = 0, environment = 0, episode = 0, step = 0;
  auto lane() const { return std::tie(session, environment, episode); }
  friend bool operator<(const RowPlace& a, const RowPlace& b) {
    return std::tie(a.session, a.environment, a.episode, a.step) <
           std::tie(b.session, b.environment, b.episode, b.step);
  }
};

class NewRows {
 public:
  // Returns one for each member, in member order. DATA_LOSS, naming member and batch, when a member's rows are not
  // complete, do not follow each other, or have another size than the schema says.
  static absl::StatusOr<std::vector<NewRows>> Split(const RowSchema& schema, const v1::DrawReply& reply, int members);

  uint64_t first_row() const { return batches_.front()->first_row(); }  // among the member's rows, from 0
  uint64_t count() const { return count_; }
  // The last batch, which has the finished episodes.
  const v1::MemberBatch& last() const { return *batches_.back(); }
  // Copies a learning column as [count, width]. Does nothing if the schema has no such column.
  void Copy(absl::string_view column, void* out) const;
  std::vector<RowPlace> Places() const;

 private:
  NewRows(const RowSchema& schema, int member) : schema_(&schema), member_(member) {}
  absl::Status Add(const v1::MemberBatch& batch);

  const RowSchema* schema_;
  int member_ = 0;
  uint64_t count_ = 0;
  std::vector<const v1::MemberBatch*> batches_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NEW_ROWS_H_
// SPDX-License-Identifier: Apache-2.0
