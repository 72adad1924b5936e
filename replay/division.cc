#include "replay/division.h"

#include <algorithm>
#include <numeric>

namespace datacom::replay {
namespace {

uint64_t Sum(const std::vector<uint32_t>& values) { return std::accumulate(values.begin(), values.end(), uint64_t{0}); }

// How many of `units` units each session gets: in proportion to its environments, rounded by largest remainder. Among
// equal remainders the session with more lanes comes first, which moves fewer members.
std::vector<uint64_t> Quotas(uint64_t units, const std::vector<SessionShare>& sessions, uint64_t environments) {
  std::vector<uint64_t> quotas, remainders;
  std::vector<size_t> order(sessions.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (const SessionShare& session : sessions) {
    quotas.push_back(units * session.environments / environments);
    remainders.push_back(units * session.environments % environments);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (remainders[a] != remainders[b]) return remainders[a] > remainders[b];
    return Sum(sessions[a].lanes) > Sum(sessions[b].lanes);
  });
  uint64_t left = units - std::accumulate(quotas.begin(), quotas.end(), uint64_t{0});
  for (size_t i = 0; left > 0; ++i, --left) ++quotas[order[i]];
  return quotas;
}

struct Held {
  uint32_t lanes;
  uint32_t member;
  size_t session;
};

// All pairs of a session and a member with their lanes, most lanes first.
std::vector<Held> HeldLanes(const std::vector<SessionShare>& sessions) {
  std::vector<Held> held;
  for (size_t s = 0; s < sessions.size(); ++s) {
    for (uint32_t m = 0; m < sessions[s].lanes.size(); ++m) {
      if (sessions[s].lanes[m] > 0) held.push_back({sessions[s].lanes[m], m, s});
    }
  }
  std::stable_sort(held.begin(), held.end(), [](const Held& a, const Held& b) {
    return a.lanes != b.lanes ? a.lanes > b.lanes : a.member < b.member;
  });
  return held;
}

}  // namespace

std::vector<std::vector<uint32_t>> DivideMembers(uint32_t members, const std::vector<SessionShare>& sessions) {
  std::vector<std::vector<uint32_t>> divided;
  uint64_t environments = 0;
  for (const SessionShare& session : sessions) {
    divided.push_back(session.lanes);
    environments += session.environments;
  }
  if (environments == 0) return divided;
  const auto each = static_cast<uint32_t>(std::max<uint64_t>(1, environments / members));  // lanes of a member
  const bool shared = std::any_of(sessions.begin(), sessions.end(), [each](const SessionShare& session) {
    return session.environments > 0 && session.environments < each;
  });
  const uint32_t unit = shared ? 1 : each;  // lanes or whole members
  std::vector<uint64_t> left = Quotas(uint64_t{each} / unit * members, sessions, environments);
  for (uint64_t& lanes : left) lanes *= unit;
  for (auto& lanes : divided) lanes.assign(members, 0);
  std::vector<uint32_t> missing(members, each);
  const std::vector<Held> held = HeldLanes(sessions);
  const auto give = [&](size_t session, uint32_t member, uint64_t lanes) {
    divided[session][member] += static_cast<uint32_t>(lanes);
    missing[member] -= static_cast<uint32_t>(lanes);
    left[session] -= lanes;
  };
  // Whole members: first to those who serve them, then to whoever has room.
  for (const Held& h : held) {
    if (missing[h.member] == each && left[h.session] >= each) give(h.session, h.member, each);
  }
  for (uint32_t m = 0; m < members; ++m) {
    const auto room = std::find_if(left.begin(), left.end(), [&](uint64_t lanes) { return lanes >= each; });
    if (missing[m] == each && room != left.end()) give(static_cast<size_t>(room - left.begin()), m, each);
  }
  // Shared members.
  for (const Held& h : held) give(h.session, h.member, std::min<uint64_t>(missing[h.member], left[h.session]));
  for (uint32_t m = 0; m < members; ++m) {
    for (size_t s = 0; s < left.size(); ++s) give(s, m, std::min<uint64_t>(missing[m], left[s]));
  }
  return divided;
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
