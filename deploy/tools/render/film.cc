#include "deploy/tools/render/film.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/machine.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/tasks/task.h"

namespace datacom::tools {
namespace {

constexpr Colour kPanel = {0.06, 0.08, 0.11, 0.66};
constexpr Colour kLabel = {0.72, 0.77, 0.83, 1};
constexpr Colour kValue = {1, 1, 1, 1};
constexpr Colour kViolation = {1, 0.32, 0.28, 1};
constexpr Colour kEdge = {0.86, 0.1, 0.1, 1};
constexpr Colour kCost = {1, 0.62, 0.2, 1};
constexpr Colour kConstraint = {0.4, 0.76, 1, 1};
constexpr Colour kKnown = {0.55, 0.87, 0.47, 1};
constexpr Colour kShade = {0.9, 0.15, 0.1, 0.45};

double FontSize(const Picture& picture) { return std::clamp(picture.height() / 34.0, 10.0, 28.0); }

// Three decimals, fewer for larger numbers; with a typographic minus sign.
std::string Number(double value) {
  const double size = std::abs(value);
  const int places = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  return absl::StrFormat("%s%.*f", value < 0 ? "−" : "", places, size);
}

struct Entry {
  std::string label, value;
  Colour colour = kValue;
};

std::vector<Entry> Entries(const actor::EpisodeState& state) {
  const bool violation = state.reached.cost > 0;
  std::vector<Entry> entries = {{"step", std::to_string(state.step)},
                                {"time", absl::StrFormat("%.2f s", state.step * state.task->spec().control_dt)},
                                {"reward", Number(state.reached.reward)},
                                {"return", Number(state.sum_reward)},
                                {"cost", Number(state.reached.cost), violation ? kViolation : kValue}};
  if (state.judgement.has_value()) {
    const actor::EpisodeState::Judgement& judgement = *state.judgement;
    entries.push_back({"|a − u|", Number(judgement.intervention)});
    entries.push_back({"CVaR", Number(judgement.cvar)});
    entries.push_back({"δ", Number(judgement.cvar - judgement.constraint)});
    entries.push_back({"k = CVaR − δ", Number(judgement.constraint), judgement.constraint > 0 ? kCost : kValue});
  }
  return entries;
}

// Draws a polyline through the points that have a value; `value` returns it by index.
template <typename Value>
void DrawCurve(size_t count, double left, double step_width, double zero, double unit, const Colour& colour,
               double width, Picture* picture, Value&& value) {
  std::vector<Point> points;
  for (size_t i = 0; i < count; ++i) {
    const std::optional<double> v = value(i);
    if (v.has_value() && std::isfinite(*v)) points.push_back({left + i * step_width, zero - *v * unit});
  }
  picture->StrokeLine(points, width, colour);
}

}  // namespace

void DrawNumbers(const actor::EpisodeState& state, const std::optional<NearestName>& nearest, Picture* picture) {
  const double size = FontSize(*picture), line = 1.4 * size, pad = 0.7 * size;
  const std::vector<Entry> entries = Entries(state);
  double label_width[2] = {0, 0}, value_width = picture->TextWidth("−0000.000", size, true);
  for (size_t i = 0; i < entries.size(); ++i) {
    label_width[i % 2] = std::max(label_width[i % 2], picture->TextWidth(entries[i].label, size));
  }
  const double gap = 0.6 * size, column = 1.2 * size;
  double width = 2 * pad + label_width[0] + label_width[1] + 2 * (gap + value_width) + column;
  const size_t rows = (entries.size() + 1) / 2;
  const std::string known = nearest ? "nearest known: " + nearest->name : "";
  if (nearest) width = std::max(width, 2 * pad + picture->TextWidth(known, size) + gap + value_width);
  picture->FillRectangle(pad, pad, width, static_cast<double>(rows + nearest.has_value()) * line + 1.2 * pad, kPanel);
  for (size_t i = 0; i < entries.size(); ++i) {
    const double left = 2 * pad + (i % 2) * (label_width[0] + gap + value_width + column);
    const size_t row = i / 2;
    const double base = 1.7 * pad + static_cast<double>(row) * line + size;
    picture->Text(entries[i].label, left, base, size, kLabel);
    picture->Text(entries[i].value, left + label_width[i % 2] + gap + value_width, base, size, entries[i].colour,
                  /*anchor=*/1, /*bold=*/true);
  }
  if (nearest) {
    const double base = 1.7 * pad + static_cast<double>(rows) * line + size;
    picture->Text(known, 2 * pad, base, size, kLabel);
    picture->Text(Number(nearest->distance), pad + width - pad, base, size, nearest->distance < 0 ? kViolation : kKnown,
                  /*anchor=*/1, /*bold=*/true);
  }
  if (state.reached.cost > 0) {
    const double edge = std::max(2.0, size / 4);
    picture->StrokeRectangle(edge / 2, edge / 2, picture->width() - edge, picture->height() - edge, edge, kEdge);
  }
}

void DrawCurves(const std::vector<HistoryPoint>& history, uint32_t step, Picture* picture) {
  const double size = 0.85 * FontSize(*picture), pad = 0.8 * size;
  const double width = 0.42 * picture->width(), height = 0.2 * picture->height();
  const double left = 2 * pad, top = picture->height() - height - 2 * pad;
  const double inner_top = top + 1.5 * size;
  double cost_size = 1e-9, constraint_size = 1e-9, known_size = 1e-9;
  bool constrained = false, known = false;
  for (const HistoryPoint& point : history) {
    cost_size = std::max(cost_size, std::abs(point.cost));
    if (point.known.has_value()) known = true, known_size = std::max(known_size, std::abs(*point.known));
    if (!point.constraint.has_value()) continue;
    constrained = true;
    constraint_size = std::max(constraint_size, std::abs(*point.constraint));
  }
  picture->FillRectangle(left - pad, top - pad / 2, width + 2 * pad, height + 1.5 * pad, kPanel);
  picture->Text("cost", left, top + size, size, kCost, 0, true);
  double label_left = left + picture->TextWidth("cost", size, true) + 2 * size;
  if (constrained) {
    picture->Text("k = CVaR − δ", label_left, top + size, size, kConstraint, 0, true);
    label_left += picture->TextWidth("k = CVaR − δ", size, true) + 2 * size;
  }
  if (known) picture->Text("nearest known row", label_left, top + size, size, kKnown, 0, true);
  const double zero = (inner_top + top + height) / 2, half = (top + height - inner_top) / 2;
  const double step_width = width / std::max<size_t>(1, history.size() - 1);
  const size_t count = std::min<size_t>(history.size(), size_t{1} + step);
  for (size_t i = 0; i < count; ++i) {
    if (history[i].cost > 0)
      picture->FillRectangle(left + (i - 0.5) * step_width, inner_top, step_width, 2 * half, kShade);
  }
  picture->FillRectangle(left, zero - 0.5, width, 1, {1, 1, 1, 0.5});
  const double stroke = std::max(1.2, size / 8);
  DrawCurve(count, left, step_width, zero, half / cost_size, kCost, stroke, picture,
            [&](size_t i) { return std::optional<double>(history[i].cost); });
  DrawCurve(count, left, step_width, zero, half / known_size, kKnown, stroke, picture,
            [&](size_t i) { return history[i].known; });
  DrawCurve(count, left, step_width, zero, half / constraint_size, kConstraint, stroke, picture,
            [&](size_t i) { return history[i].constraint; });
}

namespace {

// One line in the top right corner.
void DrawTitle(const std::string& title, Picture* picture) {
  const double size = 0.9 * FontSize(*picture), pad = 0.7 * size;
  const double width = picture->TextWidth(title, size) + 2 * pad, left = picture->width() - width - pad;
  picture->FillRectangle(left, pad, width, size + 1.6 * pad, kPanel);
  picture->Text(title, left + pad, 1.7 * pad + size, size, kValue);
}

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
    team_ = std::make_unique<Team>(UsableProcessors());
    note_ = absl::StrCat("drawn by rays, without textures, because ", gl.status().message(), "\n");
  }
  return playback_.play([this](const actor::EpisodeState& state) {
    if (state.task->simulation() == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("task ", state.task->spec().name, " has no simulation to draw"));
    }
    if (renderer_ == nullptr) {
      const mjModel& model = state.task->simulation()->model();
      ASSIGN_OR_RETURN(
          renderer_, gl_ != nullptr ? Renderer::WithOpenGl(model, look_.camera, look_.width, look_.height)
                                    : Renderer::WithRays(model, look_.camera, look_.width, look_.height, team_.get()));
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
    RETURN_IF_ERROR(renderer_->Render(*state.task->simulation(), picture.pixels()));
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

uint32_t FrameStride(double control_dt, double frames_per_second) {
  constexpr double kMost = 1e9;  // longer than any episode
  return static_cast<uint32_t>(std::clamp(std::round(1 / (frames_per_second * control_dt)), 1.0, kMost));
}

Pace RealTimePace(uint32_t last_step, double control_dt, double frames_per_second) {
  const uint32_t stride = FrameStride(control_dt, frames_per_second);
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

std::string FilmProgress::Add() {
  ++done_;
  const Clock::Time now = clock_.Now();
  if (now - said_ < std::chrono::seconds(1)) return "";
  said_ = now;
  shown_ = true;
  return absl::StrCat("\rframe ", done_, " of ", frames_);
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
