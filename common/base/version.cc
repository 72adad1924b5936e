#include "common/base/version.h"

#include "absl/strings/match.h"
#include "datacom_revision.h"

namespace datacom {

std::string Version() { return DATACOM_VERSION; }

std::string Revision() { return DATACOM_REVISION; }

std::string Simulator() { return "MuJoCo " DATACOM_MUJOCO_VERSION; }

std::string BuildName() { return Version() + " " + Revision() + " " + Simulator(); }

bool HasOtherSimulator(const std::string& build) {
  return absl::StrContains(build, " MuJoCo ") && !absl::EndsWith(build, " " + Simulator());
}

bool CheckProcessor(std::string* message) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return true;
  *message = "this build needs an x86-64-v3 processor (AVX2, FMA, BMI2); this one lacks at least one of them";
  return false;
#else
  return true;  // the build uses what every 64-bit ARM processor has
#endif
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
