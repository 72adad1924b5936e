// The safety ledger of a run, ledger/ in its folder: every violation of training (a transition with cost > 0), and what
// it takes to simulate its episode again. Rings forget rows, the ledger does not.
//
//   violations.csv      a row a violation, by environment step, then member:
//     id                from 1, without gaps
//     member,seed       actor,session,environment,episode,step: which transition (step from 0 within the episode)
//     env_steps         its number among the member's transitions, from 1
//     policy_version    update of the snapshot that acted
//     delta,cvar,slack  what the learned constraint said of the state acted in; empty for rules without one
//     cost              of the state reached
//     raw_action0..     what the policy chose
//     executed_action0..  what the environment was given
//   member_<m>.steps    every transition of member m: a header of 16 bytes {magic, action_dim u32, m u32}, then a
//                       record of 24 + 4 action_dim bytes a transition, in the member's order, little-endian:
//     session, environment, episode, step u32; cost f32; check u32 (StepCheck); executed action f32 [action_dim]
//
// An episode starts from the random stream named by (run seed, member seed, session, environment, episode), so that and
// its actions are all of it. Both files are prefixes of a pure function of the transitions: a checkpoint holds their
// lengths, a resumed run cuts them back and writes the same bytes again. Floats are written so that they read back to
// the same bits.
#ifndef DATACOM_COMMON_RECORDS_LEDGER_H_
#define DATACOM_COMMON_RECORDS_LEDGER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/records/append_file.h"

namespace datacom {

struct LedgerStep {
  uint32_t session = 0, environment = 0, episode = 0, step = 0;
  float cost = 0;                // raw, signed, of the state reached
  uint32_t check = 0;            // StepCheck
  std::vector<float> execution;  // [action_dim], what the environment was given
};

// What a learned constraint said of the state acted in.
struct LedgerJudgement {
  float delta = 0, cvar = 0, slack = 0;
};

struct LedgerViolation {
  uint64_t id = 0;
  uint32_t member = 0;
  uint64_t seed = 0;
  std::string actor;
  uint32_t session = 0, environment = 0, episode = 0, step = 0;
  uint64_t env_steps = 0;
  uint64_t policy_version = 0;
  std::optional<LedgerJudgement> judgement;
  float cost = 0;
  std::vector<float> raw_action, executed_action;  // [action_dim]
};

// CRC-32 of a transition's float32 bytes: observation and next observation [obs_dim], reward; then absorbing as a byte.
uint32_t StepCheck(const float* observation, const float* next_observation, int obs_dim, float reward, bool absorbing);

// Bytes of a step file with so many transitions.
uint64_t LedgerStepBytes(uint64_t transitions, uint32_t action_dim);

// Steps reach their files first: a row of violations.csv never stands without its step. Not thread-safe. Appending
// blocks only when a buffer is full; Flush blocks on the disk.
class LedgerWriter {
 public:
  struct Options {
    std::string run_dir;
    uint32_t members = 1, action_dim = 1;
  };
  // Goes on at `offsets` (an earlier Offsets(), by path), dropping what follows; a path that is absent begins anew.
  // DATA_LOSS naming a file that is shorter, or step files of unequal numbers of transitions; FAILED_PRECONDITION for a
  // header of another form.
  static absl::StatusOr<std::unique_ptr<LedgerWriter>> Open(const Options& options,
                                                            const std::map<std::string, uint64_t>& offsets);

  uint64_t transitions(uint32_t member) const;  // in its step file
  absl::Status AppendStep(uint32_t member, const LedgerStep& step);
  // After its step. The id is given here, whatever the violation's; commas, quotes and line breaks in the actor's name
  // become '_'.
  absl::Status AppendViolation(const LedgerViolation& violation);
  absl::Status Flush(bool sync);
  std::vector<std::pair<std::string, uint64_t>> Offsets() const;  // path below the run folder, length

 private:
  explicit LedgerWriter(const Options& options) : options_(options) {}
  absl::Status OpenSteps(uint32_t member, uint64_t offset);
  absl::Status OpenViolations(uint64_t offset);
  absl::Status FlushSteps(bool sync);

  const Options options_;
  std::unique_ptr<AppendFile> violations_;          // outlives steps_, so that what is left goes out in the same order
  std::vector<std::unique_ptr<AppendFile>> steps_;  // one a member
  uint64_t last_id_ = 0;
  std::string record_;  // workspace
};

// Readers; thread-safe; block on the disk; a last line or record that is cut short does not count.
// NOT_FOUND when there is no ledger or no such id, saying how many there are; DATA_LOSS naming file and line that
// cannot be read.
absl::StatusOr<LedgerViolation> ReadViolation(const std::string& run_dir, uint64_t id);
// The steps of the violation's episode, from its first, as far as the ledger goes. DATA_LOSS naming the file and what
// is missing: the header, a step, the violating one.
absl::StatusOr<std::vector<LedgerStep>> ReadEpisode(const std::string& run_dir, const LedgerViolation& violation);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_LEDGER_H_
