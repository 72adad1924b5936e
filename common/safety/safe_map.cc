#include "common/safety/safe_map.h"
#include "common/base/norm.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace datacom {
namespace {

constexpr double kMaxSlope = 1e5 - 1;

double Clip(double u) { return u < -1 ? -1 : u > 1 ? 1 : u; }

double Dot(const double* a, const double* b, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// y -= factor x
void Subtract(double factor, const double* x, int count, double* y) {
  for (int i = 0; i < count; ++i) y[i] -= factor * x[i];
}

void Rotate(double* a, double* b, int count, double c, double s) {
  for (int i = 0; i < count; ++i) {
    const double x = a[i], y = b[i];
    a[i] = c * x - s * y;
    b[i] = s * x + c * y;
  }
}

}  // namespace

// These comparisons pass a NaN on.
double SafeMapSlack(double k) { return -k < kMinSlack ? kMinSlack : -k; }

double SafeMapSlackSlope(double slack, double beta) { return std::min(std::expm1(beta * slack), kMaxSlope); }

SafeMap::SafeMap(const SafeMapDims& dims) : dims_(dims) {
  assert(dims.constraints >= 1 && dims.action >= 1 && dims.action <= kMaxSafeMapActions && dims.q >= 0 && dims.x >= 0);
  assert(dims.equalities >= 0 && dims.equalities <= dims.constraints);
  const int K = dims.constraints, n = dims.action;
  reduced_.resize(K * (n + 2));
  if (dims.equalities > 0) projected_.resize(inequalities() * (n + 1));
  columns_.resize(n * K);
  residual_.resize(K);
  std::fill(std::begin(basis_), std::end(basis_), 0.0);
  std::fill(std::begin(offset_), std::end(offset_), 0.0);
}

void ReduceTerms(const SafeMapDims& dims, const SafeMapTerms& terms, double* J_G, double* drift) {
  const int K = dims.constraints, n = dims.action;
  for (int i = 0; i < K; ++i) {
    const double* row = terms.J_k + i * dims.q;
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int d = 0; d < dims.q; ++d) sum += row[d] * terms.G[d * n + j];
      J_G[i * n + j] = sum;
    }
    // Helpful drift of the controlled part is dropped, except in equations; the motion of uncontrolled objects counts
    // in full.
    const double own = Dot(row, terms.f, dims.q);
    drift[i] = own < 0 && i < K - dims.equalities ? 0 : own;
    if (dims.x > 0) drift[i] += Dot(terms.J_x + i * dims.x, terms.x_dot, dims.x);
  }
}

void SafeMap::Set(const SafeMapTerms& terms, const SafeMapGains& gains) {
  double* const J_G = reduced_.data();
  double* const drift = J_G + dims_.constraints * dims_.action;
  ReduceTerms(dims_, terms, J_G, drift);
  Set(SafeMapReduced{terms.k, J_G, drift}, gains);
}

void SafeMap::Set(const SafeMapTerms& terms, const double* joined, const SafeMapGains& gains) {
  const int K = dims_.constraints, n = dims_.action;
  assert(inequalities() >= 1);
  ReduceTerms({1, n, dims_.q, dims_.x}, terms, reduced_.data(), reduced_.data() + K * n);
  reduced_[K * (n + 1)] = terms.k[0];
  SetRecords(1, joined, gains);
}

void SafeMap::SetRecords(int first, const double* records, const SafeMapGains& gains) {
  const int K = dims_.constraints, n = dims_.action;
  double* const J_G = reduced_.data();
  double* const drift = J_G + K * n;
  double* const k = drift + K;
  for (int i = first; i < K; ++i, records += JoinedRowSize(n)) {
    k[i] = records[0];
    drift[i] = records[1];
    std::copy_n(records + 2, n, J_G + i * n);
  }
  Set(SafeMapReduced{k, J_G, drift}, gains);
}

void SafeMap::Set(const SafeMapReduced& reduced, const SafeMapGains& gains) {
  if (dims_.equalities > 0) return SetInTangentSpace(reduced, gains);
  SetInequalities(reduced, gains);
}

void SafeMap::SetInequalities(const SafeMapReduced& reduced, const SafeMapGains& gains) {
  if (inequalities() == 1) return SetSingle(reduced.k[0], reduced.J_G, reduced.drift[0], gains);
  SetBySingularValues(reduced, gains);
}

// Writes fixed_, the smallest a with J_G a + drift + lambda k = 0 for every equation, and normals_, an orthonormal
// basis of the span of their J_G, by Gram-Schmidt with one repetition; returns the number of normals. A row that the
// earlier ones determine to 1e-9 is left out: no action could serve it.
int SafeMap::SolveEquations(const SafeMapReduced& reduced, double lambda) {
  const int n = dims_.action;
  int count = 0;
  std::fill_n(fixed_, n, 0.0);
  for (int i = inequalities(); i < dims_.constraints; ++i) {
    const double* const row = reduced.J_G + i * n;
    double v[kMaxSafeMapActions];
    std::copy_n(row, n, v);
    for (int pass = 0; pass < 2; ++pass) {
      for (int j = 0; j < count; ++j) Subtract(Dot(normals_ + j * n, v, n), normals_ + j * n, n, v);
    }
    const double left = std::sqrt(Dot(v, v, n));
    if (left <= 1e-9 * std::sqrt(Dot(row, row, n)) || count == n) continue;
    double* const normal = normals_ + count * n;
    for (int j = 0; j < n; ++j) normal[j] = v[j] / left;
    const double missing = reduced.drift[i] + lambda * reduced.k[i] + Dot(row, fixed_, n);
    Subtract(missing / Dot(row, normal, n), normal, n, fixed_);
    ++count;
  }
  return count;
}

// docs/safe_map.md 2.7: the map of the inequalities, with rows J_G P and residuals that contain the effect of
// fixed_; P projects on the tangent space of the equations. Across it that map is the identity, which is taken out.
void SafeMap::SetInTangentSpace(const SafeMapReduced& reduced, const SafeMapGains& gains) {
  const int n = dims_.action, rows = inequalities();
  const int count = SolveEquations(reduced, gains.lambda);
  double* const J_G = projected_.data();
  double* const drift = J_G + rows * n;
  for (int i = 0; i < rows; ++i) {
    double* const row = J_G + i * n;
    std::copy_n(reduced.J_G + i * n, n, row);
    drift[i] = reduced.drift[i] + Dot(row, fixed_, n);
    for (int j = 0; j < count; ++j) Subtract(Dot(normals_ + j * n, row, n), normals_ + j * n, n, row);
  }
  if (rows > 0) {
    SetInequalities({reduced.k, J_G, drift}, gains);
  } else {
    std::fill_n(offset_, n, 0.0);
    std::fill_n(basis_, n * n, 0.0);
    for (int i = 0; i < n; ++i) basis_[i * n + i] = 1;
    log_det_ = n * std::log1p(kLogDetRegularisation);
  }
  for (int j = 0; j < count; ++j) {
    const double* const normal = normals_ + j * n;
    for (int a = 0; a < n; ++a) Subtract(normal[a], normal, n, basis_ + a * n);
    Subtract(Dot(normal, offset_, n), normal, n, offset_);
  }
  log_det_ -= count * std::log1p(kLogDetRegularisation);
}

// docs/safe_map.md 2.4, with the unit row j = [j_a, j_s] of [J_G, slope].
void SafeMap::SetSingle(double k, const double* J_G, double drift, const SafeMapGains& gains) {
  const int n = dims_.action;
  const double slack = SafeMapSlack(k);
  const double slope = SafeMapSlackSlope(slack, gains.beta);
  const double residual = drift + gains.lambda * (k + slack);
  double norm = slope;
  for (int i = 0; i < n; ++i) norm = Norm(norm, J_G[i]);
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

// docs/safe_map.md 2.3: W = A^-1 J_G = U S V^T, columns w_j = s_j V_j, y = U^T A^-1 r, t_j = sqrt(1 + s_j^2):
//   B_top = V (1 + S^2)^-1/2 V^T = I - sum_j w_j w_j^T / (t_j (1 + t_j));  (J_u^+)_top r = sum_j w_j y_j / t_j^2.
// Nothing is divided by a singular value, so rank does not matter.
void SafeMap::SetBySingularValues(const SafeMapReduced& reduced, const SafeMapGains& gains) {
  const int K = inequalities(), n = dims_.action;
  for (int i = 0; i < K; ++i) {
    const double slack = SafeMapSlack(reduced.k[i]);
    const double slope = SafeMapSlackSlope(slack, gains.beta);
    residual_[i] = (reduced.drift[i] + gains.lambda * (reduced.k[i] + slack)) / slope;
    for (int j = 0; j < n; ++j) columns_[j * K + i] = reduced.J_G[i * n + j] / slope;
  }
  Triangularise();
  OrthogonaliseRows();
  std::fill_n(offset_, n, 0.0);
  std::fill_n(basis_, n * n, 0.0);
  for (int a = 0; a < n; ++a) basis_[a * n + a] = 1;
  const int rank = std::min(K, n);
  log_det_ = (n - rank) * std::log1p(kLogDetRegularisation);
  for (int j = 0; j < rank; ++j) {
    const double* w = rows_ + j * n;
    const double t = std::sqrt(1 + Dot(w, w, n));
    for (int a = 0; a < n; ++a) {
      offset_[a] -= w[a] / t * (residual_[j] / t);
      for (int b = 0; b < n; ++b) basis_[a * n + b] -= w[a] / t * (w[b] / (1 + t));
    }
    log_det_ += std::log(1 / t + kLogDetRegularisation);
  }
}

// W P = Q R by Householder reflections, residual_ <- Q^T residual_, rows_ <- rows of R P^T. The rows of W differ in
// size by up to 1e10 (a slack at its minimum next to a wide one); taking the largest column and the largest element of
// it first keeps each row's digits (Powell and Reid, "On applying Householder transformations to linear least squares
// problems", 1968).
void SafeMap::Triangularise() {
  const int K = inequalities(), n = dims_.action, rank = std::min(K, n);
  int place[kMaxSafeMapActions];
  for (int j = 0; j < n; ++j) place[j] = j;
  double* const W = columns_.data();
  for (int i = 0; i < rank; ++i) {
    const int tail = K - i;
    int pivot = i;
    double largest = -1;
    for (int j = i; j < n; ++j) {
      const double square = Dot(W + j * K + i, W + j * K + i, tail);
      if (square > largest) {
        largest = square;
        pivot = j;
      }
    }
    std::swap_ranges(W + i * K, W + (i + 1) * K, W + pivot * K);
    std::swap(place[i], place[pivot]);
    double* const v = W + i * K + i;
    int top = 0;
    for (int r = 1; r < tail; ++r) {
      if (std::abs(v[r]) > std::abs(v[top])) top = r;
    }
    for (int j = 0; j < n; ++j) std::swap(W[j * K + i], W[j * K + i + top]);
    std::swap(residual_[i], residual_[i + top]);
    const double diagonal = -std::copysign(std::sqrt(Dot(v, v, tail)), v[0]);
    if (diagonal == 0) continue;  // the rest is zero
    v[0] -= diagonal;
    const double half_square = -v[0] * diagonal;  // v.v / 2
    const auto reflect = [&](double* y) {
      const double factor = Dot(v, y, tail) / half_square;
      for (int r = 0; r < tail; ++r) y[r] -= factor * v[r];
    };
    for (int j = i + 1; j < n; ++j) reflect(W + j * K + i);
    reflect(residual_.data() + i);
    v[0] = diagonal;
  }
  for (int i = 0; i < rank; ++i) {
    for (int j = 0; j < n; ++j) rows_[i * n + place[j]] = j < i ? 0 : W[j * K + i];
  }
}

// One-sided Jacobi: rotates pairs of rows of R (and the residual with them) until all are orthogonal: w_j = s_j V_j.
// The number of sweeps is fixed, which fixes the run time; an orthogonal pair costs three scalar products.
void SafeMap::OrthogonaliseRows() {
  const int n = dims_.action, rank = std::min(inequalities(), n);
  for (int sweep = 0; sweep < SafeMapSweeps(rank); ++sweep) {
    for (int a = 0; a + 1 < rank; ++a) {
      for (int b = a + 1; b < rank; ++b) {
        double* x = rows_ + a * n;
        double* y = rows_ + b * n;
        const double xx = Dot(x, x, n), yy = Dot(y, y, n), xy = Dot(x, y, n);
        if (!(std::abs(xy) > 1e-17 * std::sqrt(xx) * std::sqrt(yy))) continue;
        // tan of the smaller angle that annihilates xy.
        const double zeta = (yy - xx) / (2 * xy);
        const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + Norm(1.0, zeta));
        const double c = 1 / std::sqrt(1 + t * t);
        Rotate(x, y, n, c, c * t);
        Rotate(&residual_[a], &residual_[b], 1, c, c * t);
      }
    }
  }
}

namespace {

void ApplyRaw(int n, const double* basis, const double* offset, const double* u, double* action) {
  double clipped[kMaxSafeMapActions];
  for (int i = 0; i < n; ++i) clipped[i] = Clip(u[i]);
  for (int i = 0; i < n; ++i) action[i] = Dot(basis + i * n, clipped, n) + offset[i];
}

}  // namespace

double ApplySafeMap(int n, const double* basis, const double* offset, const double* fixed, const double* u,
                    double* action) {
  ApplyRaw(n, basis, offset, u, action);
  double largest = 1, scale = 1;
  if (fixed == nullptr) {
    for (int i = 0; i < n; ++i) largest = std::max(largest, std::abs(action[i]));
    scale = 1 / largest;
    for (int i = 0; i < n; ++i) action[i] *= scale;
    return scale;
  }
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::abs(fixed[i]));
  for (int i = 0; i < n; ++i) {
    const double room = 1 - std::copysign(fixed[i] / largest, fixed[i] * action[i]);
    if (std::abs(action[i]) > room) scale = std::min(scale, room / std::abs(action[i]));
  }
  for (int i = 0; i < n; ++i) action[i] = fixed[i] / largest + scale * action[i];
  return scale;
}

void SafeMap::ApplyUnscaled(const double* u, double* action) const {
  ApplyRaw(dims_.action, basis_, offset_, u, action);
  for (int i = 0; i < dims_.action && dims_.equalities > 0; ++i) action[i] += fixed_[i];
}

double SafeMap::Apply(const double* u, double* action) const {
  return ApplySafeMap(dims_.action, basis_, offset_, dims_.equalities > 0 ? fixed_ : nullptr, u, action);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
