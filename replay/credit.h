// Divides the rows that a member may still get among the sessions that act for it. Not thread-safe (the store's mutex
// guards it); blocks nowhere.
#ifndef DATACOM_REPLAY_CREDIT_H_
#define DATACOM_REPLAY_CREDIT_H_

#include <cstdint>
#include <vector>

#include "replay/limiter.h"
#include "replay/sessions.h"

namespace datacom::replay {

class Credit {
 public:
  // Every member has the same limits.
  Credit(const Limiter& limiter, uint32_t members) : limiter_(limiter), turn_(members), lanes_(members) {}

  // Grants a member's sessions what its limits allow: `inserted` rows are committed, `completed` updates are done. All
  // sessions together hold at most half of the tolerance, but at least one step per environment, so that actors that
  // die or stall with unused credit leave enough for the others.
  void Grant(uint32_t member, uint64_t inserted, uint64_t completed, SessionTable* sessions);
  // Call it when the lanes of sessions changed.
  void CountLanes(const SessionTable& sessions);
  uint32_t lanes(uint32_t member) const { return lanes_[member]; }  // environments that act for a member

 private:
  uint64_t Goal(uint64_t environments, uint64_t sessions) const;

  const Limiter limiter_;
  std::vector<uint32_t> turn_;  // per member: number of the session that Grant considers first
  std::vector<uint32_t> lanes_;
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_CREDIT_H_
// SPDX-License-Identifier: Apache-2.0
