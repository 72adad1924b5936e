#include "deploy/tools/render/render_command.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "common/base/output_file.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/config/experiment.h"
#include "common/records/message_json.h"
#include "common/tasks/mujoco.h"
#include "deploy/tools/maps/feasibility_map.h"
#include "deploy/tools/policies/run_policies.h"
#include "deploy/tools/render/film.h"
#include "deploy/tools/render/map_picture.h"
#include "deploy/tools/render/scene_json.h"
#include "deploy/tools/render/scene_view.h"
#include "deploy/tools/render/video.h"
#include "nlohmann/json.hpp"

namespace datacom::tools {

// Parts of a film's page, from the files of deploy/tools/page (embed.cmake). The page has {{TITLE}}, {{DATA}}, {{DRAW}}
// and {{FILM}}.
extern const char kDrawScript[], kFilmPage[], kFilmScript[];

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFrameWidth = 960, kFrameHeight = 540, kCellWidth = 480, kCellHeight = 270;
constexpr int kMaxSide = 4096, kMaxFrames = 36;

absl::Status CheckRange(const char* option, int value, int low, int high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(option, ": ", value, " is not within ", low, " to ", high));
}

absl::StatusOr<Film::Look> LookOf(const RenderCommand& command, bool sheet) {
  Film::Look look;
  look.camera = command.camera;
  look.width = command.width.value_or(sheet ? kCellWidth : kFrameWidth);
  look.height = command.height.value_or(sheet ? kCellHeight : kFrameHeight);
  look.curves = look.title = !sheet;
  RETURN_IF_ERROR(CheckRange("--width", look.width, 64, kMaxSide));
  RETURN_IF_ERROR(CheckRange("--height", look.height, 64, kMaxSide));
  return look;
}

// The last step to show; `otherwise` without --step.
absl::StatusOr<uint32_t> LastStep(const RenderCommand& command, const Film& film, uint32_t otherwise) {
  const uint32_t step = command.step.value_or(otherwise);
  if (step <= film.last_step()) return step;
  return absl::InvalidArgumentError(absl::StrCat("--step: ", step, " is past the episode's last, ", film.last_step()));
}

absl::Status CheckFilm(const RenderCommand& command) {
  if (command.frames.has_value()) {
    return absl::InvalidArgumentError("--frames: only for a PNG; --fps sets how many frames a film has");
  }
  if (command.fps >= 0.001 && command.fps <= 1000) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--fps: ", command.fps, " is not within 0.001 to 1000"));
}

// The requested frames a second, or as many fewer as --max-frames needs. A film shows the first and the last state.
double FramesPerSecond(const RenderCommand& command, uint32_t last, double control_dt) {
  if (!command.max_frames || last == 0) return command.fps;
  const double stride = std::ceil(last / (*command.max_frames - 1.0));
  return std::min(command.fps, 1 / (stride * control_dt));
}

absl::Status WriteFilm(const RenderCommand& command, std::ostream* out) {
  RETURN_IF_ERROR(CheckFilm(command));
  ASSIGN_OR_RETURN(const Film::Look look, LookOf(command, /*sheet=*/false));
  ASSIGN_OR_RETURN(Playback playback, MakePlayback(command.playback));
  *out << playback.note;
  ASSIGN_OR_RETURN(const std::unique_ptr<Film> film, Film::Make(std::move(playback), look));
  *out << film->note();
  ASSIGN_OR_RETURN(const uint32_t last, LastStep(command, *film, film->last_step()));
  const Pace pace = RealTimePace(last, film->control_dt(), FramesPerSecond(command, last, film->control_dt()));
  ASSIGN_OR_RETURN(const std::unique_ptr<Video> video,
                   Video::Make(command.out, look.width, look.height, pace.frames_per_second));
  FilmProgress progress(pace.steps.size(), &Clock::Real());
  const bool shows = ::isatty(STDERR_FILENO) == 1;
  const absl::Status drawn = film->Draw(pace.steps, [&](const Picture& frame) {
    if (shows) std::fputs(progress.Add().c_str(), stderr);
    return video->Add(frame);
  });
  if (shows) std::fputs(progress.End().c_str(), stderr);
  RETURN_IF_ERROR(drawn);
  RETURN_IF_ERROR(video->Finish());
  *out << command.out << ": " << pace.steps.size() << " frames at " << pace.frames_per_second << " a second, " << last
       << " steps\n";
  return absl::OkStatus();
}

// A film as a page: one file that plays an episode in any browser, without ffmpeg. It has no pictures; the page draws
// the shapes itself, so it is made in the time that the episode takes to simulate.
struct FilmPage {
  std::string html;
  uint32_t frames = 0, steps = 0;
};

// "</" and "<!--" would end or change the script element.
std::string ScriptText(const json& data) { return absl::StrReplaceAll(JsonText(data), {{"<", "\\u003c"}}); }

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

// Plays the episode. camera: as for SceneView::Make. last: the last step to show; default the episode's last. Errors of
// the playback and of the camera; INVALID_ARGUMENT for a step past the episode's last, or for a task without a
// simulator.
absl::StatusOr<FilmPage> MakeFilmPage(const Playback& playback, const std::string& camera, double frames_per_second,
                                      std::optional<uint32_t> last) {
  std::unique_ptr<SceneView> view;
  const std::string template_page = absl::StrReplaceAll(
      kFilmPage, {{"{{TITLE}}", "datacom film"}, {"{{DRAW}}", kDrawScript}, {"{{FILM}}", kFilmScript}});
  const std::vector<std::string> around = absl::StrSplit(template_page, "{{DATA}}");
  FilmPage page;
  uint32_t every = 1;
  double cost = kNoCost;
  const auto watch = [&](const actor::EpisodeState& state) -> absl::Status {
    if (Stop::Process().requested()) return absl::CancelledError("stopped");
    const Simulation* const simulation = state.task->simulation();
    if (simulation == nullptr) return absl::InvalidArgumentError("the task has no simulator to draw");
    if (view == nullptr || state.step == 0) {  // an episode that is repeated begins anew
      ASSIGN_OR_RETURN(view, SceneView::Make(simulation->model(), camera, kFrameWidth, kFrameHeight));
      RETURN_IF_ERROR(view->Update(*simulation));
      const double period = state.task->spec().control_dt;
      every = FrameStride(period, frames_per_second);
      const json film = {
          {"title", playback.title}, {"scene", SceneOf(view.get())}, {"period", period}, {"every", every}};
      page.html = around.front() + ScriptText(film);
      page.html.pop_back();  // the brace: the frames follow, each as text, because all of them as json take much memory
      page.html += ",\"frames\":[";
      page.frames = 0;
      cost = kNoCost;
    }
    page.steps = state.step;
    if (last && state.step > *last) return absl::OkStatus();
    cost = std::max(cost, state.reached.cost);
    if (state.step % every != 0 && !state.last && state.step != last) return absl::OkStatus();
    RETURN_IF_ERROR(view->Update(*simulation));
    absl::StrAppend(&page.html, page.frames++ == 0 ? "" : ",",
                    ScriptText(FrameOf(playback, state, std::exchange(cost, kNoCost), view.get())));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(playback.play(watch));
  if (last && *last > page.steps) {
    return absl::InvalidArgumentError(absl::StrCat("--step: ", *last, " is past the episode's last, ", page.steps));
  }
  page.html += "]}" + around.back();
  return page;
}

// The frames a second of a page with at most --max-frames: the episode is played once more to know its length.
absl::StatusOr<double> FramesPerSecondOfPage(const RenderCommand& command, const Playback& playback) {
  if (!command.max_frames) return command.fps;
  uint32_t last = 0;
  double control_dt = 0;
  RETURN_IF_ERROR(playback.play([&](const actor::EpisodeState& state) {
    last = state.step;
    control_dt = state.task->spec().control_dt;
    return Stop::Process().requested() ? absl::CancelledError("stopped") : absl::OkStatus();
  }));
  return FramesPerSecond(command, std::min(last, command.step.value_or(last)), control_dt);
}

absl::Status WriteFilmPage(const RenderCommand& command, std::ostream* out) {
  RETURN_IF_ERROR(CheckFilm(command));
  if (command.width || command.height) {
    return absl::InvalidArgumentError(absl::StrCat(
        command.width ? "--width" : "--height", ": a page is as large as the browser's window; FILE.mp4 has a size"));
  }
  ASSIGN_OR_RETURN(const Playback playback, MakePlayback(command.playback));
  *out << playback.note;
  ASSIGN_OR_RETURN(const double fps, FramesPerSecondOfPage(command, playback));
  ASSIGN_OR_RETURN(const FilmPage page, MakeFilmPage(playback, command.camera, fps, command.step));
  RETURN_IF_ERROR(WriteOutputFile(command.out, page.html));
  *out << command.out << ": " << page.frames << " frames of " << page.steps << " steps; open it in a browser\n";
  return absl::OkStatus();
}

absl::Status WriteStill(const RenderCommand& command, std::ostream* out) {
  if (command.max_frames || command.fps != RenderCommand().fps) {
    return absl::InvalidArgumentError(
        absl::StrCat(command.max_frames ? "--max-frames" : "--fps",
                     ": only for a film, FILE.html or FILE.mp4; --frames sets how many frames a PNG has"));
  }
  const int frames = command.frames.value_or(1);
  RETURN_IF_ERROR(CheckRange("--frames", frames, 1, kMaxFrames));
  ASSIGN_OR_RETURN(const Film::Look look, LookOf(command, frames > 1));
  ASSIGN_OR_RETURN(Playback playback, MakePlayback(command.playback));
  *out << playback.note;
  const std::optional<uint32_t> still_step = playback.still_step;
  ASSIGN_OR_RETURN(const std::unique_ptr<Film> film, Film::Make(std::move(playback), look));
  *out << film->note();
  ASSIGN_OR_RETURN(const uint32_t last,
                   LastStep(command, *film, frames == 1 ? still_step.value_or(film->last_step()) : film->last_step()));
  const std::vector<uint32_t> steps = EvenSteps(last, frames);
  ContactSheet sheet(static_cast<int>(steps.size()), look.width, look.height);
  RETURN_IF_ERROR(film->Draw(steps, [&](const Picture& frame) {
    sheet.Add(frame);
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(WriteOutputFile(command.out, sheet.picture()->Png()));
  *out << command.out << ": " << steps.size() << (steps.size() == 1 ? " frame" : " frames") << ", the last of step "
       << last << " of " << film->last_step() << "\n";
  return absl::OkStatus();
}

absl::Status WriteMap(const RenderCommand& command, const std::string& type, std::ostream* out) {
  const PlaybackOptions& playback = command.playback;
  if (!IsRunFolder(playback.what)) {
    return Annotate(NotARunFolder(playback.what), "--map");
  }
  RETURN_IF_ERROR(CheckRange("--resolution", command.resolution, 2, 1000));
  ASSIGN_OR_RETURN(const FeasibilityMap map,
                   MakeFeasibilityMap(playback.what, playback.set, playback.member, playback.epoch.value_or(""),
                                      command.slice, command.resolution));
  RETURN_IF_ERROR(WriteOutputFile(command.out, type == ".json"  ? MapJson(map)
                                               : type == ".csv" ? MapCsv(map)
                                                                : DrawFeasibilityMap(map)->Png()));
  *out << command.out << ": slice " << map.slice.name << ", " << map.panels.size()
       << (map.panels.size() == 1 ? " epoch\n" : " epochs\n");
  return absl::OkStatus();
}

}  // namespace

absl::Status RunRenderCommand(const RenderCommand& given, std::ostream* out) {
  RenderCommand command = given;
  ASSIGN_OR_RETURN(command.playback.what, RunFolderOf(given.playback.what));
  RETURN_IF_ERROR(CheckOutputFile("--out", command.out));
  ASSIGN_OR_RETURN(const std::string replaced, ReplacedFile(command.out));
  if (IsStandardOutput(command.out)) out = &std::cerr;
  std::string type = fs::path(command.out).extension().string();
  const std::vector<std::string> types = command.map ? std::vector<std::string>{".png", ".json", ".csv"}
                                                     : std::vector<std::string>{".html", ".mp4", ".png"};
  const bool known = std::find(types.begin(), types.end(), type) != types.end();
  if (!known && replaced.empty()) type = ".png";  // of a FIFO, a device or standard output
  if (!known && !replaced.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--out: ", command.out, " ends in none of ", absl::StrJoin(types, ", ")));
  }
  if (type == ".html") return WriteFilmPage(command, out);
  RETURN_IF_ERROR(FontStatus());
  if (command.map) return WriteMap(command, type, out);
  return type == ".mp4" ? WriteFilm(command, out) : WriteStill(command, out);
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
