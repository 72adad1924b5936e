// Turns an episode into pictures: chooses the states to show and draws each with its overlay.
// Must be used by one thread; owns the GL context, or the threads that draw without one. Make and Draw block while they
// play the episode.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_FILM_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_FILM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actor/episode_player.h"
#include "common/base/clock.h"
#include "common/base/team.h"
#include "deploy/tools/render/picture.h"
#include "deploy/tools/render/playback.h"
#include "deploy/tools/render/renderer.h"

namespace datacom::tools {

// Overlays on a frame of an episode: its numbers, and curves of cost and constraint so far.

// One state's values on the curves.
struct HistoryPoint {
  double cost = 0;
  std::optional<double> constraint;
  std::optional<double> known;  // k of the nearest known row
};

// The known row that a state is nearest to violating.
struct NearestName {
  std::string name;
  double distance = 0;  // below 0: violated
};

// Step, time, reward, return and cost, in the top left corner; for a learned constraint also CVaR, threshold delta,
// k = CVaR - delta and how far the filter moved the action; below them, name and distance of the nearest known row. A
// violation turns the cost and the picture's edge red.
void DrawNumbers(const actor::EpisodeState& state, const std::optional<NearestName>& nearest, Picture* picture);

// Cost, constraint and nearest known row up to state `step` of the history, in the bottom left corner; each scaled by
// its largest absolute value.
void DrawCurves(const std::vector<HistoryPoint>& history, uint32_t step, Picture* picture);

class Film {
 public:
  struct Look {
    std::string camera;  // name as for SceneView::Make
    int width = 0, height = 0;
    bool curves = true, title = true;  // drawn in addition to the numbers
  };
  // Plays the episode once to record its length and history. Errors of Renderer and the playback. Without OpenGL the
  // pictures are drawn by rays, and note() says so.
  static absl::StatusOr<std::unique_ptr<Film>> Make(Playback playback, const Look& look);

  uint32_t last_step() const { return static_cast<uint32_t>(history_.size() - 1); }
  double control_dt() const { return control_dt_; }
  const std::string& note() const { return note_; }  // a line for the user, or nothing

  // Plays the episode again and passes the picture of every step in `steps` (ascending, each at most last_step()) to
  // `take`. CANCELLED when the process must stop.
  absl::Status Draw(const std::vector<uint32_t>& steps, const std::function<absl::Status(const Picture&)>& take);

 private:
  Film(Playback playback, const Look& look) : playback_(std::move(playback)), look_(look) {}
  absl::Status RecordHistory();

  const Playback playback_;
  const Look look_;
  std::unique_ptr<GlContext> gl_;  // null: there is no OpenGL
  std::unique_ptr<Team> team_;     // draws by rays; null with OpenGL
  std::string note_;
  std::unique_ptr<Renderer> renderer_;
  std::vector<HistoryPoint> history_;  // one point per step
  double control_dt_ = 0;              // s
};

// The whole number of steps from frame to frame that comes nearest to the frame rate; at least one.
uint32_t FrameStride(double control_dt, double frames_per_second);

// Steps 0, stride, 2 stride, ..., and the last, and the frame rate at which they play in real time.
struct Pace {
  std::vector<uint32_t> steps;
  double frames_per_second = 0;  // the nearest to the requested rate that a whole stride gives; at most one per step
};
Pace RealTimePace(uint32_t last_step, double control_dt, double frames_per_second);

// `count` steps spread evenly from 0 to last_step; for one, the last step. Fewer when the episode has fewer steps.
std::vector<uint32_t> EvenSteps(uint32_t last_step, int count);

// How far a film is, as text for a terminal: one line that is drawn again every second and erased at the end.
class FilmProgress {
 public:
  FilmProgress(size_t frames, const Clock* clock) : frames_(frames), clock_(*clock), said_(clock->Now()) {}
  // Counts a frame. Returns the line, or nothing if the last one is younger than a second.
  std::string Add();
  std::string End() const { return shown_ ? "\r\x1b[K" : ""; }

 private:
  const size_t frames_;
  const Clock& clock_;
  Clock::Time said_;
  size_t done_ = 0;
  bool shown_ = false;
};

// A grid of cells of equal size, at most three in a row.
class ContactSheet {
 public:
  ContactSheet(int cells, int width, int height);
  void Add(const Picture& cell);
  Picture* picture() { return &picture_; }

 private:
  static int Columns(int cells);
  const int columns_, width_, height_;
  int count_ = 0;
  Picture picture_;
};

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_FILM_H_
// SPDX-License-Identifier: Apache-2.0
