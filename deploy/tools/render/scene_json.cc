#include "deploy/tools/render/scene_json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

namespace datacom::tools {
namespace {

using nlohmann::json;

constexpr int kShownGroups = 3;   // MuJoCo's viewer shows groups 0 to 2
constexpr int kMostPoints = 400;  // of a mesh

template <class Number>
json Rounded(const Number* values, int count) {
  json list = json::array();
  for (int i = 0; i < count; ++i) list.push_back(std::round(static_cast<double>(values[i]) * 1e4) / 1e4);
  return list;
}

// The bodies that move, in the model's order: those with a joint between them and the world, and those that the task
// places.
std::vector<int> MovingBodies(const mjModel& model) {
  std::vector<int> bodies;
  for (int body = 1; body < model.nbody; ++body) {
    if (model.body_weldid[body] != 0 || model.body_mocapid[model.body_rootid[body]] >= 0) bodies.push_back(body);
  }
  return bodies;
}

constexpr std::pair<int, const char*> kKinds[] = {{mjGEOM_SPHERE, "sphere"},     {mjGEOM_CAPSULE, "capsule"},
                                                  {mjGEOM_CYLINDER, "cylinder"}, {mjGEOM_ELLIPSOID, "ellipsoid"},
                                                  {mjGEOM_BOX, "box"},           {mjGEOM_MESH, "points"}};

// What geoms and sites have in common.
struct Part {
  int type, body, group;
  const mjtNum *size, *position, *rotation;
  const float* colour;
};

class Shapes {
 public:
  explicit Shapes(SceneView* view) : model_(view->model()), data_(*view->data()), moving_(MovingBodies(model_)) {}

  json All() {
    for (int i = 0; i < model_.ngeom; ++i) {
      const int mesh = model_.geom_type[i] == mjGEOM_MESH ? model_.geom_dataid[i] : -1;
      Add({model_.geom_type[i], model_.geom_bodyid[i], model_.geom_group[i], model_.geom_size + 3 * i,
           model_.geom_pos + 3 * i, model_.geom_quat + 4 * i, ColourOfGeom(model_, i)},
          mesh);
    }
    for (int i = 0; i < model_.nsite; ++i) {
      const int material = model_.site_matid[i];
      const float* const colour = material >= 0 ? model_.mat_rgba + 4 * material : model_.site_rgba + 4 * i;
      Add({model_.site_type[i], model_.site_bodyid[i], model_.site_group[i], model_.site_size + 3 * i,
           model_.site_pos + 3 * i, model_.site_quat + 4 * i, colour},
          -1);
    }
    return std::move(shapes_);
  }

 private:
  void Add(const Part& part, int mesh) {
    const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&part](const auto& known) { return known.first == part.type; });
    if (kind == std::end(kKinds) || part.group >= kShownGroups || part.colour[3] <= 0) return;
    const auto at = std::find(moving_.begin(), moving_.end(), part.body);
    json shape = {{"kind", kind->second},
                  {"size", Rounded(part.size, 3)},
                  {"colour", Rounded(part.colour, 3)},
                  {"alpha", std::round(part.colour[3] * 100) / 100},
                  {"body", at == moving_.end() ? -1 : static_cast<int>(at - moving_.begin())},
                  {"position", Rounded(part.position, 3)},
                  {"rotation", Rounded(part.rotation, 4)}};
    if (at == moving_.end()) Place(part, &shape);
    if (mesh >= 0) shape["points"] = PointsOf(mesh);
    shapes_.push_back(std::move(shape));
  }

  // A fixed shape's place in the world.
  void Place(const Part& part, json* shape) const {
    mjtNum position[3], rotation[4];
    mju_rotVecQuat(position, part.position, data_.xquat + 4 * part.body);
    mju_addTo3(position, data_.xpos + 3 * part.body);
    mju_mulQuat(rotation, data_.xquat + 4 * part.body, part.rotation);
    (*shape)["position"] = Rounded(position, 3);
    (*shape)["rotation"] = Rounded(rotation, 4);
  }

  json PointsOf(int mesh) const {
    json points = json::array();
    const int count = model_.mesh_vertnum[mesh], stride = 1 + count / kMostPoints;
    for (int i = 0; i < count; i += stride) {
      points.push_back(Rounded(model_.mesh_vert + 3 * (model_.mesh_vertadr[mesh] + i), 3));
    }
    return points;
  }

  const mjModel& model_;
  const mjData& data_;
  const std::vector<int> moving_;
  json shapes_ = json::array();
};

}  // namespace

json SceneOf(SceneView* view) {
  const mjvGLCamera eye = view->Eye();
  const double angle = 2 * std::atan(static_cast<double>(eye.frustum_top - eye.frustum_bottom) / 2 / eye.frustum_near);
  return {{"eye",
           {{"position", Rounded(eye.pos, 3)},
            {"forward", Rounded(eye.forward, 3)},
            {"up", Rounded(eye.up, 3)},
            {"angle", angle}}},
          {"shapes", Shapes(view).All()}};
}

json PoseOf(SceneView* view) {
  json pose = json::array();
  for (const int body : MovingBodies(view->model())) {
    json place = Rounded(view->data()->xpos + 3 * body, 3);
    for (const json& part : Rounded(view->data()->xquat + 4 * body, 4)) place.push_back(part);
    pose.push_back(std::move(place));
  }
  return pose;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
