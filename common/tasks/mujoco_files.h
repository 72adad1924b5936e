// The files that MuJoCo reads when it compiles a model come from here: MuJoCo itself reads none from the disk.
//
// MuJoCo turns every reference in a model into an absolute path (folders of compiler settings, of included and of
// attached files) and asks for that path. So whoever serves the paths learns which files the model has, by MuJoCo's
// own rules, and no reference can lead past those that are served. Thread-safe: MuJoCo may ask in several threads.
#ifndef DATACOM_COMMON_TASKS_MUJOCO_FILES_H_
#define DATACOM_COMMON_TASKS_MUJOCO_FILES_H_

#include <functional>
#include <set>
#include <string>

#include "common/base/mutex.h"
#include "mujoco/mujoco.h"

namespace datacom {

// Where MuJoCo takes the files of a model to be that are in memory. The folder need not exist and is not read.
inline constexpr char kModelFolder[] = "/model of the task";

#if mjVERSION_HEADER >= 4000000
class MujocoFiles {
 public:
  // The content of the file with an absolute path, or null if there is none. It must stay as long as the MujocoFiles.
  // One call at a time.
  using Find = std::function<const std::string*(const std::string& path)>;

  explicit MujocoFiles(Find find);
  ~MujocoFiles();
  MujocoFiles(const MujocoFiles&) = delete;
  MujocoFiles& operator=(const MujocoFiles&) = delete;

  const mjVFS* get() const { return &vfs_; }
  // The file whose absence made MuJoCo say `message`; empty if it is about something else.
  std::string MissingIn(const std::string& message) const;

 private:
  static int Open(mjResource* resource);
  static int Read(mjResource* resource, const void** content);
  static void Close(mjResource* resource);

  const Find find_;
  mutable Mutex mutex_;
  std::set<std::string> missing_ ABSL_GUARDED_BY(mutex_);
  mjpResourceProvider provider_;
  mjVFS vfs_;
};
#endif

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_MUJOCO_FILES_H_
// SPDX-License-Identifier: Apache-2.0
