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

class GlRenderer : public Renderer {
 public:
  static absl::StatusOr<std::unique_ptr<Renderer>> Make(std::unique_ptr<SceneView> view) {
    std::unique_ptr<GlRenderer> renderer(new GlRenderer(std::move(view)));
    RETURN_IF_ERROR(GuardMujoco([&] {
      mjr_makeContext(&renderer->view_->model(), &renderer->context_, mjFONTSCALE_100);
      mjr_setBuffer(mjFB_OFFSCREEN, &renderer->context_);
    }));
    if (renderer->context_.currentBuffer != mjFB_OFFSCREEN) {
      return absl::InternalError("the GL context has no off-screen buffer");
    }
    return std::unique_ptr<Renderer>(std::move(renderer));
  }
  ~GlRenderer() override { mjr_freeContext(&context_); }

  absl::Status Render(const Simulation& simulation, Picture* picture) override {
    const int width = view_->width(), height = view_->height();
    RETURN_IF_ERROR(view_->Update(simulation));
    RETURN_IF_ERROR(GuardMujoco([&] {
      const mjrRect all = {0, 0, width, height};
      mjr_render(all, view_->scene(), &context_);
      mjr_readPixels(rgb_.data(), nullptr, all, &context_);
    }));
    uint8_t* out = picture->pixels();
    for (int row = 0; row < height; ++row) {
      const unsigned char* in = &rgb_[3 * size_t{1} * width * (height - 1 - row)];
      for (int column = 0; column < width; ++column, in += 3, out += 4) {
        out[0] = in[2];
        out[1] = in[1];
        out[2] = in[0];
      }
    }
    return absl::OkStatus();
  }

 private:
  explicit GlRenderer(std::unique_ptr<SceneView> view)
      : view_(std::move(view)), rgb_(3 * size_t{1} * view_->width() * view_->height()) {
    mjr_defaultContext(&context_);
  }

  const std::unique_ptr<SceneView> view_;
  mjrContext context_;
  std::vector<unsigned char> rgb_;  // bottom row first
};

}  // namespace

std::vector<std::string> CameraNames(const mjModel& model) {
  std::vector<std::string> names;
  for (int i = 0; i < model.ncam; ++i) {
    const char* const name = mj_id2name(&model, mjOBJ_CAMERA, i);
    names.push_back(name != nullptr ? name : std::to_string(i));
  }
  return names;
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

absl::StatusOr<std::unique_ptr<Renderer>> Renderer::WithOpenGl(const mjModel& model, const std::string& camera,
                                                               int width, int height) {
  ASSIGN_OR_RETURN(std::unique_ptr<SceneView> view, SceneView::Make(model, camera, width, height));
  return GlRenderer::Make(std::move(view));
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
