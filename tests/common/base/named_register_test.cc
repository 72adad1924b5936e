#include "common/base/named_register.h"

#include <gmock/gmock.h>

#include <string>

namespace datacom {
namespace {

using ::testing::ElementsAre;

TEST(NamedRegister, GivesEntriesByNameAndNamesInOrder) {
  NamedRegister<int> tasks("task");
  tasks.Add("navigation", 3);
  tasks.Add("cartpole", 7);
  EXPECT_THAT(tasks.Names(), ElementsAre("cartpole", "navigation"));
  ASSERT_NE(tasks.Find("navigation"), nullptr);
  EXPECT_EQ(*tasks.Find("navigation"), 3);
  EXPECT_EQ(tasks.Find("tennis"), nullptr);
}

TEST(NamedRegister, TheErrorForAnUnknownNameListsTheKnownOnes) {
  NamedRegister<int> tasks("task");
  tasks.Add("navigation", 3);
  tasks.Add("cartpole", 7);
  EXPECT_EQ(tasks.Unknown("tennis"),
            absl::NotFoundError("task \"tennis\" does not exist; there are: cartpole, navigation"));
  EXPECT_EQ(tasks.Unknown("cartpol").message(),
            "task \"cartpol\" does not exist; there are: cartpole, navigation; did you mean cartpole?");
}

TEST(NamedRegisterDeathTest, ANameThatIsRegisteredTwiceEndsTheProgram) {
  NamedRegister<int> rules("acting rule");
  rules.Add("planner", 1);
  EXPECT_DEATH(rules.Add("planner", 2), "two acting rules are registered as planner");
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
