// Draws pictures of a simulation, off screen: with MuJoCo's OpenGL renderer, or by rays where there is no OpenGL.
//
// Never writes to the simulation (scene_view.h). Must be used by one thread, for OpenGL by the one that made the GL
// context, which must outlive it; owns scene and GL resources. Equal states give equal pixels on one machine. Blocks
// while it draws.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_RENDERER_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_RENDERER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/team.h"
#include "common/tasks/mujoco.h"

namespace datacom::tools {

// An OpenGL context without a display, current on the thread that made it until it is destroyed.
//
// EGL gives it, on a device or with a driver that needs no surface. Its library is opened when a context is made, so
// that the program starts without it. One context per process at a time.
class GlContext {
 public:
  // UNAVAILABLE, naming EGL's error and the packages to install.
  static absl::StatusOr<std::unique_ptr<GlContext>> Make();
  virtual ~GlContext() = default;
};

class Renderer {
 public:
  virtual ~Renderer() = default;
  // Draws the simulation's state: [height][width] pixels of blue, green, red and an unused byte. INTERNAL when MuJoCo
  // fails.
  virtual absl::Status Render(const Simulation& simulation, uint8_t* pixels) = 0;

  // camera: as for SceneView::Make, with its errors. WithOpenGl needs a current GL context; INTERNAL with MuJoCo's
  // message about it.
  static absl::StatusOr<std::unique_ptr<Renderer>> WithOpenGl(const mjModel& model, const std::string& camera,
                                                              int width, int height);
  // Colours and shadows of shapes and meshes, lit from the first light; no textures, sites or transparent parts. Takes
  // some tenths of a second of one core for a frame of 960 x 540 pixels. team: shares the rows of a frame; must outlive
  // the renderer; null: the calling thread draws alone. The pixels are the same.
  static absl::StatusOr<std::unique_ptr<Renderer>> WithRays(const mjModel& model, const std::string& camera, int width,
                                                            int height, Team* team = nullptr);
};

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_RENDERER_H_
// SPDX-License-Identifier: Apache-2.0
