// The findings of a verification: a line for each kind of part, notes, and damage with file and position. Some findings
// carry a repair. Not thread-safe; Progress writes to stderr.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_FINDINGS_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_FINDINGS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"

namespace datacom::verify {

class Report {
 public:
  // `run_dir`: cut from the paths in what is told.
  explicit Report(absl::string_view run_dir) : folder_(std::string(run_dir) + "/") {}

  // Changes the run folder and returns what it did.
  using Repair = std::function<absl::StatusOr<std::string>()>;

  void Part(absl::string_view kind, absl::string_view counts);
  // Something that is no damage but worth knowing.
  void Note(absl::string_view text, Repair repair = nullptr);
  // `file` is relative to the run folder; `what` begins with the position. Only the first findings of a file are kept;
  // the others are counted.
  void Damage(const std::string& file, absl::string_view what, Repair repair = nullptr);

  bool sound() const { return damages_.empty(); }
  const std::vector<Repair>& repairs() const { return repairs_; }
  std::string Text() const;  // lines

 private:
  void Keep(Repair repair);

  const std::string folder_;
  std::string parts_, notes_;
  std::vector<std::string> damages_;
  std::map<std::string, uint64_t> by_file_;  // number of findings
  std::vector<Repair> repairs_;
};

// Tells on stderr how far long work is: the first time after two seconds, then every two seconds.
class Progress {
 public:
  void Tell(absl::string_view what, uint64_t done, uint64_t all);

 private:
  Clock::Time told_ = Clock::Real().Now();
};

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_FINDINGS_H_
// SPDX-License-Identifier: Apache-2.0
