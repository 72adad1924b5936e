// An OpenGL context without a display, current on the thread that made it until it is destroyed.
//
// Tries EGL first (a device, or a driver that needs no surface), then OSMesa's software rasteriser. Both libraries are
// opened when a context is made, so that the program starts without them. One context per process at a time: MuJoCo
// looks for GL's functions in whichever of the two libraries is loaded.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_GL_CONTEXT_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_GL_CONTEXT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace datacom::tools {

class GlContext {
 public:
  // UNAVAILABLE, naming the error of each library and the packages to install.
  static absl::StatusOr<std::unique_ptr<GlContext>> Make();
  virtual ~GlContext() = default;
  virtual std::string name() const = 0;  // "EGL", "OSMesa"
};

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_GL_CONTEXT_H_
// SPDX-License-Identifier: Apache-2.0
