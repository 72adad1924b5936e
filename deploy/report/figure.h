// Figures as SVG: curves over the environment steps in panels, and points of two quantities. Pure.
#ifndef DATACOM_DEPLOY_REPORT_FIGURE_H_
#define DATACOM_DEPLOY_REPORT_FIGURE_H_

#include <limits>
#include <string>
#include <vector>

#include "deploy/report/groups.h"

namespace datacom::report {

struct PanelOf {
  std::string quantity;  // of MemberCurve
  std::string title;
  bool from_zero = false;                                 // never negative: the axis begins at 0
  double most = std::numeric_limits<double>::infinity();  // of the quantity; the axis does not go beyond it
  bool logarithmic = false;                               // five decades at most; what is below lies on the lower edge
};

// What a curve shows of the members of a group, each with its 95 % interval.
enum class Centre { kMean, kInterquartileMean };

// A panel for each quantity, two in a row, and a legend. For each group the centre over its members and its band.
std::string RenderPanels(const std::vector<Group>& groups, const std::vector<PanelOf>& panels, Centre centre);
// Cost sum and return of the evaluations.
std::string RenderFigure(const std::vector<Group>& groups);

// A point of a group, with 95 % intervals in both directions.
struct GroupPoint {
  std::string title, colour;
  Interval x, y;
};
// The axis of x is logarithmic, as PanelOf's. `limit`: where a line stands on it, for a budget; NaN for none.
std::string RenderPoints(const std::vector<GroupPoint>& points, const std::string& x_title, const std::string& y_title,
                         double limit);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_FIGURE_H_
// SPDX-License-Identifier: Apache-2.0
