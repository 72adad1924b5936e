#include "deploy/tools/render/renderer.h"

#include <dlfcn.h>

#include <utility>
#include <vector>

#include "EGL/egl.h"
#include "EGL/eglext.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "deploy/tools/render/scene_view.h"

namespace datacom::tools {
namespace {

constexpr char kLibrary[] = "libEGL.so.1";

// The library, opened at run time. Closed again unless kept: a driver in use cannot be unloaded safely.
class Library {
 public:
  Library() : handle_(::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) error_ = ::dlerror();
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  void Keep() { handle_ = nullptr; }

  absl::Status status() const {
    return error_.empty() ? absl::OkStatus() : absl::UnavailableError(absl::StrCat(kLibrary, ": ", error_));
  }
  // Fills `function` with the library's symbol; after the first missing symbol status() is an error.
  template <typename Function>
  void Find(const char* symbol, Function** function) {
    *function = handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle_, symbol));
    if (*function == nullptr && error_.empty()) error_ = absl::StrCat("no function ", symbol);
  }

 private:
  void* handle_;
  std::string error_;
};

struct EglFunctions {
  explicit EglFunctions(Library* library) {
    library->Find("eglGetProcAddress", &get_proc_address);
    library->Find("eglGetDisplay", &get_display);
    library->Find("eglInitialize", &initialize);
    library->Find("eglBindAPI", &bind_api);
    library->Find("eglChooseConfig", &choose_config);
    library->Find("eglCreateContext", &create_context);
    library->Find("eglMakeCurrent", &make_current);
    library->Find("eglDestroyContext", &destroy_context);
    library->Find("eglTerminate", &terminate);
    library->Find("eglGetError", &get_error);
  }
  decltype(eglGetProcAddress)* get_proc_address;
  decltype(eglGetDisplay)* get_display;
  decltype(eglInitialize)* initialize;
  decltype(eglBindAPI)* bind_api;
  decltype(eglChooseConfig)* choose_config;
  decltype(eglCreateContext)* create_context;
  decltype(eglMakeCurrent)* make_current;
  decltype(eglDestroyContext)* destroy_context;
  decltype(eglTerminate)* terminate;
  decltype(eglGetError)* get_error;
};

class EglContext : public GlContext {
 public:
  static absl::StatusOr<std::unique_ptr<GlContext>> Make() {
    Library library;
    const EglFunctions egl(&library);
    RETURN_IF_ERROR(library.status());
    std::string refusals;
    for (const EGLDisplay display : Displays(egl)) {
      absl::StatusOr<EGLContext> context = MakeOn(egl, display);
      if (context.ok()) {
        library.Keep();
        return std::unique_ptr<GlContext>(new EglContext(egl, display, *context));
      }
      absl::StrAppend(&refusals, refusals.empty() ? "" : ", ", context.status().message());
    }
    return absl::UnavailableError(absl::StrCat(kLibrary, ": ", refusals.empty() ? "no display" : refusals));
  }
  ~EglContext() override {
    egl_.make_current(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    egl_.destroy_context(display_, context_);
    egl_.terminate(display_);
  }

 private:
  EglContext(const EglFunctions& egl, EGLDisplay display, EGLContext context)
      : egl_(egl), display_(display), context_(context) {}

  // All devices in the drivers' order (graphics cards first), then the surfaceless platform, then the default display.
  static std::vector<EGLDisplay> Displays(const EglFunctions& egl) {
    std::vector<EGLDisplay> displays;
    const auto query = reinterpret_cast<PFNEGLQUERYDEVICESEXTPROC>(egl.get_proc_address("eglQueryDevicesEXT"));
    const auto platform =
        reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(egl.get_proc_address("eglGetPlatformDisplayEXT"));
    if (platform != nullptr) {
      EGLDeviceEXT devices[16];
      EGLint count = 0;
      if (query == nullptr || query(16, devices, &count) != EGL_TRUE) count = 0;
      for (EGLint i = 0; i < count; ++i) displays.push_back(platform(EGL_PLATFORM_DEVICE_EXT, devices[i], nullptr));
      displays.push_back(platform(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr));
    }
    displays.push_back(egl.get_display(EGL_DEFAULT_DISPLAY));
    std::erase(displays, EGL_NO_DISPLAY);
    return displays;
  }

  static absl::StatusOr<EGLContext> MakeOn(const EglFunctions& egl, EGLDisplay display) {
    const auto refused = [&](const char* call) {
      const EGLint error = egl.get_error();
      egl.terminate(display);
      return absl::UnavailableError(absl::StrCat(call, " fails with ", absl::Hex(error)));
    };
    if (egl.initialize(display, nullptr, nullptr) != EGL_TRUE) return refused("eglInitialize");
    if (egl.bind_api(EGL_OPENGL_API) != EGL_TRUE) return refused("eglBindAPI");
    const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_NONE};
    EGLConfig config = nullptr;
    EGLint count = 0;
    if (egl.choose_config(display, wanted, &config, 1, &count) != EGL_TRUE || count < 1)
      return refused("eglChooseConfig");
    const EGLContext context = egl.create_context(display, config, EGL_NO_CONTEXT, nullptr);
    if (context == EGL_NO_CONTEXT) return refused("eglCreateContext");
    if (egl.make_current(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context) != EGL_TRUE) {
      egl.destroy_context(display, context);
      return refused("eglMakeCurrent");
    }
    return context;
  }

  const EglFunctions egl_;
  const EGLDisplay display_;
  const EGLContext context_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GlContext>> GlContext::Make() {
  absl::StatusOr<std::unique_ptr<GlContext>> egl = EglContext::Make();
  if (egl.ok()) return egl;
  return absl::UnavailableError(
      absl::StrCat("there is no OpenGL: ", egl.status().message(),
                   "; for it install Debian's packages libegl1 and libgl1-mesa-dri (or a graphics card's driver)"));
}

namespace {

class GlRenderer : public Renderer {
 public:
  static absl::StatusOr<std::unique_ptr<Renderer>> Make(std::unique_ptr<SceneView> view) {
    std::unique_ptr<GlRenderer> renderer(new GlRenderer(std::move(view)));
    RETURN_IF_ERROR(GuardMujoco([&] {
      mjr_makeContext(&renderer->view_->model(), &renderer->context_, mjFONTSCALE_100);
      mjr_setBuffer(mjFB_OFFSCREEN, &renderer->context_);
    }));
    if (renderer->context_.currentBuffer != mjFB_OFFSCREEN) {
      return absl::InternalError("the GL context has no off-screen buffer");
    }
    return std::unique_ptr<Renderer>(std::move(renderer));
  }
  ~GlRenderer() override { mjr_freeContext(&context_); }

  absl::Status Render(const Simulation& simulation, uint8_t* pixels) override {
    const int width = view_->width(), height = view_->height();
    RETURN_IF_ERROR(view_->Update(simulation));
    RETURN_IF_ERROR(GuardMujoco([&] {
      const mjrRect all = {0, 0, width, height};
      mjr_render(all, view_->scene(), &context_);
      mjr_readPixels(rgb_.data(), nullptr, all, &context_);
    }));
    uint8_t* out = pixels;
    for (int row = 0; row < height; ++row) {
      const unsigned char* in = &rgb_[3 * size_t{1} * width * (height - 1 - row)];
      for (int column = 0; column < width; ++column, in += 3, out += 4) {
        out[0] = in[2];
        out[1] = in[1];
        out[2] = in[0];
      }
    }
    return absl::OkStatus();
  }

 private:
  explicit GlRenderer(std::unique_ptr<SceneView> view)
      : view_(std::move(view)), rgb_(3 * size_t{1} * view_->width() * view_->height()) {
    mjr_defaultContext(&context_);
  }

  const std::unique_ptr<SceneView> view_;
  mjrContext context_;
  std::vector<unsigned char> rgb_;  // bottom row first
};

}  // namespace

absl::StatusOr<std::unique_ptr<Renderer>> Renderer::WithOpenGl(const mjModel& model, const std::string& camera,
                                                               int width, int height) {
  ASSIGN_OR_RETURN(std::unique_ptr<SceneView> view, SceneView::Make(model, camera, width, height));
  return GlRenderer::Make(std::move(view));
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
