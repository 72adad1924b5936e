// Test helpers that move numbers to and from both implementations of the kernels, and finite differences.
#ifndef DATACOM_TESTS_LEARNER_NN_KERNELS_TESTING_H_
#define DATACOM_TESTS_LEARNER_NN_KERNELS_TESTING_H_

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "learner/nn/kernels.h"
#include "learner/nn/named_stream.h"
#include "tests/learner/test_device.h"

namespace datacom::learner {

using Numbers = std::vector<double>;

class EveryKernels : public ::testing::TestWithParam<std::string> {
 protected:
  EveryKernels() : kernels_(MakeKernels(GetParam(), TestDevice(GetParam()))) {}

  FloatView Upload(const Numbers& values, int members, int rows, int cols) {
    const std::vector<float> narrow(values.begin(), values.end());
    const FloatView view = kernels_->NewFloats(members, rows, cols);
    kernels_->Upload(narrow.data(), view);
    return view;
  }
  DoubleView UploadDoubles(const Numbers& values, int members, int rows, int cols) {
    const DoubleView view = kernels_->NewDoubles(members, rows, cols);
    kernels_->Upload(values.data(), view);
    return view;
  }
  Numbers Download(const FloatView& view) {
    std::vector<float> values(static_cast<size_t>(view.members) * view.rows * view.cols);
    kernels_->Download(view, values.data());
    return Numbers(values.begin(), values.end());
  }
  Numbers Download(const DoubleView& view) {
    Numbers values(static_cast<size_t>(view.members) * view.rows * view.cols);
    kernels_->Download(view, values.data());
    return values;
  }

  std::unique_ptr<Kernels> kernels_;
};

// float32 values, so that double and float32 evaluations start from the same numbers.
inline Numbers Random(uint64_t key, size_t count, double size = 1) {
  NamedStream stream(key);
  Numbers values(count);
  for (double& value : values) value = static_cast<float>(stream.Uniform(-size, size));
  return values;
}

inline Numbers Differences(const std::function<double(const Numbers&)>& f, Numbers at, double step = 1e-5) {
  Numbers gradient;
  for (double& x : at) {
    const double middle = x;
    x = middle + step;
    const double above = f(at);
    x = middle - step;
    gradient.push_back((above - f(at)) / (2 * step));
    x = middle;
  }
  return gradient;
}

inline void ExpectNear(const Numbers& ours, const Numbers& reference, double relative, const std::string& what) {
  ASSERT_EQ(ours.size(), reference.size()) << what;
  double largest = 1e-12;
  for (double value : reference) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], reference[i], relative * largest) << what << " " << i;
}

// Rows of `hidden`, each followed by the last `repeated` entries of its row of x.
inline Numbers WithRepeated(const Numbers& hidden, const Numbers& x, int rows, int repeated) {
  const size_t width = hidden.size() / rows, in = x.size() / rows;
  Numbers joined;
  for (int r = 0; r < rows; ++r) {
    joined.insert(joined.end(), hidden.begin() + r * width, hidden.begin() + (r + 1) * width);
    joined.insert(joined.end(), x.begin() + (r + 1) * in - repeated, x.begin() + (r + 1) * in);
  }
  return joined;
}

// The rows of v [rows, width] with mean 0 and variance 1, by the definition of docs/algorithms.md 1.3.
inline Numbers LiteralLayerNorm(const Numbers& v, int rows) {
  const size_t width = v.size() / rows;
  Numbers normal;
  for (int r = 0; r < rows; ++r) {
    const double* const row = v.data() + r * width;
    double mean = 0, variance = 0;
    for (size_t j = 0; j < width; ++j) mean += row[j] / width;
    for (size_t j = 0; j < width; ++j) variance += (row[j] - mean) * (row[j] - mean) / width;
    for (size_t j = 0; j < width; ++j) normal.push_back((row[j] - mean) / std::sqrt(variance + 1e-5));
  }
  return normal;
}

// A perceptron by its definition: [rows, out] from x [rows, in] and the member's block.
inline Numbers Literal(const MlpLayout& net, const Numbers& block, const Numbers& x, int rows) {
  Numbers value = x;
  for (size_t l = 0; l < net.layers.size(); ++l) {
    const MlpLayer& layer = net.layers[l];
    Numbers next(static_cast<size_t>(rows) * layer.out);
    for (int r = 0; r < rows; ++r) {
      for (int o = 0; o < layer.out; ++o) {
        double sum = block[layer.bias + o];
        for (int i = 0; i < layer.in; ++i) sum += value[r * layer.in + i] * block[layer.weight + i * layer.out + o];
        next[r * layer.out + o] = sum;
      }
    }
    if (l + 1 == net.layers.size()) return next;
    if (net.layer_norm) next = LiteralLayerNorm(next, rows);
    for (double& unit : next) {
      unit = net.hidden == Activation::kSigmoid ? 1 / (1 + std::exp(-unit))
             : net.hidden == Activation::kTanh  ? std::tanh(unit)
                                                : std::max(unit, 0.0);
    }
    value = l == 0 && net.repeated > 0 ? WithRepeated(next, x, rows, net.repeated) : next;
  }
  return value;
}

inline double Inner(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_LEARNER_NN_KERNELS_TESTING_H_
// SPDX-License-Identifier: Apache-2.0
