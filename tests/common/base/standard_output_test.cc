#include "common/base/standard_output.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

#include "common/base/files.h"
#include "gtest/gtest.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

TEST(StandardOutput, LinesAreBrokenAtSpacesAndIndentedLikeTheirSecondColumn) {
  const char text[] = "a short line\n  --set TEXT  one two three four\n\nsupercalifragilistic\n";
  EXPECT_EQ(WrapLines(text, 0), text);
  EXPECT_EQ(WrapLines(text, 80), text);
  EXPECT_EQ(WrapLines(text, 28),
            "a short line\n"
            "  --set TEXT  one two three\n"
            "              four\n"
            "\n"
            "supercalifragilistic\n");
  EXPECT_EQ(WrapLines("  --set TEXT  one two\n", 12), "  --set TEXT\n  one two\n") << "no room for a second column";
  EXPECT_EQ(WrapLines(text, 1).find("supercalifragilistic\n"), WrapLines(text, 1).size() - 21) << "a word stays whole";
}

TEST(StandardOutput, AWideTableContinuesBelowItself) {
  const std::vector<TableColumn> table = {
      {"member", "     0", "  mean"}, {" steps", "   100", "   100"}, {"  J", "1.5", "2.5"}, {"  status", "  ok"}};
  EXPECT_EQ(JoinColumns(table, 0), "member steps  J  status\n     0   1001.5  ok\n  mean   1002.5\n");
  EXPECT_EQ(JoinColumns(table, 23), JoinColumns(table, 0));
  EXPECT_EQ(JoinColumns(table, 22),
            "member steps  J\n     0   1001.5\n  mean   1002.5\nmember  status\n     0  ok\n  mean\n");
  EXPECT_EQ(JoinColumns(table, 1),
            "member steps\n     0   100\n  mean   100\n"
            "member  J\n     01.5\n  mean2.5\n"
            "member  status\n     0  ok\n  mean\n");
}

TEST(StandardOutput, WhatWouldSteerATerminalIsShown) {
  EXPECT_EQ(ForTerminal("a\x1b[2Jb\r\x7f\x01 c"), "a\\x1b[2Jb\\x0d\\x7f\\x01 c");
  EXPECT_EQ(ForTerminal("\xc2\x9b"
                        "31m\xc2\xa0"),
            "\\u009b31m\xc2\xa0");
  EXPECT_EQ(ForTerminal(absl::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(ForTerminal("line\n\tplätze €\xc2"), "line\n\tplätze €\\xc2");
  EXPECT_EQ(ForTerminal("\x9b"
                        "31m caf\xe9 b"),
            "\\x9b31m caf\\xe9 b")
      << "a terminal of Latin-1 obeys bytes that are no UTF-8";
}

TEST(StandardOutput, OnlyATerminalThatCanGoBackIsDrawnAgain) {
  const int far_end = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_EQ(::grantpt(far_end) + ::unlockpt(far_end), 0);
  const int terminal = ::open(::ptsname(far_end), O_RDWR | O_NOCTTY), before = ::dup(STDOUT_FILENO);
  ASSERT_GE(terminal, 0);
  const char* const named = std::getenv("TERM");
  const std::string kind = named == nullptr ? "" : named;
  std::fflush(stdout);
  ::dup2(terminal, STDOUT_FILENO);
  ::setenv("TERM", "xterm", /*overwrite=*/1);
  const bool live = IsLiveTerminal();
  ::setenv("TERM", "dumb", /*overwrite=*/1);
  const bool dumb = IsLiveTerminal();
  ::unsetenv("TERM");
  const bool unknown = IsLiveTerminal();
  ::dup2(before, STDOUT_FILENO);
  ::setenv("TERM", kind.c_str(), /*overwrite=*/1);
  for (const int fd : {far_end, terminal, before}) ::close(fd);
  EXPECT_TRUE(live);
  EXPECT_FALSE(dumb);
  EXPECT_FALSE(unknown);
}

TEST(StandardOutput, NothingOnStdCoutSteersATerminal) {
  const int far_end = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_EQ(::grantpt(far_end) + ::unlockpt(far_end), 0);
  const int terminal = ::open(::ptsname(far_end), O_RDWR | O_NOCTTY), before = ::dup(STDOUT_FILENO);
  ASSERT_GE(terminal, 0);
  std::fflush(stdout);
  ::dup2(terminal, STDOUT_FILENO);
  const int code = RunWatched([] {
    std::cout << "a\x1b[2J" << 'b' << " plätze\n";
    return 0;
  });
  ::dup2(before, STDOUT_FILENO);
  std::string shown(100, '\0');
  shown.resize(std::max<ssize_t>(0, ::read(far_end, shown.data(), shown.size())));
  for (const int fd : {far_end, terminal, before}) ::close(fd);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(shown, "a\\x1b[2Jb plätze\r\n");
}

TEST(StandardOutput, WhatACommandThrowsIsItsMessage) {
  EXPECT_EQ(RunWatched([] { return 75; }), 75);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunWatched([]() -> int { throw std::runtime_error("no folder"); }), 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "datacom: no folder\n");
}

TEST(StandardOutput, AFileDoesNotTakeThePlaceOfAClosedStream) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  ::testing::internal::CaptureStderr();
  std::fflush(stdout);
  const int before = ::dup(STDOUT_FILENO);
  ::close(STDOUT_FILENO);
  int file = -1;
  const int code = RunWatched([&] {
    file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0644);
    std::printf("a message\n");
    return 0;
  });
  const std::string errors = ::testing::internal::GetCapturedStderr();
  ::dup2(before, STDOUT_FILENO);
  std::clearerr(stdout);
  for (const int fd : {before, file}) ::close(fd);
  EXPECT_EQ(code, 1);
  EXPECT_EQ(errors.find("datacom: standard output: "), 0u) << errors;
  EXPECT_GT(file, STDERR_FILENO);
  EXPECT_EQ(ReadFile(path).value(), "");
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
