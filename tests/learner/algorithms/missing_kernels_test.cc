// What a user is told who trains an algorithm with a backend for which it has no kernels.
#include <stdexcept>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/algorithms/register_algorithm.h"
#include "learner/algorithms/sac.h"
#include "learner/nn/cpu/cpu_impl.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

class HalfKernels : public KernelGroup {};
class HalfCpu : public CpuImpl<HalfKernels> {};
const CpuImpls::Register<HalfKernels, HalfCpu> kHalf;

class HalfAlgorithm : public Sac {
 public:
  explicit HalfAlgorithm(const AlgorithmConfig& config) : Sac(config) { kernels_->Group<HalfKernels>(); }
};

TEST(MissingKernels, AnAlgorithmWithoutKernelsForLibTorchIsNamedAndTrainsOnTheCpu) {
  const RegisterAlgorithm<HalfAlgorithm> registered("toy");
  EXPECT_NE(MakeAlgorithm(SmallConfig("toy", 1)), nullptr);
  try {
    MakeAlgorithm(SmallConfig("toy", 1, "tensor"));
    FAIL() << "made an algorithm without its kernels";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("algorithm 'toy' has no implementation for LibTorch: use "
                                                   "learner.device=cpu and learner.kernels=auto"));
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
