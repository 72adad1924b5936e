// What a camera sees of a simulation's state: a copy of the model and the state, and MuJoCo's scene of them.
//
// Never writes to the simulation: it copies the state and recomputes positions of bodies, cameras and lights from it (a
// task may leave them one substep old). Needs no OpenGL. Not thread-safe.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_SCENE_VIEW_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_SCENE_VIEW_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tasks/mujoco.h"

namespace datacom::tools {

// Names of a model's cameras, in its order; for a camera without a name its number.
std::vector<std::string> CameraNames(const mjModel& model);

// The colour of a geom, [4], of 0 to 1: its own, or else its material's. Belongs to the model.
const float* ColourOfGeom(const mjModel& model, int geom);

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

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_SCENE_VIEW_H_
// SPDX-License-Identifier: Apache-2.0
