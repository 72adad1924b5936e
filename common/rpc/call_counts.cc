#include "common/rpc/call_counts.h"

#include <mutex>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
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

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
