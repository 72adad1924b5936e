// The colours and strokes of the curves of a report, for the page and the figure. Pure functions.
//
// An algorithm has the same colour in every report (common/config/algorithms.h). Its further groups have other strokes;
// if all groups are of one algorithm, each has a colour of a ramp instead.
#ifndef DATACOM_DEPLOY_REPORT_COLOURS_H_
#define DATACOM_DEPLOY_REPORT_COLOURS_H_

#include <string>
#include <vector>

#include "deploy/report/groups.h"

namespace datacom::report {

struct Look {
  std::string colour;       // "#rrggbb"
  std::vector<int> dashes;  // pixels drawn and left out in turn; empty: a solid line
};
std::vector<Look> LooksOf(const std::vector<Group>& groups);
std::string BaselineColour(size_t index);  // grey, because no algorithm has that colour

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_COLOURS_H_
// SPDX-License-Identifier: Apache-2.0
