// The instruction set that the CPU kernels use: the widest the processor has, or the one the environment variable
// DATACOM_ISA names (avx2, avx512), read once. Element-wise loops and libxsmm's products give the same bits for both
// (core_products_test); OpenBLAS's do not. Thread-safe.
#ifndef DATACOM_LEARNER_NN_CPU_INSTRUCTION_SET_H_
#define DATACOM_LEARNER_NN_CPU_INSTRUCTION_SET_H_

#include <string>

namespace datacom::learner {

enum class InstructionSet { kAvx2, kAvx512 };

bool HasAvx512();
// Throws std::invalid_argument where DATACOM_ISA names no instruction set, or one that the processor lacks.
InstructionSet ChosenInstructionSet();
std::string NameOf(InstructionSet set);  // as in DATACOM_ISA

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_INSTRUCTION_SET_H_
