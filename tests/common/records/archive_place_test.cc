#include "common/records/archive_place.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;
using ::datacom::testing::IsOk;

class ArchivePlace : public ::testing::Test {
 protected:
  const testing::TemporaryFolder temporary_;
  const std::string& folder_ = temporary_.path();
};

TEST_F(ArchivePlace, IsRefusedWhereItAndTheRunFolderLieInEachOther) {
  const std::string run = folder_ + "/runs/a";
  fs::create_directories(run);
  fs::create_directory_symlink(run, folder_ + "/link");
  for (const std::string& place :
       {run, run + "/", run + "/archive", run + "/archive/deep", folder_ + "/runs", folder_ + "/runs/./b/../a/x",
        folder_ + "/link", folder_ + "/link/archive", "file://" + run + "/archive"}) {
    const absl::Status status = CheckApart(place, run);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << place << ": " << status;
    EXPECT_EQ(status.message(), absl::StrCat("archive ", place, " and run folder ", run,
                                             ": one is the other or lies in it; name a place beside the run"));
  }
  EXPECT_FALSE(CheckApart(run, folder_ + "/link/").ok()) << "the run folder may be the link";
}

TEST_F(ArchivePlace, IsTakenBesideTheRunFolder) {
  const std::string run = folder_ + "/runs/a";
  for (const std::string& place : {std::string(), folder_ + "/archive", folder_ + "/runs/ab", "file://" + run + "b",
                                   std::string("s3://bucket/a"), std::string("remote:") + run}) {
    EXPECT_THAT(CheckApart(place, run), IsOk()) << place;
  }
}

TEST(ArchivePlaces, AreRemoteWithASchemeOrARemote) {
  for (const char* place : {"s3://bucket/a", "remote:a/b", "remote:"}) EXPECT_TRUE(IsRemote(place)) << place;
  for (const char* place : {"a/b", "a/b:c", ":a", ""}) EXPECT_FALSE(IsRemote(place)) << place;
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
