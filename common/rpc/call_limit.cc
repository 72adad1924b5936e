#include "common/rpc/call_limit.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/rpc/listener.h"

namespace datacom {

std::vector<std::string> CallLimit::Tick(uint64_t begun, const std::function<ByPeer()>& by_peer) {
  const Clock::Time now = clock_->Now();
  const bool exceeded = begun - begun_ > limit_, next = now - second_ >= std::chrono::seconds(1);
  if (!exceeded && !next) return {};
  ByPeer all = by_peer(), within = all;
  for (auto& [peer, calls] : within) {
    if (const auto before = by_peer_.find(peer); before != by_peer_.end()) calls -= std::min(calls, before->second);
  }
  std::erase_if(within, [](const auto& at) { return at.second == 0; });
  const uint64_t share = std::max<uint64_t>(kCalls, limit_ / std::max<size_t>(1, within.size()));
  std::vector<std::string> resets;
  for (const auto& [peer, calls] : within) {
    if (!exceeded || calls <= share) continue;
    resets.push_back(peer);
    const auto [at, first] = disgraced_.try_emplace(AddressOf(peer));
    at->second.end = now + kDisgrace;
    if (first) {
      spdlog::warn("resetting connections from {}: more than {} calls began within a second, {} of them on this one",
                   at->first, limit_, calls);
    }
  }
  if (next) {
    second_ = now;
    begun_ = begun;
    by_peer_ = std::move(all);
  }
  return resets;
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
