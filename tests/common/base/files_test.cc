#include "common/base/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <filesystem>
#include <memory>
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

TEST_F(Files, AFileThatIsReplacedKeepsItsModeAndItsOwner) {
  const std::string path = folder_ + "/state";
  const uid_t owner = ::getuid() == 0 ? 10001u : ::getuid();  // only root may give it to somebody else
  ASSERT_THAT(WriteFileAtomically(path, "first"), IsOk());
  ASSERT_EQ(::chown(path.c_str(), owner, ::getgid()), 0);
  for (const mode_t mode : {0600, 0664, 0444}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    ASSERT_THAT(WriteFileAtomically(path, "next"), IsOk());
    struct stat info = {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, mode);
    EXPECT_EQ(info.st_uid, owner);
  }
}

TEST_F(Files, AFileMayHaveTheLongestName) {
  const std::string path = folder_ + "/" + std::string(NAME_MAX, 'a'), before = path.substr(0, path.size() - 1);
  for (const std::string& name : {path, path, before}) {
    ASSERT_THAT(WriteFileAtomically(name, name), IsOk());
    EXPECT_EQ(ReadFile(name).value(), name);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

TEST_F(Files, APathGoesUpFromTheFolderThatALinkNames) {
  namespace fs = std::filesystem;
  const std::string real = fs::canonical(folder_).string();
  fs::create_directories(folder_ + "/there/below");
  fs::create_directory(folder_ + "/here");
  fs::create_directory_symlink(folder_ + "/there/below", folder_ + "/link");
  EXPECT_EQ(AbsolutePath(folder_ + "/link/../new/./run"), real + "/there/new/run");
  EXPECT_EQ(AbsolutePath(folder_ + "/here/../link//run/"), folder_ + "/link/run/") << "no link is left behind";
  EXPECT_EQ(AbsolutePath(folder_ + "/none/../run"), folder_ + "/run");
  EXPECT_EQ(NormalPath("./runs//a"), "runs/a");
}

TEST_F(Files, ALinkWithTheTemporaryNameIsReplacedAndItsTargetStays) {
  const std::string path = folder_ + "/state", victim = folder_ + "/victim";
  ASSERT_THAT(WriteFileAtomically(victim, "precious"), IsOk());
  std::filesystem::create_symlink(victim, path + ".tmp");
  ASSERT_THAT(WriteFileAtomically(path, "new"), IsOk());
  EXPECT_EQ(ReadFile(victim).value(), "precious");
  EXPECT_EQ(ReadFile(path).value(), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(path));
}

TEST_F(Files, AWriterLeavesTheTemporaryFileOfAnotherOneAndReplacesThatOfADeadOne) {
  const std::string path = folder_ + "/state";
  const int other = ::open((path + ".tmp").c_str(), O_WRONLY | O_CREAT, 0444);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  ASSERT_EQ(::write(other, "half", 4), 4);
  ASSERT_THAT(WriteFileAtomically(path, "whole"), IsOk());
  EXPECT_EQ(ReadFile(path).value(), "whole");
  EXPECT_EQ(ReadFile(path + ".tmp").value(), "half");
  EXPECT_FALSE(FileExists(path + ".1.tmp"));
  ::close(other);
  ASSERT_THAT(WriteFileAtomically(path, "again"), IsOk());
  EXPECT_EQ(ReadFile(path).value(), "again");
  EXPECT_FALSE(FileExists(path + ".tmp"));
}

TEST_F(Files, AFolderStaysLockedWhenItsLockFileIsRemoved) {
  absl::StatusOr<std::unique_ptr<FolderLock>> held = FolderLock::Take(folder_);
  ASSERT_THAT(held, IsOk());
  std::filesystem::remove(folder_ + "/lock");
  const absl::Status refused = FolderLock::Take(folder_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "another process is using " + folder_)) << refused;
  held->reset();
  EXPECT_THAT(FolderLock::Take(folder_), IsOk());
}

TEST_F(Files, WhatIsNotARegularFileOrTooLargeIsNotRead) {
  const std::string pipe = folder_ + "/pipe", file = folder_ + "/file";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/zero"), folder_}) {
    const absl::Status status = ReadFile(path).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), path + " is not a regular file")) << status;
  }
  ASSERT_THAT(WriteFileAtomically(file, "12345"), IsOk());
  EXPECT_THAT(ReadFile(file, 5), IsOk());
  EXPECT_TRUE(absl::StrContains(ReadFile(file, 4).status().message(), "has 5 bytes; at most 4 are read"));
}

TEST_F(Files, ALinkIsFollowedUnlessItIsRefused) {
  const std::string file = folder_ + "/file", link = folder_ + "/link";
  ASSERT_THAT(WriteFileAtomically(file, "12345"), IsOk());
  std::filesystem::create_symlink("file", link);
  EXPECT_THAT(OpenedFile::Open(link).status(), IsOk());
  EXPECT_THAT(OpenedFile::Open(file, Links::kRefuse).status(), IsOk());
  const absl::Status refused = OpenedFile::Open(link, Links::kRefuse).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_EQ(refused.message(), link + " may not be a link");
}

TEST_F(Files, AFileThatTheMemoryCannotHoldIsNamed) {
  const std::string file = folder_ + "/file";
  ASSERT_THAT(WriteFileAtomically(file, "1"), IsOk());
  std::filesystem::resize_file(file, uint64_t{1} << 42);
  const absl::Status status = ReadFile(file).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), "read " + file + ": 4398046511104 bytes; ")) << status;
}

TEST_F(Files, AFileOfTheKernelThatDoesNotEndIsRefused) {
  const absl::Status status = ReadFile("/proc/self/pagemap").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), "/proc/self/pagemap has 0 bytes, and 16777216 more follow")) << status;
}

TEST_F(Files, FoldersThatARunCannotHaveAreNamed) {
  for (const std::string good : {"runs/a-1", "/tmp/\xc3\xa4 \xe2\x82\xac \xf0\x9f\xa4\x96", "", "a'b\"$(c)"}) {
    EXPECT_THAT(CheckFolderName("--run-dir", good), IsOk()) << good;
  }
  const auto message = [](const std::string& path) {
    const absl::Status status = CheckFolderName("--run-dir", path);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(CheckFolderName("--run-dir", std::string(255, 'a')), IsOk());
  EXPECT_EQ(message("runs/" + std::string(256, 'a')).find("--run-dir: a name of 256 bytes, file systems take 255"), 0u);
  EXPECT_EQ(message("a\nb"), "--run-dir: a control character: \"a\\nb\"");
  // Not a byte of UTF-8, cut short, the long form of '/', a surrogate, beyond the last code point.
  for (const char* bad : {"a\xff", "a\xe2\x82", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_EQ(message(bad).find("--run-dir: bytes that are not UTF-8: "), 0u);
  }
  std::string deep;
  for (int i = 0; i < 400; ++i) deep += "/123456789";
  EXPECT_EQ(message(deep).find("--run-dir: a path of 4000 bytes"), 0u);
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

TEST_F(Files, QuestionsAboutWhatCannotBeFoundOutAreAnsweredWithNo) {
  const std::string loop = folder_ + "/loop";
  std::filesystem::create_symlink("loop", loop);
  for (const std::string& path : {loop, loop + "/a", folder_ + "/" + std::string(300, 'a')}) {
    EXPECT_FALSE(FileExists(path)) << path;
    EXPECT_FALSE(IsFolder(path)) << path;
  }
  EXPECT_TRUE(IsFolder(folder_));
  EXPECT_FALSE(IsFolder(folder_ + "/none"));
}

TEST_F(Files, NamesAFolderForTemporaryFilesThatDoesNotExist) {
  ::setenv("TMPDIR", folder_.c_str(), /*overwrite=*/1);
  EXPECT_EQ(TemporaryFolder().value(), folder_);
  ::setenv("TMPDIR", "/nonexistent", /*overwrite=*/1);
  const absl::Status status = TemporaryFolder().status();
  ::unsetenv("TMPDIR");
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(status.message().find("no folder for temporary files: TMPDIR is \"/nonexistent\": "), 0u) << status;
}

TEST_F(Files, MakesFoldersAndMeasuresFreeSpace) {
  ASSERT_THAT(MakeFolders(folder_ + "/a/b/c"), IsOk());
  ASSERT_THAT(MakeFolders(folder_ + "/a/b/c"), IsOk()) << "making it again is not an error";
  EXPECT_GT(FreeBytes(folder_ + "/a").value(), 0u);
  EXPECT_EQ(FreeBytes("/proc").value(), kUnknownSize) << "it has no blocks";
  ASSERT_THAT(WriteFileAtomically(folder_ + "/file", ""), IsOk());
  EXPECT_FALSE(MakeFolders(folder_ + "/file/sub").ok());
}

TEST_F(Files, ANameAloneLiesInTheWorkingFolderWhoseFreeSpaceIsStated) {
  EXPECT_EQ(ParentFolder("name"), ".");
  EXPECT_EQ(ParentFolder("/name"), "/");
  EXPECT_EQ(ParentFolder("a/name"), "a");
  EXPECT_TRUE(absl::StartsWith(NoSpaceMessage("name", 5), "no disk space for name: 5 bytes are needed, "));
  EXPECT_FALSE(absl::StrContains(NoSpaceMessage("name", 5), ", 0 are free"));
}

TEST_F(Files, AFolderIsMadeOnlyInAFolderThatThereIs) {
  ASSERT_THAT(MakeFolder(folder_ + "/a"), IsOk());
  ASSERT_THAT(MakeFolder(folder_ + "/a"), IsOk()) << "making it again is not an error";
  EXPECT_TRUE(absl::IsNotFound(MakeFolder(folder_ + "/b/c")));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/b"));
  ASSERT_THAT(WriteFileAtomically(folder_ + "/file", ""), IsOk());
  EXPECT_FALSE(MakeFolder(folder_ + "/file").ok());
}

TEST_F(Files, AFolderOfAFileSystemThatSyncsNoFoldersNeedsNoSync) {
  EXPECT_THAT(SyncFile("/proc/self"), IsOk());
  EXPECT_TRUE(absl::IsNotFound(SyncFile(folder_ + "/none")));
}

TEST_F(Files, AnOpenedFileStaysTheSameWhenAnotherTakesItsName) {
  const std::string path = folder_ + "/file";
  ASSERT_THAT(WriteFileAtomically(path, "0123456789"), IsOk());
  const OpenedFile file = OpenedFile::Open(path).value();
  ASSERT_THAT(WriteFileAtomically(path, "other"), IsOk());
  EXPECT_EQ(file.size(), 10u);
  EXPECT_EQ(file.Read(3, 6).value(), "345");
  EXPECT_EQ(file.Read(8, 100).value(), "89");
  EXPECT_EQ(file.Read(10, 20).value(), "");
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
