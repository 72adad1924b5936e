#include "deploy/tools/render/film_page.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/tasks/mujoco.h"
#include "deploy/tools/page/page.h"
#include "deploy/tools/render/scene_json.h"
#include "deploy/tools/render/scene_view.h"
#include "nlohmann/json.hpp"

namespace datacom::tools {
namespace {

using nlohmann::json;

constexpr int kWidth = 960, kHeight = 540;  // of the view; only their ratio matters

constexpr double kNoCost = -std::numeric_limits<double>::infinity();

double Short(double value) { return std::isfinite(value) ? std::round(value * 1e5) / 1e5 : 0; }

// cost: the largest one since the frame before.
json FrameOf(const Playback& playback, const actor::EpisodeState& state, double cost, SceneView* view) {
  json frame = {{"pose", PoseOf(view)},
                {"step", state.step},
                {"reward", Short(state.reached.reward)},
                {"return", Short(state.sum_reward)},
                {"cost", Short(cost)},
                {"k", nullptr},
                {"nearest", nullptr}};
  if (state.judgement) {
    frame["k"] = Short(state.judgement->constraint);
    frame["cvar"] = Short(state.judgement->cvar);
    frame["moved"] = Short(state.judgement->intervention);
  }
  if (const std::optional<NearestRow> nearest = playback.known->At(state.observation)) {
    frame["nearest"] = {playback.known->name(nearest->row), Short(nearest->distance)};
  }
  return frame;
}

}  // namespace

absl::StatusOr<FilmPage> MakeFilmPage(const Playback& playback, const std::string& camera, double frames_per_second,
                                      std::optional<uint32_t> last) {
  std::unique_ptr<SceneView> view;
  json film = {{"title", playback.title}, {"frames", json::array()}};
  FilmPage page;
  uint32_t every = 1;
  double cost = kNoCost;
  const auto watch = [&](const actor::EpisodeState& state) -> absl::Status {
    if (Stop::Process().requested()) return absl::CancelledError("stopped");
    const Simulation* const simulation = state.task->simulation();
    if (simulation == nullptr) return absl::InvalidArgumentError("the task has no simulator to draw");
    if (view == nullptr || state.step == 0) {  // an episode that is repeated begins anew
      ASSIGN_OR_RETURN(view, SceneView::Make(simulation->model(), camera, kWidth, kHeight));
      RETURN_IF_ERROR(view->Update(*simulation));
      const double period = state.task->spec().control_dt;
      every = static_cast<uint32_t>(std::max(1.0, std::round(1 / (frames_per_second * period))));
      film["scene"] = SceneOf(view.get());
      film["period"] = period;
      film["every"] = every;
      film["frames"] = json::array();
      cost = kNoCost;
    }
    page.steps = state.step;
    if (last && state.step > *last) return absl::OkStatus();
    cost = std::max(cost, state.reached.cost);
    if (state.step % every != 0 && !state.last && state.step != last) return absl::OkStatus();
    RETURN_IF_ERROR(view->Update(*simulation));
    film["frames"].push_back(FrameOf(playback, state, std::exchange(cost, kNoCost), view.get()));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(playback.play(watch));
  if (last && *last > page.steps) {
    return absl::InvalidArgumentError(absl::StrCat("--step: ", *last, " is past the episode's last, ", page.steps));
  }
  page.frames = static_cast<uint32_t>(film["frames"].size());
  // "</" would end the script element.
  const std::string data =
      absl::StrReplaceAll(film.dump(-1, ' ', true, json::error_handler_t::replace), {{"</", "<\\/"}});
  page.html = absl::StrReplaceAll(
      kFilmPage,
      {{"{{TITLE}}", "datacom film"}, {"{{DATA}}", data}, {"{{DRAW}}", kDrawScript}, {"{{FILM}}", kFilmScript}});
  return page;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
