#include "learner/nn/cpu/instruction_set.h"
#include "learner/nn/cpu/loops_kernel.h"

namespace datacom::learner {

const Loops kLoopsAvx2 = kLoops;

const Loops& ChosenLoops() { return ChosenInstructionSet() == InstructionSet::kAvx512 ? kLoopsAvx512 : kLoopsAvx2; }

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
