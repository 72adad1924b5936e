// Draws pictures of a simulation with MuJoCo, off screen.
//
// Never writes to the simulation: it copies the state and recomputes positions of bodies, cameras and lights from it (a
// task may leave them one substep old). Must be used by the thread that made the GL context, which must outlive it;
// owns scene, GL resources and state copy. Equal states give equal pixels on one machine. Blocks while it draws.
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

// Names of a model's cameras, in its order; for a camera without a name its number.
std::vector<std::string> CameraNames(const mjModel& model);

class Renderer {
 public:
  // camera: a name; empty = the first camera fixed to the world, else the first, else a view of the whole model.
  // INVALID_ARGUMENT for an unknown name, naming the cameras; INTERNAL with MuJoCo's message about the GL context.
  static absl::StatusOr<std::unique_ptr<Renderer>> Make(const mjModel& model, const std::string& camera, int width,
                                                        int height);
  ~Renderer();

  // Draws the simulation's state over all of `picture`, which has the size given to Make. INTERNAL when MuJoCo fails.
  absl::Status Render(const Simulation& simulation, Picture* picture);

 private:
  Renderer(MujocoModel sized, MujocoData data, int width, int height);

  const MujocoModel sized_;  // copy of the model with an off-screen buffer of the pictures' size
  const MujocoData data_;
  const int width_, height_;
  mjvOption option_;
  mjvCamera camera_;
  mjvScene scene_;
  mjrContext context_;
  std::vector<unsigned char> rgb_;  // bottom row first
};

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_RENDERER_H_
// SPDX-License-Identifier: Apache-2.0
