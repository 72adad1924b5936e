// Renderer::WithRays: one ray for each pixel, and one from what it meets to the light.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/base/status.h"
#include "common/base/team.h"
#include "deploy/tools/render/picture.h"
#include "deploy/tools/render/renderer.h"
#include "deploy/tools/render/scene_view.h"

namespace datacom::tools {
namespace {

using Vec = std::array<double, 3>;

Vec operator+(const Vec& a, const Vec& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
Vec operator-(const Vec& a, const Vec& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
Vec operator*(double s, const Vec& a) { return {s * a[0], s * a[1], s * a[2]}; }
double Dot(const Vec& a, const Vec& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vec Cross(const Vec& a, const Vec& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
Vec Unit(const Vec& a) { return (1 / std::max(std::sqrt(Dot(a, a)), 1e-12)) * a; }
Vec FromFloats(const float* a) { return {a[0], a[1], a[2]}; }

constexpr mjtByte kShownGroups[mjNGROUP] = {1, 1, 1, 0, 0, 0};  // as MuJoCo's viewer shows them
constexpr double kAmbient = 0.35, kDiffuse = 0.65, kShadow = 0.55;
constexpr Colour kSky = {0.25, 0.32, 0.4, 1};

// MuJoCo 2 has no such cameras.
bool IsOrthographic([[maybe_unused]] const mjvGLCamera& eye) {
#if mjVERSION_HEADER >= 300
  return eye.orthographic != 0;
#else
  return false;
#endif
}

// What a ray meets first; geom -1 for nothing.
struct Hit {
  int geom = -1;
  Vec point = {0, 0, 0};
};

class RayRenderer : public Renderer {
 public:
  RayRenderer(std::unique_ptr<SceneView> view, Team* team)
      : view_(std::move(view)), team_(team), hits_(size_t{1} * view_->width() * view_->height()) {}

  absl::Status Render(const Simulation& simulation, uint8_t* pixels) override {
    RETURN_IF_ERROR(view_->Update(simulation));
    const mjvGLCamera eye = view_->Eye();
    return GuardMujoco([&] {
      ForRows([&](int row) { CastRays(eye, row); });
      ForRows([&](int row) { Shade(eye, row, pixels); });  // looks at the hits of the rows beside it
    });
  }

 private:
  Hit Cast(const Vec& from, const Vec& direction) {
    Hit hit;
    const double distance = Distance(from, direction, &hit.geom);
    hit.point = from + distance * direction;
    return hit;
  }

  double Distance(const Vec& from, const Vec& direction, int* geom) {
    const mjModel* const model = &view_->model();
#if mjVERSION_HEADER >= 3000000
    return mj_ray(model, view_->data(), from.data(), direction.data(), kShownGroups, 1, -1, geom, nullptr);
#else
    return mj_ray(model, view_->data(), from.data(), direction.data(), kShownGroups, 1, -1, geom);
#endif
  }

  template <typename Body>
  void ForRows(const Body& body) {
    Share(team_, view_->height(), [&body](int row) {
      MujocoGuard guard;  // of this thread
      body(row);
    });
  }

  void CastRays(const mjvGLCamera& eye, int row) {
    const Vec origin = FromFloats(eye.pos), forward = FromFloats(eye.forward), up = FromFloats(eye.up);
    const Vec right = Cross(forward, up);
    const int width = view_->width(), height = view_->height();
    const double pixel = (eye.frustum_top - eye.frustum_bottom) / height;  // on the near plane, in m
    const double y = eye.frustum_top - (row + 0.5) * pixel;
    for (int column = 0; column < width; ++column) {
      const double x = eye.frustum_center + (column + 0.5 - width / 2.0) * pixel;
      const Vec aside = x * right + y * up;
      hits_[size_t{1} * row * width + column] =
          IsOrthographic(eye) ? Cast(origin + aside, forward)
                              : Cast(origin, Unit(static_cast<double>(eye.frustum_near) * forward + aside));
    }
  }

  // The normal of the surface at a pixel, from its neighbours that see the same geom.
  Vec Normal(int row, int column, const Vec& to_eye) const {
    const int width = view_->width(), height = view_->height();
    const Hit& here = hits_[size_t{1} * row * width + column];
    const auto along = [&](int rows, int columns) {
      for (const int side : {1, -1}) {
        const int r = row + side * rows, c = column + side * columns;
        if (r < 0 || r >= height || c < 0 || c >= width) continue;
        const Hit& next = hits_[size_t{1} * r * width + c];
        if (next.geom == here.geom) return static_cast<double>(side) * (next.point - here.point);
      }
      return Vec{0, 0, 0};
    };
    const Vec normal = Unit(Cross(along(0, 1), along(1, 0)));
    if (Dot(normal, normal) < 0.5) return to_eye;  // no such neighbour
    return Dot(normal, to_eye) < 0 ? -1 * normal : normal;
  }

  Colour ColourOf(int geom) const {
    const float* const rgba = ColourOfGeom(view_->model(), geom);
    return {rgba[0], rgba[1], rgba[2], 1};
  }

  void Shade(const mjvGLCamera& eye, int row, uint8_t* pixels) {
    const mjvScene& scene = *view_->scene();
    const Vec origin = FromFloats(eye.pos);
    const Vec light = scene.nlight > 1   ? FromFloats(scene.lights[1].pos)  // 0 is the light at the camera
                      : scene.nlight > 0 ? FromFloats(scene.lights[0].pos)
                                         : origin;
    const int width = view_->width();
    for (int column = 0; column < width; ++column) {
      const size_t i = size_t{1} * row * width + column;
      const Hit& hit = hits_[i];
      Colour colour = kSky;
      if (hit.geom >= 0) {
        const Vec to_eye = Unit(origin - hit.point), to_light = light - hit.point;
        const Vec normal = Normal(row, column, to_eye);
        const Vec direction = Unit(to_light);
        int shading = -1;
        const double distance = Distance(hit.point + 1e-4 * normal, direction, &shading);
        const bool shadow = shading >= 0 && distance < std::sqrt(Dot(to_light, to_light));
        const double lit = std::abs(Dot(normal, to_eye)) * 0.25 + 0.75 * std::max(0.0, Dot(normal, direction));
        const double brightness = kAmbient + kDiffuse * lit * (shadow ? kShadow : 1);
        colour = ColourOf(hit.geom);
        colour = {colour.red * brightness, colour.green * brightness, colour.blue * brightness, 1};
      }
      uint8_t* const pixel = pixels + 4 * i;
      pixel[0] = static_cast<uint8_t>(std::lround(255 * std::min(1.0, colour.blue)));
      pixel[1] = static_cast<uint8_t>(std::lround(255 * std::min(1.0, colour.green)));
      pixel[2] = static_cast<uint8_t>(std::lround(255 * std::min(1.0, colour.red)));
    }
  }

  const std::unique_ptr<SceneView> view_;
  Team* const team_;
  std::vector<Hit> hits_;  // [height][width]
};

}  // namespace

absl::StatusOr<std::unique_ptr<Renderer>> Renderer::WithRays(const mjModel& model, const std::string& camera, int width,
                                                             int height, Team* team) {
  ASSIGN_OR_RETURN(std::unique_ptr<SceneView> view, SceneView::Make(model, camera, width, height));
  return std::unique_ptr<Renderer>(std::make_unique<RayRenderer>(std::move(view), team));
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
