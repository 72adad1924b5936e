// An OpenGL context without a display, current on the making thread until it is destroyed.
//
// EGL first (a device, or a driver that needs no surface), OSMesa's software rasteriser where EGL gives nothing. Both
// libraries are opened when a context is made, so that nothing of this program needs them to start. One context at a
// time a process: MuJoCo looks for GL's functions in whichever of the two libraries is loaded.
#ifndef DATACOM_ACTOR_RENDER_GL_CONTEXT_H_
#define DATACOM_ACTOR_RENDER_GL_CONTEXT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace datacom {

class GlContext {
 public:
  // UNAVAILABLE naming what each library answered and the packages to install.
  static absl::StatusOr<std::unique_ptr<GlContext>> Make();
  virtual ~GlContext() = default;
  virtual std::string name() const = 0;  // "EGL", "OSMesa"
};

}  // namespace datacom

#endif  // DATACOM_ACTOR_RENDER_GL_CONTEXT_H_
