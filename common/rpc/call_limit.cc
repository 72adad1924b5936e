#include "common/rpc/call_limit.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "common/base/log.h"
#include "common/rpc/listener.h"
#include "grpc/grpc.h"
#include "grpc/support/alloc.h"
#include "grpcpp/grpcpp.h"

namespace datacom {
namespace {

std::string Text(char* json) {
  const std::string text = json == nullptr ? "" : json;
  gpr_free(json);
  return text;
}

// The values of a field in the order of the text; gRPC writes numbers, too, as strings, and no blanks.
std::vector<absl::string_view> Values(absl::string_view json, const std::string& field) {
  std::vector<absl::string_view> values;
  const std::string begin = "\"" + field + "\":\"";
  for (size_t at = json.find(begin); at != absl::string_view::npos; at = json.find(begin, at)) {
    at += begin.size();
    values.push_back(json.substr(at, json.find('"', at) - at));
  }
  return values;
}

int64_t Number(absl::string_view text) {
  int64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

uint64_t First(absl::string_view json, const std::string& field) {
  const std::vector<absl::string_view> values = Values(json, field);
  return values.empty() ? 0 : static_cast<uint64_t>(Number(values[0]));  // gRPC leaves out what is 0
}

}  // namespace

std::unique_ptr<grpc::Server> CallCounts::Of(const std::function<std::unique_ptr<grpc::Server>()>& start,
                                             CallCounts* counts) {
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  std::unique_ptr<grpc::Server> server = start();
  if (server == nullptr) return nullptr;
  // Numbers grow, and an answer holds up to 100 servers.
  for (std::string servers = " "; !servers.empty();) {
    servers = Text(grpc_channelz_get_servers(counts->server_ + 1));
    const std::vector<absl::string_view> numbers = Values(servers, "serverId");
    if (numbers.empty()) break;
    counts->server_ = Number(numbers.back());
  }
  return server;
}

uint64_t CallCounts::Begun() const { return First(Text(grpc_channelz_get_server(server_)), "callsStarted"); }

CallCounts::ByPeer CallCounts::Connections() const {
  ByPeer connections;
  int64_t socket = 0;
  for (bool more = true; more;) {
    const std::string sockets = Text(grpc_channelz_get_server_sockets(server_, socket + 1, 0));
    const std::vector<absl::string_view> numbers = Values(sockets, "socketId"), names = Values(sockets, "name");
    for (size_t i = 0; i < numbers.size() && i < names.size(); ++i) {
      socket = Number(numbers[i]);
      const std::string json = Text(grpc_channelz_get_socket(socket));
      const absl::string_view peer = names[i].substr(names[i].rfind(' ') + 1);  // "chttp2 ipv4:10.0.0.7:4711"
      connections[PlainPeer(std::string(peer))] = {First(json, "streamsStarted"), First(json, "messagesReceived")};
    }
    more = !numbers.empty();
  }
  return connections;
}

void CallLimit::Tick(uint64_t begun) {
  const Clock::Time now = clock_->Now();
  const bool exceeded = begun - begun_ > limit_, next = now - second_ >= std::chrono::seconds(1);
  if (!exceeded && !next) return;
  if (exceeded) {
    std::vector<std::string> strangers = connections_.peers();
    std::erase_if(strangers, [this](const std::string& peer) {
      const auto before = counts_.find(peer);
      return before != counts_.end() && before->second.messages > 0;
    });
    Reset(strangers);
  }
  CallCounts::ByPeer counts = connections_.counts();
  std::map<std::string, uint64_t> calls;  // within the second
  for (const auto& [peer, connection] : counts) {
    const auto before = counts_.find(peer);
    const uint64_t earlier = before == counts_.end() ? 0 : before->second.calls;
    if (connection.calls > earlier) calls[peer] = connection.calls - earlier;
  }
  const uint64_t share = std::max<uint64_t>(kCalls, limit_ / std::max<size_t>(1, calls.size()));
  std::erase_if(calls, [&](const auto& at) { return !exceeded || at.second <= share; });
  std::vector<std::string> peers;
  for (const auto& [peer, number] : calls) peers.push_back(peer);
  Reset(peers);
  if (next) {
    second_ = now;
    begun_ = begun;
    counts_ = std::move(counts);
  }
}

void CallLimit::Reset(const std::vector<std::string>& peers) {
  connections_.reset(peers);
  for (const std::string& peer : peers) {
    const auto [at, first] = disgraced_.try_emplace(AddressOf(peer));
    at->second.end = clock_->Now() + kDisgrace;
    if (first) {
      spdlog::warn("resetting connections from {}: more than {} calls began within a second", at->first, limit_);
    }
  }
}

bool CallLimit::AdmitsConnection(const std::string& address) {
  Forgive();
  const auto found = disgraced_.find(address);
  if (found == disgraced_.end()) return true;
  Disgrace& disgrace = found->second;
  const Clock::Time now = clock_->Now();
  if (now - disgrace.second >= std::chrono::seconds(1)) {
    disgrace.second = now;
    disgrace.connections = 0;
  }
  return ++disgrace.connections <= kNewConnections;
}

bool CallLimit::Disgraced() {
  Forgive();
  return !disgraced_.empty();
}

void CallLimit::Forgive() {
  std::erase_if(disgraced_, [now = clock_->Now()](const auto& at) { return at.second.end <= now; });
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
