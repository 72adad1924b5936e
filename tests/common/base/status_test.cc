#include "common/base/status.h"

#include <cerrno>

#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;

TEST(Status, ErrnoGivesACodeAndAMessage) {
  EXPECT_EQ(ErrnoStatus(ENOENT, "open x").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrnoStatus(ENOSPC, "write x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(EACCES, "open x").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrnoStatus(EEXIST, "make x").code(), absl::StatusCode::kAlreadyExists);
  for (const int error : {EISDIR, ELOOP, ENAMETOOLONG, ENOTDIR})
    EXPECT_EQ(ErrnoStatus(error, "open x").code(), absl::StatusCode::kInvalidArgument) << "no retry helps";
  EXPECT_EQ(ErrnoStatus(EIO, "read x").code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ErrnoStatus(ENOSPC, "write x").message(), "write x: No space left on device");
}

TEST(Status, AnnotationKeepsTheCode) {
  EXPECT_THAT(Annotate(absl::OkStatus(), "ring"), IsOk());
  EXPECT_EQ(Annotate(absl::DataLossError("torn"), "ring a"), absl::DataLossError("ring a: torn"));
}

TEST(Status, MapsToExitCodes) {
  EXPECT_EQ(ExitCode(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCode(absl::InvalidArgumentError("x")), 2);
  EXPECT_EQ(ExitCode(absl::FailedPreconditionError("x")), 2);
  EXPECT_EQ(ExitCode(absl::DataLossError("x")), 2);
  EXPECT_EQ(ExitCode(absl::CancelledError("x")), 75);
  EXPECT_EQ(ExitCode(absl::InternalError("x")), 1);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
