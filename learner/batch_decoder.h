// Turns a reply of the replay into a batch on the host: columns, control-affine features, commands to
// imitate, noise.
//
// Noise is a pure function of run seed, member seed and update. The members are divided among the threads of the
// configuration's team that have nothing to do. Not thread-safe. Decode blocks until all members are decoded.
#ifndef DATACOM_LEARNER_BATCH_DECODER_H_
#define DATACOM_LEARNER_BATCH_DECODER_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/safety/control_affine.h"
#include "common/safety/known_rows.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/replay.pb.h"
#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

// The episode and step of a row. Rows of one episode have equal lanes and successive steps.
struct RowPlace {
  uint32_t session = 0, environment = 0, episode = 0, step = 0;
  auto lane() const { return std::tie(session, environment, episode); }
  auto operator<=>(const RowPlace&) const = default;
};

// The rows of one member in a draw of new rows (proto DrawReply), which come in one or more batches.
//
// Refers to the reply and the schema, which must outlive it. Immutable; thread-safe.
class NewRows {
 public:
  // Returns one for each member, in member order. DATA_LOSS, naming member and batch, when a member's rows are not
  // complete, do not follow each other, or have another size than the schema says.
  static absl::StatusOr<std::vector<NewRows>> Split(const RowSchema& schema, const v1::DrawReply& reply, int members);

  uint64_t first_row() const { return batches_.front()->first_row(); }  // among the member's rows, from 0
  uint64_t count() const { return count_; }
  // The last batch, which has the finished episodes.
  const v1::MemberBatch& last() const { return *batches_.back(); }
  // Copies the learning column at `place` as [count, width].
  void Copy(const ColumnPlace& place, void* out) const;
  std::vector<RowPlace> Places() const;

 private:
  NewRows(const RowSchema& schema, int member) : schema_(&schema), member_(member) {}
  absl::Status Add(const v1::MemberBatch& batch);

  const RowSchema* schema_;
  int member_ = 0;
  uint64_t count_ = 0;
  std::vector<const v1::MemberBatch*> batches_;
};

// A training episode that has ended, and what the algorithm reads of it.
struct FinishedEpisode {
  int member = 0;
  v1::Episode facts;         // without observations and costs
  std::vector<float> z;      // [length + 1, q + x]; empty: no step of delta
  std::vector<float> costs;  // [length + 1] raw, costs[0] = 0; on-policy: 0 and the episode's sum; empty: not read
};

// All that one update needs. Reused from update to update: the arrays keep their memory.
struct PreparedUpdate {
  uint64_t update = 0;
  Batch batch;
  std::vector<FinishedEpisode> episodes;      // ordered by member, then by row
  std::vector<uint64_t> rows_seen, inserted;  // [M], as the replay counts them (proto MemberBatch)
  std::vector<uint32_t> lanes;                // [M], as the replay counts them
  std::vector<uint64_t> abandoned;            // [M] episodes, and why
  std::vector<std::string> faults;
};

class BatchDecoder {
 public:
  // The schema has the columns of ColumnsOf(config). `dynamics` is null if the algorithm needs none. The names of all
  // streams of noise begin with `streams`.
  BatchDecoder(const AlgorithmConfig& config, const RowSchema& schema, std::shared_ptr<const ControlAffine> dynamics,
               const KnownRows& known, const std::string& streams = "learner.");
  // Changes `reply`. DATA_LOSS naming member, column and size when the reply does not fit; then `out` is undefined.
  absl::Status Decode(v1::DrawReply* reply, PreparedUpdate* out);

 private:
  // The memory for decoding one member. Different members are decoded at the same time.
  struct Workspace {
    KnownRows known;
    std::vector<double> wide, state;                       // one observation, one [q, x], float64
    std::vector<double> command;                           // one action
    std::vector<float> rows, next_rows;                    // rows of one batch; empty if networks see all of a row
    std::vector<float> failure_observation, failure_next;  // rows of one failure batch
    std::vector<char> column;                              // one column of an epoch, in the order of the rows
    absl::Status status;
  };
  // A learning column, and the array of a batch for the first `used` numbers of its rows.
  struct BatchColumn {
    ColumnPlace place;
    size_t used = 1;
    std::function<std::vector<float>&(Batch* batch)> array;
  };
  // `rows` is null unless the algorithm takes the new rows.
  absl::Status DecodeMember(int member, const NewRows* rows, v1::MemberBatch* from, FinishedEpisode* episodes,
                            PreparedUpdate* out);
  // Writes the rows in the order of time, one lane after the other (Batch).
  absl::Status DecodeEpoch(int member, const NewRows& rows, Batch* batch);
  absl::Status DecodeMain(int member, const std::string& bytes, Batch* batch);
  size_t row_dim() const { return schema_.obs_dim(); }
  absl::Status DecodeFailure(int member, const std::string& bytes, Batch* batch);
  absl::Status DecodeEpisode(int member, v1::Episode* episode, FinishedEpisode* out);
  void Features(int member, const float* rows, ControlAffineBatch* out);  // rows: [batch, row_dim()]
  void Z(const float* observation, float* z, Workspace* workspace) const;
  // The commands of the controller that is imitated, if there is one. rows: [batch, row_dim()].
  void FillCommands(int member, uint64_t update, const float* rows, Batch* batch);
  void FillNoise(int member, uint64_t update, Batch* batch) const;

  const AlgorithmConfig config_;
  const RowSchema schema_;
  const std::shared_ptr<const ControlAffine> dynamics_;
  const std::string noise_actor_, noise_next_, level_, next_level_;  // names of the streams of noise
  std::vector<BatchColumn> columns_;  // those of every task, then those that the algorithm reads
  int z_dim_ = 0;
  std::vector<Workspace> workspaces_;  // [M]
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_BATCH_DECODER_H_
// SPDX-License-Identifier: Apache-2.0
