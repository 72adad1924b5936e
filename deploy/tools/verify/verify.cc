#include "deploy/tools/verify/verify.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "deploy/tools/verify/check_ledger.h"
#include "deploy/tools/verify/check_rings.h"
#include "deploy/tools/verify/run.h"

namespace datacom::verify {
namespace {

// Reads the parts in the order that verify.h explains.
void VerifyParts(VerifiedRun* run) {
  SessionFiles sessions(run);
  EpisodeRecords episodes(run);
  const std::vector<MemberRings> rings = OpenRings(run);
  LedgerState ledger = VerifyLedger(run, FirstRows(rings), sessions.Actors(), &episodes);
  sessions.Compare(VerifyRings(run, rings, &ledger, &episodes));
  sessions.CheckStarts(rings);
  run->report->Part(
      "episodes", absl::StrCat(Count(episodes.rows(), "row"), ", ", episodes.recounted, " recounted from the ledger, ",
                               episodes.assembled, " assembled from the rings"));
  bool learned = VerifyProgress(run) || episodes.rows() > 0;
  for (const auto& steps : ledger.files) learned = learned || (steps != nullptr && steps->records() > 0);
  VerifyTensorboard(run);
  VerifyPolicies(run);
  VerifyCheckpoints(run, rings, learned);
  FindLeftovers(run);
}

}  // namespace

absl::StatusOr<Verification> VerifyRun(const std::string& run_dir, bool repair) {
  Progress progress;
  std::string done;
  for (bool again = false;; again = true) {
    Report report(run_dir);
    ASSIGN_OR_RETURN(const std::unique_ptr<VerifiedRun> run, OpenRun(run_dir, repair, &report, &progress));
    if (repair && run != nullptr && run->running) {
      return absl::FailedPreconditionError(absl::StrCat("--repair: processes of ", run_dir, " run; stop them first"));
    }
    if (run != nullptr) VerifyParts(run.get());
    if (!repair || again || report.repairs().empty()) return Verification{report.sound(), done + report.Text()};
    for (const Report::Repair& make : report.repairs()) {
      const absl::StatusOr<std::string> made = make();
      absl::StrAppend(&done, made.ok() ? "repaired: " : "not repaired: ",
                      made.ok() ? *made : std::string(made.status().message()), "\n");
    }
  }
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
