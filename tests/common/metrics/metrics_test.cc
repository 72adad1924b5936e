#include "common/metrics/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace datacom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<Metrics> StartMetrics(const std::string& role, const std::string& listen = "") {
  return Metrics::Start({role, "run-1", "cartpole", "datacom", listen}).value();
}

// A TCP connection that waits at most 10 s, Prometheus' usual scrape_timeout, for data.
class Connection {
 public:
  explicit Connection(const std::string& address) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const size_t colon = address.rfind(':');
    sockaddr_in peer = {};
    peer.sin_family = AF_INET;
    peer.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
    ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &peer.sin_addr);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&peer), sizeof peer), 0) << address;
    const timeval patience = {10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Connection() { ::close(fd_); }
  void Send(const std::string& text) {
    EXPECT_EQ(::send(fd_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  std::string Receive() {
    std::string answer;
    char buffer[4096];
    for (ssize_t count; (count = ::recv(fd_, buffer, sizeof buffer, 0)) > 0;)
      answer.append(buffer, static_cast<size_t>(count));
    return answer;
  }

 private:
  const int fd_;
};

// The answer to an HTTP GET.
std::string Get(const std::string& address, const std::string& path = "/metrics") {
  Connection connection(address);
  connection.Send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  return connection.Receive();
}

TEST(MetricTable, KeepsTheNamingRules) {
  std::set<std::string> names;
  for (const MetricInfo& metric : MetricTable()) {
    SCOPED_TRACE(metric.name);
    EXPECT_TRUE(names.insert(metric.name).second) << "named twice";
    EXPECT_TRUE(std::regex_match(metric.name, std::regex("datacom(_[a-z]+)+")));
    EXPECT_FALSE(metric.help.empty());
    EXPECT_EQ(metric.type == "counter", metric.name.rfind("_total") == metric.name.size() - 6);
    EXPECT_EQ(metric.type == "histogram", !metric.buckets.empty());
    EXPECT_TRUE(std::is_sorted(metric.buckets.begin(), metric.buckets.end()));
    EXPECT_TRUE(metric.values.empty() || metric.labels.size() == 1);
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

TEST(Metrics, AreServedWhileAnotherClientSendsNoRequest) {
  const auto metrics = StartMetrics("replay", "127.0.0.1:0");
  const Connection idle(metrics->address());
  EXPECT_THAT(Get(metrics->address()), HasSubstr("200 OK"));
}

TEST(Metrics, StopServingWhileAClientSendsHalfARequest) {
  auto metrics = StartMetrics("replay", "127.0.0.1:0");
  const std::string address = metrics->address();
  Connection half(address);
  half.Send("GET /met");
  metrics.reset();
  EXPECT_EQ(half.Receive(), "");
  EXPECT_TRUE(Metrics::Start({"replay", "r", "t", "a", address}).ok()) << "the port is free";
}

TEST(Metrics, APortInUseIsAnErrorThatNamesIt) {
  const auto first = StartMetrics("replay", "127.0.0.1:0");
  const absl::Status status = Metrics::Start({"replay", "r", "t", "a", first->address()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(first->address()));
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
