// The instruction set of the CPU kernels: the widest that the processor has, or the one that the environment variable
// DATACOM_ISA names (avx2, avx512; on ARM neon), read once. Element-wise loops and products give the same bits for all
// (tests/learner/nn/cpu/gemm_test.cc). Thread-safe.
#ifndef DATACOM_LEARNER_NN_CPU_INSTRUCTION_SET_H_
#define DATACOM_LEARNER_NN_CPU_INSTRUCTION_SET_H_

#include <string>

namespace datacom::learner {

enum class InstructionSet { kAvx2, kAvx512 };

bool HasAvx512();
// Throws std::invalid_argument if DATACOM_ISA names an unknown instruction set, or one that the processor lacks.
InstructionSet ChosenInstructionSet();
std::string NameOf(InstructionSet set);  // as in DATACOM_ISA

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_INSTRUCTION_SET_H_
// SPDX-License-Identifier: Apache-2.0
