// What is written over a frame of an episode: its numbers, and how cost and constraint went so far.
// Pure functions but for drawing on the picture.
#ifndef DATACOM_ACTOR_RENDER_OVERLAY_H_
#define DATACOM_ACTOR_RENDER_OVERLAY_H_

#include <optional>
#include <string>
#include <vector>

#include "actor/episode_player.h"
#include "actor/render/picture.h"

namespace datacom {

// One state of the episode that is drawn as a curve.
struct HistoryPoint {
  double cost = 0;
  std::optional<double> constraint;
};

// Step, time, reward, return, cost and, where a learned constraint acts, CVaR, threshold delta, k = CVaR - delta and
// the filter's part of the action, in the top left corner. A violation turns the cost and the picture's edge red.
void DrawNumbers(const Moment& moment, Picture* picture);

// Cost and constraint up to state `step` of the history, in the bottom left corner; each scaled by its largest size.
void DrawCurves(const std::vector<HistoryPoint>& history, uint32_t step, Picture* picture);

// One line in the top right corner.
void DrawTitle(const std::string& title, Picture* picture);

}  // namespace datacom

#endif  // DATACOM_ACTOR_RENDER_OVERLAY_H_
