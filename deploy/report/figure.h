// A figure as SVG: curves over the environment steps in two panels. Pure.
#ifndef DATACOM_DEPLOY_REPORT_FIGURE_H_
#define DATACOM_DEPLOY_REPORT_FIGURE_H_

#include <string>
#include <vector>

#include "deploy/report/groups.h"

namespace datacom::report {

// Cost sum and return of the evaluations, and a legend: for each group the mean over its members and its 95 % band.
std::string RenderFigure(const std::vector<Group>& groups);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_FIGURE_H_
// SPDX-License-Identifier: Apache-2.0
