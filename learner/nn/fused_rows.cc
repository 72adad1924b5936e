// Per-row algebra of FusedKernels: policy, risk, safe map, losses and scalars. A few hundred rows an update.
#include <cmath>

#include "learner/nn/barrier_row.h"
#include "learner/nn/fused_kernels.h"
#include "learner/nn/safe_map_row.h"

namespace datacom::learner {
namespace {

constexpr float kHalfLogTwoPi = 0.918938533204672742f;

// NaN passes through.
float Clamp(float x, float low, float high) { return x < low ? low : (x > high ? high : x); }
float NonNegative(float x) { return x < 0 ? 0 : x; }
float Softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }
float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
float SoftplusSlope(float x) { return x > 20 ? 1.0f : Sigmoid(x); }

template <class T>
void MeanOfRows(const View<T>& rows, const DoubleView& mean) {
  for (int m = 0; m < rows.members; ++m) {
    double sum = 0;
    for (int r = 0; r < rows.rows; ++r) sum += rows.at(m, r);
    mean.at(m) = sum / rows.rows;
  }
}

}  // namespace

FloatView FusedKernels::Temporary(int slot, const FloatView& like) {
  std::vector<float>& memory = temporaries_[slot];
  const size_t size = static_cast<size_t>(like.rows) * like.cols;
  if (memory.size() < size) memory.resize(size);
  return {memory.data(), like.members, like.rows, like.cols, /*member_stride=*/0, like.cols};
}

void FusedKernels::SampleAction(const FloatView& mean, const FloatView& log_std, const FloatView& noise,
                                const ActionBox& box, const ActionSample& out) {
  const FloatView value = Temporary(0, mean);
  for (int m = 0; m < mean.members; ++m) {
    for (int r = 0; r < mean.rows; ++r) {
      for (int i = 0; i < mean.cols; ++i) value.at(m, r, i) = Clamp(log_std.at(m, r, i), -20, 2);
    }
    Apply(loops_.exp, value, value, m);
    for (int r = 0; r < mean.rows; ++r) {
      for (int i = 0; i < mean.cols; ++i) {
        out.tanh.at(m, r, i) = mean.at(m, r, i) + value.at(m, r, i) * noise.at(m, r, i);
      }
    }
    Apply(loops_.tanh, out.tanh, out.tanh, m);
    for (int r = 0; r < mean.rows; ++r) {
      for (int i = 0; i < mean.cols; ++i) {
        const float t = out.tanh.at(m, r, i);
        value.at(m, r, i) = 1 - t * t + 1e-6f;
      }
    }
    Apply(loops_.log, value, value, m);
    for (int r = 0; r < mean.rows; ++r) {
      float log_pi = 0;
      for (int i = 0; i < mean.cols; ++i) {
        const float l = Clamp(log_std.at(m, r, i), -20, 2), eps = noise.at(m, r, i);
        out.u.at(m, r, i) = out.tanh.at(m, r, i) * box.half.at(0, 0, i) + box.centre.at(0, 0, i);
        log_pi += -0.5f * eps * eps - l - kHalfLogTwoPi - value.at(m, r, i);
      }
      out.log_pi.at(m, r) = log_pi;
    }
  }
}

void FusedKernels::SampleActionGradient(const FloatView& log_std, const FloatView& noise, const ActionBox& box,
                                        const ActionSample& sample, const FloatView& d_u, const FloatView& log_alpha,
                                        const FloatView& d_mean, const FloatView& d_log_std) {
  for (int m = 0; m < log_std.members; ++m) {
    const float d_log_pi = std::exp(log_alpha.at(m)) / static_cast<float>(log_std.rows);
    Apply(loops_.exp, log_std, d_log_std, m);
    for (int r = 0; r < log_std.rows; ++r) {
      for (int i = 0; i < log_std.cols; ++i) {
        const float l = log_std.at(m, r, i);
        const float t = sample.tanh.at(m, r, i);
        const float slope = 1 - t * t;
        const float d_raw = d_u.at(m, r, i) * box.half.at(0, 0, i) * slope + d_log_pi * 2 * t * slope / (slope + 1e-6f);
        const bool inside = l >= -20 && l <= 2;
        d_mean.at(m, r, i) = d_raw;
        d_log_std.at(m, r, i) = inside ? d_raw * d_log_std.at(m, r, i) * noise.at(m, r, i) - d_log_pi : 0.0f;
      }
    }
  }
}

void FusedKernels::DeterministicAction(const FloatView& raw, const ActionBox& box, const FloatView& action) {
  const FloatView squashed = Temporary(0, raw);
  for (int m = 0; m < raw.members; ++m) {
    Apply(loops_.tanh, raw, squashed, m);
    for (int r = 0; r < raw.rows; ++r) {
      for (int i = 0; i < raw.cols; ++i) {
        action.at(m, r, i) = squashed.at(m, r, i) * box.half.at(0, 0, i) + box.centre.at(0, 0, i);
      }
    }
  }
}

void FusedKernels::ActionInHalfRanges(const FloatView& action, const ActionBox& box, const FloatView& scaled) {
  for (int m = 0; m < action.members; ++m) {
    for (int r = 0; r < action.rows; ++r) {
      for (int i = 0; i < action.cols; ++i) scaled.at(m, r, i) = action.at(m, r, i) / box.half.at(0, 0, i);
    }
  }
}

void FusedKernels::DeterministicActionGradient(const FloatView& action, const ActionBox& box, const FloatView& d_scaled,
                                               const FloatView& d_raw) {
  for (int m = 0; m < action.members; ++m) {
    for (int r = 0; r < action.rows; ++r) {
      for (int i = 0; i < action.cols; ++i) {
        const float t = (action.at(m, r, i) - box.centre.at(0, 0, i)) / box.half.at(0, 0, i);
        d_raw.at(m, r, i) = d_scaled.at(m, r, i) * (1 - t * t);
      }
    }
  }
}

void FusedKernels::SmoothAction(const FloatView& noise, const DoubleView& std, const DoubleView& bound,
                                const ActionBox& box, const FloatView& action) {
  for (int m = 0; m < action.members; ++m) {
    const float scale = static_cast<float>(std.at(m)), limit = static_cast<float>(bound.at(m));
    for (int r = 0; r < action.rows; ++r) {
      for (int i = 0; i < action.cols; ++i) {
        const float half = box.half.at(0, 0, i), centre = box.centre.at(0, 0, i);
        const float moved = action.at(m, r, i) + Clamp(scale * noise.at(m, r, i), -limit, limit);
        action.at(m, r, i) = Clamp(moved, centre - half, centre + half);
      }
    }
  }
}

void FusedKernels::LinearCostLoss(const FloatView& slope, const FloatView& action, const FloatView& previous,
                                  const FloatView& cost, const FloatView& prediction, const FloatView& d_slope,
                                  const DoubleView& loss) {
  for (int m = 0; m < slope.members; ++m) {
    double sum = 0;
    for (int r = 0; r < slope.rows; ++r) {
      float change = 0;
      for (int i = 0; i < slope.cols; ++i) change += slope.at(m, r, i) * action.at(m, r, i);
      prediction.at(m, r) = previous.at(m, r) + change;
      const float error = prediction.at(m, r) - cost.at(m, r);
      sum += static_cast<double>(error) * error;
      for (int i = 0; i < slope.cols; ++i) d_slope.at(m, r, i) = 2 * error / slope.rows * action.at(m, r, i);
    }
    loss.at(m) = sum / slope.rows;
  }
}

void FusedKernels::BarrierLoss(const BarrierInput& in, const FloatView& d_value, const FloatView& d_slope,
                               const DoubleView& loss) {
  using In = BarrierInput;
  const int rows = in.value.rows;
  for (int m = 0; m < in.value.members; ++m) {
    const double* numbers = in.numbers.row(m, 0);
    int unsafe_rows = 0;
    for (int r = 0; r < rows; ++r) unsafe_rows += in.cost.at(m, r) > 0;
    BarrierRow row;
    row.n = in.action.cols, row.q = in.slope.cols;
    row.half = in.box.half.row(0, 0), row.centre = in.box.centre.row(0, 0);
    row.penalty = numbers[In::kPenalty], row.decay = numbers[In::kDecay];
    const double relaxation_share = numbers[In::kRelaxationWeight] / rows;
    double sum = 0;
    for (int r = 0; r < rows; ++r) {
      const bool unsafe = in.cost.at(m, r) > 0;
      const double share =
          unsafe ? numbers[In::kUnsafeWeight] / unsafe_rows : numbers[In::kSafeWeight] / (rows - unsafe_rows);
      const double V = in.value.at(m, r), excess = numbers[In::kMargin] + (unsafe ? -V : V);
      const bool counts = !(excess <= 0);  // a NaN does
      row.V = V, row.slope = in.slope.row(m, r), row.f = in.f.row(m, r), row.G = in.G.row(m, r);
      row.action = in.action.row(m, r);
      for (int d = 0; d < row.q; ++d) d_slope.at(m, r, d) = 0;
      const double relaxation = Relaxation(row, relaxation_share, d_slope.row(m, r));
      sum += (counts ? share * excess : 0) + relaxation_share * relaxation;
      const double labelled = counts ? (unsafe ? -share : share) : 0;
      d_value.at(m, r) = static_cast<float>(labelled + (relaxation > 0 ? relaxation_share * row.decay : 0));
    }
    loss.at(m) = sum;
  }
}

void FusedKernels::GaussianRisk(const FloatView& mean, const FloatView& log_std, const FloatView& mean_gradient,
                                const FloatView& log_std_gradient, const DoubleView& margin, const DoubleView& delta,
                                const DoubleView& k, const DoubleView& J) {
  const FloatView value = Temporary(0, mean), slope = Temporary(1, mean), spread = Temporary(2, mean);
  for (int m = 0; m < mean.members; ++m) {
    const float weight = static_cast<float>(margin.at(m));
    Apply(loops_.softplus, mean, value, m);
    Apply(loops_.sigmoid, mean, slope, m);
    for (int r = 0; r < mean.rows; ++r) spread.at(m, r) = Clamp(log_std.at(m, r), -20, 2);
    Apply(loops_.exp, spread, spread, m);
    for (int r = 0; r < mean.rows; ++r) {
      const float l = log_std.at(m, r), wide = weight * spread.at(m, r);
      k.at(m, r) = static_cast<double>(value.at(m, r) + wide) - delta.at(m);
      const float log_std_slope = l >= -20 && l <= 2 ? wide : 0.0f;
      for (int i = 0; i < J.cols; ++i) {
        J.at(m, r, i) = slope.at(m, r) * mean_gradient.at(m, r, i) + log_std_slope * log_std_gradient.at(m, r, i);
      }
    }
  }
}

void FusedKernels::SafeMap(const SafeMapInput& in, const FloatView& u, const SafeMapOutput& out) {
  SafeMapRow row;
  row.n = u.cols, row.q = in.f.cols, row.x = in.x_dot.cols;
  for (int m = 0; m < u.members; ++m) {
    row.gain = in.gain.at(m), row.slack_beta = in.slack_beta.at(m);
    const double floor = in.target_entropy.at(m);
    for (int r = 0; r < u.rows; ++r) {
      row.k = in.k.at(m, r);
      row.J = in.J.row(m, r), row.f = in.f.row(m, r), row.G = in.G.row(m, r), row.x_dot = in.x_dot.row(m, r);
      double* record = out.record.row(m, r);
      const double log_det = MapRow(row, u.row(m, r), record);
      out.log_pi.at(m, r) -= static_cast<float>(log_det < floor ? floor : log_det);
      for (int i = 0; i < row.n; ++i) out.action.at(m, r, i) = static_cast<float>(record[row.n + 2 + i]);
    }
  }
}

void FusedKernels::SafeMapGradient(const DoubleView& record, const FloatView& u, const FloatView& d_action,
                                   const FloatView& d_u) {
  for (int m = 0; m < u.members; ++m) {
    for (int r = 0; r < u.rows; ++r) {
      MapRowGradient(u.cols, record.row(m, r), u.row(m, r), d_action.row(m, r), d_u.row(m, r));
    }
  }
}

void FusedKernels::GaussianLoss(const FloatView& mean, const FloatView& spread, const GaussianTarget& target,
                                const FloatView& d_mean, const FloatView& d_spread, const DoubleView& loss) {
  const bool feasibility = target.head == GaussianHead::kFeasibility;
  const float gamma = static_cast<float>(target.discount), floor = feasibility ? 1e-4f : 1e-8f;
  const FloatView softplus = Temporary(0, mean), softplus_slope = Temporary(1, mean),
                  next_softplus = Temporary(2, mean);
  const FloatView& read = feasibility ? mean : spread;
  const FloatView& next_read = feasibility ? target.next_mean : target.next_spread;
  for (int m = 0; m < mean.members; ++m) {
    const int rows = target.failure_weight.at(m) > 0 ? mean.rows : target.main_rows;
    Apply(loops_.softplus, read, softplus, m);
    Apply(loops_.sigmoid, read, softplus_slope, m);
    Apply(loops_.softplus, next_read, next_softplus, m);
    double sum = 0;
    for (int r = 0; r < rows; ++r) {
      const float o = mean.at(m, r), s = spread.at(m, r), next_s = target.next_spread.at(m, r);
      const float cost = NonNegative(target.cost.at(m, r));
      const bool ends = target.absorbing.at(m, r) != 0;
      float value, std, next, next_variance, slope, spread_slope;
      if (feasibility) {
        value = softplus.at(m, r), slope = softplus_slope.at(m, r);
        std = spread_slope = std::exp(s);
        next = next_softplus.at(m, r), next_variance = std::exp(2 * next_s);
      } else {
        value = o, slope = 1;
        const float raw = softplus.at(m, r), next_std = next_softplus.at(m, r);
        std = Clamp(raw, 1e-4f, 1e4f), spread_slope = std == raw ? softplus_slope.at(m, r) : 0.0f;
        next = target.next_mean.at(m, r), next_variance = Clamp(next_std * next_std, 1e-8f, 1e8f);
      }
      const float y = ends ? cost : cost + gamma * next;
      const float second = cost * cost + 2 * gamma * cost * next + gamma * gamma * (next_variance + next * next);
      const float variance =
          ends && feasibility ? (cost - value) * (cost - value) : Clamp(second - value * value, floor, 1e8f);
      const float mean_error = value - y, std_error = std - std::sqrt(variance);
      sum += static_cast<double>(mean_error) * mean_error + static_cast<double>(std_error) * std_error;
      d_mean.at(m, r) = 2 * mean_error / rows * slope;
      d_spread.at(m, r) = 2 * std_error * spread_slope / rows;
    }
    for (int r = rows; r < mean.rows; ++r) d_mean.at(m, r) = d_spread.at(m, r) = 0;
    loss.at(m) = sum / rows;
  }
}

void FusedKernels::CostTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next, double discount,
                              const FloatView& y) {
  const float gamma = static_cast<float>(discount);
  for (int m = 0; m < y.members; ++m) {
    for (int r = 0; r < y.rows; ++r) {
      y.at(m, r) = NonNegative(cost.at(m, r)) + gamma * (1 - absorbing.at(m, r)) * next.at(m, r);
    }
  }
}

void FusedKernels::CostRisk(const FloatView& mean, const FloatView& spread, const DoubleView& margin,
                            const FloatView& cvar) {
  for (int m = 0; m < cvar.members; ++m) {
    const float weight = static_cast<float>(margin.at(m));
    for (int r = 0; r < cvar.rows; ++r) cvar.at(m, r) = mean.at(m, r) + weight * Softplus(spread.at(m, r));
  }
}

void FusedKernels::CostRiskGradient(const FloatView& d_cvar, const FloatView& spread, const DoubleView& margin,
                                    const FloatView& d_spread) {
  for (int m = 0; m < d_cvar.members; ++m) {
    const float weight = static_cast<float>(margin.at(m));
    for (int r = 0; r < d_cvar.rows; ++r) {
      d_spread.at(m, r) = d_cvar.at(m, r) * weight * SoftplusSlope(spread.at(m, r));
    }
  }
}

void FusedKernels::Multiplier(const FloatView& raw, const DoubleView& mean_cost, const DoubleView& limit,
                              const DoubleView& damping, const DoubleView& price, const FloatView& gradient) {
  for (int m = 0; m < raw.members; ++m) {
    const double slack = limit.at(m) - mean_cost.at(m);
    price.at(m) = static_cast<double>(Softplus(raw.at(m))) - damping.at(m) * slack;
    gradient.at(m) = static_cast<float>(static_cast<double>(Sigmoid(raw.at(m))) * slack);
  }
}

void FusedKernels::WeightedMean(const FloatView& x, const DoubleView& weight, const FloatView& d_x,
                                const DoubleView& loss) {
  for (int m = 0; m < x.members; ++m) {
    const float share = static_cast<float>(weight.at(m) / x.rows);
    double sum = 0;
    for (int r = 0; r < x.rows; ++r) {
      sum += x.at(m, r);
      d_x.at(m, r) = share;
    }
    loss.at(m) += weight.at(m) * sum / x.rows;
  }
}

void FusedKernels::ActorLoss(const FloatView& q0, const FloatView& q1, const FloatView& log_pi,
                             const FloatView& log_alpha, const FloatView& d_q0, const FloatView& d_q1,
                             const DoubleView& loss, const DoubleView& mean_log_pi) {
  const float share = -1.0f / static_cast<float>(q0.rows);
  for (int m = 0; m < q0.members; ++m) {
    double q_sum = 0, log_pi_sum = 0;
    for (int r = 0; r < q0.rows; ++r) {
      const float a = q0.at(m, r), b = q1.at(m, r);
      const bool first = !(b < a || b != b);
      d_q0.at(m, r) = first ? share : 0;
      d_q1.at(m, r) = first ? 0 : share;
      q_sum += first ? a : b;
      log_pi_sum += log_pi.at(m, r);
    }
    mean_log_pi.at(m) = log_pi_sum / q0.rows;
    loss.at(m) = std::exp(static_cast<double>(log_alpha.at(m))) * mean_log_pi.at(m) - q_sum / q0.rows;
  }
}

void FusedKernels::TemperatureGradient(const DoubleView& mean_log_pi, const DoubleView& target_entropy,
                                       const FloatView& log_alpha, const FloatView& gradient) {
  for (int m = 0; m < log_alpha.members; ++m) {
    gradient.at(m) = static_cast<float>(-std::exp(static_cast<double>(log_alpha.at(m))) *
                                        (mean_log_pi.at(m) + target_entropy.at(m)));
  }
}

void FusedKernels::SoftTarget(const FloatView& reward, const FloatView& absorbing, const FloatView& q0,
                              const FloatView& q1, const FloatView& log_pi, const FloatView& log_alpha, double discount,
                              const FloatView& y) {
  const float gamma = static_cast<float>(discount);
  for (int m = 0; m < q0.members; ++m) {
    const float alpha = std::exp(log_alpha.at(m));
    for (int r = 0; r < q0.rows; ++r) {
      const float a = q0.at(m, r), b = q1.at(m, r);
      const float soft = (b < a || b != b ? b : a) - alpha * log_pi.at(m, r);
      y.at(m, r) = reward.at(m, r) + gamma * (1 - absorbing.at(m, r)) * soft;
    }
  }
}

void FusedKernels::MinTarget(const FloatView& reward, const FloatView& absorbing, const FloatView& q0,
                             const FloatView& q1, double discount, const FloatView& y) {
  const float gamma = static_cast<float>(discount);
  for (int m = 0; m < q0.members; ++m) {
    for (int r = 0; r < q0.rows; ++r) {
      const float a = q0.at(m, r), b = q1.at(m, r);
      y.at(m, r) = reward.at(m, r) + gamma * (1 - absorbing.at(m, r)) * (b < a || b != b ? b : a);
    }
  }
}

void FusedKernels::Floor(const DoubleView& least, const FloatView& y) {
  for (int m = 0; m < y.members; ++m) {
    const float floor = static_cast<float>(least.at(m));
    for (int r = 0; r < y.rows; ++r) y.at(m, r) = y.at(m, r) < floor ? floor : y.at(m, r);
  }
}

void FusedKernels::SquaredLoss(const FloatView& q, const FloatView& y, double weight, const FloatView& d_q,
                               const DoubleView& loss) {
  for (int m = 0; m < q.members; ++m) {
    double sum = 0;
    for (int r = 0; r < q.rows; ++r) {
      const float error = q.at(m, r) - y.at(m, r);
      d_q.at(m, r) = 2 * error / q.rows;
      sum += static_cast<double>(error) * error;
    }
    loss.at(m) += weight * sum / q.rows;
  }
}

void FusedKernels::SetZero(const DoubleView& value) {
  for (int m = 0; m < value.members; ++m) value.at(m) = 0;
}

void FusedKernels::RowMean(const DoubleView& rows, const DoubleView& mean) { MeanOfRows(rows, mean); }
void FusedKernels::RowMean(const FloatView& rows, const DoubleView& mean) { MeanOfRows(rows, mean); }

void FusedKernels::Guard(const DoubleView& value, const DoubleView& active) {
  for (int m = 0; m < value.members; ++m) {
    if (!std::isfinite(value.at(m))) active.at(m) = 0;
  }
}

void FusedKernels::Accumulate(const DoubleView& value, double sign, const DoubleView& active, const DoubleView& sum) {
  for (int m = 0; m < value.members; ++m) {
    if (active.at(m) == 0) continue;
    sum.at(m, 0, 0) += sign * value.at(m);
    sum.at(m, 0, 1) += 1;
  }
}

}  // namespace datacom::learner
