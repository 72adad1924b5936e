#include "common/records/csv.h"

#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "common/base/checksum.h"
#include "common/base/files.h"
#include "common/base/random.h"
#include "common/config/gzip.h"
#include "common/records/best_epoch.h"
#include "datacom/v1/experiment.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/damaged_csv.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

class CsvFile : public ::testing::Test {
 protected:
  std::string Content() { return ReadFile(path_).value(); }
  const testing::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path(), path_ = folder_ + "/progress.csv";
};

TEST_F(CsvFile, WritesHeaderAndRows) {
  auto writer = CsvWriter::Open(path_, {"epoch", "delta"}).value();
  EXPECT_EQ(Content(), "epoch,delta\n") << "the header is written at once";
  ASSERT_THAT(writer->Append({Cell(1), Cell(0.1)}), IsOk());
  ASSERT_THAT(writer->Append({Cell(uint64_t{18446744073709551615u}), Cell(std::nan(""))}), IsOk());
  EXPECT_EQ(Content(), "epoch,delta\n") << "rows are written at a flush";
  ASSERT_THAT(writer->Flush(/*sync=*/true), IsOk());
  EXPECT_EQ(Content(), "epoch,delta\n1,0.1\n18446744073709551615,\n");
  EXPECT_EQ(writer->end().bytes, Content().size());
}

TEST_F(CsvFile, ANewFileIsNotBegunThroughALink) {
  const std::string elsewhere = folder_ + "/precious";
  ASSERT_THAT(WriteFileAtomically(elsewhere, "text"), IsOk());
  std::filesystem::create_symlink("precious", path_);
  const absl::Status status = CsvWriter::Open(path_, {"a"}).status();
  EXPECT_EQ(status.message(), "open " + path_ + ", which may not be a link: Too many levels of symbolic links");
  EXPECT_EQ(ReadFile(elsewhere).value(), "text");
}

TEST_F(CsvFile, AFileIsNotContinuedThroughALink) {
  const std::string elsewhere = folder_ + "/precious";
  ASSERT_THAT(WriteFileAtomically(elsewhere, "a\nprecious\n"), IsOk());
  std::filesystem::create_symlink("precious", path_);
  const absl::Status status = CsvWriter::Open(path_, {"a"}, {2, Sha256Hex("a\n")}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << "a stranger may know how it begins: " << status;
  EXPECT_EQ(status.message(), path_ + " may not be a link");
}

TEST_F(CsvFile, APipeInTheNameOfANewFileIsNamedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(CsvWriter::Open(path_, {"a"}).status().message(), "open " + path_ + ": No such device or address");
}

TEST_F(CsvFile, AResumedFileIsCutToItsEndWhenItIsFirstWritten) {
  FileEnd end;
  {
    auto writer = CsvWriter::Open(path_, {"a"}).value();
    ASSERT_THAT(writer->Append({"1"}), IsOk());
    end = writer->end();
    ASSERT_THAT(writer->Append({"lost"}), IsOk());
  }
  EXPECT_EQ(Content(), "a\n1\nlost\n") << "the destructor flushes";
  {
    { ASSERT_THAT(CsvWriter::Open(path_, {"a"}, end), IsOk()); }
    EXPECT_EQ(Content(), "a\n1\nlost\n") << "a resume that is given up changes nothing";
    auto writer = CsvWriter::Open(path_, {"a"}, end).value();
    ASSERT_THAT(writer->Append({"2"}), IsOk());
  }
  EXPECT_EQ(Content(), "a\n1\n2\n");
}

TEST_F(CsvFile, ResumeRefusesAnotherHeaderAndAShorterFileAndKeepsTheFile) {
  { ASSERT_THAT(CsvWriter::Open(path_, {"a", "b"}), IsOk()); }
  const std::string hash = Sha256Hex("a,b\n");
  const absl::Status header = CsvWriter::Open(path_, {"a", "c"}, {4, hash}).status();
  EXPECT_EQ(header.code(), absl::StatusCode::kFailedPrecondition) << header;
  EXPECT_THAT(std::string(header.message()),
              ::testing::AllOf(::testing::HasSubstr("a,b"), ::testing::HasSubstr("a,c")));
  const absl::Status length = CsvWriter::Open(path_, {"a", "b"}, {100, hash}).status();
  EXPECT_EQ(length.code(), absl::StatusCode::kDataLoss) << length;
  EXPECT_THAT(std::string(length.message()),
              ::testing::AllOf(::testing::HasSubstr("100"), ::testing::HasSubstr("has 4")));
  const absl::Status content = CsvWriter::Open(path_, {"a", "b"}, {4, Sha256Hex("a,c\n")}).status();
  EXPECT_EQ(content.code(), absl::StatusCode::kDataLoss) << content;
  EXPECT_THAT(std::string(content.message()), ::testing::HasSubstr("its first 4 bytes are not those"));
  const absl::Status missing = CsvWriter::Open(folder_ + "/none.csv", {"a"}, {10, hash}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kDataLoss) << missing;
  EXPECT_THAT(std::string(missing.message()), ::testing::HasSubstr("none.csv is missing, but 10 bytes"));
  EXPECT_EQ(Content(), "a,b\n");
}

TEST_F(CsvFile, RefusesARowOfAnotherWidth) {
  auto writer = CsvWriter::Open(path_, {"a", "b"}).value();
  EXPECT_EQ(writer->Append({"1"}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(writer->Append({"1", "2", "3"}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CsvFile, ReportsAFullDisk) {
  const absl::StatusOr<std::unique_ptr<CsvWriter>> writer = CsvWriter::Open("/dev/full", {"a"});
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

TEST(CsvOfAProgram, DropsAnUnfinishedLastRow) {
  const Csv csv = Csv::Parse("a,b\n1,2\n3,4", "x.csv").value();
  EXPECT_EQ(csv.rows(), 1u);
  EXPECT_EQ(csv.Number(0, "b"), 2);
  EXPECT_TRUE(std::isnan(csv.Number(0, "c")));
  EXPECT_EQ(csv.Text(0, "c"), "");
  EXPECT_TRUE(absl::IsNotFound(Csv::Parse("a,b", "x.csv").status())) << "killed while writing the header";
  EXPECT_FALSE(Csv::Parse("a,b\n1,2\n\n", "x.csv").ok()) << "no program writes a blank line";
}

TEST(CsvOfAPerson, MayHaveSpacesBlankLinesCarriageReturnsAndNoLastLineBreak) {
  const Csv csv = Csv::Parse("\na, b\r\n 1,2\t\r\n\r\n\n3,x", "x.csv", Csv::Author::kPerson).value();
  ASSERT_EQ(csv.rows(), 2u);
  EXPECT_EQ(csv.Number(0, "a"), 1);
  EXPECT_EQ(csv.Number(0, "b"), 2);
  EXPECT_EQ(csv.Number(1, "a"), 3);
  EXPECT_EQ(csv.CheckNumbers({}).message(), "x.csv line 6, column b: \"x\" is not a number");
}

TEST_F(CsvFile, OfAPersonMayBeginWithTheByteOrderMarkOfASpreadsheet) {
  std::ofstream(path_) << "\xEF\xBB\xBFx,y\n1,2\n";
  EXPECT_EQ(Csv::Read(path_, Csv::Author::kPerson).value().Number(0, "x"), 1);
  EXPECT_FALSE(Csv::Read(path_).value().has("x"));
}

TEST_F(CsvFile, EveryReaderNamesLineColumnAndValueOfWhatIsDamaged) {
  const auto expect = [this](const testing::DamagedCsv& damaged, const absl::Status& status) {
    EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsNotFound(status)) << status << "\n" << damaged.text;
    EXPECT_EQ(std::string(status.message()).rfind(path_ + damaged.message, 0), 0u) << status << "\n" << damaged.text;
  };
  for (const testing::DamagedCsv& damaged : testing::DamagedCsvFiles("a", "a,b,c", "1", "2,")) {
    for (const Csv::Author author : {Csv::Author::kProgram, Csv::Author::kPerson}) {
      const absl::StatusOr<Csv> csv = Csv::Parse(damaged.text, path_, author);
      expect(damaged, csv.ok() ? csv->CheckNumbers({}) : csv.status());
    }
  }
  for (const std::string column : {"member", "env_steps", "epoch", "eval_return"}) {
    std::string header = column + ",status";
    for (const char* other : {"member", "env_steps", "epoch", "eval_return"}) {
      if (column != other) header += std::string(",") + other;
    }
    for (const testing::DamagedCsv& damaged : testing::DamagedCsvFiles(column, header, "1", "ok,1,1,1")) {
      std::ofstream(path_) << damaged.text;
      expect(damaged, ReadRecords(path_).status());
      expect(damaged, ReadBestEpochs(folder_, {}).status());
    }
  }
}

// Under the sanitizers this also shows that nothing outside the text is read.
TEST_F(CsvFile, RecordsMayBeCompressedAndADamagedFileIsNamed) {
  const std::string whole = Gzip("member,env_steps,J\n0,1000,2.5\n");
  std::ofstream(path_ + ".gz", std::ios::binary) << whole;
  const absl::StatusOr<Csv> read = ReadRecords(path_);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->Number(0, "J"), 2.5);
  for (const std::string& damaged : {whole.substr(0, 5), whole.substr(0, 20), whole.substr(0, whole.size() - 8),
                                     whole.substr(0, whole.size() - 1), whole + "x", whole + Gzip("1,1000,0\n")}) {
    std::ofstream(path_ + ".gz", std::ios::binary) << damaged;
    EXPECT_THAT(std::string(ReadRecords(path_).status().message()), HasSubstr(path_ + ".gz")) << damaged.size();
  }
}

TEST_F(CsvFile, CompressedRecordsThatWouldFillTheMemoryAreRefused) {
  std::ofstream(path_ + ".gz", std::ios::binary) << Gzip("member,env_steps\n" + std::string(size_t{64} << 20, '\n'));
  EXPECT_EQ(ReadRecords(path_).status().message(), path_ + ".gz: it has more than 67108864 bytes");
}

TEST_F(CsvFile, CompressedRecordsThatAreLargerThanTheirContentMayBeAreNotRead) {
  std::ofstream(path_ + ".gz") << "x";
  std::filesystem::resize_file(path_ + ".gz", uint64_t{2200} << 20);
  EXPECT_EQ(ReadRecords(path_).status().message(), path_ + ".gz has 2306867200 bytes; at most 67108864 are read");
}

TEST_F(CsvFile, CompressedRecordsThatAreCutAtTheEndOfALineAreRefused) {
  std::string text = "member,env_steps,J\n";
  for (int i = 0; i < 40000; ++i) text += "0,1000,2.5\n";  // several blocks of the stream
  const std::string whole = Gzip(text);
  for (size_t size = 20; size < whole.size(); size += whole.size() / 40) {
    std::ofstream(path_ + ".gz", std::ios::binary) << whole.substr(0, size);
    EXPECT_EQ(ReadRecords(path_).status().message(), path_ + ".gz: it is cut short, or has something behind its end");
  }
}

TEST(Csv, NoChangedByteAndNoCutCrashesAReader) {
  const std::string good =
      "member,env_steps,epoch,eval_episodes,eval_discounted_return,eval_max_violation,eval_sum_cost,status\n"
      "0,1000,1,25,-1.5,0.1,3,ok\n0,2000,2,25,nan,inf,,diverged\n";
  int parsed = 0, refused = 0;
  const auto read = [&](const std::string& text) {
    for (const Csv::Author author : {Csv::Author::kProgram, Csv::Author::kPerson}) {
      const absl::StatusOr<Csv> csv = Csv::Parse(text, "x.csv", author);
      ++(csv.ok() && csv->CheckNumbers({"status"}).ok() ? parsed : refused);
      if (!csv.ok() || !csv->CheckWhole("member", 1000).ok()) continue;
      for (const auto& [member, rows] : RowsByMember(*csv)) {
        const absl::StatusOr<size_t> best = BestRow(*csv, rows, 0);
        EXPECT_TRUE(!best.ok() || *best < csv->rows()) << *best;
      }
    }
  };
  for (size_t at = 0; at < good.size(); ++at) {
    read(good.substr(0, at));
    for (const char byte : {'\0', '\n', '\r', ',', '"', '-', 'e', '9', '\xff'}) {
      std::string changed = good;
      changed[at] = byte;
      read(changed);
    }
  }
  EXPECT_GT(parsed, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
