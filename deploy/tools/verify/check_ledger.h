// Verifies the ledger: checksums and order of the step files, violations.csv against them, and the rows of episodes.csv
// against the recount of their steps. Not thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_LEDGER_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_LEDGER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
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

// Checks that the transitions of a member follow each other in each environment of a session: a step follows the step
// before it in its episode, or begins a later episode with step 0. So no transition occurs twice. Sums up the costs of
// each open episode.
class StepOrder {
 public:
  struct Environment {
    bool known = false;
    bool whole = false;  // its episode has been seen from step 0
    uint32_t episode = 0, step = 0;
    double sum_cost = 0, max_violation = 0;
    uint32_t violating_steps = 0;
  };

  // `from_start`: the first transition to come is the member's first one.
  explicit StepOrder(bool from_start) : from_start_(from_start) {}

  // Some transitions are unknown: any may come next.
  void Skip() {
    from_start_ = false;
    last_ = nullptr;
    environments_.clear();
  }

  // Adds the next transition. Returns the state of its environment. `wrong` receives what is wrong with its place, if
  // anything.
  const Environment& Add(const LedgerStep& next, std::string* wrong) {
    Environment& environment = EnvironmentOf(next, wrong);
    const bool continues =
        environment.known && next.episode == environment.episode && next.step == environment.step + 1;
    const bool begins = next.step == 0 && (!environment.known || next.episode > environment.episode);
    if (!continues && !begins && (environment.known || from_start_)) {
      *wrong = environment.known
                   ? absl::StrCat(Name(next), " follows episode ", environment.episode, ", step ", environment.step)
                   : absl::StrCat(Name(next), " is the first of its environment");
    }
    if (!continues) environment = Environment{true, begins, next.episode, next.step, 0, 0, 0};
    environment.step = next.step;
    const double cost = std::max(0.0, static_cast<double>(next.cost));
    environment.sum_cost += cost;
    environment.max_violation = std::max(environment.max_violation, cost);
    if (cost > 0) ++environment.violating_steps;
    return environment;
  }

 private:
  Environment& EnvironmentOf(const LedgerStep& next, std::string* wrong) {
    if (next.environment >= replay::kMaxEnvironments) {
      *wrong = absl::StrCat(Name(next), ": there are at most ", replay::kMaxEnvironments, " environments");
      return nowhere_ = Environment{};
    }
    if (last_ == nullptr || last_session_ != next.session) {
      last_ = &environments_[next.session];
      last_session_ = next.session;
    }
    if (next.environment >= last_->size()) last_->resize(next.environment + 1);
    return (*last_)[next.environment];
  }

  bool from_start_;
  std::unordered_map<uint32_t, std::vector<Environment>> environments_;  // key: session
  std::vector<Environment>* last_ = nullptr;  // environments_[last_session_]; null before the first transition
  uint32_t last_session_ = 0;
  Environment nowhere_;
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
  // Reports a row that differs from the recount of its steps. `environment`: after the episode's last step.
  void CompareWithSteps(uint32_t member, const EpisodeRow& row, const LedgerStep& last,
                        const StepOrder::Environment& environment, const std::string& other);
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
