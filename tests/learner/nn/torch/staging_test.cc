// Tests where the memory of the tensor kernels lies, and that the values of a load reach their places in it.
#include "learner/nn/torch/staging.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "gtest/gtest.h"
#include "learner/nn/torch/device_memory.h"

namespace datacom::learner {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

TEST(DeviceMemory, IsZeroedAndCutFromFewArraysWithoutOverlap) {
  DeviceMemory memory{at::Device(at::kCPU)};
  auto* const first = static_cast<char*>(memory.Allocate(100));
  auto* const empty = static_cast<char*>(memory.Allocate(0));
  auto* const large = static_cast<char*>(memory.Allocate(5 * kMebibyte));
  auto* const last = static_cast<char*>(memory.Allocate(128));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  EXPECT_GE(empty, first + 100);
  EXPECT_GE(last, empty + 1);
  for (size_t i = 0; i < 128; ++i) ASSERT_EQ(last[i], 0);
  EXPECT_EQ(large[5 * kMebibyte - 1], 0);
  EXPECT_EQ(memory.PlaceOf(first).array, memory.PlaceOf(last).array) << "what is left of an array is used";
  EXPECT_NE(memory.PlaceOf(first).array, memory.PlaceOf(large).array);
  EXPECT_EQ(memory.PlaceOf(last + 64).word - memory.PlaceOf(first).word, (last + 64 - first) / 4);
  EXPECT_EQ(memory.PlaceOf(first + 100).array, 0) << "the end of a view is in its array";
  const int elsewhere = 0;
  EXPECT_THROW(memory.PlaceOf(&elsewhere), std::logic_error);
}

// Columns of a float array, a double array far away, nothing, and a float array beside the first.
TEST(Staging, ValuesReachTheirPlacesWithTheirBitsInEveryLoad) {
  DeviceMemory memory{at::Device(at::kCPU)};
  auto* const floats = static_cast<float*>(memory.Allocate(2 * 16 * sizeof(float)));
  auto* const doubles = static_cast<double*>(memory.Allocate(3 * kMebibyte));
  auto* const more = static_cast<float*>(memory.Allocate(4 * sizeof(float)));
  const FloatView columns = FloatView{floats, 2, 3, 4, 16, 4}.Cols(1, 2), whole{more, 1, 1, 4, 4, 4};
  const DoubleView far{doubles + 300000, 1, 2, 1, 2, 1}, none{doubles, 2, 3, 0, 0, 0};
  Staging staging(memory);
  for (const float base : {100.0f, 200.0f}) {
    std::vector<float> a(12), b{base, NAN, -0.0f, base + 1};
    for (size_t i = 0; i < a.size(); ++i) a[i] = base + static_cast<float>(i);
    const double d[] = {base + 0.1, HUGE_VAL};
    staging.Begin();
    staging.Add(a.data(), columns);
    staging.Add(d, none);
    staging.Add(d, far);
    staging.Add(b.data(), whole);
    staging.Send();
    staging.Scatter();
    for (int m = 0; m < 2; ++m) {
      for (int r = 0; r < 3; ++r) {
        const int i = (m * 3 + r) * 2;
        EXPECT_EQ(columns.at(m, r, 0), base + static_cast<float>(i));
        EXPECT_EQ(columns.at(m, r, 1), base + static_cast<float>(i) + 1);
        EXPECT_EQ(floats[m * 16 + r * 4], 0) << "beside the columns";
        EXPECT_EQ(floats[m * 16 + r * 4 + 3], 0);
      }
    }
    EXPECT_EQ(far.at(0, 0), base + 0.1);
    EXPECT_EQ(far.at(0, 1), HUGE_VAL);
    EXPECT_EQ(doubles[299999], 0);
    EXPECT_EQ(doubles[300002], 0);
    EXPECT_EQ(more[0], base);
    EXPECT_TRUE(std::isnan(more[1]));
    EXPECT_TRUE(std::signbit(more[2]));
    EXPECT_EQ(more[3], base + 1);
  }
}

TEST(Staging, ALoadOfOtherOrFewerArraysThanAtFirstIsRefused) {
  DeviceMemory memory{at::Device(at::kCPU)};
  const FloatView a{static_cast<float*>(memory.Allocate(16)), 1, 1, 2, 2, 2}, b = a.Cols(1, 1);
  const float values[] = {1, 2};
  Staging staging(memory);
  staging.Begin();
  staging.Add(values, a);
  staging.Send();
  staging.Begin();
  EXPECT_THROW(staging.Add(values, b), std::logic_error);
  staging.Begin();
  EXPECT_THROW(staging.Send(), std::logic_error);
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
