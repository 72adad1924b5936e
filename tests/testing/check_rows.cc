// Reads every row of a run's replay and checks that the actors sent each row once and in order:
//   check_rows REPLAY_ADDRESS
// Within a session and member the sequence counts from 0 without a gap, and an environment's steps count from 0 to the
// last of each episode. At the first row that breaks this it prints the row and exits with 1. Otherwise it prints one
// line "member=M session=S rows=N" per session with rows of a member. The replay must still hold the run's first row
// (replay.capacity).
#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/acting/acting_rule.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/rpc/channel.h"
#include "common/rpc/replay_client.h"
#include "common/tasks/task.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/task_options.pb.h"
#include "tests/testing/patience.h"

namespace datacom {
namespace {

absl::StatusOr<RowSchema> SchemaOf(const v1::ReplayInfo& info) {
  const AlgorithmInfo* algorithm = FindAlgorithm(info.algorithm());
  if (algorithm == nullptr) return absl::NotFoundError(absl::StrCat("algorithm ", info.algorithm()));
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(info.task(), {}));
  ASSIGN_OR_RETURN(const std::vector<Column> extra, ActingRuleColumns(algorithm->acting_rule, model.spec.action_dim));
  RowSchema schema = RowSchema::For(model.spec.obs_dim, model.spec.action_dim, extra);
  if (schema.fingerprint() != info.schema_fingerprint()) return absl::FailedPreconditionError("rows of another schema");
  return schema;
}

// The columns of a message, read one value at a time from columns of width 1.
class Rows {
 public:
  Rows(const RowSchema& schema, const v1::RowRange& range) : schema_(schema), range_(range) {}
  uint64_t Value(const char* name, uint32_t row) const {
    size_t begin = 0;
    for (const Column& column : schema_.stored()) {
      if (column.name == name) {
        uint64_t value = 0;
        std::memcpy(&value, range_.columns().data() + begin + row * column.bytes(), column.bytes());
        return value;
      }
      begin += column.bytes() * range_.row_count();
    }
    std::abort();
  }

 private:
  const RowSchema& schema_;
  const v1::RowRange& range_;
};

// The rows of one member, in commit order.
class MemberCheck {
 public:
  absl::Status Add(const Rows& rows, uint32_t i) {
    const uint64_t session = rows.Value("session", i), sequence = rows.Value("sequence", i);
    const uint64_t environment = rows.Value("environment", i), episode = rows.Value("episode", i);
    const uint64_t step = rows.Value("step", i);
    uint64_t& next_sequence = sequences_[session];
    if (sequence != next_sequence) {
      return absl::DataLossError(
          absl::StrCat("session ", session, ": sequence ", sequence, " where ", next_sequence, " is due"));
    }
    ++next_sequence;
    Place& place = places_[{session, environment}];
    if (step != place.step || (step > 0 && episode != place.episode) || (step == 0 && episode < place.episode)) {
      return absl::DataLossError(absl::StrCat("session ", session, ", environment ", environment, ": episode ", episode,
                                              " step ", step, " where episode ", place.episode, " step ", place.step,
                                              " is due"));
    }
    const bool last = rows.Value("last", i) != 0;
    place = {last ? episode + 1 : episode, last ? 0 : step + 1};
    return absl::OkStatus();
  }
  const std::map<uint64_t, uint64_t>& sessions() const { return sequences_; }  // session -> rows

 private:
  struct Place {
    uint64_t episode = 0, step = 0;
  };
  std::map<uint64_t, uint64_t> sequences_;
  std::map<std::pair<uint64_t, uint64_t>, Place> places_;
};

absl::Status Check(const std::string& address) {
  const auto channel = MakeChannel(address);
  ASSIGN_OR_RETURN(const v1::ReplayInfo info, GetReplayInfo(channel, testing::kPatience));
  ASSIGN_OR_RETURN(const RowSchema schema, SchemaOf(info));
  for (const v1::MemberInfo& member : info.members()) {
    v1::ReadRangeRequest request;
    *request.mutable_hello() = MakeHello(info.run_id(), 0);
    request.set_member(member.member());
    request.set_to(member.inserted());
    MemberCheck check;
    uint64_t row = 0;
    const absl::Status read =
        ReadRange(channel, request, testing::kPatience, [&](const v1::RowRange& range) -> absl::Status {
          for (uint32_t i = 0; i < range.row_count(); ++i, ++row) RETURN_IF_ERROR(check.Add(Rows(schema, range), i));
          return absl::OkStatus();
        });
    if (!read.ok()) return Annotate(read, absl::StrCat("member ", member.member(), ", row ", row));
    if (row != member.inserted())
      return absl::DataLossError(absl::StrCat(row, " rows were read of ", member.inserted()));
    for (const auto& [session, rows] : check.sessions())
      std::printf("member=%u session=%llu rows=%llu\n", member.member(), static_cast<unsigned long long>(session),
                  static_cast<unsigned long long>(rows));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: check_rows REPLAY_ADDRESS\n");
    return datacom::kExitUsage;
  }
  const absl::Status status = datacom::Check(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "check_rows: %s\n", std::string(status.message()).c_str());
  return status.ok() ? datacom::kExitOk : datacom::kExitFailure;
}
// SPDX-License-Identifier: Apache-2.0
