#include "common/records/dataset.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/checksum.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/config/experiment.h"
#include "common/config/sha256.h"
#include "common/records/append_file.h"
#include "common/transitions/check_columns.h"
#include "datacom/v1/plugin.pb.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task.pb.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kChunkRows = 4096, kMaxChunkRows = 1 << 20;
constexpr uint32_t kMaxWidth = 1 << 20;  // values per row of one column
constexpr char kManifest[] = "/manifest.textproto";

constexpr std::pair<ColumnType, const char*> kTypes[] = {{ColumnType::kFloat32, "float32"},
                                                         {ColumnType::kUint8, "uint8"},
                                                         {ColumnType::kUint32, "uint32"},
                                                         {ColumnType::kUint64, "uint64"}};

const char* NameOf(ColumnType type) {
  for (const auto& [known, name] : kTypes) {
    if (known == type) return name;
  }
  return "";
}

const Column* Find(const std::vector<Column>& columns, absl::string_view name) {
  const auto found =
      std::find_if(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

absl::StatusOr<std::vector<Column>> ColumnsOf(const std::string& path, const v1::DatasetManifest& manifest) {
  std::vector<Column> columns;
  for (const v1::DatasetColumn& column : manifest.columns()) {
    const auto known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](const auto& type) { return column.type() == type.second; });
    if (known == std::end(kTypes) || column.width() == 0 || column.width() > kMaxWidth) {
      return absl::DataLossError(absl::StrCat(path, ": column ", column.name(), ": ", column.type(), "[",
                                              column.width(), "] is not a column type"));
    }
    if (Find(columns, column.name()) != nullptr)
      return absl::DataLossError(absl::StrCat(path, ": column ", column.name(), " appears twice"));
    columns.push_back({column.name(), known->first, column.width()});
  }
  return columns;
}

// Omits the padding of a stored row.
uint64_t RowBytes(const std::vector<Column>& columns) {
  uint64_t bytes = 0;
  for (const Column& column : columns) bytes += column.bytes();
  return bytes;
}

std::string Describe(const Column& column) { return absl::StrCat(NameOf(column.type), "[", column.width, "]"); }

void FillColumns(const RowSchema& schema, v1::DatasetManifest* manifest) {
  manifest->set_schema_fingerprint(schema.fingerprint());
  manifest->clear_columns();
  for (const Column& column : schema.stored()) {
    v1::DatasetColumn* out = manifest->add_columns();
    out->set_name(column.name);
    out->set_type(NameOf(column.type));
    out->set_width(column.width);
  }
}

// The manifest's own checksum.
uint32_t ChecksumOf(v1::DatasetManifest manifest) {
  manifest.clear_crc32c();
  return Crc32c(manifest.SerializeAsString());
}

absl::Status WriteMember(const std::string& folder, const RowSchema& schema, const std::vector<const char*>& rows,
                         v1::DatasetMember* member) {
  member->set_file(absl::StrCat("member_", member->member(), ".rows"));
  ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> file, AppendFile::Open(absl::StrCat(folder, "/", member->file())));
  const size_t cost = schema.offset("cost");
  uint64_t failures = 0;
  uint32_t crc = 0;
  std::string chunk;
  for (size_t begin = 0; begin < rows.size(); begin += kChunkRows) {
    const size_t end = std::min<size_t>(rows.size(), begin + kChunkRows);
    chunk.clear();
    for (const Column& column : schema.stored()) {
      const size_t offset = schema.offset(column.name);
      for (size_t row = begin; row < end; ++row) chunk.append(rows[row] + offset, column.bytes());
    }
    for (size_t row = begin; row < end; ++row) failures += At<float>(rows[row], cost) > 0;
    crc = Crc32c(chunk, crc);
    RETURN_IF_ERROR(file->Append(chunk));
  }
  RETURN_IF_ERROR(file->Flush(/*sync=*/true));
  member->set_rows(rows.size());
  member->set_failures(failures);
  member->set_bytes(file->bytes());
  member->set_crc32c(crc);
  return absl::OkStatus();
}

absl::Status WriteFolder(const std::string& folder, const RowSchema& schema,
                         const std::vector<std::vector<const char*>>& rows, v1::DatasetManifest* manifest) {
  RETURN_IF_ERROR(MakeFolders(folder));
  uint64_t bytes = 0;
  for (const std::vector<const char*>& member : rows) bytes += member.size() * RowBytes(schema.stored());
  ASSIGN_OR_RETURN(const uint64_t free, FreeBytes(folder));
  if (bytes > free) return absl::ResourceExhaustedError(NoSpaceMessage(folder + "/", bytes));
  for (size_t i = 0; i < rows.size(); ++i)
    RETURN_IF_ERROR(WriteMember(folder, schema, rows[i], manifest->mutable_members(static_cast<int>(i))));
  manifest->set_crc32c(ChecksumOf(*manifest));
  RETURN_IF_ERROR(WriteFileAtomically(folder + kManifest, PrintTextproto(*manifest)));
  return SyncFile(folder);
}

// Removes what a writer that died has left. INVALID_ARGUMENT where the folder holds something else.
absl::Status RemoveUnfinishedDataset(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    if (absl::StartsWith(name, "member_") || absl::StartsWith("/" + name, kManifest)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(folder, "/", name, " would be lost, as a folder of this name is needed; name another dataset"));
  }
  std::error_code error;
  fs::remove_all(folder, error);
  return absl::OkStatus();
}

// Checks that the manifest's entry of a member is consistent, before its file is read.
absl::Status CheckMember(const std::string& path, const v1::DatasetMember& member, uint64_t row_bytes) {
  const auto wrong = [&](const std::string& what) {
    return absl::DataLossError(absl::StrCat(path, ": member ", member.member(), ": ", what));
  };
  if (member.file().empty() || member.file().find('/') != std::string::npos)
    return wrong(absl::StrCat("file \"", member.file(), "\" is not in this folder"));
  if (member.rows() == 0 || member.failures() > member.rows())
    return wrong(absl::StrCat(member.rows(), " rows, ", member.failures(), " failures"));
  if (member.rows() > member.bytes() || member.bytes() != member.rows() * row_bytes) {
    return wrong(absl::StrCat(member.rows(), " rows of ", row_bytes, " bytes do not make the stated ", member.bytes(),
                              " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteDataset(const std::string& path, const RowSchema& schema,
                          const std::vector<std::vector<const char*>>& rows, v1::DatasetManifest* manifest) {
  std::error_code error;
  const std::string folder = WithoutSlash(path);  // other names are made from it
  if (fs::exists(fs::symlink_status(folder, error)))
    return absl::InvalidArgumentError(absl::StrCat(folder, " already exists; name a new folder"));
  manifest->set_layout(kDatasetLayout);
  manifest->set_revision(Revision());
  manifest->set_chunk_rows(kChunkRows);
  FillColumns(schema, manifest);
  const std::string temporary = folder + ".tmp";
  RETURN_IF_ERROR(RemoveUnfinishedDataset(temporary));
  absl::Status status = WriteFolder(temporary, schema, rows, manifest);
  if (status.ok()) {
    fs::rename(temporary, folder, error);
    if (error) status = ErrnoStatus(error.value(), absl::StrCat("rename ", temporary, " to ", folder));
  }
  if (!status.ok()) {
    fs::remove_all(temporary, error);
    return status;
  }
  return SyncName(folder);
}

absl::StatusOr<v1::DatasetManifest> ReadManifest(const std::string& folder) {
  const std::string path = folder + kManifest;
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("dataset ", folder, ": not a dataset folder: ", std::string(text.status().message())));
  }
  v1::DatasetManifest manifest;
  RETURN_IF_ERROR(ParseTextproto(*text, path, &manifest));
  if (manifest.layout() != kDatasetLayout) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": layout ", manifest.layout(), ", this build reads ", kDatasetLayout));
  }
  if (const uint32_t crc = ChecksumOf(manifest); crc != manifest.crc32c()) {
    return absl::DataLossError(
        absl::StrFormat("%s: checksum %08x, it states %08x: the file was changed", path, crc, manifest.crc32c()));
  }
  if (manifest.members().empty() || manifest.chunk_rows() == 0 || manifest.chunk_rows() > kMaxChunkRows) {
    return absl::DataLossError(
        absl::StrCat(path, ": ", manifest.members_size(), " members, chunks of ", manifest.chunk_rows(), " rows"));
  }
  ASSIGN_OR_RETURN(const std::vector<Column> columns, ColumnsOf(path, manifest));
  for (const v1::DatasetMember& member : manifest.members())
    RETURN_IF_ERROR(CheckMember(path, member, RowBytes(columns)));
  return manifest;
}

absl::Status CheckDataset(const std::string& folder, const v1::DatasetManifest& manifest, const std::string& task,
                          const RowSchema& schema) {
  if (manifest.experiment().task() != task) {
    return absl::InvalidArgumentError(
        absl::StrCat("dataset ", folder, " is of task ", manifest.experiment().task(), ", the run of ", task));
  }
  ASSIGN_OR_RETURN(const std::vector<Column> columns, ColumnsOf(folder, manifest));
  for (const Column& wanted : schema.learning()) {
    const Column* held = Find(columns, wanted.name);
    if (held != nullptr && held->type == wanted.type && held->width == wanted.width) continue;
    return absl::InvalidArgumentError(absl::StrCat("dataset ", folder, ": column ", wanted.name, " is ",
                                                   held == nullptr ? "missing" : Describe(*held), ", the run needs ",
                                                   Describe(wanted)));
  }
  if (Find(columns, kLogProb) != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("dataset ", folder, " is of ", manifest.experiment().algorithm(),
                                                   ", whose actions are not scaled to the task's bounds"));
  }
  const bool executed_apart = Find(columns, kExecutedAction) != nullptr;
  if (executed_apart == (schema.executed_column() == kExecutedAction)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("dataset ", folder, " is of ", manifest.experiment().algorithm(),
                                                 ", which stores ", executed_apart ? "policy" : "executed",
                                                 " actions; the run learns from ",
                                                 executed_apart ? "executed" : "policy", " actions"));
}

namespace {

// The options on which the meaning of a row depends, each with its value. Files are known by their sums.
v1::TaskOptions MeaningOf(v1::TaskOptions options) {
  options.clear_horizon();
  options.clear_puck_region();
  options.clear_mismatch_sigma();
  options.clear_randomisation();
  options.clear_control_dt();  // states the period of a Python environment and does not change it
  options.ClearExtension(v1::plugin);
  options.ClearExtension(v1::python_task);
  // What an absent option means (task_options.proto).
  if (!options.has_reward()) options.set_reward("code");
  if (!options.has_observation()) options.set_observation("world_frame");
  if (!options.has_action_repeat()) options.set_action_repeat(1);
  if (!options.HasExtension(v1::text_task)) return options;
  v1::TextTask& task = *options.MutableExtension(v1::text_task);
  task.clear_resolved();  // follows from the rest
  v1::TaskDefinition& definition = *task.mutable_definition();
  definition.clear_summary();
  definition.clear_horizon();
  definition.clear_start();
  definition.clear_push();
  definition.clear_randomise();
  definition.clear_log();
  for (v1::TaskFile& file : *task.mutable_file()) {
    if (!file.has_sha256()) file.set_sha256(Sha256Hex(file.content()));
    file.clear_content();
    file.clear_gzip();
  }
  return options;
}

}  // namespace

absl::Status CheckDatasetOptions(const std::string& folder, const v1::DatasetManifest& manifest,
                                 const v1::TaskOptions& wanted) {
  const v1::TaskOptions held = MeaningOf(manifest.experiment().task_options());
  v1::TaskOptions needed = MeaningOf(wanted);
  if (!held.HasExtension(v1::text_task)) needed.ClearExtension(v1::text_task);
  const std::string difference = DifferenceOf(held, needed);
  if (difference.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("dataset ", folder,
                                                 ": its rows mean something else than the run's; task_options, dataset "
                                                 "-> run: ",
                                                 difference.substr(0, difference.find('\n'))));
}

uint64_t RowsOf(const v1::DatasetManifest& manifest) {
  uint64_t rows = 0;
  for (const v1::DatasetMember& member : manifest.members()) rows += member.rows();
  return rows;
}

absl::StatusOr<Dataset> Dataset::Read(const std::string& folder, const std::string& task, const RowSchema& schema) {
  Dataset dataset;
  ASSIGN_OR_RETURN(dataset.manifest_, ReadManifest(folder));
  const v1::DatasetManifest& manifest = dataset.manifest_;
  RETURN_IF_ERROR(CheckDataset(folder, manifest, task, schema));
  dataset.schema_ = schema;
  ASSIGN_OR_RETURN(dataset.columns_, ColumnsOf(folder, manifest));
  for (const v1::DatasetMember& member : manifest.members()) {
    // Check sizes before allocating memory for them.
    const std::string path = absl::StrCat(folder, "/", member.file());
    std::error_code error;
    const uint64_t bytes = fs::file_size(path, error);
    if (error) return absl::DataLossError(absl::StrCat(path, ": ", error.message()));
    if (bytes != member.bytes())
      return absl::DataLossError(absl::StrCat(path, ": ", bytes, " bytes, the manifest states ", member.bytes()));
    dataset.failures_.reserve(dataset.failures_.size() + member.failures());
    RETURN_IF_ERROR(dataset.ReadMember(path, member));
  }
  return dataset;
}

absl::Status Dataset::ReadMember(const std::string& path, const v1::DatasetMember& member) {
  std::ifstream file(path, std::ios::binary);
  const uint64_t row_bytes = RowBytes(columns_);
  const size_t failures = failures_.size();
  uint32_t crc = 0;
  absl::Status values;  // returned only if the checksum is right
  std::string chunk;
  for (uint64_t done = 0; done < member.rows(); done += manifest_.chunk_rows()) {
    chunk.resize(std::min<uint64_t>(manifest_.chunk_rows(), member.rows() - done) * row_bytes);
    if (!file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())))
      return absl::DataLossError(absl::StrCat(path, ": cannot be read at byte ", done * row_bytes));
    crc = Crc32c(chunk, crc);
    const absl::Status added = AddChunk(chunk, chunk.size() / row_bytes);
    if (!added.ok() && values.ok())
      values = absl::DataLossError(absl::StrCat(path, ", rows from ", done, ": ", std::string(added.message())));
  }
  if (crc != member.crc32c()) {
    return absl::DataLossError(absl::StrFormat("%s: checksum %08x, the manifest states %08x: the file is damaged", path,
                                               crc, member.crc32c()));
  }
  RETURN_IF_ERROR(values);
  if (failures_.size() - failures != member.failures()) {
    return absl::DataLossError(absl::StrCat(path, ": ", failures_.size() - failures,
                                            " rows with cost > 0, the manifest states ", member.failures()));
  }
  return absl::OkStatus();
}

absl::Status Dataset::AddChunk(const std::string& chunk, uint64_t count) {
  const size_t stride = schema_.learning_row_bytes(), first = rows_.size();
  rows_.resize(first + count * stride);
  const char* data = chunk.data();
  for (const Column& column : columns_) {
    const size_t bytes = column.bytes();
    RETURN_IF_ERROR(CheckColumn(column, data, count));
    size_t offset = 0;  // within a row of rows_
    for (const Column& wanted : schema_.learning()) {
      if (wanted.name == column.name) {
        for (uint64_t row = 0; row < count; ++row)
          std::memcpy(&rows_[first + row * stride + offset], data + row * bytes, bytes);
      }
      offset += wanted.bytes();
    }
    if (column.name == "cost") {
      for (uint64_t row = 0; row < count; ++row) {
        if (At<float>(data, row * bytes) > 0) failures_.push_back(count_ + row);
      }
    }
    data += count * bytes;
  }
  count_ += count;
  return absl::OkStatus();
}

void Dataset::Gather(const std::vector<uint64_t>& numbers, std::string* columns) const {
  const size_t stride = schema_.learning_row_bytes();
  columns->resize(numbers.size() * stride);
  char* out = columns->data();
  size_t offset = 0;
  for (const Column& column : schema_.learning()) {
    for (const uint64_t number : numbers) {
      std::memcpy(out, &rows_[number * stride + offset], column.bytes());
      out += column.bytes();
    }
    offset += column.bytes();
  }
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
