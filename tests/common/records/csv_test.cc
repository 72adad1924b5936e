#include "common/records/csv.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "common/base/files.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace datacom {
namespace {

class Csv : public ::testing::Test {
 protected:
  Csv() {
    std::string name = (std::filesystem::temp_directory_path() / "datacom_csv_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ + "/progress.csv";
  }
  ~Csv() override { std::filesystem::remove_all(folder_); }
  std::string Content() { return ReadFile(path_).value(); }
  std::string folder_, path_;
};

TEST_F(Csv, WritesHeaderAndRows) {
  auto writer = CsvWriter::Create(path_, {"epoch", "delta"}).value();
  EXPECT_EQ(Content(), "epoch,delta\n") << "the header is written at once";
  ASSERT_TRUE(writer->Append({Cell(1), Cell(0.1)}).ok());
  ASSERT_TRUE(writer->Append({Cell(uint64_t{18446744073709551615u}), Cell(std::nan(""))}).ok());
  EXPECT_EQ(Content(), "epoch,delta\n") << "rows are written at a flush";
  ASSERT_TRUE(writer->Flush(/*sync=*/true).ok());
  EXPECT_EQ(Content(), "epoch,delta\n1,0.1\n18446744073709551615,\n");
  EXPECT_EQ(writer->Offset(), Content().size());
}

TEST_F(Csv, ResumeTruncatesToTheOffset) {
  uint64_t offset = 0;
  {
    auto writer = CsvWriter::Create(path_, {"a"}).value();
    ASSERT_TRUE(writer->Append({"1"}).ok());
    offset = writer->Offset();
    ASSERT_TRUE(writer->Append({"lost"}).ok());
  }
  EXPECT_EQ(Content(), "a\n1\nlost\n") << "the destructor flushes";
  {
    auto writer = CsvWriter::Resume(path_, {"a"}, offset).value();
    ASSERT_TRUE(writer->Append({"2"}).ok());
  }
  EXPECT_EQ(Content(), "a\n1\n2\n");
}

TEST_F(Csv, ResumeRefusesAnotherHeaderAndAShorterFileAndKeepsTheFile) {
  { ASSERT_TRUE(CsvWriter::Create(path_, {"a", "b"}).ok()); }
  const absl::Status header = CsvWriter::Resume(path_, {"a", "c"}, 4).status();
  EXPECT_EQ(header.code(), absl::StatusCode::kFailedPrecondition) << header;
  EXPECT_THAT(std::string(header.message()),
              ::testing::AllOf(::testing::HasSubstr("a,b"), ::testing::HasSubstr("a,c")));
  const absl::Status length = CsvWriter::Resume(path_, {"a", "b"}, 100).status();
  EXPECT_EQ(length.code(), absl::StatusCode::kDataLoss) << length;
  EXPECT_THAT(std::string(length.message()),
              ::testing::AllOf(::testing::HasSubstr("100"), ::testing::HasSubstr("has 4")));
  EXPECT_EQ(CsvWriter::Resume(folder_ + "/none.csv", {"a"}, 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Content(), "a,b\n");
}

TEST_F(Csv, RefusesARowOfAnotherWidth) {
  auto writer = CsvWriter::Create(path_, {"a", "b"}).value();
  EXPECT_EQ(writer->Append({"1"}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(writer->Append({"1", "2", "3"}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(Csv, ReportsAFullDisk) {
  const absl::StatusOr<std::unique_ptr<CsvWriter>> writer = CsvWriter::Create("/dev/full", {"a"});
  EXPECT_FALSE(writer.ok());
  EXPECT_THAT(std::string(writer.status().message()), ::testing::HasSubstr("/dev/full"));
}

TEST(Cell, RoundTripsEveryDouble) {
  RandomStream stream(StreamKey("test.cell", {}));
  for (int i = 0; i < 10000; ++i) {
    const double value = std::ldexp(stream.Uniform(-1, 1), static_cast<int>(stream.Below(600)) - 300);
    ASSERT_EQ(std::strtod(Cell(value).c_str(), nullptr), value);
  }
  EXPECT_EQ(Cell(0.0), "0");
  EXPECT_EQ(Cell(-1.5), "-1.5");
  EXPECT_EQ(Cell(std::numeric_limits<double>::quiet_NaN()), "");
  EXPECT_EQ(Cell(std::numeric_limits<double>::infinity()), "inf");
}

TEST(Cell, QuotesTextThatWouldBreakTheTable) {
  EXPECT_EQ(Cell("plain"), "plain");
  EXPECT_EQ(Cell("a,b"), "\"a,b\"");
  EXPECT_EQ(Cell("say \"x\""), "\"say \"\"x\"\"\"");
}

}  // namespace
}  // namespace datacom
