// The one unit of the learner built for AVX-512 (core_sources.cmake): include nothing here that other units share.
#include "learner/nn/cpu/loops_kernel.h"

namespace datacom::learner {

const Loops kLoopsAvx512 = kLoops;

}  // namespace datacom::learner
