// Golden texts: what the code makes of the shipped files, kept in files that a reviewer reads. With the environment
// variable DATACOM_WRITE_GOLDEN a test writes its file again, and fails all the same.
#ifndef DATACOM_TESTS_TESTING_GOLDEN_TEXT_H_
#define DATACOM_TESTS_TESTING_GOLDEN_TEXT_H_

#include <cstdlib>
#include <string>

#include "common/base/files.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom::testing {

// The file has this text; the difference is in the failure's message.
inline void ExpectGoldenText(const std::string& path, const std::string& text) {
  if (std::getenv("DATACOM_WRITE_GOLDEN") != nullptr) {
    ASSERT_THAT(WriteFileAtomically(path, text), IsOk());
    FAIL() << path << " written; run again without the variable";
  }
  EXPECT_EQ(ReadFile(path).value_or("no such file"), text)
      << path << " differs; DATACOM_WRITE_GOLDEN=1 writes it again";
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_GOLDEN_TEXT_H_
// SPDX-License-Identifier: Apache-2.0
