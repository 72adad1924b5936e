// Divides the members of a run over its sessions. Pure functions; thread-safe.
//
// Every member gets the same number of lanes: all environments of the sessions divided by the members, rounded down,
// but at least one. Each session gets members in proportion to its environments, so that few actors need the snapshots
// of a member. Where a member has more lanes than some session has environments (usually: more sessions than members),
// sessions share members and get lanes in that proportion; otherwise each member belongs to one session, which then
// runs fewer than one member's lanes more than it has environments.
//
// When a session comes or goes, a member stays where it has most lanes, unless that session's share has become too
// small for it. So few members move, and the members of a session need not have consecutive numbers.
#ifndef DATACOM_REPLAY_DIVISION_H_
#define DATACOM_REPLAY_DIVISION_H_

#include <cstdint>
#include <vector>

namespace datacom::replay {

struct SessionShare {
  uint32_t environments = 0;    // 0: the session gets no lanes
  std::vector<uint32_t> lanes;  // [members], now
};

// The lanes of every session and member. `sessions` are in a fixed order, in which ties are decided. Without
// environments nothing changes.
std::vector<std::vector<uint32_t>> DivideMembers(uint32_t members, const std::vector<SessionShare>& sessions);

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_DIVISION_H_
// SPDX-License-Identifier: Apache-2.0
