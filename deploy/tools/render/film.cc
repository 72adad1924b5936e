#include "deploy/tools/render/film.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/stop.h"

namespace datacom::tools {
namespace {

constexpr int kMaxColumns = 3, kGap = 4;  // pixels between the cells of a sheet

absl::Status CheckStop() {
  return Stop::Process().requested() ? absl::CancelledError("stopping was requested") : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Film>> Film::Make(Playback playback, const Look& look) {
  std::unique_ptr<Film> film(new Film(std::move(playback), look));
  RETURN_IF_ERROR(film->RecordHistory());
  return film;
}

absl::Status Film::RecordHistory() {
  absl::StatusOr<std::unique_ptr<GlContext>> gl = GlContext::Make();
  if (gl.ok()) {
    gl_ = *std::move(gl);
  } else {
    note_ = absl::StrCat("drawn by rays, without textures, because ", gl.status().message(), "\n");
  }
  return playback_.play([this](const actor::EpisodeState& state) {
    if (state.task->simulation() == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("task ", state.task->spec().name, " has no simulation to draw"));
    }
    if (renderer_ == nullptr) {
      const mjModel& model = state.task->simulation()->model();
      const auto make = gl_ != nullptr ? &Renderer::WithOpenGl : &Renderer::WithRays;
      ASSIGN_OR_RETURN(renderer_, make(model, look_.camera, look_.width, look_.height));
      control_dt_ = state.task->spec().control_dt;
    }
    HistoryPoint point;
    point.cost = state.reached.cost;
    if (state.judgement.has_value()) point.constraint = state.judgement->constraint;
    if (const auto nearest = playback_.known->At(state.observation)) point.known = -nearest->distance;
    history_.push_back(point);
    return CheckStop();
  });
}

absl::Status Film::Draw(const std::vector<uint32_t>& steps, const std::function<absl::Status(const Picture&)>& take) {
  Picture picture(look_.width, look_.height);
  size_t next = 0;
  return playback_.play([&](const actor::EpisodeState& state) {
    if (next == steps.size() || state.step != steps[next]) return absl::OkStatus();
    ++next;
    RETURN_IF_ERROR(CheckStop());
    RETURN_IF_ERROR(renderer_->Render(*state.task->simulation(), &picture));
    std::optional<NearestName> nearest;
    if (const auto found = playback_.known->At(state.observation)) {
      nearest = NearestName{playback_.known->name(found->row), found->distance};
    }
    DrawNumbers(state, nearest, &picture);
    if (look_.curves) DrawCurves(history_, state.step, &picture);
    if (look_.title) DrawTitle(playback_.title, &picture);
    return take(picture);
  });
}

Pace RealTimePace(uint32_t last_step, double control_dt, double frames_per_second) {
  const auto stride = static_cast<uint32_t>(std::max(1.0, std::round(1 / (frames_per_second * control_dt))));
  Pace pace;
  pace.frames_per_second = 1 / (stride * control_dt);
  for (uint32_t step = 0; step < last_step; step += stride) pace.steps.push_back(step);
  pace.steps.push_back(last_step);
  return pace;
}

std::vector<uint32_t> EvenSteps(uint32_t last_step, int count) {
  std::vector<uint32_t> steps;
  for (int i = 0; i < count; ++i) {
    const double part = count == 1 ? 1.0 : static_cast<double>(i) / (count - 1);
    steps.push_back(static_cast<uint32_t>(std::lround(part * last_step)));
  }
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

int ContactSheet::Columns(int cells) { return cells == 4 ? 2 : std::min(cells, kMaxColumns); }

ContactSheet::ContactSheet(int cells, int width, int height)
    : columns_(Columns(cells)),
      width_(width),
      height_(height),
      picture_(columns_ * (width + kGap) - kGap, (cells + columns_ - 1) / columns_ * (height + kGap) - kGap) {
  picture_.FillRectangle(0, 0, picture_.width(), picture_.height(), {1, 1, 1, 1});
}

void ContactSheet::Add(const Picture& cell) {
  const int column = count_ % columns_, row = count_ / columns_;
  picture_.Paste(cell, column * (width_ + kGap), row * (height_ + kGap));
  ++count_;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
