#include "deploy/tools/render/scene_view.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"

namespace datacom::tools {
namespace {

constexpr int kMaxGeoms = 4000;  // most shapes, sites and decorations in a scene

// Index of the camera; -1 = the free camera.
absl::StatusOr<int> FindCamera(const mjModel& model, const std::string& name) {
  if (name.empty()) {
    for (int i = 0; i < model.ncam; ++i) {
      if (model.cam_mode[i] == mjCAMLIGHT_FIXED && model.cam_bodyid[i] == 0) return i;
    }
    return model.ncam > 0 ? 0 : -1;
  }
  const std::vector<std::string> names = CameraNames(model);
  for (int i = 0; i < model.ncam; ++i) {
    if (names[i] == name) return i;
  }
  return absl::InvalidArgumentError(absl::StrCat("no camera \"", name, "\"; there are: ", absl::StrJoin(names, ", ")));
}

}  // namespace

std::vector<std::string> CameraNames(const mjModel& model) {
  std::vector<std::string> names;
  for (int i = 0; i < model.ncam; ++i) {
    const char* const name = mj_id2name(&model, mjOBJ_CAMERA, i);
    names.push_back(name != nullptr ? name : std::to_string(i));
  }
  return names;
}

const float* ColourOfGeom(const mjModel& model, int geom) {
  const float* const own = model.geom_rgba + 4 * geom;
  const int material = model.geom_matid[geom];
  const bool given = own[0] != 0.5F || own[1] != 0.5F || own[2] != 0.5F || own[3] != 1;  // MuJoCo's default colour
  return material >= 0 && !given ? model.mat_rgba + 4 * material : own;
}

absl::StatusOr<std::unique_ptr<SceneView>> SceneView::Make(const mjModel& model, const std::string& camera, int width,
                                                           int height) {
  ASSIGN_OR_RETURN(const int index, FindCamera(model, camera));
  mjModel* const copy = mj_copyModel(nullptr, &model);
  if (copy == nullptr) return absl::ResourceExhaustedError("MuJoCo could not copy the model");
  const MujocoModel sized(copy, [](const mjModel* m) { mj_deleteModel(const_cast<mjModel*>(m)); });
  copy->vis.global.offwidth = width;
  copy->vis.global.offheight = height;
  ASSIGN_OR_RETURN(MujocoData data, MakeMujocoData(*sized));
  std::unique_ptr<SceneView> view(new SceneView(sized, std::move(data), width, height));
  if (index >= 0) {
    view->camera_.type = mjCAMERA_FIXED;
    view->camera_.fixedcamid = index;
  }
  RETURN_IF_ERROR(GuardMujoco([&] { mjv_makeScene(sized.get(), &view->scene_, kMaxGeoms); }));
  return view;
}

SceneView::SceneView(MujocoModel model, MujocoData data, int width, int height)
    : model_(std::move(model)), data_(std::move(data)), width_(width), height_(height) {
  mjv_defaultOption(&option_);
  mjv_defaultFreeCamera(model_.get(), &camera_);
  mjv_defaultScene(&scene_);
}

SceneView::~SceneView() { mjv_freeScene(&scene_); }

absl::Status SceneView::Update(const Simulation& simulation) {
  const mjModel& model = simulation.model();
  return GuardMujoco([&] {
    mj_copyData(data_.get(), &model, simulation.data());
    mj_kinematics(&model, data_.get());
    mj_comPos(&model, data_.get());
    mj_camlight(&model, data_.get());
    mj_tendon(&model, data_.get());
    mjv_updateScene(&model, data_.get(), &option_, nullptr, &camera_, mjCAT_ALL, &scene_);
  });
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
