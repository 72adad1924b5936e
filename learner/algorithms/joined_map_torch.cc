// The map of several constraints on all rows at once. These are the steps of common/safety/safe_map.cc, which has their
// derivation, as tensor operations without a branch, so that a graph can record them. Batches are [members, rows];
// shapes in comments are for one state.
#include <algorithm>
#include <cmath>
#include <vector>

#include "common/safety/safe_map.h"
#include "learner/algorithms/joined_map_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

// A row w_j = s_j V_j' of the triangle, and its entry of the residual, which goes through the same rotations.
struct TriangleRow {
  at::Tensor row;       // [n]
  at::Tensor residual;  // [1]
};

// [.., count] indices that exchange entries `first` and `other` [..].
at::Tensor Exchange(int64_t count, int64_t first, const at::Tensor& other) {
  const at::Tensor i = at::arange(count, other.options()).expand({other.size(0), other.size(1), count});
  const at::Tensor o = other.unsqueeze(2);
  return at::where(i.eq(first), o, at::where(i.eq(o), at::full_like(i, first), i));
}

// One Householder reflection of `rest` [K, columns + 1], whose last column is the residual. The largest column and then
// its largest element are moved to the front. Removes the finished row and the pivot's column from `rest`, and the
// pivot's entry from `place` [columns].
TriangleRow Reflect(int64_t n, at::Tensor* rest, at::Tensor* place) {
  const int64_t K = rest->size(2), columns = rest->size(3) - 1;
  const at::Tensor pivot = rest->narrow(3, 0, columns).square().sum(2).argmax(2);
  const at::Tensor order = Exchange(columns + 1, 0, pivot);
  *rest = rest->gather(3, order.unsqueeze(2).expand(rest->sizes()));
  *place = place->gather(2, order.narrow(2, 0, columns));
  const at::Tensor top = rest->select(3, 0).abs().argmax(2);
  *rest = rest->gather(2, Exchange(K, 0, top).unsqueeze(3).expand(rest->sizes()));
  const at::Tensor column = rest->narrow(3, 0, 1), first = column.narrow(2, 0, 1);
  const at::Tensor diagonal = -at::copysign(column.square().sum(2, true).sqrt(), first);
  const at::Tensor v = at::cat({first - diagonal, column.narrow(2, 1, K - 1)}, 2);
  const at::Tensor half_square = -(first - diagonal) * diagonal;
  const at::Tensor others = rest->narrow(3, 1, columns);
  const at::Tensor factor = (v * others).sum(2, true) / at::where(diagonal.eq(0), at::ones_like(diagonal), half_square);
  const at::Tensor reflected = others - v * factor;
  const at::Tensor finished = reflected.select(2, 0);  // [columns]
  const at::Tensor values = at::cat({diagonal.select(2, 0), finished.narrow(2, 0, columns - 1)}, 2);
  TriangleRow result;
  result.row = at::zeros({rest->size(0), rest->size(1), n}, rest->options()).scatter(2, *place, values);
  result.residual = finished.narrow(2, columns - 1, 1);
  *rest = reflected.narrow(2, 1, K - 1);
  *place = place->narrow(2, 1, columns - 1);
  return result;
}

// What the equations fix: SafeMap::SolveEquations. Batches of rows have the shape [.., n].
struct Equations {
  at::Tensor fixed;                 // [n]
  std::vector<at::Tensor> normals;  // [n] each; 0 for an equation that is left out
  at::Tensor count;                 // [1] of the others
};

at::Tensor Along(const at::Tensor& a, const at::Tensor& b) { return (a * b).sum(-1, true); }

// J_G: [m, n]; demand: [m], drift + lambda k.
Equations Solve(const at::Tensor& J_G, const at::Tensor& demand) {
  const int64_t members = J_G.size(0), rows = J_G.size(1), n = J_G.size(3);
  Equations solved{at::zeros({members, rows, n}, J_G.options()), {}, at::zeros({members, rows, 1}, J_G.options())};
  for (int64_t i = 0; i < J_G.size(2); ++i) {
    const at::Tensor row = J_G.select(2, i);
    at::Tensor v = row;
    for (int pass = 0; pass < 2; ++pass) {
      for (const at::Tensor& normal : solved.normals) v = v - Along(normal, v) * normal;
    }
    const at::Tensor left = Along(v, v).sqrt();
    at::Tensor skip = left.le(1e-9 * Along(row, row).sqrt()).logical_or(solved.count.ge(static_cast<double>(n)));
    const at::Tensor normal = at::where(skip, at::zeros_like(v), v / at::where(skip, at::ones_like(left), left));
    const at::Tensor missing = demand.narrow(2, i, 1) + Along(row, solved.fixed);
    const at::Tensor size = at::where(skip, at::ones_like(left), Along(row, normal));
    solved.fixed = solved.fixed - at::where(skip, at::zeros_like(v), missing / size * normal);
    solved.count = solved.count + skip.logical_not().to(demand.scalar_type());
    solved.normals.push_back(normal);
  }
  return solved;
}

void Rotate(at::Tensor* a, at::Tensor* b, const at::Tensor& c, const at::Tensor& s) {
  const at::Tensor x = *a, y = *b;
  *a = c * x - s * y;
  *b = s * x + c * y;
}

void Orthogonalise(TriangleRow* a, TriangleRow* b) {
  const at::Tensor xx = a->row.square().sum(2, true), yy = b->row.square().sum(2, true);
  const at::Tensor xy = (a->row * b->row).sum(2, true);
  const at::Tensor turn = xy.abs().gt(1e-17 * xx.sqrt() * yy.sqrt());
  const at::Tensor zeta = (yy - xx) / (2 * at::where(turn, xy, at::ones_like(xy)));
  const at::Tensor tangent =
      at::copysign(at::ones_like(zeta), zeta) / (zeta.abs() + at::hypot(at::ones_like(zeta), zeta));
  const at::Tensor t = at::where(turn, tangent, at::zeros_like(zeta)), c = 1 / at::sqrt(1 + t * t);
  Rotate(&a->row, &b->row, c, c * t);
  Rotate(&a->residual, &b->residual, c, c * t);
}

class JoinedMapTorch : public TorchImpl<JoinedMapKernels> {
 public:
  using TorchImpl::TorchImpl;

  void State(const SafeMapInput& in, const DoubleView& map) override {
    const int64_t q = in.f.cols, n = in.G.cols / q, x = in.x_dot.cols;
    const int64_t known = in.known.cols / JoinedRowSize(static_cast<int>(n)), K = 1 + known - in.equalities;
    const at::Tensor J = Of(in.J), J_q = J.narrow(2, 0, q), records = AsMatrix(Of(in.known), known, n + 2);
    at::Tensor drift = at::clamp_min((J_q * Of(in.f)).sum(2, true), 0);
    if (x > 0) drift = drift + (J.narrow(2, q, x) * Of(in.x_dot)).sum(2, true);
    const at::Tensor inequalities = records.narrow(2, 0, K - 1), equations = records.narrow(2, K - 1, in.equalities);
    drift = at::cat({drift, inequalities.select(3, 1)}, 2);
    const at::Tensor k = at::cat({Of(in.k), inequalities.select(3, 0)}, 2);
    const at::Tensor g = TimesMatrix(J_q, AsMatrix(Of(in.G), q, n)).unsqueeze(2);
    at::Tensor J_G = at::cat({g, inequalities.narrow(3, 2, n)}, 2);
    const Equations solved =
        Solve(equations.narrow(3, 2, n), equations.select(3, 1) + Of(in.gain) * equations.select(3, 0));
    if (in.equalities > 0) drift = drift + Along(J_G, solved.fixed.unsqueeze(2)).squeeze(3);
    for (const at::Tensor& normal : solved.normals) {
      const at::Tensor across = normal.unsqueeze(2);
      J_G = J_G - Along(across, J_G) * across;
    }

    const at::Tensor mu = at::clamp_min(-k, kMinSlack);
    const at::Tensor slope = at::clamp_max(at::expm1(Of(in.slack_beta) * mu), 1e5 - 1);
    const at::Tensor residual = drift + Of(in.gain) * (k + mu);
    at::Tensor rest = at::cat({J_G, residual.unsqueeze(3)}, 3) / slope.unsqueeze(3);
    at::Tensor place = at::arange(n, rest.options().dtype(at::kLong)).expand({map.members, map.rows, n});
    std::vector<TriangleRow> triangle;
    const int64_t rank = std::min(K, n);
    for (int64_t i = 0; i < rank; ++i) triangle.push_back(Reflect(n, &rest, &place));
    const int sweeps = SafeMapSweeps(static_cast<int>(rank));
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (int64_t a = 0; a + 1 < rank; ++a) {
        for (int64_t b = a + 1; b < rank; ++b) Orthogonalise(&triangle[a], &triangle[b]);
      }
    }
    at::Tensor basis = at::eye(n, rest.options()).expand({map.members, map.rows, n, n});
    at::Tensor offset = at::zeros({map.members, map.rows, n}, rest.options());
    at::Tensor log_det = at::full_like(Of(in.k), (n - rank) * std::log1p(kLogDetRegularisation));
    for (const TriangleRow& w : triangle) {
      const at::Tensor t = at::sqrt(1 + w.row.square().sum(2, true));
      offset = offset - w.row / t * (w.residual / t);
      basis = basis - (w.row / t).unsqueeze(3) * (w.row / (1 + t)).unsqueeze(2);
      log_det = log_det + at::log(1 / t + kLogDetRegularisation);
    }
    for (const at::Tensor& normal : solved.normals) {
      basis = basis - normal.unsqueeze(3) * normal.unsqueeze(2);
      offset = offset - Along(normal, offset) * normal;
    }
    log_det = log_det - solved.count * std::log1p(kLogDetRegularisation);
    log_det = at::maximum(log_det, Of(in.target_entropy));
    Of(map).copy_(at::cat({basis.flatten(2), offset, solved.fixed, log_det}, 2));
  }

  void Action(const DoubleView& map, const FloatView& u, const SafeMapOutput& out) override {
    const int64_t n = u.cols;
    const at::Tensor state = Of(map), basis = AsMatrix(state.narrow(2, 0, n * n), n, n);
    const at::Tensor clipped = at::clamp(Of(u).to(at::kDouble), -1, 1);
    const at::Tensor raw = (basis * clipped.unsqueeze(2)).sum(3) + state.narrow(2, n * n, n), size = at::abs(raw);
    const at::Tensor beyond = state.narrow(2, n * n + n, n);
    const at::Tensor fixed = beyond / at::clamp_min(at::amax(at::abs(beyond), 2, true), 1);
    const at::Tensor room = 1 - fixed * at::sign(raw);
    const at::Tensor scale = at::amin(at::where(size.gt(room), room / size, at::ones_like(size)), 2, true);
    Of(out.record).copy_(scale);
    Of(out.action).copy_(fixed + raw * scale);
    Of(out.log_pi).sub_(state.narrow(2, n * n + 2 * n, 1).to(at::kFloat));
  }

  void Gradient(const DoubleView& map, const DoubleView& record, const FloatView& u, const FloatView& d_action,
                const FloatView& d_u) override {
    const int64_t n = u.cols;
    const at::Tensor basis = AsMatrix(Of(map).narrow(2, 0, n * n), n, n), d = Of(d_action).to(at::kDouble);
    const at::Tensor inside = at::abs(Of(u)).le(1);
    Of(d_u).copy_(at::where(inside, Of(record) * (basis * d.unsqueeze(2)).sum(3), at::zeros_like(d)));
  }
};

const TorchImpls::Register<JoinedMapKernels, JoinedMapTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
