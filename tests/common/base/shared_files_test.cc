#include "common/base/shared_files.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;

// The program of this test lies in a build folder of the checkout, so it finds the checkout's deploy/.
TEST(SharedFiles, AProgramOfACheckoutFindsWhatTheCheckoutShips) {
  EXPECT_TRUE(fs::exists(FindSharedFile("experiments", "") + "/cartpole/datacom.textproto"));
  EXPECT_TRUE(fs::exists(FindSharedFile("sweeps", "")));
}

TEST(SharedFiles, WhatIsNotShippedIsLookedForElsewhere) {
  EXPECT_EQ(FindSharedFile("no_such_file", "/usr/share/no_such_file"), "/usr/share/no_such_file");
}

TEST(SharedFiles, AMessageNamesAFileFromTheWorkingFolderOn) {
  const fs::path here = fs::current_path();
  const fs::path experiments = FindSharedFile("experiments", "");
  fs::current_path(experiments.parent_path().parent_path());
  EXPECT_EQ(SharedPath("experiments/cartpole"), "deploy/experiments/cartpole");
  EXPECT_EQ(SharedPath("no_such_file"), "deploy/no_such_file");
  fs::current_path(fs::temp_directory_path());
  EXPECT_EQ(SharedPath("experiments"), experiments.string());
  fs::current_path(here);
}

TEST(SharedFiles, AnInstallationsFolderIsFoundFromTheProgramUpwards) {
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / "share" / "datacom";
  const fs::path file = beside / "only_of_this_test";
  fs::create_directories(beside);
  std::ofstream(file) << "content";
  EXPECT_EQ(FindSharedFile("only_of_this_test", ""), file.string());
  fs::remove(file);
  EXPECT_EQ(FindSharedFile("only_of_this_test", "elsewhere"), "elsewhere");
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
