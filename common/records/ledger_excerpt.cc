#include "common/records/ledger.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom {
namespace {

bool SameEpisode(const LedgerViolation& a, const LedgerViolation& b) {
  return a.member == b.member && a.session == b.session && a.environment == b.environment && a.episode == b.episode;
}

// The largest violations so far, one of an episode, largest first. An episode that was pushed out by `most` larger ones
// can return only with a larger violation.
class Largest {
 public:
  explicit Largest(size_t most) : most_(most) {}

  void Add(const LedgerViolation& violation) {
    const auto same = std::find_if(kept_.begin(), kept_.end(),
                                   [&](const LedgerViolation& kept) { return SameEpisode(kept, violation); });
    if (same != kept_.end()) {
      if (!(violation.cost > same->cost)) return;
      kept_.erase(same);
    }
    const auto place = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const LedgerViolation& kept) { return violation.cost > kept.cost; });
    kept_.insert(place, violation);
    if (kept_.size() > most_) kept_.pop_back();
  }

  const std::vector<LedgerViolation>& kept() const { return kept_; }

 private:
  const size_t most_;
  std::vector<LedgerViolation> kept_;
};

}  // namespace

absl::StatusOr<size_t> CopyLargestViolations(const std::string& run_dir, size_t most, const std::string& target) {
  Largest largest(most);
  RETURN_IF_ERROR(VisitViolations(run_dir, [&](const LedgerViolation& violation) { largest.Add(violation); }));
  const std::vector<LedgerViolation>& kept = largest.kept();
  if (kept.empty()) return 0;
  std::error_code error;
  if (std::filesystem::equivalent(run_dir, target, error)) {
    return absl::InvalidArgumentError(absl::StrCat(target, " is the run itself, whose ledger would be lost"));
  }
  std::filesystem::remove_all(target + "/ledger", error);
  uint32_t members = 0;
  for (const LedgerViolation& violation : kept) members = std::max(members, violation.member + 1);
  const auto action_dim = static_cast<uint32_t>(kept[0].executed_action.size());
  ASSIGN_OR_RETURN(const std::unique_ptr<LedgerWriter> writer, LedgerWriter::Open({target, members, action_dim}, {}));
  for (const LedgerViolation& violation : kept) {
    ASSIGN_OR_RETURN(const std::vector<LedgerStep> steps, ReadEpisode(run_dir, violation));
    for (const LedgerStep& step : steps) {
      if (step.step <= violation.step) RETURN_IF_ERROR(writer->AppendStep(violation.member, step));
    }
    RETURN_IF_ERROR(writer->AppendViolation(violation));
  }
  RETURN_IF_ERROR(writer->Flush(/*sync=*/false));
  return kept.size();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
