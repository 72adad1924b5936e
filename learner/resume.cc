#include "learner/resume.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "learner/schedule.h"

namespace datacom::learner {
absl::Status CheckResume(const v1::LearnerCheckpoint& checkpoint, const std::string& run_id,
                         const v1::Experiment& resolved) {
  if (checkpoint.run_id() != run_id) {
    return absl::FailedPreconditionError(absl::StrCat("the checkpoint at update ", checkpoint.update(),
                                                      " belongs to run ", checkpoint.run_id(),
                                                      ", but this learner belongs to run ", run_id));
  }
  ASSIGN_OR_RETURN(v1::Experiment written, ParseExperiment(checkpoint.experiment(), "the checkpoint's experiment"));
  // Resolved again: the build that wrote it may have known fewer settings.
  if (FixedSettings(ResolveExperiment(std::move(written))) != FixedSettings(resolved)) {
    return absl::InvalidArgumentError(absl::StrCat("the experiment differs from the one of the checkpoint at update ",
                                                   checkpoint.update(), ": a resumed run may change only ",
                                                   kFreeOnResume));
  }
  if (const uint64_t last = Schedule::Of(resolved).last_update(); checkpoint.update() > last) {
    return absl::InvalidArgumentError(absl::StrCat("run.env_steps=", resolved.run().env_steps(), " ends at update ",
                                                   last, ", but the checkpoint is already at update ",
                                                   checkpoint.update()));
  }
  return absl::OkStatus();
}

}  // namespace datacom::learner
