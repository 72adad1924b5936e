// The safety ledger of a run, in its folder ledger/: every violation of training (a transition with cost > 0) and the
// data to simulate its episode again. Unlike the rings it keeps everything.
//
//   violations.csv      one row per violation, ordered by environment step, then member:
//     id                from 1, without gaps
//     member,seed       actor,session,environment,episode,step: which transition (step from 0 within the episode)
//     env_steps         its number among the member's transitions, from 1
//     policy_version    update of the snapshot that acted
//     delta,cvar,slack  of the learned constraint in the state before the action; empty for rules without one
//     cost              of the reached state
//     raw_action0..     unfiltered policy action
//     executed_action0..  action applied to the environment
//   member_<m>.steps    a record for every transition of member m, in the member's order (docs/formats.md 7)
//
// An episode is a function of its actions and of the random stream keyed by (run seed, member seed, session,
// environment, episode). Both files are prefixes of a pure function of the transitions: a checkpoint holds their
// lengths, and a resumed run cuts them back and writes the same bytes again. Floats are written so that they read back
// to the same bits.
#ifndef DATACOM_COMMON_RECORDS_LEDGER_H_
#define DATACOM_COMMON_RECORDS_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/framed_file.h"
#include "common/records/append_file.h"

namespace datacom {

struct LedgerStep {
  uint32_t session = 0, environment = 0, episode = 0, step = 0;
  float cost = 0;                // raw, signed, of the reached state
  uint32_t check = 0;            // StepCheck
  std::vector<float> execution;  // [action_dim], action applied to the environment
};

// Values of a learned constraint in the state before the action.
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

// The violation of a member's transition `row`, from 0, as far as its step says it.
LedgerViolation ViolationOf(uint32_t member, uint64_t seed, uint64_t row, const LedgerStep& step);

// CRC-32C of a transition's float32 bytes: observation and next observation [obs_dim], reward; then absorbing as a
// byte.
uint32_t StepCheck(const float* observation, const float* next_observation, int obs_dim, float reward, bool absorbing);

// Names and layout of the files, for the readers, the writer and the tools that check the files. Pure functions.
namespace ledger {

inline constexpr char kViolationsPath[] = "ledger/violations.csv";
inline constexpr size_t kStepHeaderBytes = sizeof(FrameHeader) + sizeof(Owner) + sizeof(uint64_t);

inline void PutFloats(const float* values, size_t count, std::string* out) {
  out->append(reinterpret_cast<const char*>(values), count * sizeof(float));
}

std::string StepsPath(uint32_t member);                           // below the run folder
std::string StepHeader(const Owner& owner, uint32_t action_dim);  // kStepHeaderBytes
// FAILED_PRECONDITION or DATA_LOSS when a step file that begins with `content` has another version, owner or number of
// actions. Without an owner's run id it may be of any run.
absl::Status CheckStepHeader(const std::string& path, absl::string_view content, const Owner& owner,
                             uint32_t action_dim);
constexpr size_t StepBytes(uint32_t action_dim) { return 28 + sizeof(float) * action_dim; }
// The checksum at the end of a record, of its number in the file and the bytes before.
uint32_t RecordChecksum(uint64_t number, absl::string_view bytes);
std::vector<std::string> ViolationColumns(uint32_t action_dim);
// The cells of a violation, in the order of ViolationColumns. Commas, quotes and control characters in the actor's name
// become '_', because readers split rows at commas and line breaks.
std::vector<std::string> ViolationCells(const LedgerViolation& violation);

}  // namespace ledger

// Bytes of a step file with `transitions` records.
uint64_t LedgerStepBytes(uint64_t transitions, uint32_t action_dim);

// Steps are written to their files before violations, so that every row of violations.csv has its step. Not
// thread-safe. Appending blocks only when a buffer is full; Flush blocks on the disk.
class LedgerWriter {
 public:
  struct Options {
    std::string run_dir;
    uint32_t members = 1, action_dim = 1;
    std::string run_id;
  };
  // Continues after `ends` (an earlier Ends()); a file without an end starts empty. The errors of AppendFile::Open;
  // DATA_LOSS, naming the files, when step files have unequal numbers of transitions; FAILED_PRECONDITION for another
  // header or owner. Changes nothing before a Flush.
  static absl::StatusOr<std::unique_ptr<LedgerWriter>> Open(const Options& options, const FileEnds& ends);

  uint64_t transitions(uint32_t member) const;  // in its step file
  absl::Status AppendStep(uint32_t member, const LedgerStep& step);
  // Call after AppendStep of its transition. Assigns the id and ignores violation.id. Commas, quotes and control
  // characters in the actor's name become '_'.
  absl::Status AppendViolation(const LedgerViolation& violation);
  absl::Status Flush(bool sync);
  FileEnds Ends() const;

 private:
  explicit LedgerWriter(const Options& options) : options_(options) {}
  absl::Status OpenSteps(uint32_t member, const FileEnd& end);
  absl::Status OpenViolations(const FileEnd& end);
  absl::Status FlushSteps(bool sync);

  const Options options_;
  std::unique_ptr<AppendFile> violations_;          // destroyed after steps_, so that steps are written first
  std::vector<std::unique_ptr<AppendFile>> steps_;  // one per member
  uint64_t last_id_ = 0;
  std::string record_;  // workspace
};

// The rows of violations.csv in their order, as far as the file went when it was opened. Not thread-safe; blocks on the
// disk.
class ViolationReader {
 public:
  // NOT_FOUND without a file; DATA_LOSS, naming line 1, when it is not the header of a ledger, or of one with another
  // number of actions. A file whose header is unfinished has no rows.
  static absl::StatusOr<std::unique_ptr<ViolationReader>> Open(const std::string& run_dir,
                                                               std::optional<uint32_t> action_dim = {});
  // Reads the next row; false when there is no other whole one.
  bool Next();
  uint64_t id() const { return lines_ == 0 ? 0 : lines_ - 1; }  // of the row that was read last
  // DATA_LOSS, naming the line, when the row says another id.
  absl::Status CheckId() const;
  // The row, whose id is what it says. DATA_LOSS, naming the line, for other columns or a cell that is not a number.
  absl::StatusOr<LedgerViolation> Violation() const;
  const std::string& text() const { return line_; }
  uint64_t lines() const { return lines_; }  // whole ones that were read, with the header
  uint64_t bytes() const { return bytes_; }  // of these lines
  uint64_t size() const { return size_; }    // of the file when it was opened

 private:
  ViolationReader(std::string path, uint64_t size);

  const std::string path_;
  std::ifstream file_;
  const uint64_t size_;
  uint64_t bytes_ = 0, lines_ = 0;
  uint32_t action_dim_ = 0;
  std::string line_;
};

// Readers are thread-safe, block on the disk and ignore an unfinished last line or record.
// The number of violations, which is the id of the last one; 0 without a ledger. Reads only the end of the file.
// DATA_LOSS, naming the file, when no row is found there.
absl::StatusOr<uint64_t> CountViolations(const std::string& run_dir);
// NOT_FOUND, naming the existing ids, when there is no ledger or no such id; DATA_LOSS, naming file and line, when the
// line cannot be read.
absl::StatusOr<LedgerViolation> ReadViolation(const std::string& run_dir, uint64_t id);
// Calls `visit` for every violation in the order of the file. Errors as ReadViolation's.
absl::Status VisitViolations(const std::string& run_dir, const std::function<void(const LedgerViolation&)>& visit);
// All recorded steps of the violation's episode, from the first. NOT_FOUND without the member's step file; DATA_LOSS,
// naming the file, when a step or the violating step is missing.
absl::StatusOr<std::vector<LedgerStep>> ReadEpisode(const std::string& run_dir, const LedgerViolation& violation);

// The records of a step file by their numbers, as many as the file had when it was opened. Not thread-safe; blocks on
// the disk.
class StepReader {
 public:
  // NOT_FOUND without a file; FAILED_PRECONDITION or DATA_LOSS when it is not one of this owner and version. An owner
  // without a run id: of any run.
  static absl::StatusOr<std::unique_ptr<StepReader>> Open(const std::string& path, const Owner& owner,
                                                          uint32_t action_dim);
  uint64_t records() const { return records_; }
  uint64_t tail() const { return tail_; }  // bytes of an unfinished record
  // Reads the records from `from` on, at most `count`, and returns their number, which is smaller than records() says
  // if a learner resumes and cuts the file.
  absl::StatusOr<uint64_t> Read(uint64_t from, uint64_t count);
  // Record `number`, which must be among those read last; valid until the next call. DATA_LOSS for a wrong checksum.
  absl::StatusOr<const LedgerStep*> Step(uint64_t number);

 private:
  StepReader(std::string path, uint32_t action_dim);

  const std::string path_;
  const size_t bytes_;  // of a record
  uint64_t records_ = 0, tail_ = 0;
  uint64_t first_ = 0;  // number of the first record in the block
  std::string block_;
  LedgerStep step_;
};

// A small ledger with the largest violations of another one, which results keep instead of the whole. It has the same
// files, so its violations are read and simulated again like those of a run.
//
//   violations.csv    the violations, the largest cost first; ids are new, all other columns as they were
//   member_<m>.steps  the steps of their episodes up to the violation; of no run
//
// Copies the `most` violations with the largest cost, at most one of each episode (of equal ones the first), from
// run_dir/ledger to target/ledger, where a whole excerpt replaces an earlier one. Returns their number; with 0 nothing
// is written. INVALID_ARGUMENT if both are one folder, or something else is in target/ledger, which stays; the errors
// of ReadViolation, ReadEpisode and LedgerWriter. Thread-safe for different targets; blocks on the disk.
absl::StatusOr<size_t> CopyLargestViolations(const std::string& run_dir, size_t most, const std::string& target);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_LEDGER_H_
// SPDX-License-Identifier: Apache-2.0
