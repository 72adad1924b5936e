#include "common/rpc/call_limit.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/log.h"
#include "common/rpc/listener.h"

namespace datacom {

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
