#include "common/metrics/metrics.h"

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/metrics/http_client.h"
#include "tests/testing/tls_files.h"

namespace datacom {
namespace {

using ::testing::AnyOf;
using testing::Get;
using testing::GetOverTls;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TlsFiles;

std::unique_ptr<Metrics> StartMetrics(const std::string& role, const std::string& listen = "") {
  return Metrics::Start({role, "run-1", "cartpole", "datacom", listen}).value();
}

TEST(MetricTable, KeepsTheNamingRules) {
  std::set<std::string> names;
  for (const v1::Metric& metric : MetricTable().metric()) {
    SCOPED_TRACE(metric.name());
    EXPECT_TRUE(names.insert(metric.name()).second) << "named twice";
    EXPECT_TRUE(std::regex_match(metric.name(), std::regex("datacom(_[a-z]+)+")));
    EXPECT_FALSE(metric.help().empty());
    EXPECT_THAT(metric.type(), AnyOf("counter", "gauge", "histogram"));
    EXPECT_EQ(metric.type() == "counter", metric.name().rfind("_total") == metric.name().size() - 6);
    EXPECT_EQ(metric.type() == "histogram", !metric.bucket().empty());
    EXPECT_TRUE(std::is_sorted(metric.bucket().begin(), metric.bucket().end()));
    EXPECT_TRUE(metric.value().empty() || metric.label_size() == 1);
  }
}

TEST(Metrics, EverySeriesCarriesRunTaskAndAlgorithm) {
  const auto metrics = StartMetrics("learner");
  metrics->gauge("datacom_member_delta", {{"member", "3"}}).Set(6.5);
  std::istringstream text(metrics->Scrape());
  int series = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line[0] == '#') continue;
    ++series;
    for (const char* label : {"run=\"run-1\"", "task=\"cartpole\"", "algorithm=\"datacom\""})
      EXPECT_THAT(line, HasSubstr(label));
  }
  EXPECT_GT(series, 20);
}

TEST(Metrics, ARolesSeriesStartAtZeroAndOtherRolesSeriesAreAbsent) {
  const std::string text = StartMetrics("actor")->Scrape();
  EXPECT_THAT(text, ::testing::ContainsRegex("datacom_actor_env_steps_total\\{[^}]*\\} 0"));
  EXPECT_THAT(text, ::testing::ContainsRegex("datacom_actor_wait_seconds_total\\{[^}]*reason=\"credit\"[^}]*\\} 0"));
  EXPECT_THAT(text, ::testing::ContainsRegex("datacom_actor_safe_map_seconds_count\\{[^}]*\\} 0"));
  EXPECT_THAT(text, ::testing::ContainsRegex("datacom_build_info\\{[^}]*role=\"actor\"[^}]*\\} 1"));
  EXPECT_THAT(text, HasSubstr("datacom_up_timestamp_seconds"));
  EXPECT_THAT(text, Not(HasSubstr("datacom_replay_")));
  EXPECT_THAT(text, Not(HasSubstr("datacom_learner_")));
}

TEST(Metrics, TheSameLabelsGiveTheSameSeries) {
  const auto metrics = StartMetrics("replay");
  prometheus::Counter& rows = metrics->counter("datacom_replay_inserts_total");
  rows.Increment(5);
  EXPECT_EQ(&rows, &metrics->counter("datacom_replay_inserts_total"));
  EXPECT_EQ(metrics->counter("datacom_replay_inserts_total").Value(), 5);
  prometheus::Gauge& main = metrics->gauge("datacom_replay_rows", {{"table", "main"}});
  EXPECT_NE(&main, &metrics->gauge("datacom_replay_rows", {{"table", "failure"}}));
  metrics->histogram("datacom_replay_draw_seconds").Observe(3e-5);
  EXPECT_THAT(metrics->Scrape(),
              ::testing::ContainsRegex("datacom_replay_draw_seconds_bucket\\{[^}]*le=\"5e-05\"[^}]*\\} 1"));
}

TEST(Metrics, AreServedOverHttp) {
  const auto metrics = StartMetrics("replay", "127.0.0.1:0");
  EXPECT_THAT(metrics->address(), ::testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
  metrics->counter("datacom_replay_draws_total").Increment(42);
  const std::string answer = Get(metrics->address());
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_THAT(answer, ::testing::ContainsRegex("datacom_replay_draws_total\\{[^}]*\\} 42"));
  EXPECT_THAT(Get(metrics->address(), "/"), HasSubstr("404 Not Found"));
}

TEST(Metrics, AreServedOverMutualTlsWithTheRunsCertificates) {
  const TlsFiles files;
  Metrics::Options options{"replay", "run-1", "cartpole", "datacom", "127.0.0.1:0", files.folder()};
  const auto metrics = Metrics::Start(options).value();
  EXPECT_THAT(GetOverTls(metrics->address(), files.folder()), HasSubstr("datacom_replay_draws_total"));
  EXPECT_THAT(GetOverTls(metrics->address(), ""), Not(HasSubstr("datacom_")));
  EXPECT_THAT(Get(metrics->address()), Not(HasSubstr("datacom_")));
}

TEST(Metrics, APortInUseIsAnErrorThatNamesItAndTheCause) {
  const auto first = StartMetrics("replay", "127.0.0.1:0");
  const absl::Status status = Metrics::Start({"replay", "r", "t", "a", first->address()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(status.message(), "metrics: cannot listen on " + first->address() + ": Address already in use");
}

TEST(MetricsDeathTest, UnknownNamesTypesAndLabelsAreProgrammerErrors) {
  const auto metrics = StartMetrics("replay");
  EXPECT_DEATH(metrics->counter("datacom_nonsense_total"), "datacom_nonsense_total");
  EXPECT_DEATH(metrics->gauge("datacom_replay_draws_total"), "is a counter");
  EXPECT_DEATH(metrics->gauge("datacom_replay_rows"), "labels");
  EXPECT_DEATH(metrics->gauge("datacom_replay_rows", {{"tables", "main"}}), "labels");
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
