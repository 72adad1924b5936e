// Kernels on the CPU: products by gemm.h, and everything between two products in one pass over memory (loops.h, for the
// processor's instruction set). Works on one member at a time (BlockSize 1). So a member's activations, weights and
// moments stay in cache, and a member has the same numbers in every population. A call runs on the thread that
// makes it; Each offers its calls to a team.
#ifndef DATACOM_LEARNER_NN_CPU_CPU_KERNELS_H_
#define DATACOM_LEARNER_NN_CPU_CPU_KERNELS_H_

#include <memory>

#include "learner/nn/kernels.h"

namespace datacom::learner {

std::unique_ptr<Kernels> MakeCpuKernels(Team* team);  // team: null or outlives the kernels

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_CPU_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
