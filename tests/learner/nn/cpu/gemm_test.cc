// Products and loops of the CPU kernels follow their definitions and have the same bits for both instruction sets.
// ctest runs this file twice, once with DATACOM_ISA=avx2 (core.cmake).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "learner/nn/cpu/gemm.h"
#include "learner/nn/cpu/instruction_set.h"
#include "learner/nn/cpu/loops.h"
#include "learner/nn/named_stream.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom::learner {
namespace {

using Floats = std::vector<float>;

Floats Random(const char* name, size_t size, double low = -2, double high = 2) {
  NamedStream stream(NamedKey(name, {size}));
  Floats values(size);
  for (float& value : values) value = static_cast<float>(stream.Uniform(low, high));
  return values;
}

bool SameBits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), sizeof(float) * a.size()) == 0;
}

struct Shape {
  int m, n, k;
};

TEST(Products, AreChainsOfFusedMultiplyAddsInOrder) {
  for (const Shape& s :
       {Shape{64, 128, 128}, Shape{70, 128, 6}, Shape{1, 17, 33}, Shape{19, 31, 64}, Shape{5, 9, 1}, Shape{1, 150, 40},
        Shape{3, 70, 40}, Shape{200, 33, 400}, Shape{2, 84, 20}, Shape{30, 48, 300}}) {
    for (Gemm form : {Gemm::kPlain, Gemm::kTransposeA, Gemm::kTransposeB}) {
      for (bool add : {false, true}) {
        const int lda = (form == Gemm::kTransposeA ? s.m : s.k) + 3, ldb = (form == Gemm::kTransposeB ? s.k : s.n) + 2;
        const int ldc = s.n + 5;
        const Floats a = Random("a", lda * static_cast<size_t>(std::max(s.m, s.k)));
        const Floats b = Random("b", ldb * static_cast<size_t>(std::max(s.n, s.k)));
        const Floats before = Random("c", ldc * static_cast<size_t>(s.m));
        Floats c = before, expected = before;
        for (int i = 0; i < s.m; ++i) {
          for (int j = 0; j < s.n; ++j) {
            float sum = add ? before[i * ldc + j] : 0.0f;
            for (int p = 0; p < s.k; ++p) {
              sum = std::fma(form == Gemm::kTransposeA ? a[p * lda + i] : a[i * lda + p],
                             form == Gemm::kTransposeB ? b[j * ldb + p] : b[p * ldb + j], sum);
            }
            expected[i * ldc + j] = sum;
          }
        }
        Multiply(form, s.m, s.n, s.k, a.data(), lda, b.data(), ldb, add, c.data(), ldc);
        EXPECT_TRUE(SameBits(c, expected))
            << s.m << " x " << s.n << " x " << s.k << ", form " << static_cast<int>(form);
      }
    }
  }
}

// Outputs of the functions of Loops, for widths that are and are not multiples of sixteen.
struct Outputs {
  Floats all;
  void Add(const Floats& values) { all.insert(all.end(), values.begin(), values.end()); }
};

void RunDense(const Loops& loops, int n, Activation activation, Outputs* out) {
  const int rows = 11, outputs = 3;
  const int64_t stride = n + 2;
  const Floats x = Random("x", rows * stride), w = Random("w", outputs * n), bias = Random("bias", n);
  const Floats d = Random("d", rows * outputs);
  Floats y = x;
  loops.activate(activation, bias.data(), rows, n, stride, y.data());
  out->Add(y);
  Floats adjoint = x;
  loops.multiply_slope(activation, y.data(), stride, rows, n, adjoint.data(), stride);
  out->Add(adjoint);
  Floats swish = x, slope(rows * n);
  loops.swish(bias.data(), rows, n, stride, swish.data(), n, slope.data());
  loops.multiply_rows(slope.data(), n, rows, n, swish.data(), stride);
  out->Add(swish);
  Floats normalised = x, normal(rows * n), inverse(rows);
  loops.normalised_relu(bias.data(), rows, n, stride, normalised.data(), n, normal.data(), 1, inverse.data());
  out->Add(normalised), out->Add(normal), out->Add(inverse);
  loops.normalised_relu_adjoint(x.data(), stride, inverse.data(), 1, rows, n, normal.data(), n);
  out->Add(normal);
  loops.narrow_adjoint(activation, d.data(), outputs, outputs, w.data(), y.data(), stride, rows, n, adjoint.data(),
                       stride);
  out->Add(adjoint);
  Floats product(rows * outputs);
  loops.narrow_product(x.data(), stride, rows, n, w.data(), outputs, bias.data(), /*add=*/false, product.data(), 3);
  loops.narrow_product(x.data(), stride, rows, n, w.data(), outputs, nullptr, /*add=*/true, product.data(), 3);
  out->Add(product);
  Floats sums(n);
  loops.column_sums(x.data(), stride, rows, n, sums.data());
  out->Add(sums);
  loops.weighted_column_sums(x.data(), stride, d.data(), outputs, rows, n, sums.data());
  out->Add(sums);
  loops.add_scaled_rows(x.data(), stride, d.data(), outputs, rows, n, adjoint.data(), stride);
  loops.scale_rows(d.data(), outputs, rows, n, adjoint.data(), stride);
  out->Add(adjoint);
  Floats turned((rows + 1) * n);
  loops.transpose(x.data(), stride, rows, n, turned.data(), rows + 1);
  out->Add(turned);
}

void RunOptimisers(const Loops& loops, int n, Outputs* out) {
  const Floats gradient = Random("gradient", n);
  Floats parameter = Random("parameter", n), first = Random("first", n), second = Random("second", n, 0, 1);
  loops.adam({gradient.data(), parameter.data(), first.data(), second.data(), n, 1e-2f, 1.5f});
  out->Add(parameter), out->Add(first), out->Add(second);
  loops.polyak(gradient.data(), 0.01f, 0.99f, n, parameter.data());
  out->Add(parameter);
  out->all.push_back(static_cast<float>(loops.squared_sum(gradient.data(), n)));
}

void RunFunctions(const Loops& loops, int n, Outputs* out) {
  const Floats x = Random("x", n, -30, 30), positive = Random("positive", n, 1e-7, 3),
               level = Random("level", 16, 0, 1);
  Floats y(n), sum(16), slope(16);
  for (auto* function : {loops.exp, loops.tanh, loops.sigmoid, loops.softplus}) {
    function(n, x.data(), y.data());
    out->Add(y);
  }
  loops.log(n, positive.data(), y.data());
  out->Add(y);
  loops.cosines(level[0], n, y.data());
  out->Add(y);
  Floats product = x, d_base = positive;
  loops.gated(x.data(), positive.data(), n, product.data());
  out->Add(product);
  loops.gated_gradient(x.data(), positive.data(), n, d_base.data(), product.data());
  out->Add(product), out->Add(d_base);
  loops.quantile_huber(x.data(), level.data(), positive.data(), n, sum.data(), slope.data());
  out->Add(sum), out->Add(slope);
}

TEST(Loops, GiveTheSameBitsForBothInstructionSets) {
  if (!HasAvx512()) GTEST_SKIP() << "this processor has no AVX-512";
  for (int n : {7, 16, 20, 128, 131}) {
    Outputs narrow, wide;
    for (Activation activation : {Activation::kRelu, Activation::kSigmoid, Activation::kTanh}) {
      RunDense(kLoopsAvx2, n, activation, &narrow);
      RunDense(kLoopsAvx512, n, activation, &wide);
    }
    EXPECT_TRUE(SameBits(narrow.all, wide.all)) << "perceptrons of width " << n;
    Outputs step, wide_step, value, wide_value;
    RunOptimisers(kLoopsAvx2, n, &step), RunOptimisers(kLoopsAvx512, n, &wide_step);
    EXPECT_TRUE(SameBits(step.all, wide_step.all)) << "optimisers of " << n;
    RunFunctions(kLoopsAvx2, n, &value), RunFunctions(kLoopsAvx512, n, &wide_value);
    EXPECT_TRUE(SameBits(value.all, wide_value.all)) << "functions of " << n;
  }
}

// Normalises rows of n numbers, and turns d into the adjoint in place of them.
struct Normalised {
  Floats y, normal, inverse, adjoint;
  Normalised(const Floats& x, const Floats& bias, const Floats& d, int rows, int n)
      : y(x), normal(rows * n), inverse(rows) {
    const Loops& loops = ChosenLoops();
    loops.normalised_relu(bias.data(), rows, n, n, y.data(), n, normal.data(), 1, inverse.data());
    adjoint = normal;
    loops.normalised_relu_adjoint(d.data(), n, inverse.data(), 1, rows, n, adjoint.data(), n);
  }
};

TEST(Loops, NormaliseRowsAsTheirDefinition) {
  const int rows = 9;
  for (const int n : {1, 2, 7, 16, 20, 128, 131}) {
    for (const float offset : {0.0f, 100.0f}) {  // a mean that is large compared with the deviation
      const Floats x = Random("x", rows * n, offset - 2, offset + 2), bias = Random("bias", n),
                   d = Random("d", rows * n);
      const Normalised ours(x, bias, d, rows, n);
      for (int r = 0; r < rows; ++r) {
        double mean = 0, variance = 0, sum = 0, product = 0;
        const auto value = [&](int j) { return static_cast<double>(x[r * n + j] + bias[j]); };
        for (int j = 0; j < n; ++j) mean += value(j) / n;
        for (int j = 0; j < n; ++j) variance += (value(j) - mean) * (value(j) - mean) / n;
        const double inverse = 1 / std::sqrt(variance + 1e-5), bound = offset > 0 ? 1e-3 : 1e-5;
        const auto normal = [&](int j) { return (value(j) - mean) * inverse; };
        const auto open = [&](int j) { return normal(j) > 0 ? static_cast<double>(d[r * n + j]) : 0.0; };
        for (int j = 0; j < n; ++j) sum += open(j) / n, product += open(j) * normal(j) / n;
        EXPECT_NEAR(ours.inverse[r] / inverse, 1, bound) << n;
        for (int j = 0; j < n; ++j) {
          EXPECT_NEAR(ours.normal[r * n + j], normal(j), bound) << n;
          EXPECT_EQ(ours.y[r * n + j], std::max(ours.normal[r * n + j], 0.0f)) << n;
          EXPECT_NEAR(ours.adjoint[r * n + j] / inverse, open(j) - sum - normal(j) * product, bound) << n;
        }
      }
    }
  }
}

TEST(Loops, NormaliseARowToTheSameBitsAloneAndAmongOthers) {
  const int rows = 5;
  for (const int n : {20, 128}) {
    const Floats x = Random("x", rows * n), bias = Random("bias", n), d = Random("d", rows * n);
    const Normalised all(x, bias, d, rows, n);
    for (int r = 0; r < rows; ++r) {
      const auto part = [&](const Floats& of) { return Floats(of.begin() + r * n, of.begin() + (r + 1) * n); };
      const Normalised one(part(x), bias, part(d), 1, n);
      EXPECT_TRUE(SameBits(one.y, part(all.y)) && SameBits(one.adjoint, part(all.adjoint))) << n;
      EXPECT_EQ(one.inverse[0], all.inverse[r]);
    }
  }
}

TEST(Loops, ANormalisedRowIsNaNIfAnEntryIsNotFiniteOrItsSquareOverflows) {
  for (const float entry : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e25f}) {
    Floats x = Random("x", 20);
    x[17] = entry;
    const Normalised row(x, Floats(20), Random("d", 20), 1, 20);
    for (const float value : row.y) EXPECT_TRUE(std::isnan(value)) << entry;
    for (const float value : row.adjoint) EXPECT_TRUE(std::isnan(value)) << entry;
  }
}

// The largest error relative to the exact value, over [low, high].
template <class Exact>
double WorstError(void (*function)(int, const float*, float*), double low, double high, const Exact& exact) {
  Floats x;
  for (int i = 0; i <= 200000; ++i) x.push_back(static_cast<float>(low + (high - low) * i / 200000));
  Floats y(x.size());
  function(static_cast<int>(x.size()), x.data(), y.data());
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = exact(static_cast<double>(x[i]));
    if (value != 0) worst = testing::LargerOrNan(worst, std::abs(y[i] - value) / std::abs(value));
  }
  return worst;
}

TEST(Loops, StayWithinThreeUlpOfTheExactFunctions) {
  const Loops& loops = ChosenLoops();
  const double bound = 3 * 1.1920929e-7;
  EXPECT_LT(WorstError(loops.exp, -86, 88, [](double x) { return std::exp(x); }), bound);
  EXPECT_LT(WorstError(loops.log, 1e-7, 0.99, [](double x) { return std::log(x); }), bound);
  EXPECT_LT(WorstError(loops.log, 1.01, 1e7, [](double x) { return std::log(x); }), bound);
  EXPECT_LT(WorstError(loops.tanh, -10, 10, [](double x) { return std::tanh(x); }), bound);
  EXPECT_LT(WorstError(loops.sigmoid, -80, 80, [](double x) { return 1 / (1 + std::exp(-x)); }), bound);
  EXPECT_LT(WorstError(loops.softplus, -80, 80, [](double x) { return std::log1p(std::exp(x)); }), bound);
}

TEST(Loops, KeepNaN) {
  const Loops& loops = ChosenLoops();
  const Floats x(16, std::numeric_limits<float>::quiet_NaN());
  for (auto* function : {loops.exp, loops.log, loops.tanh, loops.sigmoid, loops.softplus}) {
    Floats y(16);
    function(16, x.data(), y.data());
    for (float value : y) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Loops, SumSquaresOfAnyCount) {
  for (const int n : {1, 63, 64, 131, 2048, 2049, 5000}) {
    const Floats x = Random("x", n);
    double expected = 0;
    for (const float value : x) expected += static_cast<double>(value) * value;
    EXPECT_NEAR(ChosenLoops().squared_sum(x.data(), n), expected, 1e-6 * expected) << n;
  }
}

TEST(Loops, ASumOfSquaresIsNotFiniteIfOneEntryIsNot) {
  for (size_t at : {size_t{0}, size_t{70}, size_t{130}}) {
    for (float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      Floats x = Random("x", 131);
      EXPECT_TRUE(std::isfinite(ChosenLoops().squared_sum(x.data(), 131)));
      x[at] = value;
      EXPECT_FALSE(std::isfinite(ChosenLoops().squared_sum(x.data(), 131))) << "entry " << at;
    }
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
