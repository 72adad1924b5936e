#include <algorithm>

#include "learner/algorithms/quantile_kernels.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

class QuantileCpu : public CpuImpl<QuantileKernels> {
 public:
  void LevelFeatures(const FloatView& level, const FloatView& features) override {
    for (int m = 0; m < features.members; ++m) {
      for (int r = 0; r < features.rows; ++r) {
        const float tau = level.at(m, r / level.cols, r % level.cols);
        loops_.cosines(tau, features.cols, features.row(m, r));
      }
    }
  }

  void QuantileProduct(const FloatView& base, const FloatView& embedding, const FloatView& product) override {
    const int width = base.cols, repeat = product.rows / base.rows;
    for (int m = 0; m < product.members; ++m) {
      for (int r = 0; r < embedding.rows; ++r) loops_.sigmoid(width, embedding.row(m, r), embedding.row(m, r));
      for (int r = 0; r < product.rows; ++r) {
        loops_.gated(base.row(m, r / repeat), embedding.row(m, embedding.rows == 1 ? 0 : r), width, product.row(m, r));
      }
    }
  }

  void QuantileProductGradient(const FloatView& base, const FloatView& embedding, const FloatView& d_product,
                               const FloatView& d_base) override {
    const int width = base.cols, repeat = d_product.rows / base.rows;
    for (int m = 0; m < d_base.members; ++m) {
      for (int r = 0; r < d_base.rows; ++r) {
        std::fill_n(d_base.row(m, r), width, 0.0f);
        for (int j = r * repeat; j < (r + 1) * repeat; ++j) {
          loops_.gated_gradient(base.row(m, r), embedding.row(m, embedding.rows == 1 ? 0 : j), width, d_base.row(m, r),
                                d_product.row(m, j));
        }
      }
    }
  }

  void QuantileRisk(const FloatView& value, const FloatView& gradient, const DoubleView& delta, const DoubleView& k,
                    const DoubleView& J) override {
    for (int m = 0; m < value.members; ++m) {
      for (int r = 0; r < value.rows; ++r) {
        const float o = value.at(m, r), slope = SoftplusSlope(o);
        k.at(m, r) = static_cast<double>(Softplus(o)) - delta.at(m);
        for (int i = 0; i < J.cols; ++i) J.at(m, r, i) = slope * gradient.at(m, r, i);
      }
    }
  }

  void QuantileTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next, double discount,
                      const FloatView& y) override {
    const float gamma = static_cast<float>(discount);
    const int repeat = y.rows / cost.rows;
    for (int m = 0; m < y.members; ++m) {
      Apply(loops_.softplus, next, y, m);
      for (int r = 0; r < y.rows; ++r) {
        const float c = NonNegative(cost.at(m, r / repeat));
        y.at(m, r) = absorbing.at(m, r / repeat) != 0 ? c : c + gamma * y.at(m, r);
      }
    }
  }

  void QuantileLoss(const FloatView& value, const FloatView& y, const FloatView& level, const FloatView& row_weight,
                    const FloatView& d_value, const DoubleView& loss) override {
    constexpr int kLanes = 16;  // quantiles at a time; each sums over its targets in order
    const int count = level.cols, target_count = y.rows / level.rows;
    const FloatView softplus = Temporary(0, value), softplus_slope = Temporary(1, value);
    for (int m = 0; m < value.members; ++m) {
      Apply(loops_.softplus, value, softplus, m);
      Apply(loops_.sigmoid, value, softplus_slope, m);
      const int rows = RowsThatCount(row_weight, m);
      const float share = 1.0f / static_cast<float>(rows * count);
      double total = 0;
      for (int r = 0; r < rows; ++r) {
        const float* targets = y.row(m, r * target_count);
        for (int first = 0; first < count; first += kLanes) {
          const int lanes = std::min(kLanes, count - first);
          float q[kLanes] = {}, tau[kLanes] = {}, sum[kLanes] = {}, slope[kLanes] = {};
          for (int i = 0; i < lanes; ++i) {
            q[i] = softplus.at(m, r * count + first + i);
            tau[i] = level.at(m, r, first + i);
          }
          loops_.quantile_huber(q, tau, targets, target_count, sum, slope);
          for (int i = 0; i < lanes; ++i) {
            total += sum[i];
            d_value.at(m, r * count + first + i) = share * slope[i] * softplus_slope.at(m, r * count + first + i);
          }
        }
      }
      for (int r = rows * count; r < value.rows; ++r) d_value.at(m, r) = 0;
      loss.at(m) = total / (static_cast<double>(rows) * count);
    }
  }
};

const CpuImpls::Register<QuantileKernels, QuantileCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
