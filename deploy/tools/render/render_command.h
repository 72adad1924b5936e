// `render`: writes a film or a picture of an episode, or a map of the feasibility value function.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_RENDER_COMMAND_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_RENDER_COMMAND_H_

#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "deploy/tools/render/playback.h"

namespace datacom::tools {

struct RenderCommand {
  PlaybackOptions playback;
  std::string out;  // FILE.html, FILE.mp4 or FILE.png; for a map FILE.png, .json or .csv
  std::string camera;
  std::optional<int> width, height;  // a frame's size, not of HTML; default 960x540, in a sheet 480x270
  double fps = 30;                   // frames per second of a film, which plays in real time
  std::optional<int> max_frames;     // of a film, at least 2; a longer one has fewer frames per second
  std::optional<int> frames;         // for a PNG: frames in a sheet; default only the last
  std::optional<uint32_t> step;      // last step to show; default the episode's last

  bool map = false;
  std::string slice;     // name of a slice of the task; empty = its first
  int resolution = 161;  // points per side
};

// Prints on `out` what was written. INVALID_ARGUMENT or NOT_FOUND, naming the option, folder, task or camera;
// UNAVAILABLE, naming the package to install; CANCELLED when the process is stopped.
absl::Status RunRenderCommand(const RenderCommand& command, std::ostream* out);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_RENDER_COMMAND_H_
// SPDX-License-Identifier: Apache-2.0
