#include "common/records/dataset.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/checksum.h"
#include "common/base/files.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/datasets.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;
using ::datacom::testing::IsOk;
using ::datacom::testing::MakeDataset;
using ::testing::AllOf;
using ::testing::HasSubstr;

const RowSchema& Schema() {
  static const RowSchema* const schema = new RowSchema(RowSchema::For(/*obs_dim=*/2, /*action_dim=*/1));
  return *schema;
}

class DatasetTest : public ::testing::Test {
 protected:
  absl::Status Read(const std::string& task = "cartpole", const RowSchema& schema = Schema()) {
    return Dataset::Read(folder_, task, schema).status();
  }
  void Edit(const std::string& from, const std::string& to) {
    const std::string path = folder_ + "/manifest.textproto";
    const std::string text = *ReadFile(path), changed = absl::StrReplaceAll(text, {{from, to}});
    ASSERT_NE(text, changed) << from;
    v1::DatasetManifest manifest;  // with its own checksum again
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(changed, &manifest));
    manifest.clear_crc32c();
    manifest.set_crc32c(Crc32c(manifest.SerializeAsString()));
    ASSERT_THAT(WriteFileAtomically(path, PrintTextproto(manifest)), IsOk());
  }
  // The learning columns of one row, as in a draw.
  static std::string Row(const Dataset& dataset, uint64_t number) {
    std::string columns;
    dataset.Gather({number}, &columns);
    return columns;
  }
  static float FloatAt(const std::string& bytes, size_t index) { return At<float>(bytes.data(), 4 * index); }

  const testing::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path() + "/dataset";
};

TEST_F(DatasetTest, EveryRowOfEveryMemberIsReadBack) {
  ASSERT_THAT(MakeDataset(folder_, Schema(), {5000, 7}), IsOk());  // more than one chunk, less than one
  const auto dataset = Dataset::Read(folder_, "cartpole", Schema());
  ASSERT_THAT(dataset, IsOk());
  ASSERT_EQ(dataset->rows(), 5007u);
  for (const auto& [number, value] :
       {std::pair<uint64_t, float>{0, 0}, {4096, 4096}, {4999, 4999}, {5000, 1000}, {5006, 1006}}) {
    const std::string row =
        Row(*dataset, number);  // observation[2] action reward cost next_observation[2] absorbing last
    ASSERT_EQ(row.size(), Schema().learning_row_bytes());
    EXPECT_EQ(FloatAt(row, 0), value);
    EXPECT_EQ(FloatAt(row, 2), value);
    EXPECT_EQ(FloatAt(row, 5), value / 2);
  }
  EXPECT_EQ(dataset->failures().size(), 1667u + 3);  // every third row of each member, from its first
  EXPECT_EQ(dataset->failures()[1667], 5000u);
  EXPECT_EQ(RowsOf(dataset->manifest()), 5007u);
  uint64_t failures = 0;
  for (const v1::DatasetMember& member : dataset->manifest().members()) failures += member.failures();
  EXPECT_EQ(failures, 1670u);
}

TEST_F(DatasetTest, ADrawHoldsOneColumnAfterTheOther) {
  ASSERT_THAT(MakeDataset(folder_, Schema(), {10}), IsOk());
  const auto dataset = Dataset::Read(folder_, "cartpole", Schema());
  std::string columns;
  dataset->Gather({3, 9, 3}, &columns);
  ASSERT_EQ(columns.size(), 3 * Schema().learning_row_bytes());
  EXPECT_EQ(FloatAt(columns, 0), 3);  // observations of all three rows
  EXPECT_EQ(FloatAt(columns, 2), 9);
  EXPECT_EQ(FloatAt(columns, 4), 3);
  EXPECT_EQ(FloatAt(columns, 7), 9);      // actions
  EXPECT_EQ(FloatAt(columns, 12), 0.25);  // costs
}

TEST_F(DatasetTest, TheManifestDescribesTheFiles) {
  ASSERT_THAT(MakeDataset(folder_, Schema(), {9}), IsOk());
  const auto manifest = ReadManifest(folder_);
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->schema_fingerprint(), Schema().fingerprint());
  ASSERT_EQ(manifest->columns_size(), static_cast<int>(Schema().stored().size()));
  EXPECT_EQ(manifest->columns(0).name(), "observation");
  EXPECT_EQ(manifest->columns(0).type(), "float32");
  EXPECT_EQ(manifest->columns(0).width(), 2u);
  EXPECT_EQ(manifest->members(0).bytes(), fs::file_size(folder_ + "/member_0.rows"));
  EXPECT_EQ(manifest->members(0).crc32c(), Crc32c(*ReadFile(folder_ + "/member_0.rows")));
}

TEST_F(DatasetTest, EveryDamagedByteIsDetected) {
  ASSERT_THAT(MakeDataset(folder_, Schema(), {4100}), IsOk());
  const std::string path = folder_ + "/member_0.rows", whole = *ReadFile(path);
  for (const size_t at : {size_t{0}, size_t{3}, whole.size() / 2, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x80);
    ASSERT_THAT(WriteFileAtomically(path, damaged), IsOk());
    const absl::Status status = Read();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(path), HasSubstr("checksum"))) << "byte " << at;
  }
}

TEST_F(DatasetTest, AShorterLongerOrMissingFileIsNamedWithBothSizes) {
  ASSERT_THAT(MakeDataset(folder_, Schema(), {20, 20}), IsOk());
  const std::string path = folder_ + "/member_1.rows", whole = *ReadFile(path);
  for (const std::string& content : {whole.substr(0, whole.size() - 1), whole + "x", std::string()}) {
    ASSERT_THAT(WriteFileAtomically(path, content), IsOk());
    const absl::Status status = Read();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr(path), HasSubstr(absl::StrCat(content.size(), " bytes, the manifest states ", whole.size()))));
  }
  fs::remove(path);
  EXPECT_TRUE(absl::IsDataLoss(Read()));
}

TEST_F(DatasetTest, AManifestThatContradictsItselfIsRefused) {
  ASSERT_THAT(MakeDataset(folder_, Schema(), {20}), IsOk());
  const std::string path = folder_ + "/manifest.textproto", whole = *ReadFile(path);
  const std::pair<std::string, std::string> edits[] = {{"rows: 20", "rows: 21"},
                                                       {"rows: 20", "rows: 0"},
                                                       {"chunk_rows: 4096", "chunk_rows: 0"},
                                                       {"type: \"uint8\"", "type: \"bool\""},
                                                       {"name: \"cost\"", "name: \"reward\""},
                                                       {"file: \"member_0.rows\"", "file: \"../member_0.rows\""},
                                                       {"failures: 7", "failures: 6"}};
  for (const auto& [from, to] : edits) {
    ASSERT_THAT(WriteFileAtomically(path, whole), IsOk());
    Edit(from, to);
    const absl::Status status = Read();
    EXPECT_TRUE(absl::IsDataLoss(status)) << to << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(folder_)) << to;
  }
}

TEST_F(DatasetTest, AManifestChangedByHandIsRefused) {
  ASSERT_THAT(MakeDataset(folder_, Schema(), {20}), IsOk());
  const std::string path = folder_ + "/manifest.textproto";
  const std::string text = absl::StrReplaceAll(*ReadFile(path), {{"run_id: \"", "run_id: \"x"}});
  ASSERT_THAT(WriteFileAtomically(path, text), IsOk());
  EXPECT_TRUE(absl::IsDataLoss(Read())) << Read();
  EXPECT_THAT(std::string(Read().message()), HasSubstr("the file was changed"));
}

TEST_F(DatasetTest, AnotherLayoutIsRefusedNamingItsNumber) {
  ASSERT_THAT(MakeDataset(folder_, Schema(), {20}), IsOk());
  Edit("layout: 3", "layout: 1");
  EXPECT_TRUE(absl::IsFailedPrecondition(Read()));
  EXPECT_THAT(std::string(Read().message()), HasSubstr("layout 1, this build reads 3"));
}

TEST_F(DatasetTest, AFolderWithoutAManifestIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Read()));
  EXPECT_THAT(std::string(Read().message()), AllOf(HasSubstr(folder_), HasSubstr("not a dataset folder")));
}

TEST_F(DatasetTest, AnotherTaskOrOtherColumnsAreNamed) {
  ASSERT_THAT(MakeDataset(folder_, Schema(), {20}), IsOk());
  EXPECT_THAT(std::string(Read("air_hockey").message()), HasSubstr("is of task cartpole, the run of air_hockey"));
  const absl::Status wide = Read("cartpole", RowSchema::For(2, 3));
  EXPECT_TRUE(absl::IsInvalidArgument(wide));
  EXPECT_THAT(std::string(wide.message()), HasSubstr("column action is float32[1], the run needs float32[3]"));
  const absl::Status more = Read("cartpole", RowSchema::For(2, 1, {{"prev_cost", ColumnType::kFloat32, 1, true}}));
  EXPECT_THAT(std::string(more.message()), HasSubstr("column prev_cost is missing"));
}

TEST_F(DatasetTest, ColumnsThatTheLearnerDoesNotReadMayDiffer) {
  const RowSchema richer = RowSchema::For(2, 1, {{"raw_action", ColumnType::kFloat32, 1, false}});
  ASSERT_THAT(MakeDataset(folder_, richer, {20}), IsOk());
  const auto dataset = Dataset::Read(folder_, "cartpole", Schema());
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ(FloatAt(Row(*dataset, 5), 5), 2.5);
}

TEST_F(DatasetTest, ChosenActionsAreNotAcceptedAsExecutedOnes) {
  const RowSchema filtered = RowSchema::For(2, 1, {ExecutedActionColumn(1)});
  ASSERT_THAT(MakeDataset(folder_, filtered, {20}), IsOk());
  EXPECT_THAT(std::string(Read().message()),
              HasSubstr("which stores policy actions; the run learns from executed actions"));
  EXPECT_THAT(Read("cartpole", filtered), IsOk());
}

TEST_F(DatasetTest, UnscaledActionsOfOnPolicyMethodsAreNotAccepted) {
  const RowSchema unscaled = RowSchema::For(2, 1, {ExecutedActionColumn(1), {kLogProb}});
  ASSERT_THAT(MakeDataset(folder_, unscaled, {20}), IsOk());
  EXPECT_THAT(std::string(Read("cartpole", RowSchema::For(2, 1, {ExecutedActionColumn(1)})).message()),
              HasSubstr("whose actions are not scaled to the task's bounds"));
}

std::string OptionsDiffer(const std::string& held, const std::string& wanted) {
  v1::DatasetManifest manifest;
  v1::TaskOptions options;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(held, manifest.mutable_experiment()->mutable_task_options()));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(wanted, &options));
  const absl::Status status = CheckDatasetOptions("ds", manifest, options);
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(DatasetOptions, ThatChangeWhatARowMeansAreRefusedWithBothValues) {
  const std::string before =
      "dataset ds: its rows mean something else than the run's; task_options, dataset -> run: modified: ";
  EXPECT_EQ(OptionsDiffer("observation: 'world_frame'", "observation: 'robot_frame'"),
            before + "observation: \"world_frame\" -> \"robot_frame\"");
  EXPECT_EQ(OptionsDiffer("", "observation: 'robot_frame'"),
            before + "observation: \"world_frame\" -> \"robot_frame\"");
  EXPECT_EQ(OptionsDiffer("reward: 'paper'", ""), before + "reward: \"paper\" -> \"code\"");
  EXPECT_EQ(OptionsDiffer("", "action_repeat: 5"), before + "action_repeat: 1 -> 5");
  const auto task = [](const std::string& reward, const std::string& file) {
    return "[datacom.v1.text_task] { definition { reward: '" + reward + "' } file { name: 'm.xml' " + file + " } }";
  };
  const std::string content = "content: '<mujoco/>'";
  EXPECT_THAT(OptionsDiffer(task("x", content), task("-x", content)), HasSubstr("reward: \"x\" -> \"-x\""));
  EXPECT_THAT(OptionsDiffer(task("x", content), task("x", "content: '<mujoco></mujoco>'")),
              HasSubstr("file[0].sha256: \""));
  EXPECT_THAT(OptionsDiffer(task("x", "sha256: 'a' gzip: 'z'"), task("x", "sha256: 'b' gzip: 'z'")),
              HasSubstr("file[0].sha256: \"a\" -> \"b\""));
}

TEST(DatasetOptions, ThatKeepTheMeaningOfARowMayDiffer) {
  EXPECT_EQ(OptionsDiffer("observation: 'world_frame' reward: 'code' action_repeat: 1", ""), "");
  EXPECT_EQ(OptionsDiffer("horizon: 100 puck_region: 'adjusted' [datacom.v1.plugin]: 'a'",
                          "mismatch_sigma: 1 randomisation {}"),
            "");
  const std::string task = "[datacom.v1.text_task] { definition { reward: 'x' ";
  EXPECT_EQ(OptionsDiffer(task + "horizon: 5 start {} } file { sha256: 'a' gzip: 'z' } }",
                          task + "} file { sha256: 'a' } resolved { control_dt: 1 } }"),
            "");
  EXPECT_EQ(OptionsDiffer("", task + "} }"), "") << "an imported dataset states no definition";
}

TEST_F(DatasetTest, AnInvalidValueIsNamedWithItsRow) {
  v1::DatasetManifest manifest;
  manifest.mutable_experiment()->set_task("cartpole");
  manifest.add_members();
  testing::StoredRows rows(Schema(), 5000, 0);
  rows.Set(Schema(), 4100, "reward", std::numeric_limits<float>::infinity());
  ASSERT_THAT(WriteDataset(folder_, Schema(), {rows.rows()}, &manifest), IsOk());
  const absl::Status status = Read();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("rows from 4096"), HasSubstr("column reward, row 4: inf")));
}

TEST_F(DatasetTest, ATrailingSlashMakesNoDifference) {
  const absl::Status made = MakeDataset(folder_ + "//", Schema(), {20});
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(Read(), IsOk());
  EXPECT_TRUE(absl::IsInvalidArgument(MakeDataset(folder_ + "/", Schema(), {20})));
}

TEST_F(DatasetTest, AnExistingFolderIsNotOverwritten) {
  fs::create_directories(folder_);
  EXPECT_TRUE(absl::IsInvalidArgument(MakeDataset(folder_, Schema(), {20})));
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_FALSE(fs::exists(folder_ + ".tmp"));
}

TEST_F(DatasetTest, WhatAWriterThatDiedLeftIsReplacedAndNothingElse) {
  const std::string temporary = folder_ + ".tmp", letter = temporary + "/letter";
  fs::create_directories(temporary);
  for (const std::string& file : {temporary + "/member_7.rows", letter}) {
    ASSERT_THAT(WriteFileAtomically(file, "x"), IsOk());
  }
  const absl::Status refused = MakeDataset(folder_, Schema(), {20});
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(letter));
  EXPECT_TRUE(fs::exists(letter));
  fs::remove(letter);
  ASSERT_THAT(MakeDataset(folder_, Schema(), {20}), IsOk());
  EXPECT_FALSE(fs::exists(folder_ + "/member_7.rows"));
  EXPECT_FALSE(fs::exists(temporary));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
