// Turns an episode into pictures: chooses the states to show, draws each with its overlay.
// To be used by one thread; owns the GL context. Draw blocks for as long as it plays and draws.
#ifndef DATACOM_ACTOR_RENDER_FILM_H_
#define DATACOM_ACTOR_RENDER_FILM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actor/render/gl_context.h"
#include "actor/render/overlay.h"
#include "actor/render/playback.h"
#include "actor/render/renderer.h"

namespace datacom {

class Film {
 public:
  struct Look {
    std::string camera;  // as Renderer::Make takes it
    int width = 0, height = 0;
    bool curves = true, title = true;  // else the numbers alone
  };
  // Plays the episode once to learn its length. The errors of GlContext, Renderer and of playing.
  static absl::StatusOr<std::unique_ptr<Film>> Make(Playback playback, const Look& look);

  uint32_t last_step() const { return static_cast<uint32_t>(history_.size() - 1); }
  double control_dt() const { return control_dt_; }

  // Plays it again and hands on the picture of every step in `steps` (ascending, each at most last_step()). CANCELLED
  // when the process is to stop.
  absl::Status Draw(const std::vector<uint32_t>& steps, const std::function<absl::Status(const Picture&)>& take);

 private:
  Film(Playback playback, const Look& look) : playback_(std::move(playback)), look_(look) {}
  absl::Status Learn();

  const Playback playback_;
  const Look look_;
  std::unique_ptr<GlContext> gl_;
  std::unique_ptr<Renderer> renderer_;
  std::vector<HistoryPoint> history_;  // a point a step
  double control_dt_ = 0;              // s
};

// Steps 0, stride, 2 stride, ..., and the last: playback at fps frames a second (at most one a step) is real time.
struct Pace {
  std::vector<uint32_t> steps;
  double frames_per_second = 0;  // the nearest to the wish that a whole stride gives
};
Pace RealTimePace(uint32_t last_step, double control_dt, double frames_per_second);

// `count` steps spread evenly over 0 .. last_step, both ends included; of one, the last; fewer where there are fewer.
std::vector<uint32_t> EvenSteps(uint32_t last_step, int count);

// Cells of equal size beside and below each other, at most three in a row.
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

}  // namespace datacom

#endif  // DATACOM_ACTOR_RENDER_FILM_H_
