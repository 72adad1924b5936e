#include "common/tasks/text/model_copies.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace datacom::text {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const std::string& xml) {
  const absl::Status status = CheckCopies(xml);
  EXPECT_EQ(absl::IsInvalidArgument(status), !status.ok()) << status;
  return std::string(status.message());
}

TEST(ModelCopies, AreRefusedAboveTenThousandNamingElementAndNumber) {
  EXPECT_EQ(Refusal("<worldbody><replicate count=\"10000\"><geom/></replicate></worldbody>"), "");
  EXPECT_EQ(Refusal("<worldbody><replicate count=\"10001\"><geom/></replicate></worldbody>"),
            "model: its <replicate> makes 10001 parts; at most 10000 are taken");
  EXPECT_THAT(Refusal("<replicate offset='1 0 0'\n count = '1e8'/>"), HasSubstr("<replicate> makes 1e+08 parts"));
  EXPECT_THAT(Refusal("<?xml version=\"1.0\"?><!DOCTYPE m><replicate a=\">\" count='1e8'>"), HasSubstr("1e+08 parts"));
  EXPECT_THAT(Refusal("<composite type=\"grid\" count=\"200 51 1\"/>"), HasSubstr("<composite> makes 10200 parts"));
  EXPECT_THAT(Refusal("<flexcomp count=\"22 22 22\"/>"), HasSubstr("<flexcomp> makes 10648 parts"));
  EXPECT_EQ(Refusal("<composite count=\"100 100\"/><composite count=\"100 100\"/>"), "");
}

TEST(ModelCopies, OfNestedReplicatesMultiply) {
  const std::string inner = "<replicate count=\"101\"><geom/></replicate>";
  EXPECT_THAT(Refusal("<replicate count=\"100\">" + inner + "</replicate>"), HasSubstr("makes 10100 parts"));
  EXPECT_EQ(Refusal("<replicate count=\"100\"></replicate>" + inner + "<replicate count=\"100\"/>" + inner), "");
}

TEST(ModelCopies, InCommentsAndOtherElementsAreNoCopies) {
  EXPECT_EQ(Refusal("<!-- <replicate count=\"1e8\"/> --><custom><text name=\"count\" data=\"a > 1e8\"/></custom>"), "");
  EXPECT_EQ(Refusal("<replicates count=\"1e8\"/><replicate recount=\"1e8\"/><replicate count=\"\"/>"), "");
  EXPECT_EQ(Refusal(""), "");
  EXPECT_EQ(Refusal("</replicate></replicate><!-- no end"), "");
}

}  // namespace
}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
