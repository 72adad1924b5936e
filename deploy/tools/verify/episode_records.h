// The rows of episodes.csv, by member and last transition. Not thread-safe; the constructor blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_EPISODE_RECORDS_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_EPISODE_RECORDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "deploy/tools/verify/run.h"
#include "deploy/tools/verify/step_order.h"
#include "replay/episodes.h"

namespace datacom::verify {

inline constexpr char kEpisodesFile[] = "episodes.csv";

struct EpisodeRow {
  uint64_t line = 0;  // number in the file, from 1
  uint64_t last_row = 0;
  uint32_t session = 0, environment = 0, episode = 0, length = 0;
  std::vector<std::string> cells;
};

class EpisodeRecords {
 public:
  // Reports what is wrong with the file by itself and against the checkpoint.
  explicit EpisodeRecords(VerifiedRun* run);

  // The row of the episode that ended with the member's transition `last_row` (from 1); null when there is none. Fast
  // when called in ascending order.
  const EpisodeRow* Find(uint32_t member, uint64_t last_row);
  // Reports a row that differs from the recount of its steps. `environment`: after the episode's last step.
  void CompareWithSteps(uint32_t member, const EpisodeRow& row, const Transition& last,
                        const StepOrder::Environment& environment, const std::string& other);
  // Reports every cell that differs from an episode that was assembled from its rows.
  void CompareWithEpisode(uint32_t member, const EpisodeRow& row, const replay::EpisodeSummary& episode);
  uint64_t rows() const { return count_; }
  uint64_t recounted = 0, assembled = 0;  // rows compared

 private:
  bool ReadHeader(absl::string_view line);
  void Add(absl::string_view line, uint64_t number);
  void FindRepeated();
  void CompareWithCheckpoint(absl::string_view text, uint64_t kept);
  void Expect(const EpisodeRow& row, const std::string& column, const std::string& value, const std::string& other);

  VerifiedRun* const run_;
  const std::vector<std::string> named_, logs_, numbers_;  // columns of named costs and of logs; all columns of numbers
  std::map<std::string, size_t> columns_;
  std::vector<std::vector<EpisodeRow>> rows_;  // by member, sorted by last_row
  std::vector<size_t> next_;                   // where the last Find of each member ended
  uint64_t count_ = 0;
};

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_EPISODE_RECORDS_H_
// SPDX-License-Identifier: Apache-2.0
