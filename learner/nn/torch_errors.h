// Why LibTorch's kernels cannot be had, and what to install. Pure functions.
#ifndef DATACOM_LEARNER_NN_TORCH_ERRORS_H_
#define DATACOM_LEARNER_NN_TORCH_ERRORS_H_

#include <string>

namespace datacom::learner {

inline constexpr char kTorchLibrary[] = "libdatacom_torch.so";

// `error` is what the dynamic loader says of kTorchLibrary.
inline std::string WhyNotLoaded(const std::string& error) {
  const auto says = [&](const std::string& words) { return error.find(words) != std::string::npos; };
  const std::string name = kTorchLibrary, loader = " (the loader: " + error + ")";
  if (says(name + ": cannot open")) {
    return name + " is neither in the program's folder nor in ../lib: ./datacom build makes it for LibTorch on the " +
           "CPU, ./datacom build cuda for a GPU" + loader;
  }
  if (says("cannot open shared object file")) {
    return name + " does not find LibTorch: ./datacom build cuda installs one for a GPU, Debian's package " +
           "libtorch-dev is one for the CPU; LD_LIBRARY_PATH names the folder of another" + loader;
  }
  if (says("version `GLIBC")) return name + " needs a newer glibc or libstdc++ than this system's" + loader;
  if (says("undefined symbol") || says("version `")) {
    return name + " was built for another version of LibTorch than the one that was found: build it again with " +
           "./datacom build cuda, or change LD_LIBRARY_PATH" + loader;
  }
  return name + " cannot be loaded" + loader;
}

// `found` is the version of the LibTorch that was loaded.
inline std::string WrongTorchVersion(const std::string& built_for, const std::string& found) {
  std::string text = kTorchLibrary;
  text += " was built for LibTorch " + built_for + ", but LibTorch " + found + " was found: build it again with ";
  text += "./datacom build cuda, or change LD_LIBRARY_PATH";
  return text;
}

// Why device cuda is not available. with_cuda: the library was built for a LibTorch with CUDA. driver: the machine has
// NVIDIA's driver.
inline std::string WhyNoCuda(bool with_cuda, bool driver, const std::string& version) {
  if (!with_cuda) {
    return "device 'cuda' is not available: LibTorch " + version + " was built without CUDA: run ./datacom build cuda";
  }
  if (!driver) {
    return "device 'cuda' is not available: this machine has no NVIDIA driver (libcuda.so.1): install it; in a "
           "container use the NVIDIA container toolkit";
  }
  return "device 'cuda' is not available: the NVIDIA driver finds no GPU that LibTorch " + version +
         " can use: see nvidia-smi and CUDA_VISIBLE_DEVICES";
}

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_TORCH_ERRORS_H_
// SPDX-License-Identifier: Apache-2.0
