// A simulation as pages draw it (deploy/tools/page/draw.js): its shapes, the eye, and where the bodies are.
//
// Functions; thread-safe for distinct simulations. Lengths in metres; numbers are rounded to a tenth of a millimetre.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_SCENE_JSON_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_SCENE_JSON_H_

#include "deploy/tools/render/scene_view.h"
#include "nlohmann/json.hpp"

namespace datacom::tools {

// {"eye": {"position", "forward", "up", "angle": vertical, radians},
//  "shapes": [{"kind": "sphere" | "capsule" | "cylinder" | "ellipsoid" | "box" | "points", "size": [3], "points":
//  [[3]],
//              "colour": [3] of 0 to 1, "alpha", "body": index in a pose or -1 for what never moves,
//              "position": [3], "rotation": [4] quaternion w x y z, relative to the body}]}
// Planes and height fields are left out. `view` shows the state that the fixed shapes are taken from.
nlohmann::json SceneOf(SceneView* view);

// [[x, y, z, w, x, y, z] for every body that moves], of the state that `view` shows.
nlohmann::json PoseOf(SceneView* view);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_SCENE_JSON_H_
// SPDX-License-Identifier: Apache-2.0
