// Overlays on a frame of an episode: its numbers, and curves of cost and constraint so far.
// Functions; they only draw on the picture.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_OVERLAY_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_OVERLAY_H_

#include <optional>
#include <string>
#include <vector>

#include "actor/episode_player.h"
#include "deploy/tools/render/picture.h"

namespace datacom::tools {

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

// One line in the top right corner.
void DrawTitle(const std::string& title, Picture* picture);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_OVERLAY_H_
// SPDX-License-Identifier: Apache-2.0
