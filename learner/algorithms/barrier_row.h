// One row of the loss of CBF-SAC's barrier (docs/algorithms.md 13.2): by how much the filter must relax its
// constraint, and the gradient of that. float64; pure function; allocates nothing; passes NaN on.
#ifndef DATACOM_LEARNER_ALGORITHMS_BARRIER_ROW_H_
#define DATACOM_LEARNER_ALGORITHMS_BARRIER_ROW_H_

namespace datacom::learner {

struct BarrierRow {
  int n = 0, q = 0;
  double V = 0;
  const float* slope = nullptr;   // [q] dV/dq
  const double* f = nullptr;      // [q]
  const double* G = nullptr;      // [q, n]
  const float* action = nullptr;  // [n] of the policy
  const float* half = nullptr;    // [n] of the box
  const float* centre = nullptr;  // [n]
  double penalty = 0, decay = 0;
};

// max(0, phi(penalty)) with phi(nu) = dV/dq f + decay V + L clip(action - nu/2 L), L = dV/dq G. If it is positive, adds
// weight times its gradient for the slope to d_slope [q]; its gradient for V is the decay.
inline double Relaxation(const BarrierRow& in, double weight, float* d_slope) {
  double phi = in.decay * in.V;
  for (int d = 0; d < in.q; ++d) phi += in.slope[d] * in.f[d];
  const auto filtered = [&in](int i, double* L, bool* inside) {
    *L = 0;
    for (int d = 0; d < in.q; ++d) *L += in.slope[d] * in.G[d * in.n + i];
    const double wanted = in.action[i] - in.penalty / 2 * *L;
    const double low = static_cast<double>(in.centre[i]) - in.half[i],
                 high = static_cast<double>(in.centre[i]) + in.half[i];
    *inside = wanted >= low && wanted <= high;
    return wanted < low ? low : (wanted > high ? high : wanted);
  };
  double L = 0;
  bool inside = false;
  for (int i = 0; i < in.n; ++i) {
    const double action = filtered(i, &L, &inside);
    phi += L * action;
  }
  if (phi <= 0) return 0;
  for (int d = 0; d < in.q; ++d) d_slope[d] += static_cast<float>(weight * in.f[d]);
  for (int i = 0; i < in.n; ++i) {
    const double action = filtered(i, &L, &inside);
    const double d_L = weight * (action - (inside ? in.penalty / 2 * L : 0));
    for (int d = 0; d < in.q; ++d) d_slope[d] += static_cast<float>(in.G[d * in.n + i] * d_L);
  }
  return phi;
}

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_BARRIER_ROW_H_
// SPDX-License-Identifier: Apache-2.0
