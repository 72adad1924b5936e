// Pictures of a simulation, drawn by MuJoCo into a buffer of its own: no window.
//
// Reads the simulation and never writes to it: the state is copied, and positions of bodies, cameras and lights are
// computed anew from it (a task may leave them a substep old). To be used by the thread that made the GL context, which
// must live longer; owns scene, GL resources and state copy. Equal states give equal pixels on one machine. Blocks
// while it draws.
#ifndef DATACOM_ACTOR_RENDER_RENDERER_H_
#define DATACOM_ACTOR_RENDER_RENDERER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actor/render/picture.h"
#include "common/tasks/mujoco.h"

namespace datacom {

// Names of a model's cameras, in its order; the number of one that has no name.
std::vector<std::string> CameraNames(const mjModel& model);

class Renderer {
 public:
  // camera: a name; empty = the first camera fixed to the world, else the first, else a view of the whole model.
  // INVALID_ARGUMENT for an unknown one, naming those there are; INTERNAL with what MuJoCo says of the GL context.
  static absl::StatusOr<std::unique_ptr<Renderer>> Make(const mjModel& model, const std::string& camera, int width,
                                                        int height);
  ~Renderer();

  // Draws the simulation's state on the whole of `picture`, which has the making's size. INTERNAL when MuJoCo fails.
  absl::Status Render(const Simulation& simulation, Picture* picture);

 private:
  Renderer(MujocoModel sized, MujocoData data, int width, int height);

  const MujocoModel sized_;  // the model, its off-screen buffer as large as the pictures
  const MujocoData data_;
  const int width_, height_;
  mjvOption option_;
  mjvCamera camera_;
  mjvScene scene_;
  mjrContext context_;
  std::vector<unsigned char> rgb_;  // bottom row first
};

}  // namespace datacom

#endif  // DATACOM_ACTOR_RENDER_RENDERER_H_
