// The map W(s, u) with one constraint row in closed form (docs/safe_map.md 2.4), float64. The actor's map
// (common/safety/safe_map.h) computes the same for any number of rows; a test compares the two within 1e-12. Pure
// functions that allocate nothing.
#ifndef DATACOM_LEARNER_ALGORITHMS_SAFE_MAP_ROW_H_
#define DATACOM_LEARNER_ALGORITHMS_SAFE_MAP_ROW_H_

#include <algorithm>
#include <cmath>

namespace datacom::learner {

constexpr double kLogDetRegularisation = 9.99999974737875e-05;  // float32(1e-4)

struct SafeMapRow {
  int n = 0, q = 0, x = 0;
  double k = 0;                   // constraint value
  const double* J = nullptr;      // [q + x]
  const double* f = nullptr;      // [q]
  const double* G = nullptr;      // [q, n]
  const double* x_dot = nullptr;  // [x]
  double gain = 0, slack_beta = 0;
};

// Width of the state's part of the map: j_a [n], 1 / (1 + j_s), residual / norm, the clamped log-determinant.
inline int SafeMapSize(int n) { return n + 3; }

// Fills map. The log-determinant is at least target_entropy. Passes NaN on.
inline void MapRowState(const SafeMapRow& in, double target_entropy, double* map) {
  const double mu = -in.k < 1e-5 ? 1e-5 : -in.k;
  const double slack = std::min(std::expm1(in.slack_beta * mu), 1e5 - 1);
  double* j = map;
  double square = 0, drift = 0, moved = 0;
  for (int i = 0; i < in.n; ++i) {
    j[i] = 0;
    for (int d = 0; d < in.q; ++d) j[i] += in.J[d] * in.G[d * in.n + i];
    square += j[i] * j[i];
  }
  for (int d = 0; d < in.q; ++d) drift += in.J[d] * in.f[d];
  for (int d = 0; d < in.x; ++d) moved += in.J[in.q + d] * in.x_dot[d];
  const double norm = std::sqrt(square + slack * slack);
  const double residual = moved + (drift < 0 ? 0 : drift) + in.gain * (in.k + mu);
  const double j_s = slack / norm;
  for (int i = 0; i < in.n; ++i) j[i] /= norm;
  map[in.n] = 1 / (1 + j_s);
  map[in.n + 1] = residual / norm;
  const double log_det = (in.n - 1) * std::log1p(kLogDetRegularisation) + std::log(j_s + kLogDetRegularisation);
  map[in.n + 2] = log_det < target_entropy ? target_entropy : log_det;
}

// action [n] = scale (clip(u) - j_a push); returns the scale, the largest one up to 1 that keeps the action in [-1, 1].
inline double MapRowAction(int n, const double* map, const float* u, float* action) {
  const auto clipped = [u](int i) { return std::clamp(static_cast<double>(u[i]), -1.0, 1.0); };
  double along = 0;
  for (int i = 0; i < n; ++i) along += map[i] * clipped(i);
  const double push = along * map[n] + map[n + 1];
  const auto raw = [&](int i) { return clipped(i) - map[i] * push; };
  double scale = 1;
  for (int i = 0; i < n; ++i) {
    const double size = std::abs(raw(i));
    if (size * scale > 1) scale = 1 / size;
  }
  for (int i = 0; i < n; ++i) action[i] = static_cast<float>(raw(i) * scale);
  return scale;
}

// d_u = 1[|u| <= 1] * B_top * (scale * d_action), with B_top = I - j_a j_a^T / (1 + j_s).
inline void MapRowGradient(int n, const double* map, double scale, const float* u, const float* d_action, float* d_u) {
  const double* j = map;
  double along = 0;
  for (int i = 0; i < n; ++i) along += j[i] * d_action[i];
  for (int i = 0; i < n; ++i) {
    const double d = scale * (d_action[i] - j[i] * along * map[n]);
    d_u[i] = std::abs(u[i]) <= 1 ? static_cast<float>(d) : 0.0f;
  }
}

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SAFE_MAP_ROW_H_
// SPDX-License-Identifier: Apache-2.0
