// A film written by ffmpeg: frames go to its standard input as they are drawn.
//
// The program is found on the PATH and runs as a child; what it says is kept for the error message. The file is written
// under a temporary name beside its own and renamed when it is whole. Not thread-safe; Add and Finish block for as long
// as ffmpeg takes. An object that is not finished kills the child and leaves nothing.
#ifndef DATACOM_ACTOR_RENDER_VIDEO_H_
#define DATACOM_ACTOR_RENDER_VIDEO_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actor/render/picture.h"

namespace datacom {

class Video {
 public:
  // H.264 in MP4; width and height even. UNAVAILABLE naming the package when there is no ffmpeg.
  static absl::StatusOr<std::unique_ptr<Video>> Make(const std::string& path, int width, int height,
                                                     double frames_per_second);
  ~Video();

  absl::Status Add(const Picture& frame);  // of the making's size
  absl::Status Finish();

 private:
  Video(const std::string& path, pid_t child, int input, int messages);
  // Closes the input and waits; what ffmpeg said when it failed.
  absl::Status Join();

  const std::string path_, partial_;
  pid_t child_;   // -1 once it has been waited for
  int input_;     // socket to its standard input; -1 once closed
  int messages_;  // file with its standard error
};

}  // namespace datacom

#endif  // DATACOM_ACTOR_RENDER_VIDEO_H_
