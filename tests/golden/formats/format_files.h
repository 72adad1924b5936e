// Writes one small file of every durable format with this build's code, and unpacks the golden files, which earlier
// builds wrote the same way. Functions; thread-safe for distinct folders; they block on the disk.
#ifndef DATACOM_TESTS_GOLDEN_FORMATS_FORMAT_FILES_H_
#define DATACOM_TESTS_GOLDEN_FORMATS_FORMAT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "datacom/v1/experiment.pb.h"
#include "replay/ring.h"
#include "replay/store.h"

namespace datacom::golden {

inline constexpr char kGoldenFolder[] = "tests/golden/formats";  // from the repository's root
inline constexpr char kNewest[] = "5";                           // the subfolder that holds today's formats
inline constexpr uint64_t kCheckpointUpdate = 40;

// All files that WriteFormats writes, relative to its folder.
const std::vector<std::string>& FormatFiles();
// `folder` must not exist. The same bytes every time, except dataset/manifest.textproto (it names the revision) and
// the order of the names in replay/sessions.
absl::Status WriteFormats(const std::string& folder);

// Golden files have no zeros at their end: memory-mapped files are mostly empty. Pack removes these zeros; Unpack
// copies golden files to `to` and appends the zeros again.
absl::Status Pack(const std::string& folder);
absl::Status Unpack(const std::string& golden, const std::string& to);

// The experiment of the learner's run, not resolved.
v1::Experiment GoldenExperiment();
// The options with which the rings were written.
replay::Options GoldenStore(const std::string& folder, const Clock* clock);
replay::Ring::Options GoldenRing(const std::string& folder);

}  // namespace datacom::golden

#endif  // DATACOM_TESTS_GOLDEN_FORMATS_FORMAT_FILES_H_
// SPDX-License-Identifier: Apache-2.0
