#include "common/tasks/mujoco_files.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace datacom {

#if mjVERSION_HEADER >= 4000000
MujocoFiles::MujocoFiles(Find find) : find_(std::move(find)) {
  mjp_defaultProvider(&provider_);
  provider_.open = &MujocoFiles::Open;
  provider_.read = &MujocoFiles::Read;
  provider_.close = &MujocoFiles::Close;
  provider_.mount = [](mjResource*) { return 1; };
  provider_.unmount = [](mjResource*) { return 1; };
  provider_.data = this;
  mj_defaultVFS(&vfs_);
  // A path belongs to the longest part of it that is mounted; "/" itself is never looked up.
  for (const char* const above : {".", "..", "/..", kModelFolder}) mj_mountVFS(&vfs_, above, &provider_);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/", error)) {
    mj_mountVFS(&vfs_, entry.path().c_str(), &provider_);
  }
}

MujocoFiles::~MujocoFiles() { mj_deleteVFS(&vfs_); }

std::string MujocoFiles::MissingIn(const std::string& message) const {
  const MutexLock lock(&mutex_);
  for (const std::string& path : missing_) {  // MuJoCo leaves out the model's folder
    for (size_t at = 0; at != std::string::npos; at = path.find('/', at + 1)) {
      if (absl::StrContains(message, absl::StrCat("file '", path.substr(at == 0 ? 0 : at + 1), "'"))) return path;
    }
  }
  return "";
}

int MujocoFiles::Open(mjResource* resource) {
  auto* const self = static_cast<MujocoFiles*>(resource->provider->data);
  const MutexLock lock(&self->mutex_);
  const std::string* const content = self->find_(resource->name);
  if (content == nullptr) self->missing_.insert(resource->name);
  resource->data = const_cast<std::string*>(content);
  return content == nullptr ? 0 : 1;
}

int MujocoFiles::Read(mjResource* resource, const void** content) {
  const auto& text = *static_cast<const std::string*>(resource->data);
  *content = text.data();
  return static_cast<int>(text.size());
}

void MujocoFiles::Close(mjResource* resource) { resource->data = nullptr; }
#endif

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
