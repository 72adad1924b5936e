// Draws pictures of a simulation, off screen: with MuJoCo's OpenGL renderer, or by rays where there is no OpenGL.
//
// Never writes to the simulation: it copies the state and recomputes positions of bodies, cameras and lights from it (a
// task may leave them one substep old). Must be used by one thread, for OpenGL by the one that made the GL context,
// which must outlive it; owns scene, GL resources and state copy. Equal states give equal pixels on one machine. Blocks
// while it draws.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_RENDERER_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_RENDERER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tasks/mujoco.h"
#include "deploy/tools/render/picture.h"

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

// Names of a model's cameras, in its order; for a camera without a name its number.
std::vector<std::string> CameraNames(const mjModel& model);

// A model's copy, a state and the scene that a camera sees of it. Needs no OpenGL.
class SceneView {
 public:
  // camera: a name; empty = the first camera fixed to the world, else the first, else a view of the whole model.
  // INVALID_ARGUMENT for an unknown name, naming the cameras.
  static absl::StatusOr<std::unique_ptr<SceneView>> Make(const mjModel& model, const std::string& camera, int width,
                                                         int height);
  ~SceneView();
  SceneView(const SceneView&) = delete;
  SceneView& operator=(const SceneView&) = delete;

  // Takes over the simulation's state. INTERNAL when MuJoCo fails.
  absl::Status Update(const Simulation& simulation);

  int width() const { return width_; }
  int height() const { return height_; }
  const mjModel& model() const { return *model_; }  // with an off-screen buffer of the pictures' size
  mjData* data() { return data_.get(); }
  mjvScene* scene() { return &scene_; }
  mjvGLCamera Eye() const { return mjv_averageCamera(&scene_.camera[0], &scene_.camera[1]); }

 private:
  SceneView(MujocoModel model, MujocoData data, int width, int height);

  const MujocoModel model_;
  const MujocoData data_;
  const int width_, height_;
  mjvOption option_;
  mjvCamera camera_;
  mjvScene scene_;
};

class Renderer {
 public:
  virtual ~Renderer() = default;
  // Draws the simulation's state over all of `picture`, which has the size given to Make. INTERNAL when MuJoCo fails.
  virtual absl::Status Render(const Simulation& simulation, Picture* picture) = 0;

  // camera: as for SceneView::Make, with its errors. WithOpenGl needs a current GL context; INTERNAL with MuJoCo's
  // message about it.
  static absl::StatusOr<std::unique_ptr<Renderer>> WithOpenGl(const mjModel& model, const std::string& camera,
                                                              int width, int height);
  // Colours and shadows of shapes and meshes, lit from the first light; no textures, sites or transparent parts. Takes
  // some tenths of a second for a frame of 960 x 540 pixels.
  static absl::StatusOr<std::unique_ptr<Renderer>> WithRays(const mjModel& model, const std::string& camera, int width,
                                                            int height);
};

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_RENDERER_H_
// SPDX-License-Identifier: Apache-2.0
