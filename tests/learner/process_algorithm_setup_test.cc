#include <gtest/gtest.h>

#include "datacom/v1/experiment.pb.h"
#include "learner/algorithms/algorithm.h"

namespace datacom::learner {
namespace {

TEST(MemberHyper, HasTheDefaultsOfTheSchema) {
  const MemberHyper ours;
  const v1::Hyper schema;
#define DATACOM_HYPER(name, value) EXPECT_EQ(ours.name, schema.name()) << #name;
#include "learner/algorithms/hyper.inc"
#undef DATACOM_HYPER
  EXPECT_EQ(ours.delta_fixed, schema.delta_mode() == "fixed");
}

}  // namespace
}  // namespace datacom::learner
