// The only translation unit of the learner that is built for AVX-512 (core_sources.cmake). Include no header here that
// other units share.
#include "learner/nn/cpu/loops_kernel.h"

namespace datacom::learner {

const Loops kLoopsAvx512 = kLoops;

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
