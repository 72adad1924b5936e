// A feasibility map as a picture: a panel an epoch, side by side, one colour scale for all. Blue is feasible (k < 0),
// red is not, the black line is the boundary k = 0, grey has no state. Pure function.
#ifndef DATACOM_ACTOR_RENDER_MAP_PICTURE_H_
#define DATACOM_ACTOR_RENDER_MAP_PICTURE_H_

#include <memory>

#include "actor/render/feasibility_map.h"
#include "actor/render/picture.h"

namespace datacom {

std::unique_ptr<Picture> DrawFeasibilityMap(const FeasibilityMap& map);

// Colour of k on a scale whose ends are -limit and limit; what is beyond has the end's colour.
Colour MapColour(double constraint, double limit);

}  // namespace datacom

#endif  // DATACOM_ACTOR_RENDER_MAP_PICTURE_H_
