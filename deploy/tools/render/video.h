// A film encoded by ffmpeg, which reads the frames from its standard input.
//
// ffmpeg is found on the PATH and runs as a child process; its output is kept for error messages. The film is kept in
// memory and written at the end (common/base/output_file.h). Not thread-safe; Add and Finish block while ffmpeg works.
// Destroying an unfinished object kills the child and leaves no file.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_VIDEO_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_VIDEO_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/tools/render/picture.h"

namespace datacom::tools {

class Video {
 public:
  // H.264 in MP4; width and height even. UNAVAILABLE, naming the package, when ffmpeg is not installed.
  static absl::StatusOr<std::unique_ptr<Video>> Make(const std::string& path, int width, int height,
                                                     double frames_per_second);
  ~Video();

  absl::Status Add(const Picture& frame);  // REQUIRES the size given to Make
  absl::Status Finish();

 private:
  explicit Video(std::string path) : path_(std::move(path)) {}
  // Closes the input and waits; returns ffmpeg's output when it failed.
  absl::Status Join();

  const std::string path_;
  pid_t child_ = -1;   // -1 once it has been waited for
  int input_ = -1;     // socket to its standard input; -1 once closed
  int messages_ = -1;  // file in memory with its standard error
  int film_ = -1;      // file in memory with the film
};

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_VIDEO_H_
// SPDX-License-Identifier: Apache-2.0
