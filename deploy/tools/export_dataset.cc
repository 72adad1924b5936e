#include "deploy/tools/export_dataset.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/task_files.h"
#include "common/records/dataset.h"
#include "replay/ring.h"
#include "replay/row_offsets.h"

namespace datacom::tools {
namespace {

// Rows of a ring, grouped by episode.
struct Rows {
  std::vector<const char*> rows;
  uint64_t whole_episodes = 0;
};

Rows ByEpisode(const replay::Ring& ring, const replay::RowOffsets& offsets, uint64_t first, uint64_t end) {
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;  // session, environment, episode
  std::map<Key, size_t> places;
  std::vector<std::vector<const char*>> episodes;  // in the order of their first rows
  for (uint64_t number = first; number < end; ++number) {
    const char* row = ring.record(number);
    const Key key{At<uint32_t>(row, offsets.session), At<uint32_t>(row, offsets.environment),
                  At<uint32_t>(row, offsets.episode)};
    const auto [place, is_new] = places.emplace(key, episodes.size());
    if (is_new) episodes.emplace_back();
    episodes[place->second].push_back(row);
  }
  Rows out;
  out.rows.reserve(end - first);
  for (const std::vector<const char*>& episode : episodes) {
    out.rows.insert(out.rows.end(), episode.begin(), episode.end());
    out.whole_episodes += At<uint32_t>(episode.front(), offsets.step) == 0 && At<uint8_t>(episode.back(), offsets.last);
  }
  return out;
}

absl::StatusOr<std::vector<uint64_t>> Members(const ExportOptions& options, const v1::Experiment& experiment) {
  const uint64_t count = static_cast<uint64_t>(experiment.members_size());
  std::vector<uint64_t> members = options.members;
  if (members.empty()) {
    members.resize(count);
    std::iota(members.begin(), members.end(), 0);
  }
  for (const uint64_t member : members) {
    if (member >= count)
      return absl::InvalidArgumentError(absl::StrCat("member ", member, ": the run has ", count, " members"));
  }
  return members;
}

}  // namespace

absl::StatusOr<v1::DatasetManifest> ExportDataset(const ExportOptions& options, const v1::Experiment& resolved,
                                                  const RowSchema& schema) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> members, Members(options, resolved));
  if (!FileExists(options.rings))
    return absl::InvalidArgumentError(absl::StrCat(options.rings, " does not exist: the run has stored nothing"));
  absl::StatusOr<std::unique_ptr<FolderLock>> lock = FolderLock::Take(options.rings);
  if (absl::IsPermissionDenied(lock.status()))  // nor can a replay start where nobody may write
    lock = FolderLock::TakeFile(options.rings + "/lock");
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run's replay is using ", options.rings, ": export when the run has ended or is interrupted"));
  }
  if (!absl::IsNotFound(lock.status())) RETURN_IF_ERROR(lock.status());

  v1::DatasetManifest manifest;
  *manifest.mutable_experiment() = resolved;
  if (resolved.has_task_options()) DropTaskFiles(manifest.mutable_experiment()->mutable_task_options());
  const replay::RowOffsets offsets(schema);
  std::vector<std::unique_ptr<const replay::Ring>> rings;  // own the memory that `rows` points to
  std::vector<std::vector<const char*>> rows;
  for (const uint64_t number : members) {
    ASSIGN_OR_RETURN(std::unique_ptr<const replay::Ring> opened,
                     replay::Ring::OpenReadOnly({.path = absl::StrCat(options.rings, "/member_", number, ".rows"),
                                                 .schema_fingerprint = schema.fingerprint(),
                                                 .record_bytes = schema.stored_row_bytes()}));
    RETURN_IF_ERROR(opened->CheckBelongsTo(rings.empty() ? opened->run_id() : rings.front()->run_id(),
                                           static_cast<uint32_t>(number)));
    const uint64_t first = std::max(options.first, opened->first()), end = std::min(options.end, opened->cursor());
    if (first >= end) {
      return absl::InvalidArgumentError(absl::StrCat("member ", number,
                                                     " has none of the requested rows: it holds rows ", opened->first(),
                                                     "-", opened->cursor()));
    }
    Rows held = ByEpisode(*opened, offsets, first, end);
    v1::DatasetMember* member = manifest.add_members();
    member->set_member(static_cast<uint32_t>(number));
    member->set_seed(resolved.members(static_cast<int>(number)).seed());
    member->set_first_row(first);
    member->set_end_row(end);
    member->set_episodes(held.whole_episodes);
    manifest.set_run_id(opened->run_id());
    rows.push_back(std::move(held.rows));
    rings.push_back(std::move(opened));
  }
  RETURN_IF_ERROR(WriteDataset(options.out, schema, rows, &manifest));
  return manifest;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
