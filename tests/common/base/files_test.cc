#include "common/base/files.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;

class Files : public ::testing::Test {
 protected:
  const testing::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(Files, WritesAtomicallyAndLeavesNoTemporaryFile) {
  const std::string path = folder_ + "/state";
  ASSERT_THAT(WriteFileAtomically(path, "first"), IsOk());
  ASSERT_THAT(WriteFileAtomically(path, std::string("sec\0nd", 6)), IsOk());
  EXPECT_EQ(ReadFile(path).value(), std::string("sec\0nd", 6));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, KeepsTheOldContentWhenWritingFails) {
  const std::string path = folder_ + "/state";
  ASSERT_THAT(WriteFileAtomically(path, "old"), IsOk());
  std::filesystem::create_directory(path + ".tmp");  // the temporary name cannot be opened for writing
  const absl::Status status = WriteFileAtomically(path, "new");
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), path)) << status;
  EXPECT_EQ(ReadFile(path).value(), "old");
}

TEST_F(Files, RemovesTheTemporaryFileWhenTheNameCannotBeTaken) {
  const std::string path = folder_ + "/taken";
  std::filesystem::create_directories(path + "/inside");  // rename onto a folder fails
  EXPECT_FALSE(WriteFileAtomically(path, "x").ok());
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_F(Files, NamesTheMissingFile) {
  const absl::Status status = ReadFile(folder_ + "/none").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), folder_ + "/none")) << status;
}

TEST_F(Files, ListsNamesSortedAndNothingWhereThereIsNoFolder) {
  ASSERT_THAT(WriteFileAtomically(folder_ + "/b", ""), IsOk());
  ASSERT_THAT(WriteFileAtomically(folder_ + "/a", ""), IsOk());
  EXPECT_EQ(ListFolder(folder_).value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(ListFolder(folder_ + "/none").value().empty());
  EXPECT_FALSE(ListFolder(folder_ + "/a").ok());
  EXPECT_TRUE(FileExists(folder_ + "/a"));
  EXPECT_FALSE(FileExists(folder_ + "/a/b"));
}

TEST_F(Files, MakesFoldersAndMeasuresFreeSpace) {
  ASSERT_THAT(MakeFolders(folder_ + "/a/b/c"), IsOk());
  ASSERT_THAT(MakeFolders(folder_ + "/a/b/c"), IsOk()) << "making it again is not an error";
  EXPECT_GT(FreeBytes(folder_ + "/a").value(), 0u);
  ASSERT_THAT(WriteFileAtomically(folder_ + "/file", ""), IsOk());
  EXPECT_FALSE(MakeFolders(folder_ + "/file/sub").ok());
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
