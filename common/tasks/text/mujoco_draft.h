// What `datacom task new` makes of a MuJoCo model: a copy with names and without visual meshes, and its first
// task.textproto. The original stays as it is. Pure functions; thread-safe; they compile models.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_DRAFT_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_DRAFT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "datacom/v1/task.pb.h"
#include "mujoco/mujoco.h"

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

// The task file: every joint, site, actuator and sensor of the model, with defaults to edit and comments that explain
// them. What is not of the model stands in draft.textproto.in. The text loads as it is. `model`: of CompileFiles.
// `name`: of the task. `file`: of the model, relative to the folder of the task file. `named`: names that the model got
// in its copy, for a comment. INVALID_ARGUMENT for a model without a joint, without an actuator (the message has lines
// to add to the model), or without one that a task can use.
absl::StatusOr<std::string> DraftTask(const mjModel& model, const std::string& name, const std::string& file,
                                      const std::vector<std::string>& named = {});

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_DRAFT_H_
// SPDX-License-Identifier: Apache-2.0
