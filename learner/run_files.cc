#include "learner/run_files.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/sha256.h"

namespace datacom::learner {

absl::StatusOr<std::unique_ptr<RunFiles>> RunFiles::Open(const std::string& run_dir, const std::string& run_id,
                                                         const RunSettings& settings, const RowSchema& schema,
                                                         const v1::LearnerCheckpoint& checkpoint, RowSource source) {
  FileEnds ends;
  for (const v1::FileEnd& file : checkpoint.files()) ends[file.path()] = {file.bytes(), file.sha256()};
  if (ends.empty() && !checkpoint.run_id().empty()) {
    return absl::DataLossError(
        absl::StrCat(CheckpointFolder(run_dir), "/", checkpoint.update(), ": it names no record files"));
  }
  RunRecords::Options options{run_dir,
                              settings.resolved->algorithm(),
                              {},
                              settings.schedule.updates().min_size,
                              schema.named_costs().names,
                              schema.logs().names,
                              settings.environment};
  for (const v1::Member& member : settings.resolved->members()) options.seeds.push_back(member.seed());
  std::unique_ptr<RunFiles> files(new RunFiles(run_dir, checkpoint.pretrain_update() + checkpoint.update()));
  ASSIGN_OR_RETURN(files->records_, RunRecords::Open(options, ends));
  ASSIGN_OR_RETURN(files->ledger_,
                   LedgerRecorder::Open(run_dir, run_id, options.seeds, schema, ends, std::move(source)));
  std::set<uint32_t> open;  // a longer run writes their policies again
  for (const v1::EpochRecord& epoch : checkpoint.open()) open.insert(epoch.epoch());
  for (uint32_t epoch = 0; epoch < checkpoint.next_epoch(); ++epoch) {
    if (open.contains(epoch)) continue;
    const std::string path = PoliciesPath(epoch);
    ASSIGN_OR_RETURN(files->policies_[path], EndOf(ends, path));
    RETURN_IF_ERROR(CheckRunFile(run_dir, path, files->policies_[path]));
  }
  return files;
}

absl::Status RunFiles::KeepPolicies(uint32_t epoch) {
  const std::string path = PoliciesPath(epoch);
  ASSIGN_OR_RETURN(const std::string content, ReadFile(absl::StrCat(run_dir_, "/", path)));
  policies_[path] = {content.size(), Sha256Hex(content)};
  return absl::OkStatus();
}

absl::Status RunFiles::Begin() {
  DATACOM_FAILPOINT("records.uncut");
  RETURN_IF_ERROR(records_->Begin());
  DATACOM_FAILPOINT("records.cut");
  RETURN_IF_ERROR(ledger_->Flush(/*sync=*/false));
  RETURN_IF_ERROR(MakeFolders(CheckpointFolder(run_dir_)));
  ASSIGN_OR_RETURN(updates_, UpdatesMadeWriter::Open(UpdatesMadeFile(run_dir_), resumed_));
  return absl::OkStatus();
}

absl::Status RunFiles::Save(Checkpoint checkpoint) {
  RETURN_IF_ERROR(records_->Flush(/*sync=*/true));
  RETURN_IF_ERROR(ledger_->Flush(/*sync=*/true));
  DATACOM_FAILPOINT("records.flushed");
  checkpoint.learner.clear_files();
  const auto add = [&checkpoint](const FileEnds& ends) {
    for (const auto& [path, end] : ends) {
      v1::FileEnd* const file = checkpoint.learner.add_files();
      file->set_path(path);
      file->set_bytes(end.bytes);
      file->set_sha256(end.sha256);
    }
  };
  add(records_->Ends());
  add(ledger_->Ends());
  add(policies_);
  return Annotate(checkpoints_.Save(std::move(checkpoint)), "checkpoint");
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
