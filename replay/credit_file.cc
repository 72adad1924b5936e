#include "replay/credit_file.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom {

absl::StatusOr<std::unique_ptr<CreditFile>> CreditFile::Open(const std::string& path, uint32_t slots,
                                                             uint32_t members) {
  const size_t bytes = uint64_t{slots} * members * sizeof(Entry);
  bool created = false;
  ASSIGN_OR_RETURN(auto file, MappedFile::OpenOrCreate(path, bytes, &created));
  if (file->size() != bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("file ", path, ": ", file->size(), " bytes instead of ", bytes,
                     "; resume with the build and the experiment that wrote it, or start a new run folder"));
  }
  return std::unique_ptr<CreditFile>(new CreditFile(std::move(file), slots, members));
}

void CreditFile::Clear(uint32_t slot) { std::fill_n(&at(slot, 0), members_, Entry{}); }

}  // namespace datacom
