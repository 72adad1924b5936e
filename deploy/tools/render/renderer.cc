#include "deploy/tools/render/renderer.h"

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

absl::StatusOr<std::unique_ptr<Renderer>> Renderer::Make(const mjModel& model, const std::string& camera, int width,
                                                         int height) {
  ASSIGN_OR_RETURN(const int index, FindCamera(model, camera));
  mjModel* const copy = mj_copyModel(nullptr, &model);
  if (copy == nullptr) return absl::ResourceExhaustedError("MuJoCo could not copy the model");
  const MujocoModel sized(copy, [](const mjModel* m) { mj_deleteModel(const_cast<mjModel*>(m)); });
  copy->vis.global.offwidth = width;
  copy->vis.global.offheight = height;
  ASSIGN_OR_RETURN(MujocoData data, MakeMujocoData(*sized));
  std::unique_ptr<Renderer> renderer(new Renderer(sized, std::move(data), width, height));
  if (index >= 0) {
    renderer->camera_.type = mjCAMERA_FIXED;
    renderer->camera_.fixedcamid = index;
  }
  RETURN_IF_ERROR(GuardMujoco([&] {
    mjv_makeScene(sized.get(), &renderer->scene_, kMaxGeoms);
    mjr_makeContext(sized.get(), &renderer->context_, mjFONTSCALE_100);
    mjr_setBuffer(mjFB_OFFSCREEN, &renderer->context_);
  }));
  if (renderer->context_.currentBuffer != mjFB_OFFSCREEN) {
    return absl::InternalError("the GL context has no off-screen buffer");
  }
  return renderer;
}

Renderer::Renderer(MujocoModel sized, MujocoData data, int width, int height)
    : sized_(std::move(sized)),
      data_(std::move(data)),
      width_(width),
      height_(height),
      rgb_(3 * size_t{1} * width * height) {
  mjv_defaultOption(&option_);
  mjv_defaultFreeCamera(sized_.get(), &camera_);
  mjv_defaultScene(&scene_);
  mjr_defaultContext(&context_);
}

Renderer::~Renderer() {
  mjr_freeContext(&context_);
  mjv_freeScene(&scene_);
}

absl::Status Renderer::Render(const Simulation& simulation, Picture* picture) {
  const mjModel& model = simulation.model();
  RETURN_IF_ERROR(GuardMujoco([&] {
    mj_copyData(data_.get(), &model, simulation.data());
    mj_kinematics(&model, data_.get());
    mj_comPos(&model, data_.get());
    mj_camlight(&model, data_.get());
    mj_tendon(&model, data_.get());
    mjv_updateScene(&model, data_.get(), &option_, nullptr, &camera_, mjCAT_ALL, &scene_);
    const mjrRect all = {0, 0, width_, height_};
    mjr_render(all, &scene_, &context_);
    mjr_readPixels(rgb_.data(), nullptr, all, &context_);
  }));
  uint8_t* out = picture->pixels();
  for (int row = 0; row < height_; ++row) {
    const unsigned char* in = &rgb_[3 * size_t{1} * width_ * (height_ - 1 - row)];
    for (int column = 0; column < width_; ++column, in += 3, out += 4) {
      out[0] = in[2];
      out[1] = in[1];
      out[2] = in[0];
    }
  }
  picture->Changed();
  return absl::OkStatus();
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
