#include "common/base/checksum.h"

#include <string>

#include "gtest/gtest.h"

namespace datacom {
namespace {

TEST(Crc32c, GivesTheCheckValuesOfItsDefinition) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720 B.4
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("6789", Crc32c("12345")), 0xe3069283u) << "in two pieces";
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
