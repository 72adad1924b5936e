#include "learner/nn/torch_library.h"

#include <dlfcn.h>

#include <stdexcept>

namespace datacom::learner {
namespace {

constexpr char kLibrary[] = "libdatacom_torch.so";
constexpr char kFunction[] = "datacom_torch_make_kernels";

std::string& Version() {
  static std::string version;
  return version;
}

// The name has no path: the program's run path is its own folder and ../lib (learner/CMakeLists.txt).
void* Load(const std::string& device) {
  static void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* const error = dlerror();
  throw std::invalid_argument(
      std::string("cannot load ") + kLibrary + " for kernels on device '" + device +
      "': " + (error != nullptr ? error : "no reason given") +
      ". It belongs into the program's folder or ../lib (./datacom build makes it) and needs LibTorch (for the CPU "
      "Debian's package libtorch-dev, for "
      "a GPU a LibTorch with CUDA)");
}

}  // namespace

std::unique_ptr<Kernels> MakeTorchKernels(const std::string& device) {
  void* const library = Load(device);
  const auto make = reinterpret_cast<decltype(&datacom_torch_make_kernels)>(dlsym(library, kFunction));
  if (make == nullptr) throw std::invalid_argument(std::string(kLibrary) + " has no function " + kFunction);
  std::unique_ptr<Kernels> kernels;
  make(device, &kernels, &Version());
  return kernels;
}

std::string LoadedTorchVersion() { return Version(); }

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
