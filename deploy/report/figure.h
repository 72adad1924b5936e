// A figure as SVG: curves over the environment steps in two panels; and the colours and strokes of the curves, which
// the page has too. Pure functions.
#ifndef DATACOM_DEPLOY_REPORT_FIGURE_H_
#define DATACOM_DEPLOY_REPORT_FIGURE_H_

#include <string>
#include <vector>

#include "deploy/report/groups.h"

namespace datacom::report {

// An algorithm has the same colour in every report (common/config/algorithms.h). Its further groups have other strokes;
// if all groups are of one algorithm, each has a colour of a ramp instead.
struct Look {
  std::string colour;       // "#rrggbb"
  std::vector<int> dashes;  // pixels drawn and left out in turn; empty: a solid line
};
std::vector<Look> LooksOf(const std::vector<Group>& groups);
std::string BaselineColour(size_t index);            // grey, because no algorithm has that colour
std::string EscapedMarkup(const std::string& text);  // for SVG and HTML

// Cost sum and return of the evaluations, and a legend: for each group the mean over its members and its 95 % band.
std::string RenderFigure(const std::vector<Group>& groups);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_FIGURE_H_
// SPDX-License-Identifier: Apache-2.0
