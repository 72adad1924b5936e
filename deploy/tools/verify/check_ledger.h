// Verifies the ledger: checksums and order of the step files, violations.csv against them, and the rows of episodes.csv
// against the recount of their steps. Not thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_LEDGER_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_LEDGER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/records/csv.h"
#include "common/records/ledger.h"
#include "deploy/tools/verify/run.h"
#include "replay/episodes.h"

namespace datacom::verify {

inline std::string Name(const LedgerStep& at) {
  return absl::StrCat("session ", at.session, ", environment ", at.environment, ", episode ", at.episode, ", step ",
                      at.step);
}

// What is wrong with the place of a transition after the newest one of its environment, empty if nothing is: a step
// follows the step before it in its episode, or begins a later episode with step 0. So no transition occurs twice.
// `all_known`: no transition of the member before it is unknown.
std::string WrongPlace(const LedgerStep& next, const replay::NewestRow& newest, bool all_known);

// The newest step of an environment, and the costs of its episode up to there.
struct CountedEpisode {
  replay::NewestRow newest;
  bool whole = false;  // its episode has been seen from step 0
  double sum_cost = 0, max_violation = 0;
  uint32_t violating_steps = 0;
};

inline constexpr char kEpisodesFile[] = "episodes.csv";

struct EpisodeRow {
  size_t row = 0;  // in the file
  uint64_t last_row = 0;
  uint32_t session = 0, environment = 0, episode = 0, length = 0;
  uint64_t line() const { return row + 2; }
};

// The rows of episodes.csv, by member and last transition.
class EpisodeRecords {
 public:
  // Reports what is wrong with the file by itself and against the checkpoint.
  explicit EpisodeRecords(VerifiedRun* run);

  // The row of the episode that ended with the member's transition `last_row` (from 1); null when there is none. Fast
  // when called in ascending order.
  const EpisodeRow* Find(uint32_t member, uint64_t last_row);
  // Reports a row that differs from the recount of its steps. `counted`: after the episode's last step.
  void CompareWithSteps(const EpisodeRow& row, const LedgerStep& last, const CountedEpisode& counted);
  // Reports every cell that differs from an episode that was assembled from its rows.
  void CompareWithEpisode(uint32_t member, const EpisodeRow& row, const v1::Episode& episode);
  bool known() const { return known_; }  // false: the file is missing or damaged
  uint64_t rows() const { return csv_.rows(); }
  uint64_t recounted = 0, assembled = 0;  // rows compared

 private:
  bool CheckHeader() const;
  void Add(size_t number);
  void FindRepeated();
  void CompareWithCheckpoint(size_t kept);
  void Expect(const EpisodeRow& row, const std::string& column, const std::string& value, const std::string& other);

  VerifiedRun* const run_;
  const std::vector<std::string> columns_;
  Csv csv_;
  bool known_ = false;
  std::vector<std::vector<EpisodeRow>> rows_;  // by member, sorted by last_row
  std::vector<size_t> next_;                   // where the last Find of each member ended
};

// A violation of violations.csv that has been compared with its step.
struct SeenViolation {
  uint64_t row = 0;  // its transition, from 0
  uint64_t id = 0;
  uint32_t crc = 0;  // ViolationChecksum
};
// CRC-32C of a violation's line without the actor, whom the rings do not know.
uint32_t ViolationChecksum(LedgerViolation violation);

struct LedgerState {
  std::vector<std::unique_ptr<StepReader>> files;      // by member; null where there is none
  std::vector<std::vector<SeenViolation>> violations;  // by member, in the member's order; from `wanted_from` on
};

// `wanted_from`: for each member the first row whose violations are kept. `actors`: names by session.
LedgerState VerifyLedger(VerifiedRun* run, const std::vector<uint64_t>& wanted_from,
                         const std::map<uint32_t, std::string>& actors, EpisodeRecords* episodes);

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_LEDGER_H_
// SPDX-License-Identifier: Apache-2.0
