// Per-row algebra of TensorKernels. Shapes are [members, rows, ...]; scalars of a member broadcast.
#include <cmath>

#include "learner/nn/safe_map_row.h"
#include "learner/nn/tensor_kernels.h"

namespace datacom::learner {
namespace {

constexpr double kHalfLogTwoPi = 0.918938533204672742;
constexpr double kPi = 3.14159265358979323846;

// [members, rows, last] seen as [members, rows, a, b].
at::Tensor AsMatrix(const at::Tensor& x, int64_t a, int64_t b) { return x.unflatten(2, at::IntArrayRef({a, b})); }

at::Tensor MeanRows(const at::Tensor& x) { return x.to(at::kDouble).mean(1, /*keepdim=*/true); }

}  // namespace

void TensorKernels::SampleAction(const FloatView& mean, const FloatView& log_std, const FloatView& noise,
                                 const ActionBox& box, const ActionSample& out) {
  const at::Tensor l = at::clamp(Of(log_std), -20, 2), eps = Of(noise);
  const at::Tensor t = at::tanh(Of(mean) + at::exp(l) * eps);
  Of(out.tanh).copy_(t);
  Of(out.u).copy_(t * Of(box.half) + Of(box.centre));
  const at::Tensor terms = -0.5 * eps * eps - l - kHalfLogTwoPi - at::log(1 - t * t + 1e-6);
  Of(out.log_pi).copy_(terms.sum(2, /*keepdim=*/true));
}

void TensorKernels::SampleActionGradient(const FloatView& log_std, const FloatView& noise, const ActionBox& box,
                                         const ActionSample& sample, const FloatView& d_u, const FloatView& log_alpha,
                                         const FloatView& d_mean, const FloatView& d_log_std) {
  const at::Tensor l = Of(log_std), t = Of(sample.tanh), slope = 1 - t * t;
  const at::Tensor d_log_pi = at::exp(Of(log_alpha)) / log_std.rows;
  const at::Tensor d_raw = Of(d_u) * Of(box.half) * slope + d_log_pi * 2 * t * slope / (slope + 1e-6);
  const at::Tensor inside = l.ge(-20).logical_and(l.le(2));
  Of(d_mean).copy_(d_raw);
  Of(d_log_std).copy_(at::where(inside, d_raw * at::exp(l) * Of(noise) - d_log_pi, at::zeros_like(l)));
}

void TensorKernels::DeterministicAction(const FloatView& raw, const ActionBox& box, const FloatView& action) {
  Of(action).copy_(at::tanh(Of(raw)) * Of(box.half) + Of(box.centre));
}

void TensorKernels::ActionInHalfRanges(const FloatView& action, const ActionBox& box, const FloatView& scaled) {
  Of(scaled).copy_(Of(action) / Of(box.half));
}

void TensorKernels::DeterministicActionGradient(const FloatView& action, const ActionBox& box,
                                                const FloatView& d_scaled, const FloatView& d_raw) {
  const at::Tensor t = (Of(action) - Of(box.centre)) / Of(box.half);
  Of(d_raw).copy_(Of(d_scaled) * (1 - t * t));
}

void TensorKernels::SmoothAction(const FloatView& noise, const DoubleView& std, const DoubleView& bound,
                                 const ActionBox& box, const FloatView& action) {
  const at::Tensor limit = Of(bound).to(at::kFloat), half = Of(box.half), centre = Of(box.centre);
  const at::Tensor drawn = Of(std).to(at::kFloat) * Of(noise);
  const at::Tensor moved = Of(action) + at::maximum(at::minimum(drawn, limit), -limit);
  Of(action).copy_(at::maximum(at::minimum(moved, centre + half), centre - half));
}

void TensorKernels::LinearCostLoss(const FloatView& slope, const FloatView& action, const FloatView& previous,
                                   const FloatView& cost, const FloatView& prediction, const FloatView& d_slope,
                                   const DoubleView& loss) {
  const at::Tensor a = Of(action), predicted = Of(previous) + (Of(slope) * a).sum(2, /*keepdim=*/true);
  const at::Tensor error = predicted - Of(cost);
  Of(prediction).copy_(predicted);
  Of(d_slope).copy_(2 * error / slope.rows * a);
  Of(loss).copy_(MeanRows(at::square(error.to(at::kDouble))));
}

// barrier_row.h on all rows at once.
void TensorKernels::BarrierLoss(const BarrierInput& in, const FloatView& d_value, const FloatView& d_slope,
                                const DoubleView& loss) {
  using In = BarrierInput;
  const int64_t n = in.action.cols, q = in.slope.cols, rows = in.value.rows;
  const at::Tensor numbers = Of(in.numbers);
  const auto number = [&numbers](int i) { return numbers.narrow(2, i, 1); };
  const at::Tensor V = Of(in.value).to(at::kDouble), J = Of(in.slope).to(at::kDouble), f = Of(in.f);
  const at::Tensor G = AsMatrix(Of(in.G), q, n), half = Of(in.box.half).to(at::kDouble);
  const at::Tensor low = Of(in.box.centre) - half, high = Of(in.box.centre) + half;
  const at::Tensor unsafe = Of(in.cost).gt(0).to(at::kDouble), safe = 1 - unsafe;
  const auto share = [&](int weight, const at::Tensor& group) {
    return number(weight) * group / at::clamp_min(group.sum(1, /*keepdim=*/true), 1);
  };
  const at::Tensor safe_share = share(In::kSafeWeight, safe), unsafe_share = share(In::kUnsafeWeight, unsafe);
  const at::Tensor safe_excess = at::relu(number(In::kMargin) + V), unsafe_excess = at::relu(number(In::kMargin) - V);

  const at::Tensor L = at::matmul(J.unsqueeze(2), G).squeeze(2), step = number(In::kPenalty) / 2 * L;
  const at::Tensor wanted = Of(in.action) - step, action = at::maximum(at::minimum(wanted, high), low);
  const at::Tensor phi = number(In::kDecay) * V + (J * f).sum(2, /*keepdim=*/true) + (L * action).sum(2, true);
  const at::Tensor relaxed = (number(In::kRelaxationWeight) / rows) * phi.gt(0).to(at::kDouble);
  const at::Tensor inside = action.eq(wanted).to(at::kDouble);
  const at::Tensor d_L = action - inside * step;
  const at::Tensor d_J = relaxed * (f + at::matmul(G, d_L.unsqueeze(3)).squeeze(3));
  Of(d_slope).copy_(d_J);
  Of(d_value).copy_(safe_share * safe_excess.gt(0) - unsafe_share * unsafe_excess.gt(0) + relaxed * number(In::kDecay));
  const at::Tensor relaxation = at::relu(phi) * (number(In::kRelaxationWeight) / rows);
  Of(loss).copy_((safe_share * safe_excess + unsafe_share * unsafe_excess + relaxation).sum(1, /*keepdim=*/true));
}

void TensorKernels::GaussianRisk(const FloatView& mean, const FloatView& log_std, const FloatView& mean_gradient,
                                 const FloatView& log_std_gradient, const DoubleView& margin, const DoubleView& delta,
                                 const DoubleView& k, const DoubleView& J) {
  const at::Tensor o = Of(mean), l = Of(log_std);
  const at::Tensor spread = Of(margin).to(at::kFloat) * at::exp(at::clamp(l, -20, 2));
  Of(k).copy_((at::softplus(o) + spread).to(at::kDouble) - Of(delta));
  const at::Tensor log_std_slope = spread * l.ge(-20).logical_and(l.le(2)).to(at::kFloat);
  Of(J).copy_(at::sigmoid(o) * Of(mean_gradient) + log_std_slope * Of(log_std_gradient));
}

// safe_map_row.h on all rows at once.
void TensorKernels::SafeMap(const SafeMapInput& in, const FloatView& u, const SafeMapOutput& out) {
  const int64_t n = u.cols, q = in.f.cols, x = in.x_dot.cols;
  const at::Tensor k = Of(in.k), J = Of(in.J), J_q = J.narrow(2, 0, q);
  const at::Tensor mu = at::clamp_min(-k, 1e-5);
  const at::Tensor slack = at::clamp_max(at::expm1(Of(in.slack_beta) * mu), 1e5 - 1);
  const at::Tensor g = at::matmul(J_q.unsqueeze(2), AsMatrix(Of(in.G), q, n)).squeeze(2);
  const at::Tensor drift = at::clamp_min((J_q * Of(in.f)).sum(2, true), 0);
  at::Tensor residual = drift + Of(in.gain) * (k + mu);
  if (x > 0) residual = residual + (J.narrow(2, q, x) * Of(in.x_dot)).sum(2, true);
  const at::Tensor norm = at::sqrt((g * g).sum(2, true) + slack * slack);
  const at::Tensor j = g / norm, j_s = slack / norm, share = 1 / (1 + j_s);
  const at::Tensor clipped = at::clamp(Of(u).to(at::kDouble), -1, 1);
  const at::Tensor raw = clipped - j * ((j * clipped).sum(2, true) * share + residual / norm);
  const at::Tensor scale = 1 / at::clamp_min(at::amax(at::abs(raw), 2, true), 1);
  const at::Tensor action = raw * scale;
  Of(out.record).copy_(at::cat({j, share, scale, action}, 2));
  Of(out.action).copy_(action);
  const at::Tensor log_det = (n - 1) * std::log1p(kLogDetRegularisation) + at::log(j_s + kLogDetRegularisation);
  Of(out.log_pi).sub_(at::maximum(log_det, Of(in.target_entropy)).to(at::kFloat));
}

void TensorKernels::SafeMapGradient(const DoubleView& record, const FloatView& u, const FloatView& d_action,
                                    const FloatView& d_u) {
  const int64_t n = u.cols;
  const at::Tensor r = Of(record), j = r.narrow(2, 0, n), d = Of(d_action).to(at::kDouble);
  const at::Tensor along = (j * d).sum(2, true) * r.narrow(2, n, 1);
  const at::Tensor inside = at::abs(Of(u)).le(1);
  Of(d_u).copy_(at::where(inside, r.narrow(2, n + 1, 1) * (d - j * along), at::zeros_like(d)));
}

void TensorKernels::GaussianLoss(const FloatView& mean, const FloatView& spread, const GaussianTarget& target,
                                 const FloatView& d_mean, const FloatView& d_spread, const DoubleView& loss) {
  const bool feasibility = target.head == GaussianHead::kFeasibility;
  const double gamma = target.discount, floor = feasibility ? 1e-4 : 1e-8;
  const at::Tensor o = Of(mean), s = Of(spread), next_s = Of(target.next_spread), zero = at::zeros_like(o);
  const at::Tensor cost = at::clamp_min(Of(target.cost), 0), ends = Of(target.absorbing).ne(0);
  at::Tensor value = o, slope = at::ones_like(o), next = Of(target.next_mean), std, spread_slope, next_variance;
  if (feasibility) {
    value = at::softplus(o), slope = at::sigmoid(o);
    std = spread_slope = at::exp(s);
    next = at::softplus(next), next_variance = at::exp(2 * next_s);
  } else {
    const at::Tensor raw = at::softplus(s);
    std = at::clamp(raw, 1e-4, 1e4), spread_slope = at::where(std.eq(raw), at::sigmoid(s), zero);
    next_variance = at::clamp(at::square(at::softplus(next_s)), 1e-8, 1e8);
  }
  const at::Tensor y = at::where(ends, cost, cost + gamma * next);
  const at::Tensor second = cost * cost + 2 * gamma * cost * next + gamma * gamma * (next_variance + next * next);
  at::Tensor variance = at::clamp(second - value * value, floor, 1e8);
  if (feasibility) variance = at::where(ends, (cost - value) * (cost - value), variance);
  const at::Tensor mean_error = value - y, std_error = std - at::sqrt(variance);
  const at::Tensor present = Of(target.failure_weight).gt(0);  // [members, 1, 1]
  const int64_t failures = mean.rows - target.main_rows;
  const at::Tensor count = target.main_rows + failures * present.to(at::kDouble);
  const at::Tensor main = at::arange(mean.rows, o.options()).lt(target.main_rows).view({1, mean.rows, 1});
  const at::Tensor used = main.logical_or(present);
  const at::Tensor scale = (2 / count).to(at::kFloat);
  Of(d_mean).copy_(at::where(used, scale * mean_error * slope, zero));
  Of(d_spread).copy_(at::where(used, scale * std_error * spread_slope, zero));
  const at::Tensor squares = at::where(used, mean_error * mean_error + std_error * std_error, zero);
  Of(loss).copy_(squares.to(at::kDouble).sum(1, true) / count);
}

void TensorKernels::LevelFeatures(const FloatView& level, const FloatView& features) {
  const at::Tensor tau = Of(level).reshape({level.members, features.rows, 1});
  const at::Tensor i = at::arange(features.cols, tau.options()).view({1, 1, features.cols});
  Of(features).copy_(at::cos(i * kPi * tau));
}

void TensorKernels::QuantileProduct(const FloatView& base, const FloatView& embedding, const FloatView& product) {
  const at::Tensor e = Of(embedding);
  e.sigmoid_();
  const at::Tensor h = at::relu(Of(base)).repeat_interleave(product.rows / base.rows, 1);
  Of(product).copy_(h * e);
}

void TensorKernels::QuantileProductGradient(const FloatView& base, const FloatView& embedding,
                                            const FloatView& d_product, const FloatView& d_base) {
  const int64_t repeat = d_product.rows / base.rows;
  const at::Tensor h = at::relu(Of(base)).repeat_interleave(repeat, 1), e = Of(embedding), d = Of(d_product);
  const at::Tensor open = at::where(h.gt(0), d * e, at::zeros_like(d));
  Of(d_base).copy_(open.view({d_base.members, d_base.rows, repeat, d_base.cols}).sum(2));
  d.copy_(open * h * (1 - e));
}

void TensorKernels::QuantileRisk(const FloatView& value, const FloatView& gradient, const DoubleView& delta,
                                 const DoubleView& k, const DoubleView& J) {
  const at::Tensor o = Of(value);
  Of(k).copy_(at::softplus(o).to(at::kDouble) - Of(delta));
  Of(J).copy_(at::sigmoid(o) * Of(gradient));
}

void TensorKernels::QuantileTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next,
                                   double discount, const FloatView& y) {
  const int64_t repeat = y.rows / cost.rows;
  const at::Tensor c = at::clamp_min(Of(cost), 0).repeat_interleave(repeat, 1);
  const at::Tensor ends = Of(absorbing).ne(0).repeat_interleave(repeat, 1);
  Of(y).copy_(at::where(ends, c, c + discount * at::softplus(Of(next))));
}

void TensorKernels::QuantileLoss(const FloatView& value, const FloatView& y, const FloatView& level,
                                 const DoubleView& failure_weight, int main_rows, const FloatView& d_value,
                                 const DoubleView& loss) {
  const int64_t members = value.members, rows = level.rows, count = level.cols;
  const at::Tensor o = Of(value), q = at::softplus(o).view({members, rows, count, 1});
  const at::Tensor tau = Of(level).unsqueeze(3), targets = Of(y).view({members, rows, 1, y.rows / rows});
  const at::Tensor e = targets - q, size = at::abs(e);
  const at::Tensor weight = at::where(e.lt(0), 1 - tau, tau.expand_as(e));
  const at::Tensor huber = at::where(size.lt(1), 0.5 * e * e, size - 0.5);
  const at::Tensor present = Of(failure_weight).gt(0);  // [members, 1, 1]
  const at::Tensor main = at::arange(rows, o.options()).lt(main_rows).view({1, rows, 1});
  const at::Tensor used = main.logical_or(present);  // [members, rows, 1]
  const at::Tensor entries = (main_rows + (rows - main_rows) * present.to(at::kDouble)) * count;
  const at::Tensor per_quantile = (weight * huber).sum(3), slope = -(weight * at::clamp(e, -1, 1)).sum(3);
  const at::Tensor zero = at::zeros_like(slope);
  const at::Tensor d = at::where(used, slope * (1 / entries).to(at::kFloat), zero).view({members, rows * count, 1});
  Of(d_value).copy_(d * at::sigmoid(o));
  const at::Tensor sum = at::where(used, per_quantile, zero).to(at::kDouble).sum(at::IntArrayRef({1, 2}), true);
  Of(loss).copy_(sum / entries);
}

void TensorKernels::CostTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next,
                               double discount, const FloatView& y) {
  Of(y).copy_(at::clamp_min(Of(cost), 0) + discount * (1 - Of(absorbing)) * Of(next));
}

void TensorKernels::CostRisk(const FloatView& mean, const FloatView& spread, const DoubleView& margin,
                             const FloatView& cvar) {
  Of(cvar).copy_(Of(mean) + Of(margin).to(at::kFloat) * at::softplus(Of(spread)));
}

void TensorKernels::CostRiskGradient(const FloatView& d_cvar, const FloatView& spread, const DoubleView& margin,
                                     const FloatView& d_spread) {
  Of(d_spread).copy_(Of(d_cvar) * Of(margin).to(at::kFloat) * at::sigmoid(Of(spread)));
}

void TensorKernels::Multiplier(const FloatView& raw, const DoubleView& mean_cost, const DoubleView& limit,
                               const DoubleView& damping, const DoubleView& price, const FloatView& gradient) {
  const at::Tensor slack = Of(limit) - Of(mean_cost);
  Of(price).copy_(at::softplus(Of(raw)).to(at::kDouble) - Of(damping) * slack);
  Of(gradient).copy_(at::sigmoid(Of(raw)).to(at::kDouble) * slack);
}

void TensorKernels::WeightedMean(const FloatView& x, const DoubleView& weight, const FloatView& d_x,
                                 const DoubleView& loss) {
  Of(d_x).copy_((Of(weight) / x.rows).expand({x.members, x.rows, 1}));
  Of(loss).add_(Of(weight) * MeanRows(Of(x)));
}

void TensorKernels::ActorLoss(const FloatView& q0, const FloatView& q1, const FloatView& log_pi,
                              const FloatView& log_alpha, const FloatView& d_q0, const FloatView& d_q1,
                              const DoubleView& loss, const DoubleView& mean_log_pi) {
  const at::Tensor a = Of(q0), b = Of(q1);
  const at::Tensor second = b.lt(a).logical_or(at::isnan(b)).to(at::kFloat);
  Of(d_q0).copy_((second - 1) / q0.rows);
  Of(d_q1).copy_(-second / q0.rows);
  const at::Tensor mean = MeanRows(Of(log_pi));
  Of(mean_log_pi).copy_(mean);
  Of(loss).copy_(at::exp(Of(log_alpha).to(at::kDouble)) * mean - MeanRows(at::minimum(a, b)));
}

void TensorKernels::TemperatureGradient(const DoubleView& mean_log_pi, const DoubleView& target_entropy,
                                        const FloatView& log_alpha, const FloatView& gradient) {
  Of(gradient).copy_(-at::exp(Of(log_alpha).to(at::kDouble)) * (Of(mean_log_pi) + Of(target_entropy)));
}

void TensorKernels::SoftTarget(const FloatView& reward, const FloatView& absorbing, const FloatView& q0,
                               const FloatView& q1, const FloatView& log_pi, const FloatView& log_alpha,
                               double discount, const FloatView& y) {
  const at::Tensor soft = at::minimum(Of(q0), Of(q1)) - at::exp(Of(log_alpha)) * Of(log_pi);
  Of(y).copy_(Of(reward) + discount * (1 - Of(absorbing)) * soft);
}

void TensorKernels::MinTarget(const FloatView& reward, const FloatView& absorbing, const FloatView& q0,
                              const FloatView& q1, double discount, const FloatView& y) {
  Of(y).copy_(Of(reward) + discount * (1 - Of(absorbing)) * at::minimum(Of(q0), Of(q1)));
}

void TensorKernels::Floor(const DoubleView& least, const FloatView& y) {
  Of(y).copy_(at::maximum(Of(y), Of(least).to(at::kFloat)));
}

void TensorKernels::SquaredLoss(const FloatView& q, const FloatView& y, double weight, const FloatView& d_q,
                                const DoubleView& loss) {
  const at::Tensor error = Of(q) - Of(y);
  Of(d_q).copy_(2 * error / q.rows);
  Of(loss).add_(weight * MeanRows(error * error));
}

void TensorKernels::SetZero(const DoubleView& value) { Of(value).zero_(); }

void TensorKernels::RowMean(const DoubleView& rows, const DoubleView& mean) { Of(mean).copy_(MeanRows(Of(rows))); }
void TensorKernels::RowMean(const FloatView& rows, const DoubleView& mean) { Of(mean).copy_(MeanRows(Of(rows))); }

void TensorKernels::Guard(const DoubleView& value, const DoubleView& active) {
  Of(active).mul_(at::isfinite(Of(value)));
}

void TensorKernels::Accumulate(const DoubleView& value, double sign, const DoubleView& active, const DoubleView& sum) {
  const at::Tensor on = Of(active).gt(0), total = Of(sum);
  const at::Tensor added = at::cat({sign * Of(value), at::ones_like(Of(value))}, 2);
  total.copy_(at::where(on, total + added, total));
}

}  // namespace datacom::learner
