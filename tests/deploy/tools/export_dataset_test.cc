// Tests the export of a run's rings to a dataset.
#include <algorithm>
#include <filesystem>
#include <tuple>

#include "common/base/files.h"
#include "common/records/dataset.h"
#include "deploy/tools/export_dataset.h"
#include "gmock/gmock.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::tools {
namespace {

using ::datacom::testing::IsOk;
using replay::testing::Client;
using replay::testing::MakeChunk;
using replay::testing::MustOpen;
using replay::testing::SmallOptions;
using replay::testing::SmallSchema;
using replay::testing::TestRow;
using ::testing::HasSubstr;

class ExportTest : public ::testing::Test {
 protected:
  ExportTest() {
    experiment_.set_task("cartpole");
    for (uint64_t seed = 0; seed < 2; ++seed) experiment_.add_members()->set_seed(seed);
  }
  // Two members; `count` rows of two alternating environments, whose episodes have 10 and 7 steps.
  void Record(int count) {
    const auto store = MustOpen(SmallOptions(2), folder_.path() + "/replay", &clock_);
    Client client;
    client.Open(store.get(), "actor", 1, /*environments=*/2);
    for (int i = 0; i < count; ++i) {
      const uint32_t environment = i % 2, length = environment == 0 ? 10 : 7, at = i / 2;
      TestRow row;
      row.environment = environment;
      row.episode = at / length;
      row.step = at % length;
      row.last = row.step + 1 == length;
      row.value = static_cast<float>(i);
      row.cost = i % 5 == 0 ? 0.5f : -1.0f;
      for (uint32_t member = 0; member < 2; ++member) {
        client.Hear(store.get());
        ASSERT_EQ(client.Send(store.get(), MakeChunk(member, client.next[member], {row})), absl::StatusCode::kOk);
      }
      client.Hear(store.get());
      EXPECT_THAT(store->Announce(static_cast<uint64_t>(std::max(0, i - 9))),
                  IsOk());  // so that there is always credit
    }
  }
  ExportOptions Options() const {
    ExportOptions options;
    options.rings = folder_.path() + "/replay";
    options.out = folder_.path() + "/dataset";
    return options;
  }
  absl::StatusOr<v1::DatasetManifest> Export(const ExportOptions& options) {
    return ExportDataset(options, experiment_, SmallSchema());
  }
  // observation[0] of every row in the dataset: its number in the run.
  std::vector<int> Numbers() {
    const auto dataset = Dataset::Read(Options().out, "cartpole", SmallSchema());
    EXPECT_THAT(dataset, IsOk());
    std::vector<uint64_t> all(dataset->rows());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    std::string columns;
    dataset->Gather(all, &columns);
    std::vector<int> numbers;
    for (size_t i = 0; i < all.size(); ++i) numbers.push_back(static_cast<int>(At<float>(columns.data(), 8 * i)));
    return numbers;
  }

  testing::TemporaryFolder folder_;
  ManualClock clock_;
  v1::Experiment experiment_;
};

TEST_F(ExportTest, RowsAreGroupedByEpisodeInTheOrderOfSteps) {
  Record(60);
  ExportOptions options = Options();
  options.members = {1};
  const auto manifest = Export(options);
  ASSERT_THAT(manifest, IsOk());
  std::vector<int> expected;
  const auto add = [&](int environment, int from, int to) {
    for (int step = from; step < to; ++step) expected.push_back(2 * step + environment);
  };
  add(0, 0, 10), add(1, 0, 7), add(1, 7, 14), add(0, 10, 20), add(1, 14, 21), add(0, 20, 30), add(1, 21, 28);
  add(1, 28, 30);  // not ended
  EXPECT_EQ(Numbers(), expected);
  const v1::DatasetMember& member = manifest->members(0);
  EXPECT_EQ(member.member(), 1u);
  EXPECT_EQ(member.rows(), 60u);
  EXPECT_EQ(member.episodes(), 7u);
  EXPECT_EQ(member.failures(), 12u);
  EXPECT_EQ(manifest->run_id(), "run");
  EXPECT_EQ(manifest->experiment().task(), "cartpole");
}

TEST_F(ExportTest, ARangeExportsExactlyItsRows) {
  Record(60);
  ExportOptions options = Options();
  options.members = {0};
  options.first = 4, options.end = 30;
  ASSERT_THAT(Export(options), IsOk());
  std::vector<int> numbers = Numbers();
  std::sort(numbers.begin(), numbers.end());
  ASSERT_EQ(numbers.size(), 26u);
  EXPECT_EQ(numbers.front(), 4);
  EXPECT_EQ(numbers.back(), 29);
}

TEST_F(ExportTest, OverwrittenRowsAreMissingAndTheRestIsExported) {
  Record(400);  // the ring keeps 176: capacity 100, tolerance 16, two checkpoint intervals and an epoch of 20
  const auto manifest = Export(Options());
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->members_size(), 2);
  EXPECT_EQ(manifest->members(0).end_row(), 400u);
  EXPECT_EQ(manifest->members(0).rows(), 176u);
  EXPECT_EQ(manifest->members(0).first_row(), 224u);
  const std::vector<int> numbers = Numbers();
  EXPECT_EQ(*std::min_element(numbers.begin(), numbers.end()), 224);
  ExportOptions gone = Options();
  gone.out += "2";
  gone.end = 100;
  EXPECT_THAT(std::string(Export(gone).status().message()), HasSubstr("it holds rows 224-400"));
}

TEST_F(ExportTest, TheRunsFilesDoNotChange) {
  Record(60);
  const std::string ring = folder_.path() + "/replay/member_0.rows", before = *ReadFile(ring);
  std::filesystem::remove(folder_.path() + "/replay/lock");
  std::filesystem::permissions(folder_.path() + "/replay", std::filesystem::perms(0500));  // only root may write
  ASSERT_THAT(Export(Options()), IsOk());
  std::filesystem::permissions(folder_.path() + "/replay", std::filesystem::perms(0700));
  EXPECT_EQ(*ReadFile(ring), before);
}

TEST_F(ExportTest, ARunningRunIsRefused) {
  Record(20);
  const auto store = MustOpen(SmallOptions(2), folder_.path() + "/replay", &clock_);
  const absl::Status status = Export(Options()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("replay is using"));
}

TEST_F(ExportTest, AnUnknownMemberIsNamed) {
  Record(20);
  ExportOptions options = Options();
  options.members = {2};
  EXPECT_THAT(std::string(Export(options).status().message()), HasSubstr("member 2: the run has 2"));
}

TEST_F(ExportTest, ARingOfAnotherSchemaOrWithoutRowsIsRefused) {
  Record(20);
  const auto other = ExportDataset(Options(), experiment_, RowSchema::For(3, 1));
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status())) << other.status();
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("row schema"));
  std::filesystem::resize_file(folder_.path() + "/replay/member_1.rows", 5000);
  EXPECT_THAT(std::string(Export(Options()).status().message()), HasSubstr("truncated"));
  ExportOptions none = Options();
  none.rings = folder_.path() + "/nothing";
  EXPECT_TRUE(absl::IsInvalidArgument(Export(none).status()));
  EXPECT_FALSE(std::filesystem::exists(Options().out));
}

}  // namespace
}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
