#include "common/records/message_json.h"

#include <gtest/gtest.h>

#include <limits>

#include "datacom/v1/evaluation.pb.h"
#include "datacom/v1/learner.pb.h"

namespace datacom {
namespace {

TEST(MessageJson, HasEveryFieldAndNullForWhatIsNoNumberOrAbsent) {
  v1::EvaluationEpisode episode;
  episode.set_discounted_return(1.5);
  episode.set_max_violation(std::numeric_limits<double>::infinity());
  episode.add_named_sum_cost(2);
  episode.set_success(true);
  const nlohmann::json json = MessageJson(episode);
  EXPECT_EQ(json["discounted_return"], 1.5);
  EXPECT_EQ(json["max_violation"], nullptr);
  EXPECT_EQ(json["named_sum_cost"], nlohmann::json::array({2}));
  EXPECT_EQ(json["success"], true);
  EXPECT_TRUE(json.contains("shield_share"));
  EXPECT_EQ(json["shield_share"], nullptr);
}

TEST(MessageJson, A64BitNumberIsANumberAndMessagesAreLeftOut) {
  v1::LearnerInfo learner;
  learner.set_update(uint64_t{1} << 60);
  learner.add_members();
  const nlohmann::json json = MessageJson(learner);
  EXPECT_EQ(json["update"], uint64_t{1} << 60);
  EXPECT_FALSE(json.contains("members"));
}

TEST(MessageJson, AnErrorIsOneLineWhateverItsBytesAre) {
  EXPECT_EQ(ErrorJson("a\nb", 2), "{\"code\":2,\"error\":\"a\\nb\"}\n");
  EXPECT_EQ(nlohmann::json::parse(ErrorJson("\xff", 1))["error"], "\xef\xbf\xbd") << "no UTF-8";
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
