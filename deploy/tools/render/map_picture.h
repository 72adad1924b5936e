// Draws a feasibility map: one panel per epoch, all with one colour scale. Blue is feasible (k < 0), red is infeasible,
// the black line is the boundary k = 0, grey cells have no state. Pure functions.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_MAP_PICTURE_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_MAP_PICTURE_H_

#include <memory>

#include "deploy/tools/maps/feasibility_map.h"
#include "deploy/tools/render/picture.h"

namespace datacom::tools {

std::unique_ptr<Picture> DrawFeasibilityMap(const FeasibilityMap& map);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_MAP_PICTURE_H_
// SPDX-License-Identifier: Apache-2.0
