#include "common/nn/mlp.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/nn/multiply.h"
#include "gtest/gtest.h"
#include "tests/testing/snapshots.h"

namespace datacom {
namespace {

using testing::AddNet;

// y = x W + b layer by layer in double, with the arrays' names of snapshot.h.
std::vector<double> Literal(const Snapshot& snapshot, const MlpSpec& form, std::vector<double> x) {
  for (int i = 0; snapshot.Find(absl::StrCat(form.net, ".", i, ".weight")) != nullptr; ++i) {
    const NamedArray& W = *snapshot.Find(absl::StrCat(form.net, ".", i, ".weight"));
    const NamedArray& b = *snapshot.Find(absl::StrCat(form.net, ".", i, ".bias"));
    std::vector<double> y(b.values.begin(), b.values.end());
    for (size_t j = 0; j < y.size(); ++j) {
      for (size_t k = 0; k < x.size(); ++k) y[j] += x[k] * W.values[k * y.size() + j];
    }
    const bool last = snapshot.Find(absl::StrCat(form.net, ".", i + 1, ".weight")) == nullptr;
    for (double& v : y) {
      if (!last && form.hidden == Mlp::Hidden::kRelu) v = std::max(v, 0.0);
      if (!last && form.hidden == Mlp::Hidden::kSigmoid) v = 1 / (1 + std::exp(-v));
      if (!last && form.hidden == Mlp::Hidden::kTanh) v = std::tanh(v);
      if (last && form.output == Mlp::Output::kSoftplus) v = std::log1p(std::exp(v));
    }
    x = y;
  }
  return x;
}

struct Case {
  MlpSpec form;
  std::vector<int> widths;
};

std::vector<Case> Cases() {
  using H = Mlp::Hidden;
  using O = Mlp::Output;
  return {{{"net", 5, 1, H::kRelu, O::kLinear, true}, {5, 128, 128, 1}},
          {{"net", 4, 1, H::kSigmoid, O::kSoftplus, true}, {4, 128, 128, 1}},
          {{"net", 8, 1, H::kSigmoid, O::kLinear, true}, {8, 13, 7, 1}},
          {{"net", 16, 1, H::kTanh, O::kLinear, false}, {16, 128, 128, 1}},
          {{"net", 3, 1, H::kRelu, O::kSoftplus, true}, {3, 1}},
          {{"net", 22, 3, H::kRelu, O::kLinear, false}, {22, 40, 9, 3}}};
}

std::vector<float> Inputs(int batch, int width) {
  std::vector<float> x(batch * width);
  FillNormal(StreamKey("test.inputs", {static_cast<uint64_t>(width)}), x.data(), static_cast<int64_t>(x.size()));
  return x;
}

// The sizes use every kind of tile: 8, 4, 2 and 1 rows; columns in wide, single and narrow vectors.
TEST(Multiply, EveryInstructionSetGivesTheBitsOfOneChainOfFusedMultiplyAdds) {
  for (const int stride : {8, 16, 24, 40, 104, 128}) {
    for (int batch = 1; batch <= 19; ++batch) {
      const int depth = 13, x_stride = 16;
      std::vector<float> x(batch * x_stride), w(depth * stride), bias(stride), want(batch * stride);
      FillNormal(1, x.data(), static_cast<int64_t>(x.size()));
      FillNormal(2, w.data(), static_cast<int64_t>(w.size()));
      FillNormal(3, bias.data(), stride);
      for (const float* start : {static_cast<const float*>(bias.data()), static_cast<const float*>(nullptr)}) {
        for (int r = 0; r < batch; ++r) {
          for (int j = 0; j < stride; ++j) {
            float sum = start != nullptr ? start[j] : 0;
            for (int i = 0; i < depth; ++i) sum = std::fma(x[r * x_stride + i], w[i * stride + j], sum);
            want[r * stride + j] = sum;
          }
        }
        std::vector<float> got(batch * stride);
        MultiplyAvx2(batch, depth, x.data(), x_stride, w.data(), stride, start, got.data());
        ASSERT_EQ(got, want) << "batch " << batch << ", stride " << stride;
        if (HasAvx512()) {
          got.assign(got.size(), 0);
          MultiplyAvx512(batch, depth, x.data(), x_stride, w.data(), stride, start, got.data());
          ASSERT_EQ(got, want) << "batch " << batch << ", stride " << stride;
        }
        got.assign(got.size(), 0);
        Multiply(batch, depth, x.data(), x_stride, w.data(), stride, start, got.data());
        ASSERT_EQ(got, want) << "batch " << batch << ", stride " << stride;
      }
    }
  }
}

TEST(Mlp, ForwardEqualsADirectEvaluation) {
  for (const Case& c : Cases()) {
    Snapshot snapshot;
    AddNet(c.form.net, c.widths, 7, &snapshot);
    Mlp mlp(snapshot, c.form, 16);
    const auto x = Inputs(16, c.form.inputs);
    std::vector<float> y(16 * c.form.outputs);
    mlp.Forward(16, x.data(), y.data());
    for (int r = 0; r < 16; ++r) {
      const auto want = Literal(snapshot, c.form, {x.begin() + r * c.form.inputs, x.begin() + (r + 1) * c.form.inputs});
      for (int j = 0; j < c.form.outputs; ++j)
        EXPECT_NEAR(y[r * c.form.outputs + j], want[j], 2e-6 * (1 + std::abs(want[j])));
    }
  }
}

TEST(Mlp, GradientEqualsFiniteDifferencesOfTheDirectEvaluation) {
  for (const Case& c : Cases()) {
    if (!c.form.gradient) continue;
    Snapshot snapshot;
    AddNet(c.form.net, c.widths, 11, &snapshot);
    Mlp mlp(snapshot, c.form, 5);
    const int n = c.form.inputs;
    const auto x = Inputs(5, n);
    std::vector<float> y(5), gradient(5 * n);
    mlp.ForwardWithGradient(5, x.data(), y.data(), gradient.data());
    for (int i = 0; i < 5 * n; ++i) {
      std::vector<double> low(x.begin() + i / n * n, x.begin() + (i / n + 1) * n), high = low;
      low[i % n] -= 1e-6;
      high[i % n] += 1e-6;
      const double want = (Literal(snapshot, c.form, high)[0] - Literal(snapshot, c.form, low)[0]) / 2e-6;
      EXPECT_NEAR(gradient[i], want, 1e-5 * (1 + std::abs(want)));
    }
  }
}

TEST(Mlp, ARowHasTheSameBitsInEveryBatch) {
  for (const Case& c : Cases()) {
    Snapshot snapshot;
    AddNet(c.form.net, c.widths, 13, &snapshot);
    Mlp mlp(snapshot, c.form, 16);
    const int n = c.form.inputs, m = c.form.outputs;
    const auto x = Inputs(16, n);
    const auto evaluate = [&](int batch, int first) {
      std::vector<float> y(batch * m), g(batch * n);
      if (c.form.gradient) {
        mlp.ForwardWithGradient(batch, x.data() + first * n, y.data(), g.data());
      } else {
        mlp.Forward(batch, x.data() + first * n, y.data());
      }
      y.insert(y.end(), g.begin(), g.end());
      return y;
    };
    const auto whole = evaluate(16, 0);
    for (const int batch : {1, 2, 3, 5, 7}) {
      for (int first = 0; first + batch <= 16; ++first) {
        const auto part = evaluate(batch, first);
        for (int i = 0; i < batch * m; ++i) ASSERT_EQ(part[i], whole[first * m + i]);
        for (int i = 0; i < batch * n; ++i) ASSERT_EQ(part[batch * m + i], whole[16 * m + first * n + i]);
      }
    }
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
