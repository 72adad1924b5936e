// The formulas of the systems of docs/developing.md.
#include <cmath>
#include <stdexcept>

#include "tests/learner/algorithms/golden.h"

namespace datacom::learner {

GoldenSystem SystemOf(const std::string& name) {
  if (name == "toy2") return {10, 2, 4, 2};
  if (name == "tiago") return {22, 2, 3, 5};
  if (name == "cartpole") return {5, 1, 4, 0};
  throw std::invalid_argument("no golden system is called " + name);
}

namespace {

void DoubleIntegrator(const double* o, double* z, double* f, double* G, double* x_dot) {
  for (int i = 0; i < 6; ++i) z[i] = o[i];
  f[0] = o[2], f[1] = o[3], f[2] = f[3] = 0;
  for (int i = 0; i < 8; ++i) G[i] = 0;
  G[2 * 2 + 0] = 1, G[3 * 2 + 1] = 1;
  x_dot[0] = o[6], x_dot[1] = o[7];
}

void Navigation(const double* o, double* z, double* f, double* G, double* x_dot) {
  const double heading = std::atan2(o[5], o[4]);
  const double state[8] = {o[2], o[3], heading, o[9], o[10], std::atan2(o[12], o[11]), o[18], o[19]};
  for (int i = 0; i < 8; ++i) z[i] = state[i];
  f[0] = f[1] = f[2] = 0;
  const double matrix[6] = {std::cos(heading), 0, std::sin(heading), 0, 0, 1};
  for (int i = 0; i < 6; ++i) G[i] = matrix[i];
  x_dot[0] = o[13], x_dot[1] = o[14], x_dot[2] = o[15], x_dot[3] = o[20], x_dot[4] = o[21];
}

void CartPole(const double* o, double* z, double* f, double* G) {
  const double mc = 0.1, mp = 0.1, l = 0.5, g = 9.81, u_max = 1.9, Jp = 0.009424592767295598;
  const double s = o[1], c = o[2], v = o[3], w = o[4];
  const double theta = std::atan2(s, c);
  z[0] = o[0], z[1] = theta, z[2] = v, z[3] = w;
  const double sine = std::sin(theta), cosine = std::cos(theta);
  const double a = mc + mp, b = mp * l * cosine, d = mp * l * l + Jp;
  const double det = a * d - b * b;
  const double force0 = mp * l * w * w * sine, force1 = mp * g * l * sine;
  f[0] = v, f[1] = w;
  f[2] = (d * force0 - b * force1) / det;
  f[3] = (-b * force0 + a * force1) / det;
  G[0] = G[1] = 0;
  G[2] = u_max * d / det;
  G[3] = -u_max * b / det;
}

}  // namespace

void Features(const std::string& name, const double* obs, float* z, double* f, double* G, double* x_dot) {
  double wide[8];
  if (name == "toy2") DoubleIntegrator(obs, wide, f, G, x_dot);
  if (name == "tiago") Navigation(obs, wide, f, G, x_dot);
  if (name == "cartpole") CartPole(obs, wide, f, G);
  const GoldenSystem system = SystemOf(name);
  for (int i = 0; i < system.q + system.x; ++i) z[i] = static_cast<float>(wide[i]);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
