#include "deploy/tools/render/video.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/output_file.h"
#include "common/base/spawn.h"
#include "common/base/status.h"

namespace datacom::tools {
namespace {

constexpr int kFilmOfChild = 3;

std::vector<std::string> Arguments(int width, int height, double frames_per_second) {
  const char* const named = std::getenv("DATACOM_FFMPEG");
  const std::string options =
      absl::StrCat("-hide_banner -loglevel error -y -f rawvideo -pix_fmt bgr0 -video_size ", width, "x", height,
                   " -framerate ", frames_per_second, " -i - -c:v libx264 -preset medium -crf 21 -pix_fmt yuv420p ",
                   "-movflags +faststart -f mp4 file:/proc/self/fd/", kFilmOfChild);
  std::vector<std::string> arguments = absl::StrSplit(options, ' ');
  arguments.insert(arguments.begin(), named != nullptr && *named != '\0' ? named : "ffmpeg");
  return arguments;
}

// Starts argv[0], found on the PATH, with these standard streams and no signal blocked or ignored.
int Start(const std::vector<std::string>& argv, int input, int messages, int film, pid_t* child) {
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  Spawn spawn;
  ::posix_spawn_file_actions_adddup2(&spawn.files, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&spawn.files, messages, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&spawn.files, messages, STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(&spawn.files, film, kFilmOfChild);
  ::posix_spawnattr_setflags(&spawn.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  ::posix_spawnattr_setsigmask(&spawn.attributes, &none);
  ::posix_spawnattr_setsigdefault(&spawn.attributes, &all);
  return spawn.Start(argv, child);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Video>> Video::Make(const std::string& path, int width, int height,
                                                   double frames_per_second) {
  if (width % 2 != 0 || height % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a film of ", width, "x", height, ": width and height must be even"));
  }
  std::unique_ptr<Video> video(new Video(path));
  video->messages_ = ::memfd_create("ffmpeg", MFD_CLOEXEC);
  video->film_ = ::memfd_create("film", MFD_CLOEXEC);
  int ends[2];  // sockets, not a pipe: sending to a dead reader can return an error instead of raising a signal
  if (video->messages_ < 0 || video->film_ < 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoStatus(errno, "begin a film");
  video->input_ = ends[1];
  pid_t child = -1;
  const int error = Start(Arguments(width, height, frames_per_second), ends[0], video->messages_, video->film_, &child);
  ::close(ends[0]);
  if (error == ENOENT) {
    return absl::UnavailableError(
        "ffmpeg, which writes films, is not installed; install Debian's package ffmpeg or PyPI's imageio-ffmpeg, or "
        "name its file in DATACOM_FFMPEG");
  }
  if (error != 0) return ErrnoStatus(error, "start ffmpeg");
  video->child_ = child;
  return video;
}

Video::~Video() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    StateAtEnd(child_);
  }
  for (const int file : {input_, messages_, film_}) {
    if (file >= 0) ::close(file);
  }
}

absl::Status Video::Add(const Picture& frame) {
  const uint8_t* data = frame.pixels();
  size_t left = size_t{1} * frame.stride() * frame.height();
  while (left > 0) {
    const ssize_t sent = ::send(input_, data, left, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      const absl::Status gone = ErrnoStatus(errno, "ffmpeg accepts no more frames");
      const absl::Status ended = Join();
      return ended.ok() ? gone : ended;
    }
    data += sent;
    left -= sent;
  }
  return absl::OkStatus();
}

absl::Status Video::Finish() {
  RETURN_IF_ERROR(Join());
  struct stat info = {};
  if (::fstat(film_, &info) != 0) return ErrnoStatus(errno, "size of the film");
  const auto bytes = static_cast<size_t>(info.st_size);
  void* const film = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, film_, 0);  // not a second copy
  if (film == MAP_FAILED) return ErrnoStatus(errno, "read the film");
  const absl::Status written = WriteOutputFile(path_, {static_cast<const char*>(film), bytes});
  ::munmap(film, bytes);
  return written;
}

absl::Status Video::Join() {
  ::close(std::exchange(input_, -1));
  const int state = StateAtEnd(std::exchange(child_, -1));
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return absl::OkStatus();
  char said[2000];
  const ssize_t length = ::pread(messages_, said, sizeof said, 0);
  const absl::string_view text(said, length > 0 ? length : 0);
  return absl::InternalError(absl::StrCat("ffmpeg could not write ", path_, ": ",
                                          text.empty() ? "it printed no error" : absl::StripAsciiWhitespace(text)));
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
