// The backend torch/ as a shared library, libdatacom_torch.so. It is loaded on demand, so a learner on the CPU never
// has LibTorch in memory. The program looks for it in its own folder and in ../lib.
#ifndef DATACOM_LEARNER_NN_TORCH_LIBRARY_H_
#define DATACOM_LEARNER_NN_TORCH_LIBRARY_H_

#include <memory>
#include <string>

#include "learner/nn/kernels.h"

namespace datacom::learner {

// device: "cpu" or "cuda"; precision: LearnerOptions.precision. Throws std::invalid_argument if the library cannot be
// loaded, naming it and what to install, and if LibTorch does not have the device.
std::unique_ptr<Kernels> MakeTorchKernels(const std::string& device, const std::string& precision);
std::string LoadedTorchVersion();  // LibTorch's; empty before the first MakeTorchKernels

// The one function that the library exports (torch/torch_kernels.cc). Throws like MakeTorchKernels. Sets *version.
extern "C" void datacom_torch_make_kernels(const std::string& device, const std::string& precision,
                                           std::unique_ptr<Kernels>* kernels, std::string* version);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_TORCH_LIBRARY_H_
// SPDX-License-Identifier: Apache-2.0
