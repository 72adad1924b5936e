// The backend torch/ as a shared library, libdatacom_torch.so: loaded when it is first asked for, so that a learner on
// the CPU never has LibTorch in memory. It is looked for beside the program and in ../lib.
#ifndef DATACOM_LEARNER_NN_TORCH_LIBRARY_H_
#define DATACOM_LEARNER_NN_TORCH_LIBRARY_H_

#include <memory>
#include <string>

#include "learner/nn/kernels.h"

namespace datacom::learner {

// device: "cpu" or "cuda". Throws std::invalid_argument where the library cannot be loaded, naming it and what to
// install, and where LibTorch has no such device.
std::unique_ptr<Kernels> MakeTorchKernels(const std::string& device);
std::string LoadedTorchVersion();  // LibTorch's; empty before the first MakeTorchKernels

// What the library defines (torch/torch_kernels.cc): its one function, which throws as MakeTorchKernels. Sets *version.
extern "C" void datacom_torch_make_kernels(const std::string& device, std::unique_ptr<Kernels>* kernels,
                                           std::string* version);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_TORCH_LIBRARY_H_
