// What a user is told who asks for a GPU that cannot be had.
#include "learner/nn/torch_errors.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace datacom::learner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TorchErrors, AMissingLibraryAMissingLibTorchAndAnotherLibTorchAreToldApart) {
  EXPECT_THAT(WhyNotLoaded("libdatacom_torch.so: cannot open shared object file: No such file or directory"),
              AllOf(HasSubstr("neither in the program's folder nor in ../lib"), HasSubstr("./datacom build cuda")));
  EXPECT_THAT(
      WhyNotLoaded("libtorch_cuda.so: cannot open shared object file: No such file or directory"),
      AllOf(HasSubstr("does not find LibTorch"), HasSubstr("./datacom build cuda"), HasSubstr("libtorch_cuda.so")));
  EXPECT_THAT(WhyNotLoaded("/opt/bin/libdatacom_torch.so: undefined symbol: _ZN2at4_ops10matmul_out4callE"),
              AllOf(HasSubstr("another version of LibTorch"), HasSubstr("undefined symbol")));
  EXPECT_THAT(WhyNotLoaded("/lib/libc.so.6: version `GLIBC_2.38' not found (required by libdatacom_torch.so)"),
              HasSubstr("needs a newer glibc or libstdc++ than this system's"));
  EXPECT_THAT(WhyNotLoaded("libdatacom_torch.so: file too short"), HasSubstr("cannot be loaded (the loader: "));
  EXPECT_THAT(WrongTorchVersion("2.11.0", "2.7.1"),
              AllOf(HasSubstr("built for LibTorch 2.11.0"), HasSubstr("LibTorch 2.7.1 was found")));
}

TEST(TorchErrors, NoCudaNoDriverAndNoGpuAreToldApart) {
  EXPECT_THAT(WhyNoCuda(false, false, "1.13.0"), HasSubstr("LibTorch 1.13.0 was built without CUDA"));
  EXPECT_EQ(WhyNoCuda(false, true, "1.13.0"), WhyNoCuda(false, false, "1.13.0"));
  EXPECT_THAT(WhyNoCuda(true, false, "2.11.0"), HasSubstr("no NVIDIA driver (libcuda.so.1)"));
  EXPECT_THAT(WhyNoCuda(true, true, "2.11.0"), AllOf(HasSubstr("finds no GPU"), HasSubstr("CUDA_VISIBLE_DEVICES")));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
