#include "deploy/tools/demo/demo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace datacom::tools {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class Demo : public ::testing::Test {
 protected:
  json Ask(const std::string& target) {
    const std::optional<HttpServer::Answer> answer = site_.Get(target);
    EXPECT_TRUE(answer.has_value()) << target;
    return answer ? json::parse(answer->body) : json();
  }
  // The number of a scene and of its agent from `source`, as the parameters of a target.
  std::string Agent(const std::string& source) {
    const json scenes = Ask("/scenes");
    for (size_t i = 0; i < scenes.size(); ++i) {
      for (size_t k = 0; k < scenes[i]["agents"].size(); ++k) {
        if (scenes[i]["agents"][k]["source"] == source)
          return "scene=" + std::to_string(i) + "&agent=" + std::to_string(k);
      }
    }
    ADD_FAILURE() << source;
    return "";
  }

  DemoSite site_;
};

TEST_F(Demo, EveryAgentPlaysAndHasAScene) {
  const json scenes = Ask("/scenes");
  EXPECT_EQ(scenes.size(), 4);
  for (const json& scene : scenes) {
    for (const json& one : scene["agents"]) {
      const std::string at = Agent(one["source"]);
      const json about = Ask("/agent?" + at);
      ASSERT_FALSE(about.contains("error")) << about;
      EXPECT_EQ(about["label"], one["label"]);
      const json episode = Ask("/episode?" + at + "&seed=1&changes=");
      size_t bodies = 0;
      for (const json& shape : about["scene"]["shapes"])
        bodies = std::max<size_t>(bodies, 1 + shape["body"].get<int>());
      const json& frames = episode["frames"];
      ASSERT_GT(frames.size(), 1) << one;
      EXPECT_GE(frames[0]["pose"].size(), bodies);
      EXPECT_GT(bodies, 0);
      const int every = episode["every"], steps = episode["steps"];
      EXPECT_EQ(frames.size(), (steps + every - 1) / every + 1);
      EXPECT_LE(steps, about["horizon"].get<int>());
    }
  }
}

TEST_F(Demo, AgentsOfATaskStartFromTheSameStateAndAnEpisodeRepeats) {
  const std::string sac = Agent("shipped:air_hockey/sac"), datacom = Agent("shipped:air_hockey/datacom");
  const json first = Ask("/episode?" + sac + "&seed=3&changes="),
             other = Ask("/episode?" + datacom + "&seed=3&changes=");
  EXPECT_EQ(first["frames"][0]["pose"], other["frames"][0]["pose"]);
  EXPECT_NE(first["frames"][9]["pose"], other["frames"][9]["pose"]);
  EXPECT_EQ(Ask("/episode?" + sac + "&seed=3&changes="), first);
  EXPECT_NE(Ask("/episode?" + sac + "&seed=4&changes=")["frames"][0]["pose"], first["frames"][0]["pose"]);
}

TEST_F(Demo, AChangeOfTheShieldActsFromItsStepOn) {
  const std::string at = Agent("shipped:air_hockey/datacom");
  const json about = Ask("/agent?" + at);
  const double delta = about["delta"];
  const json with = Ask("/episode?" + at + "&seed=2&changes=");
  const int every = with["every"];
  const int step = 10 * every;
  const auto changed = [&](const std::string& change) {
    return Ask("/episode?" + at + "&seed=2&changes=" + std::to_string(step) + ":" + change);
  };
  EXPECT_EQ(changed("on:" + about["delta"].dump())["frames"][10], with["frames"][10]);
  const json without = changed("off:" + about["delta"].dump());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(without["frames"][i], with["frames"][i]) << i;
  EXPECT_EQ(without["frames"][12]["moved"], 0);
  // With a large delta the constraint is far away: the shield leaves the actions alone.
  const json open = changed("on:1000");
  EXPECT_NEAR(open["frames"][10]["k"].get<double>(), with["frames"][10]["k"].get<double>() + delta - 1000, 2e-3);
  // A later episode begins with the policy's own delta again.
  EXPECT_EQ(Ask("/episode?" + at + "&seed=2&changes="), with);
}

// The page says so, because the films with and without it are nearly equal.
TEST_F(Demo, AShieldThatChangesNothingIsKnownAsIdle) {
  const std::string guards = Agent("shipped:air_hockey/datacom"), told = Agent("shipped:air_hockey_7dof/limits_known");
  EXPECT_GT(Ask("/episode?" + guards + "&seed=2&changes=")["acts"], 5);
  const json with = Ask("/episode?" + told + "&seed=1&changes=");
  EXPECT_EQ(with["acts"], 0);
  const json without = Ask("/episode?" + told + "&seed=1&changes=0:off:0");
  ASSERT_EQ(without["frames"].size(), with["frames"].size());
  for (size_t i = 0; i < with["frames"].size(); ++i) {
    EXPECT_EQ(without["frames"][i]["pose"], with["frames"][i]["pose"]) << i;
  }
  EXPECT_EQ(Ask("/episode?" + Agent("shipped:cartpole/from_scratch") + "&seed=1&changes=")["acts"], 0);
  EXPECT_EQ(Ask("/episode?" + Agent("shipped:cartpole/sac") + "&seed=1&changes=")["acts"], 0);
}

TEST_F(Demo, OnlyALearnedConstraintHasAMap) {
  EXPECT_TRUE(Ask("/map?" + Agent("shipped:cartpole/sac")).is_null());
  const json map = Ask("/map?" + Agent("shipped:cartpole/from_scratch"));
  EXPECT_EQ(map["cvar"].size(), map["resolution"].get<size_t>() * map["resolution"].get<size_t>());
  EXPECT_THAT(map["x_label"], HasSubstr("pole angle"));
}

TEST_F(Demo, WhatItDoesNotKnowHasNoAnswer) {
  const std::string at = Agent("shipped:cartpole/sac");
  std::vector<std::string> targets = {"/nothing", "/agent", "/agent?scene=9&agent=0", "/agent?scene=0&agent=x"};
  for (const char* const rest : {"", "&seed=-1&changes=", "&seed=1&changes=5", "&seed=1&changes=5:maybe:1",
                                 "&seed=1&changes=5:on:nan", "&seed=1&changes=5:on:1,4:on:1"}) {
    targets.push_back("/episode?" + at + rest);
  }
  for (const std::string& target : targets) {
    EXPECT_FALSE(site_.Get(target).has_value()) << target;
  }
  for (const char* const part : {"/", "/draw.js", "/demo.js", "/demo.css"})
    EXPECT_TRUE(site_.Get(part).has_value()) << part;
}

}  // namespace
}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
