#include "common/records/resume.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/config/experiment.h"

namespace datacom {

absl::Status CheckResume(const v1::LearnerCheckpoint& checkpoint, const std::string& run_id, const std::string& fixed,
                         const UpdateSchedule& updates) {
  const std::string name = absl::StrCat("the checkpoint at update ", checkpoint.update());
  if (checkpoint.run_id() != run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " belongs to run ", checkpoint.run_id(), ", not to run ", absl::Utf8SafeCHexEscape(run_id)));
  }
  ASSIGN_OR_RETURN(v1::Experiment written, ParseExperiment(checkpoint.experiment(), "the checkpoint's experiment"));
  // Resolved again: the build that wrote it may have known fewer settings.
  if (FixedSettings(ResolveExperiment(std::move(written))) != fixed) {
    return absl::InvalidArgumentError(absl::StrCat("the experiment differs from the one of ", name,
                                                   ": a resumed run may change only ", kFreeOnResume));
  }
  if (checkpoint.update() <= updates.LastUpdate()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("run.env_steps=", updates.env_steps, " ends at update ",
                                                 updates.LastUpdate(), ", but ", name, " is later"));
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
