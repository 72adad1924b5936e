// Test-only system "toy2" of docs/developing.md: a planar double integrator next to a moving obstacle.
// obs = [q(2), q_dot(2), x(2), x_dot(2), goal(2)]; constraint state q = [q, q_dot], x = [x].
#ifndef DATACOM_TESTS_TESTING_DOUBLE_INTEGRATOR_H_
#define DATACOM_TESTS_TESTING_DOUBLE_INTEGRATOR_H_

#include <algorithm>

#include "common/safety/control_affine.h"

namespace datacom::testing {

// Immutable; thread-safe.
class DoubleIntegrator : public ControlAffine {
 public:
  ControlAffineDims dims() const override { return {10, 2, 4, 2}; }
  void Evaluate(const double* obs, const ControlAffineOut& out) const override {
    if (out.q != nullptr) std::copy(obs, obs + 4, out.q);
    if (out.x != nullptr) std::copy(obs + 4, obs + 6, out.x);
    if (out.x_dot != nullptr) std::copy(obs + 6, obs + 8, out.x_dot);
    if (out.f != nullptr) {
      const double f[4] = {obs[2], obs[3], 0, 0};
      std::copy(f, f + 4, out.f);
    }
    if (out.G != nullptr) {
      const double G[8] = {0, 0, 0, 0, 1, 0, 0, 1};
      std::copy(G, G + 8, out.G);
    }
  }
};

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_DOUBLE_INTEGRATOR_H_
// SPDX-License-Identifier: Apache-2.0
