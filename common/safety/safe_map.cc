#include "common/safety/safe_map.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace datacom {
namespace {

constexpr double kMaxSlope = 1e5 - 1;

// Cyclic Jacobi converges quadratically: at 1e10 condition, three columns settle in 5 sweeps, eight in 8.
int Sweeps(int n) { return n <= 3 ? 6 : 10; }

double Clip(double u) { return u < -1 ? -1 : u > 1 ? 1 : u; }

double Dot(const double* a, const double* b, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

void Rotate(double* a, double* b, int count, double c, double s) {
  for (int i = 0; i < count; ++i) {
    const double x = a[i], y = b[i];
    a[i] = c * x - s * y;
    b[i] = s * x + c * y;
  }
}

}  // namespace

// Comparisons let a NaN through.
double SafeMapSlack(double k) { return -k < kMinSlack ? kMinSlack : -k; }

double SafeMapSlackSlope(double slack, double beta) { return std::min(std::expm1(beta * slack), kMaxSlope); }

SafeMap::SafeMap(const SafeMapDims& dims) : dims_(dims) {
  assert(dims.constraints >= 1 && dims.action >= 1 && dims.action <= kMaxSafeMapActions && dims.q >= 0 && dims.x >= 0);
  const int K = dims.constraints, n = dims.action;
  reduced_.resize(K * (n + 1));
  columns_.resize(n * K);
  scaled_residual_.resize(K);
  std::fill(std::begin(basis_), std::end(basis_), 0.0);
  std::fill(std::begin(offset_), std::end(offset_), 0.0);
}

void SafeMap::Set(const SafeMapTerms& terms, const SafeMapGains& gains) {
  const int K = dims_.constraints, n = dims_.action;
  double* J_G = reduced_.data();
  double* drift = J_G + K * n;
  for (int i = 0; i < K; ++i) {
    const double* row = terms.J_k + i * dims_.q;
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int d = 0; d < dims_.q; ++d) sum += row[d] * terms.G[d * n + j];
      J_G[i * n + j] = sum;
    }
    // Helpful drift of the controlled part is dropped; the motion of uncontrolled objects counts as it is.
    const double own = Dot(row, terms.f, dims_.q);
    drift[i] = own < 0 ? 0 : own;
    if (dims_.x > 0) drift[i] += Dot(terms.J_x + i * dims_.x, terms.x_dot, dims_.x);
  }
  Set(SafeMapReduced{terms.k, J_G, drift}, gains);
}

void SafeMap::Set(const SafeMapReduced& reduced, const SafeMapGains& gains) {
  if (dims_.constraints == 1) {
    SetSingle(reduced.k[0], reduced.J_G, reduced.drift[0], gains);
  } else {
    SetBySingularValues(reduced, gains);
  }
}

// 2.4: unit row j = [j_a, j_s] of [J_G, slope]; B_top = I - j_a j_a^T / (1 + j_s), pseudo-inverse = row^T / norm^2.
void SafeMap::SetSingle(double k, const double* J_G, double drift, const SafeMapGains& gains) {
  const int n = dims_.action;
  const double slack = SafeMapSlack(k);
  const double slope = SafeMapSlackSlope(slack, gains.beta);
  const double residual = drift + gains.lambda * (k + slack);
  double norm = slope;
  for (int i = 0; i < n; ++i) norm = std::hypot(norm, J_G[i]);
  const double j_s = slope / norm;
  double j_a[kMaxSafeMapActions];
  for (int i = 0; i < n; ++i) j_a[i] = J_G[i] / norm;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) basis_[i * n + j] = (i == j ? 1.0 : 0.0) - j_a[i] * j_a[j] / (1 + j_s);
    offset_[i] = -j_a[i] / norm * residual;
  }
  if (n == 1) basis_[0] = j_s;  // 1 - (1 - j_s^2) / (1 + j_s) without the cancellation
  log_det_ = (n - 1) * std::log1p(kLogDetRegularisation) + std::log(j_s + kLogDetRegularisation);
}

// 2.3: W = A^-1 J_G = U S V^T; B_top = V (1 + S^2)^-1/2 V^T, (J_u^+)_top r = V S (1 + S^2)^-1 U^T A^-1 r.
void SafeMap::SetBySingularValues(const SafeMapReduced& reduced, const SafeMapGains& gains) {
  const int K = dims_.constraints, n = dims_.action;
  for (int i = 0; i < K; ++i) {
    const double slack = SafeMapSlack(reduced.k[i]);
    const double slope = SafeMapSlackSlope(slack, gains.beta);
    scaled_residual_[i] = (reduced.drift[i] + gains.lambda * (reduced.k[i] + slack)) / slope;
    for (int j = 0; j < n; ++j) columns_[j * K + i] = reduced.J_G[i * n + j] / slope;
  }
  DiagonaliseColumns();  // columns_ = U S, rotation_ = V
  std::fill_n(basis_, n * n, 0.0);
  std::fill_n(offset_, n, 0.0);
  log_det_ = 0;
  for (int j = 0; j < n; ++j) {
    const double* column = columns_.data() + j * K;
    const double* v = rotation_ + j * n;
    const double square = Dot(column, column, K);  // s_j^2
    const double value = 1 / std::sqrt(1 + square);
    const double step = -Dot(column, scaled_residual_.data(), K) / (1 + square);
    for (int a = 0; a < n; ++a) {
      offset_[a] += step * v[a];
      for (int b = 0; b < n; ++b) basis_[a * n + b] += value * v[a] * v[b];
    }
    log_det_ += std::log(value + kLogDetRegularisation);
  }
}

// One-sided Jacobi: rotates pairs of columns of W until all are orthogonal, gathering the rotations in V.
// The number of sweeps is fixed, so that the time is; an orthogonal pair costs its three scalar products.
void SafeMap::DiagonaliseColumns() {
  const int K = dims_.constraints, n = dims_.action;
  std::fill_n(rotation_, n * n, 0.0);
  for (int j = 0; j < n; ++j) rotation_[j * n + j] = 1;
  for (int sweep = 0; sweep < Sweeps(n); ++sweep) {
    for (int a = 0; a + 1 < n; ++a) {
      for (int b = a + 1; b < n; ++b) {
        double* x = columns_.data() + a * K;
        double* y = columns_.data() + b * K;
        const double xx = Dot(x, x, K), yy = Dot(y, y, K), xy = Dot(x, y, K);
        if (!(std::abs(xy) > 1e-17 * std::sqrt(xx) * std::sqrt(yy))) continue;
        // tan of the smaller angle that annihilates xy.
        const double zeta = (yy - xx) / (2 * xy);
        const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta));
        const double c = 1 / std::sqrt(1 + t * t);
        Rotate(x, y, K, c, c * t);
        Rotate(rotation_ + a * n, rotation_ + b * n, n, c, c * t);
      }
    }
  }
}

void SafeMap::ApplyUnscaled(const double* u, double* action) const {
  const int n = dims_.action;
  double clipped[kMaxSafeMapActions];
  for (int i = 0; i < n; ++i) clipped[i] = Clip(u[i]);
  for (int i = 0; i < n; ++i) action[i] = Dot(basis_ + i * n, clipped, n) + offset_[i];
}

double SafeMap::Apply(const double* u, double* action) const {
  const int n = dims_.action;
  ApplyUnscaled(u, action);
  double largest = 1;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::abs(action[i]));
  const double scale = 1 / largest;
  for (int i = 0; i < n; ++i) action[i] *= scale;
  return scale;
}

}  // namespace datacom
