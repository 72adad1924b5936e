// An OpenGL context without a display, current on the thread that made it until it is destroyed.
//
// EGL gives it, on a device or with a driver that needs no surface. Its library is opened when a context is made, so
// that the program starts without it. One context per process at a time.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_GL_CONTEXT_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_GL_CONTEXT_H_

#include <memory>

#include "absl/status/statusor.h"

namespace datacom::tools {

class GlContext {
 public:
  // UNAVAILABLE, naming EGL's error and the packages to install.
  static absl::StatusOr<std::unique_ptr<GlContext>> Make();
  virtual ~GlContext() = default;
};

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_GL_CONTEXT_H_
// SPDX-License-Identifier: Apache-2.0
