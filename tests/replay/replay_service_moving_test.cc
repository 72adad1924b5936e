// Tests that a member moves between two actors over real streams.
#include <functional>

#include "absl/strings/str_cat.h"
#include "tests/replay/served_replay.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/patience.h"

namespace datacom::replay {
namespace {

using ::datacom::testing::IsOk;
using ::datacom::testing::kPatience;
using std::chrono::milliseconds;
using testing::MakeChunk;
using testing::MemberOf;
using testing::SimpleRows;
using testing::SmallOptions;

class MovingMembersTest : public testing::ServedReplay {
 protected:
  static ::testing::AssertionResult Eventually(InsertSession* session, const std::function<bool()>& condition) {
    if (testing::WaitUntil(condition, [&] { session->changes().Wait(milliseconds(100)); }))
      return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "did not happen";
  }
};

// "0:1 1:0": members and their lanes.
std::string Lanes(const InsertSession& session) {
  std::string text;
  for (const v1::MemberLanes& entry : session.assignment()->members())
    absl::StrAppend(&text, text.empty() ? "" : " ", entry.member(), ":", entry.lanes());
  return text;
}

TEST_F(MovingMembersTest, AMemberMovesToANewActorAfterItsRowsAlsoWhenTheReplayRestarts) {
  Serve(SmallOptions(2));
  const std::string address = server_->address();
  channel_ = MakeChannel(address);
  auto first = Join("actor-0");
  EXPECT_EQ(Lanes(*first), "0:1 1:1");
  ASSERT_TRUE(Eventually(first.get(), [&] { return first->allowance(1).rows >= 4; }));
  auto second = Join("actor-1");
  ASSERT_TRUE(Eventually(first.get(), [&] { return Lanes(*first) == "0:1 1:0"; }));
  ASSERT_TRUE(Eventually(second.get(), [&] { return second->allowance(1).rows > 0; })) << "both serve it for a while";
  const uint64_t number = first->assignment()->number();
  first->Release(1, number - 1);  // of an older assignment: no effect
  ASSERT_THAT(first->Append(1, 3, MakeChunk(1, 0, SimpleRows(0, 3)).columns(), ""), IsOk());
  ASSERT_THAT(first->Flush(kPatience), IsOk());
  EXPECT_EQ(Lanes(*first), "0:1 1:0");
  Stop();
  ASSERT_THAT(first->Append(1, 1, MakeChunk(1, 3, SimpleRows(3, 1)).columns(), ""), IsOk());
  first->Release(1, number);
  Serve(SmallOptions(2), address);
  ASSERT_TRUE(Eventually(first.get(), [&] { return Lanes(*first) == "0:1"; }));
  EXPECT_EQ(first->acknowledged(1), 4u);
  EXPECT_EQ(first->allowance(1).rows, 0u);
  EXPECT_EQ(MemberOf(*store_, 1).inserted(), 4u);
  EXPECT_EQ(Lanes(*second), "1:1");
  EXPECT_TRUE(absl::IsInvalidArgument(first->Append(1, 1, MakeChunk(1, 4, SimpleRows(4, 1)).columns(), "")));
}

}  // namespace
}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
