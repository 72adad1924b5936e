// Why actors and the learner wait, in words for people. Functions over tables and draws, which the store's mutex
// guards.
#ifndef DATACOM_REPLAY_WAITS_H_
#define DATACOM_REPLAY_WAITS_H_

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "replay/draws.h"
#include "replay/tables.h"

namespace datacom::replay {

inline constexpr double kExpectedWaitSeconds = 2;  // a longer wait is explained to people

// The members that lack rows for the draw of `update`, and their sessions; empty if none does.
std::string DescribeMissingRows(const Tables& tables, uint64_t update, const Clock& clock);
// After so many seconds without a row a connected session counts as silent if the learner waits for rows of a member
// that it serves and has credit for, while another session is connected. Not in lockstep.
inline constexpr double kSilentSeconds = 120;

// Sets Session::silent.
void FindSilent(const Draws& draws, const Clock& clock, Tables* tables);
// Sets Session::has_no_credit and, once a wait is longer than expected, Session::waiting_for of every living session:
// it lacks credit, or a policy that may use it.
void UpdateWaits(const Draws& draws, const Clock& clock, Tables* tables);

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_WAITS_H_
// SPDX-License-Identifier: Apache-2.0
