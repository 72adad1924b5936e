#include <algorithm>
#include <cmath>

#include "learner/algorithms/natural_gradient_kernels.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

double Inner(const FloatView& a, const FloatView& b, int member) {
  const float *x = a.row(member, 0), *y = b.row(member, 0);
  double sum = 0;
  for (int i = 0; i < a.cols; ++i) sum += static_cast<double>(x[i]) * y[i];
  return sum;
}

// y += factor x
void AddScaled(double factor, const FloatView& x, const FloatView& y, int member) {
  const float scale = static_cast<float>(factor);
  const float* from = x.row(member, 0);
  float* to = y.row(member, 0);
  for (int i = 0; i < x.cols; ++i) to[i] += scale * from[i];
}

class NaturalGradientCpu : public CpuImpl<NaturalGradientKernels> {
 public:
  void Curvature(const FloatView& tangent, const FloatView& log_std, double share, const FloatView& d_mean) override {
    for (int m = 0; m < tangent.members; ++m) {
      float* const weight = Temporary(0, log_std).row(m, 0);
      for (int i = 0; i < tangent.cols; ++i) {
        weight[i] = static_cast<float>(share * std::exp(-2 * static_cast<double>(log_std.at(m, 0, i))));
      }
      for (int r = 0; r < tangent.rows; ++r) {
        for (int i = 0; i < tangent.cols; ++i) d_mean.at(m, r, i) = weight[i] * tangent.at(m, r, i);
      }
    }
  }

  void Collect(const FloatView& from, bool add, const FloatView& to) override {
    for (int m = 0; m < to.members; ++m) {
      if (!add) std::fill_n(to.row(m, 0), to.cols, 0.0f);
      AddScaled(1, from, to, m);
    }
  }

  void FinishProduct(const FloatView& direction, int log_std, double factor, const DoubleView& damping,
                     const FloatView& product) override {
    for (int m = 0; m < product.members; ++m) {
      for (int i = log_std; i < product.cols; ++i) {
        product.at(m, 0, i) = static_cast<float>(factor) * direction.at(m, 0, i);
      }
      AddScaled(damping.at(m), direction, product, m);
    }
  }

  void BeginSolve(const FloatView& gradient, const ConjugateSolve& solve) override {
    for (int m = 0; m < gradient.members; ++m) {
      for (int i = 0; i < gradient.cols; ++i) {
        solve.x.at(m, 0, i) = 0;
        solve.residual.at(m, 0, i) = solve.direction.at(m, 0, i) = -gradient.at(m, 0, i);
      }
      solve.squared_residual.at(m) = Inner(solve.residual, solve.residual, m);
      solve.running.at(m) = 1;
    }
  }

  void ContinueSolve(const ConjugateSolve& solve) override {
    for (int m = 0; m < solve.x.members; ++m) {
      if (solve.running.at(m) == 0) continue;
      double& squares = solve.squared_residual.at(m);
      const double length = squares / (Inner(solve.direction, solve.product, m) + 1e-6);
      AddScaled(length, solve.direction, solve.x, m);
      AddScaled(-length, solve.product, solve.residual, m);
      const double left = Inner(solve.residual, solve.residual, m);
      if (std::sqrt(left) < 1e-10) {
        solve.running.at(m) = 0;
        continue;
      }
      const float keep = static_cast<float>(left / (squares + 1e-6));
      for (int i = 0; i < solve.x.cols; ++i) {
        solve.direction.at(m, 0, i) = solve.residual.at(m, 0, i) + keep * solve.direction.at(m, 0, i);
      }
      squares = left;
    }
  }

  void NaturalStep(const FloatView& x, const FloatView& product, const DoubleView& length, const DoubleView& active,
                   const FloatView& parameters) override {
    for (int m = 0; m < x.members; ++m) {
      const double scale = std::sqrt(2 * length.at(m) / (Inner(x, product, m) + 1e-8));
      if (!std::isfinite(scale * scale * Inner(x, x, m))) active.at(m) = 0;
      if (active.at(m) != 0) AddScaled(scale, x, parameters, m);
    }
  }
};

const CpuImpls::Register<NaturalGradientKernels, NaturalGradientCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
