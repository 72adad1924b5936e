#include "common/transitions/row_schema.h"

#include <algorithm>
#include <set>

#include "gtest/gtest.h"

namespace datacom {
namespace {

TEST(RowSchema, HasTheSizesOfAHandCountedRow) {
  const RowSchema schema = RowSchema::For(/*obs_dim=*/5, /*action_dim=*/1);
  // observation 20, action 4, reward 4, cost 4, next observation 20, absorbing 1, last 1
  EXPECT_EQ(schema.learning_row_bytes(), 54u);
  // and environment, episode, step, incarnation 4 each, update 8
  EXPECT_EQ(schema.wire_row_bytes(), 78u);
  EXPECT_EQ(schema.stored().size(), schema.wire().size() + 2);
  EXPECT_EQ(schema.stored().back().name, "sequence");
}

TEST(RowSchema, StoredColumnsAreAlignedAndDoNotOverlap) {
  for (const uint32_t obs_dim : {1u, 5u, 16u}) {
    const RowSchema schema = RowSchema::For(obs_dim, 3, {{"executed", ColumnType::kFloat32, 3, true}});
    EXPECT_EQ(schema.stored_row_bytes() % 8, 0u);
    size_t end = 0;
    for (const Column& column : schema.stored()) {
      const size_t offset = schema.offset(column.name);
      EXPECT_GE(offset, end) << column.name;
      EXPECT_EQ(offset % SizeOf(column.type), 0u) << column.name;
      end = offset + column.bytes();
    }
    EXPECT_LE(end, schema.stored_row_bytes());
  }
}

TEST(RowSchema, PlacesHaveTheBytesOfTheColumnsBefore) {
  const RowSchema schema = RowSchema::For(/*obs_dim=*/5, /*action_dim=*/1);
  const ColumnPlace first = PlaceOf(schema.wire(), "observation"), cost = PlaceOf(schema.wire(), "cost");
  EXPECT_EQ(first.before, 0u);
  EXPECT_EQ(first.bytes, 20u);
  EXPECT_EQ(cost.before, 28u);
  EXPECT_EQ(cost.bytes, 4u);
  const ColumnPlace none = PlaceOf(schema.wire(), "nonsense");
  EXPECT_EQ(none.before, 0u);
  EXPECT_EQ(none.bytes, 0u);
}

TEST(RowSchema, FingerprintDependsOnTheLayout) {
  std::set<uint64_t> fingerprints;
  fingerprints.insert(RowSchema::For(5, 1).fingerprint());
  fingerprints.insert(RowSchema::For(6, 1).fingerprint());
  fingerprints.insert(RowSchema::For(5, 2).fingerprint());
  fingerprints.insert(RowSchema::For(5, 1, {{"a", ColumnType::kFloat32, 1, true}}).fingerprint());
  fingerprints.insert(RowSchema::For(5, 1, {{"b", ColumnType::kFloat32, 1, true}}).fingerprint());
  fingerprints.insert(RowSchema::For(5, 1, {{"a", ColumnType::kFloat32, 2, true}}).fingerprint());
  fingerprints.insert(RowSchema::For(5, 1, {{"a", ColumnType::kFloat32, 1, false}}).fingerprint());
  EXPECT_EQ(fingerprints.size(), 7u);
  EXPECT_EQ(fingerprints.count(0), 0u);
  EXPECT_EQ(RowSchema::For(5, 1).fingerprint(), RowSchema::For(5, 1).fingerprint());
}

TEST(RowSchema, DrawsHoldExtraColumnsButNoIdentity) {
  const RowSchema schema = RowSchema::For(2, 1, {{"prev_cost"}});
  const auto has = [](const std::vector<Column>& columns, const std::string& name) {
    return std::any_of(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; });
  };
  EXPECT_TRUE(has(schema.wire(), "prev_cost"));
  EXPECT_TRUE(has(schema.learning(), "prev_cost"));
  EXPECT_FALSE(has(schema.wire(), "session"));
  for (const Column& column : schema.learning()) {
    EXPECT_NE(column.name, "environment");
    EXPECT_NE(column.name, "policy_update");
  }
}

TEST(RowSchema, NamesTheColumnOfTheExecutedAction) {
  EXPECT_EQ(RowSchema::For(2, 1).executed_column(), "action");
  const RowSchema filtered = RowSchema::For(2, 3, {ExecutedActionColumn(3)});
  EXPECT_EQ(filtered.executed_column(), "executed_action");
  EXPECT_NE(filtered.offset("executed_action"), filtered.offset("action"));
  for (const Column& column : filtered.learning()) EXPECT_NE(column.name, "executed_action");
}

TEST(RowSchemaDeathTest, AnUnknownColumnIsAProgrammingError) {
  EXPECT_DEATH(RowSchema::For(1, 1).offset("nonsense"), "");
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
