#include "common/base/output_file.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "gtest/gtest.h"
#include "tests/testing/exit_code.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;
using ::datacom::testing::IsOk;

class OutputFile : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return temporary_.path() + "/" + name; }
  const testing::TemporaryFolder temporary_;
};

TEST_F(OutputFile, NothingAndARegularFileAreReplaced) {
  ASSERT_THAT(WriteOutputFile(Path("a"), "first"), IsOk());
  const int open = ::open(Path("a").c_str(), O_RDONLY);
  ASSERT_THAT(WriteOutputFile(Path("a"), "second"), IsOk());
  EXPECT_EQ(ReadFile(Path("a")).value(), "second");
  char old[16] = "";
  EXPECT_EQ(::read(open, old, sizeof old), 5) << "a reader keeps the file that it opened";
  ::close(open);
  EXPECT_EQ(std::distance(fs::directory_iterator(temporary_.path()), {}), 1);
}

TEST_F(OutputFile, LinksStayAndTheirTargetIsReplaced) {
  fs::create_directory(Path("there"));
  fs::create_symlink("there/file", Path("one"));  // relative to the link's folder; of a file that is still to be made
  fs::create_symlink(Path("one"), Path("two"));
  for (const std::string content : {"first", "second"}) {
    ASSERT_THAT(WriteOutputFile(Path("two"), content), IsOk());
    EXPECT_EQ(ReadFile(Path("there/file")).value(), content);
    EXPECT_TRUE(fs::is_symlink(Path("one")) && fs::is_symlink(Path("two")));
    EXPECT_FALSE(fs::is_symlink(Path("there/file")));
  }
}

TEST_F(OutputFile, AFifoGetsTheBytesAndStays) {
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  fs::create_symlink("fifo", Path("link"));
  const int reader = ::open(Path("fifo").c_str(), O_RDONLY | O_NONBLOCK);
  for (const char* name : {"fifo", "link"}) {
    ASSERT_THAT(WriteOutputFile(Path(name), "bytes"), IsOk());
    char read[16] = "";
    EXPECT_EQ(::read(reader, read, sizeof read), 5);
    EXPECT_STREQ(read, "bytes");
    EXPECT_EQ(ReplacedFile(Path(name)).value(), "");
    EXPECT_THAT(CheckOutputFile("--out", Path(name)), IsOk());
  }
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(Path("fifo")) && fs::is_symlink(Path("link")));
}

TEST_F(OutputFile, AnOpenFileOfTheProcessGetsTheBytes) {
  const int file = ::open(Path("open").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_THAT(WriteOutputFile(absl::StrCat("/proc/self/fd/", file), "bytes"), IsOk());
  char read[16] = "";
  EXPECT_EQ(::pread(file, read, sizeof read, 0), 5) << "it is not replaced";
  ::close(file);
}

TEST_F(OutputFile, ADeviceThatIsFullIsNamed) {
  std::string device = Path("full");  // root could replace the machine's own
  if (::mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 7)) != 0) device = "/dev/full";
  const absl::Status full = WriteOutputFile(device, "bytes");
  EXPECT_TRUE(absl::StrContains(full.message(), device + ": No space left on device")) << full;
  EXPECT_TRUE(fs::is_character_file(device));
}

TEST_F(OutputFile, FoldersSocketsAndLoopsAreRefusedByName) {
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {AF_UNIX, ""};
  std::strncpy(address.sun_path, Path("socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  fs::create_symlink("loop", Path("loop"));
  fs::create_directory(Path("folder"));
  fs::create_symlink("folder", Path("to_folder"));
  for (const auto& [name, why] : {std::pair{"folder", "is a folder"},
                                  {"to_folder", "is a folder"},
                                  {"new/", "is a folder"},
                                  {"socket", "is a socket"},
                                  {"loop", "Too many levels of symbolic links"}}) {
    for (const absl::Status& status : {WriteOutputFile(Path(name), "bytes"), CheckOutputFile("--out", Path(name))}) {
      EXPECT_TRUE(absl::StrContains(status.message(), Path(name))) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), why)) << status;
    }
  }
  ::close(listener);
  EXPECT_TRUE(absl::StrContains(CheckOutputFile("--out", Path("none/file")).message(), "make it with: mkdir -p"));
  EXPECT_TRUE(absl::StrContains(CheckOutputFile("--out", "").message(), "name a file"));
}

TEST_F(OutputFile, AFileThatItsUserMayNotWriteIsRefusedAndStays) {
  fs::permissions(temporary_.path(), fs::perms::all);
  ASSERT_THAT(WriteOutputFile(Path("a"), "kept"), IsOk());
  fs::permissions(Path("a"), fs::perms::owner_read | fs::perms::others_read);
  const int code = testing::ExitCodeOf([this] {
    const bool root = ::getuid() == 0;  // may write everything
    if (root && (::setgroups(0, nullptr) != 0 || ::setgid(10001) != 0 || ::setuid(10001) != 0)) ::_exit(100);
    const bool refused = absl::IsPermissionDenied(CheckOutputFile("--out", Path("a"))) &&
                         absl::IsPermissionDenied(WriteOutputFile(Path("a"), "lost"));
    ::_exit(refused ? 0 : 1);
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(ReadFile(Path("a")).value(), "kept");
}

TEST_F(OutputFile, AFileFromWhichARunGoesOnIsRefused) {
  fs::create_directories(Path("run/checkpoints/800"));
  fs::create_directory(Path("run/policies"));
  const std::vector<std::string> needed = {"run/run_id", "run/progress.csv", "run/checkpoints/800/learner.state",
                                           "run/policies/epoch_0001.snapshot"};
  for (const std::string& name : needed) ASSERT_THAT(WriteFileAtomically(Path(name), "x"), IsOk());
  fs::create_symlink("run/progress.csv", Path("link"));
  for (const std::string& name : {needed[0], needed[1], needed[2], needed[3], std::string("link")}) {
    const absl::Status status = CheckOutputFile("--out", Path(name));
    EXPECT_TRUE(absl::StrContains(status.message(), " is a part of the run " + Path("run"))) << name << ": " << status;
  }
  for (const std::string name : {"run/report.html", "progress.csv", "run/policies/arm.policy"}) {
    ASSERT_THAT(WriteFileAtomically(Path(name), "x"), IsOk());
    EXPECT_THAT(CheckOutputFile("--out", Path(name)), IsOk()) << name;
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
