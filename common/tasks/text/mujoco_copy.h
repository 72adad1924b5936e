// Changes of a model's copy that `task new` makes: names for what has none, and no visual meshes. The original stays as
// it is. Pure functions; thread-safe; they compile models.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_COPY_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_COPY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "datacom/v1/task.pb.h"

namespace datacom::text {

// Names the joints, actuators and keyframes that have no name, also in attached models: a joint after its body, an
// actuator after what it drives, a keyframe "key". Returns the new names, as "joint torso" and "actuator hip_1"; none
// if the model does not compile with them to the same numbers.
std::vector<std::string> NameElements(v1::TextTask* task);

struct WithoutVisual {
  int geoms = 0;       // meshes that only draw: contype 0 and conaffinity 0
  int kept = 0;        // of these, the ones that stay because mass or inertia of their body comes from them
  uint64_t bytes = 0;  // of the files before ...
  uint64_t left = 0;   // ... and after
};
// Removes geoms that only draw a mesh, skins, and the meshes, materials, textures and files that nothing uses then, but
// for those of attached models. No body's mass, centre of mass or inertia changes. INVALID_ARGUMENT "model: why" if the
// model does not compile, or a sensor measures such geoms.
absl::StatusOr<WithoutVisual> RemoveVisual(v1::TextTask* task);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_COPY_H_
// SPDX-License-Identifier: Apache-2.0
