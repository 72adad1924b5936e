// Tests what the helpers that write files leave after a loss of power, as synced_state.h records it.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "common/base/files.h"
#include "common/records/append_file.h"
#include "common/records/checkpoint.h"
#include "gtest/gtest.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/environment_variable.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;

namespace fs = std::filesystem;

class SyncedFilesTest : public ::testing::Test {
 protected:
  SyncedFilesTest() {
    fs::create_directory(root());
    fs::create_directory(folder_ + "/shadow");
  }
  std::string root() const { return folder_ + "/root"; }

  // The inode of a path below the root, if every name on the way is certain to be on the disk.
  std::optional<std::string> CertainInode(const std::string& path) const {
    struct stat info;
    EXPECT_EQ(::stat(root().c_str(), &info), 0);
    std::string inode = std::to_string(info.st_ino);
    for (const fs::path& wanted : fs::path(path)) {
      std::ifstream entries(folder_ + "/shadow/" + inode + ".entries");
      std::string kind, number, name, found;
      while (entries >> kind >> number >> name) {
        if (name == wanted) found = number;
      }
      if (found.empty()) return std::nullopt;
      inode = found;
    }
    return inode;
  }
  std::optional<std::string> CertainContent(const std::string& path) const {
    const auto inode = CertainInode(path);
    if (!inode) return std::nullopt;
    const auto content = ReadFile(folder_ + "/shadow/" + *inode + ".content");
    return content.ok() ? *content : "";
  }

  const testing::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  const testing::EnvironmentVariable root_{"DATACOM_TEST_DISK_ROOT", root()};
  const testing::EnvironmentVariable shadow_{"DATACOM_TEST_DISK_SHADOW", folder_ + "/shadow"};
};

TEST_F(SyncedFilesTest, NothingIsCertainBeforeItIsSynced) {
  std::ofstream(root() + "/file") << "text";
  EXPECT_EQ(CertainInode("file"), std::nullopt);
  ASSERT_THAT(SyncFile(root()), IsOk());
  EXPECT_EQ(CertainContent("file"), "");
  ASSERT_THAT(SyncFile(root() + "/file"), IsOk());
  EXPECT_EQ(CertainContent("file"), "text");
}

TEST_F(SyncedFilesTest, ANewFolderIsOnTheDiskWithItsParents) {
  ASSERT_THAT(MakeFolders(root() + "/a/b/c"), IsOk());
  EXPECT_NE(CertainInode("a/b/c"), std::nullopt);
  ASSERT_THAT(MakeFolders(root() + "/a/d/"), IsOk());
  EXPECT_NE(CertainInode("a/d"), std::nullopt);
}

TEST_F(SyncedFilesTest, ANewFileIsOnTheDiskWithItsNameOnceItIsFlushedWithSync) {
  const auto file = AppendFile::Open(root() + "/rows.csv");
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT((*file)->Append("one\n"), IsOk());
  ASSERT_THAT((*file)->Flush(/*sync=*/false), IsOk());
  EXPECT_EQ(CertainContent("rows.csv"), "");
  ASSERT_THAT((*file)->Flush(/*sync=*/true), IsOk());
  EXPECT_EQ(CertainContent("rows.csv"), "one\n");
  ASSERT_THAT((*file)->Append("two\n"), IsOk());
  ASSERT_THAT((*file)->Flush(/*sync=*/false), IsOk());
  EXPECT_EQ(CertainContent("rows.csv"), "one\n");
}

TEST_F(SyncedFilesTest, AFileThatIsReplacedHasTheOldOrTheNewContent) {
  ASSERT_THAT(WriteFileAtomically(root() + "/file", "old"), IsOk());
  EXPECT_EQ(CertainContent("file"), "old");
  ASSERT_THAT(WriteFileAtomically(root() + "/file", "new"), IsOk());
  EXPECT_EQ(CertainContent("file"), "new");
}

TEST_F(SyncedFilesTest, ACheckpointIsOnTheDiskOnceItIsSaved) {
  const CheckpointStore store(root() + "/checkpoints");
  for (const uint64_t update : {50, 100}) {
    Checkpoint checkpoint;
    checkpoint.learner.set_update(update);
    checkpoint.algorithm["weights"] = "numbers";
    ASSERT_THAT(store.Save(checkpoint), IsOk());
    for (const std::string name : {"learner.state", "algorithm.state", "state.sha256"}) {
      const std::string path = "checkpoints/" + std::to_string(update) + "/" + name;
      EXPECT_EQ(CertainContent(path), *ReadFile(root() + "/" + path)) << path;
    }
  }
}

// The learner's first checkpoint needs the rings, and a file of credit without rings means that rows are lost.
TEST_F(SyncedFilesTest, ANewReplayIsOnTheDiskWithItsNamesBeforeItServes) {
  ManualClock clock;
  const auto store = replay::testing::MustOpen(replay::testing::SmallOptions(2), root() + "/replay", &clock);
  for (const std::string name : {"member_0.rows", "member_0.failures", "member_1.rows", "member_1.failures", "credit"})
    EXPECT_NE(CertainInode("replay/" + name), std::nullopt) << name;
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
