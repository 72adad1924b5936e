// Joins the batches of a draw of new rows, and names what is wrong with them.
#include "learner/batch_decoder.h"

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom::learner {
namespace {

using datacom::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RowSchema Schema() { return RowSchema::For(/*obs_dim=*/2, /*action_dim=*/1); }

// Rows [first, first + count) of a member: observation {row, -row}, action row / 2, last in every tenth row; places
// {7, member, row / 10, row % 10}.
v1::MemberBatch RowsOf(uint32_t member, uint64_t first, uint32_t count, uint64_t seen) {
  v1::MemberBatch batch;
  batch.set_member(member);
  batch.set_first_row(first);
  batch.set_row_count(count);
  batch.set_rows_seen(seen);
  const auto put = [](const auto value, std::string* to) {
    to->append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const RowSchema schema = Schema();
  for (const Column& column : schema.learning()) {
    for (uint64_t row = first; row < first + count; ++row) {
      const float value = static_cast<float>(row);
      if (column.name == "observation") {
        put(value, batch.mutable_main()), put(-value, batch.mutable_main());
      } else if (column.name == "action") {
        put(value / 2, batch.mutable_main());
      } else if (column.name == "last") {
        put(static_cast<uint8_t>(row % 10 == 9), batch.mutable_main());
      } else {
        batch.mutable_main()->append(column.bytes(), '\0');
      }
    }
  }
  for (uint64_t row = first; row < first + count; ++row) put(uint32_t{7}, batch.mutable_places());
  for (uint64_t row = first; row < first + count; ++row) put(member, batch.mutable_places());
  for (uint64_t row = first; row < first + count; ++row) put(static_cast<uint32_t>(row / 10), batch.mutable_places());
  for (uint64_t row = first; row < first + count; ++row) put(static_cast<uint32_t>(row % 10), batch.mutable_places());
  return batch;
}

v1::DrawReply Reply(const std::vector<v1::MemberBatch>& batches) {
  v1::DrawReply reply;
  reply.set_update(3);
  for (const v1::MemberBatch& batch : batches) *reply.add_batches() = batch;
  return reply;
}

TEST(NewRows, JoinsTheBatchesOfAMember) {
  const RowSchema schema = Schema();
  const v1::DrawReply reply = Reply({RowsOf(0, 8, 3, 13), RowsOf(0, 11, 2, 13), RowsOf(1, 8, 5, 13)});
  const auto rows = NewRows::Split(schema, reply, 2);
  ASSERT_THAT(rows, IsOk());
  for (uint32_t member = 0; member < 2; ++member) {
    const NewRows& own = (*rows)[member];
    EXPECT_EQ(own.first_row(), 8u);
    ASSERT_EQ(own.count(), 5u);
    EXPECT_EQ(&own.last(), &reply.batches(member == 0 ? 1 : 2));
    std::vector<float> observation(10), action(5);
    std::vector<uint8_t> last(5);
    own.Copy(PlaceOf(schema.learning(), "observation"), observation.data());
    own.Copy(PlaceOf(schema.learning(), "action"), action.data());
    own.Copy(PlaceOf(schema.learning(), "last"), last.data());
    EXPECT_THAT(observation, ElementsAre(8, -8, 9, -9, 10, -10, 11, -11, 12, -12));
    EXPECT_THAT(action, ElementsAre(4, 4.5, 5, 5.5, 6));
    EXPECT_THAT(last, ElementsAre(0, 1, 0, 0, 0));
    const std::vector<RowPlace> places = own.Places();
    ASSERT_EQ(places.size(), 5u);
    EXPECT_EQ(places[1].lane(), std::make_tuple(7u, member, 0u));
    EXPECT_EQ(places[1].step, 9u);
    EXPECT_EQ(places[3].lane(), std::make_tuple(7u, member, 1u));
    EXPECT_EQ(places[3].step, 1u);
  }
}

TEST(NewRows, NamesWhatIsMissingOrDamaged) {
  const RowSchema schema = Schema();
  v1::MemberBatch short_rows = RowsOf(0, 8, 5, 13), short_places = short_rows;
  short_rows.mutable_main()->pop_back();
  short_places.mutable_places()->pop_back();
  const struct {
    std::vector<v1::MemberBatch> batches;
    const char* message;
  } cases[] = {
      {{}, "the newest rows of member 0 are missing"},
      {{RowsOf(0, 8, 4, 13)}, "the newest rows of member 0 are missing"},
      {{RowsOf(0, 8, 2, 13), RowsOf(0, 11, 2, 13)}, "rows of member 0 from 11 on follow rows up to 10"},
      {{RowsOf(1, 8, 5, 13)}, "rows of member 1 of 1"},
      {{short_rows}, "5 rows of member 0 have 149 and 80 bytes, expected 150 and 80"},
      {{short_places}, "5 rows of member 0 have 150 and 79 bytes, expected 150 and 80"},
  };
  for (const auto& c : cases) {
    const v1::DrawReply reply = Reply(c.batches);
    const absl::Status refused = NewRows::Split(schema, reply, 1).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("draw of update 3: "));
    EXPECT_THAT(std::string(refused.message()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
