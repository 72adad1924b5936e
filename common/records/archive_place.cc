#include "common/records/archive_place.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<fs::path> WithoutLinks(const std::string& folder) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(AbsolutePath(WithoutSlash(folder)), error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("find ", folder));
  return path;
}

bool IsOrHolds(const fs::path& folder, const fs::path& path) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace

bool IsRemote(const std::string& place) {
  const size_t colon = place.find(':');
  return colon != std::string::npos && colon > 0 && place.find('/') > colon;
}

absl::Status CheckApart(const std::string& place, const std::string& run_dir) {
  absl::string_view folder = place;
  const bool named_folder = absl::ConsumePrefix(&folder, "file://");
  if (folder.empty() || (!named_folder && IsRemote(place))) return absl::OkStatus();
  ASSIGN_OR_RETURN(const fs::path archive, WithoutLinks(std::string(folder)));
  ASSIGN_OR_RETURN(const fs::path run, WithoutLinks(run_dir));
  if (!IsOrHolds(archive, run) && !IsOrHolds(run, archive)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("archive ", place, " and run folder ", run_dir,
                                                 ": one is the other or lies in it; name a place beside the run"));
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
