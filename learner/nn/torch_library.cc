#include "learner/nn/torch_library.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "learner/nn/torch_errors.h"

namespace datacom::learner {
namespace {

constexpr char kFunction[] = "datacom_torch_make_kernels";

std::string& Version() {
  static std::string version;
  return version;
}

// The name has no path: the program's run path is its own folder and ../lib (learner/CMakeLists.txt).
void* Load() {
  struct Loaded {
    void* const library = dlopen(kTorchLibrary, RTLD_NOW | RTLD_LOCAL);
    const std::string error = library == nullptr ? dlerror() : "";
  };
  static const Loaded loaded;
  if (loaded.library == nullptr) throw std::invalid_argument(WhyNotLoaded(loaded.error));
  return loaded.library;
}

}  // namespace

std::unique_ptr<Kernels> MakeTorchKernels(const std::string& device, const std::string& precision) {
  void* const library = Load();
  const auto make = reinterpret_cast<decltype(&datacom_torch_make_kernels)>(dlsym(library, kFunction));
  if (make == nullptr) throw std::invalid_argument(std::string(kTorchLibrary) + " has no function " + kFunction);
  std::unique_ptr<Kernels> kernels;
  make(device, precision, &kernels, &Version());
  return kernels;
}

std::string LoadedTorchVersion() { return Version(); }

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
