#include "learner/nn/cpu/instruction_set.h"

#include <cstdlib>
#include <stdexcept>

namespace datacom::learner {
namespace {

#ifdef __x86_64__
constexpr char kWithoutAvx512[] = "avx2", kAllowed[] = "'avx2' or 'avx512'";
#else
constexpr char kWithoutAvx512[] = "neon", kAllowed[] = "'neon'";
#endif

InstructionSet Choose() {
  const char* const variable = std::getenv("DATACOM_ISA");
  const std::string name = variable == nullptr ? "" : variable;
  if (name.empty()) return HasAvx512() ? InstructionSet::kAvx512 : InstructionSet::kAvx2;
  for (InstructionSet set : {InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (name != NameOf(set)) continue;
    if (set == InstructionSet::kAvx512 && !HasAvx512()) {
      throw std::invalid_argument("DATACOM_ISA is 'avx512', which this processor lacks");
    }
    return set;
  }
  throw std::invalid_argument("DATACOM_ISA must be " + std::string(kAllowed) + ", not '" + name + "'");
}

}  // namespace

// The parts of AVX-512 that compilers assume (Skylake-X, Zen 4 and later have them).
bool HasAvx512() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

InstructionSet ChosenInstructionSet() {
  static const InstructionSet chosen = Choose();
  return chosen;
}

std::string NameOf(InstructionSet set) { return set == InstructionSet::kAvx512 ? "avx512" : kWithoutAvx512; }

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
