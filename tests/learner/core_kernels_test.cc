// Kernels against finite differences in double, both implementations; the core's safe map against common/safety.
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/safety/safe_map.h"
#include "gtest/gtest.h"
#include "learner/nn/fast_math.h"
#include "learner/nn/kernels.h"
#include "learner/nn/random.h"
#include "learner/nn/safe_map_row.h"

namespace datacom::learner {
namespace {

using Numbers = std::vector<double>;

class EveryKernels : public ::testing::TestWithParam<std::string> {
 protected:
  EveryKernels() : kernels_(GetParam() == "fused" ? MakeFusedKernels() : MakeTensorKernels("cpu")) {}

  FloatView Upload(const Numbers& values, int members, int rows, int cols) {
    const std::vector<float> narrow(values.begin(), values.end());
    const FloatView view = kernels_->NewFloats(members, rows, cols);
    kernels_->Upload(narrow.data(), view);
    return view;
  }
  DoubleView UploadDoubles(const Numbers& values, int members, int rows, int cols) {
    const DoubleView view = kernels_->NewDoubles(members, rows, cols);
    kernels_->Upload(values.data(), view);
    return view;
  }
  Numbers Download(const FloatView& view) {
    std::vector<float> values(static_cast<size_t>(view.members) * view.rows * view.cols);
    kernels_->Download(view, values.data());
    return Numbers(values.begin(), values.end());
  }
  Numbers Download(const DoubleView& view) {
    Numbers values(static_cast<size_t>(view.members) * view.rows * view.cols);
    kernels_->Download(view, values.data());
    return values;
  }

  std::unique_ptr<Kernels> kernels_;
};
INSTANTIATE_TEST_SUITE_P(All, EveryKernels, ::testing::Values("fused", "tensor"),
                         [](const auto& info) { return info.param; });

// float32 values, so that double and float32 evaluations start from the same numbers.
Numbers Random(uint64_t key, size_t count, double size = 1) {
  NamedStream stream(key);
  Numbers values(count);
  for (double& value : values) value = static_cast<float>(stream.Uniform(-size, size));
  return values;
}

Numbers Differences(const std::function<double(const Numbers&)>& f, Numbers at, double step = 1e-5) {
  Numbers gradient;
  for (double& x : at) {
    const double middle = x;
    x = middle + step;
    const double above = f(at);
    x = middle - step;
    gradient.push_back((above - f(at)) / (2 * step));
    x = middle;
  }
  return gradient;
}

void ExpectNear(const Numbers& ours, const Numbers& reference, double relative, const std::string& what) {
  ASSERT_EQ(ours.size(), reference.size()) << what;
  double largest = 1e-12;
  for (double value : reference) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], reference[i], relative * largest) << what << " " << i;
}

// Rows of `hidden`, each followed by the last `repeated` entries of its row of x.
Numbers WithRepeated(const Numbers& hidden, const Numbers& x, int rows, int repeated) {
  const size_t width = hidden.size() / rows, in = x.size() / rows;
  Numbers joined;
  for (int r = 0; r < rows; ++r) {
    joined.insert(joined.end(), hidden.begin() + r * width, hidden.begin() + (r + 1) * width);
    joined.insert(joined.end(), x.begin() + (r + 1) * in - repeated, x.begin() + (r + 1) * in);
  }
  return joined;
}

// A perceptron by its definition: [rows, out] from x [rows, in] and the member's block.
Numbers Literal(const Mlp& net, const Numbers& block, const Numbers& x, int rows) {
  Numbers value = x;
  for (size_t l = 0; l < net.layers.size(); ++l) {
    const MlpLayer& layer = net.layers[l];
    Numbers next(static_cast<size_t>(rows) * layer.out);
    for (int r = 0; r < rows; ++r) {
      for (int o = 0; o < layer.out; ++o) {
        double sum = block[layer.bias + o];
        for (int i = 0; i < layer.in; ++i) sum += value[r * layer.in + i] * block[layer.weight + i * layer.out + o];
        const bool last = l + 1 == net.layers.size();
        const double active = net.hidden == Activation::kRelu ? std::max(sum, 0.0) : 1 / (1 + std::exp(-sum));
        next[r * layer.out + o] = last ? sum : active;
      }
    }
    value = l == 0 && net.repeated > 0 ? WithRepeated(next, x, rows, net.repeated) : next;
  }
  return value;
}

double Inner(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

TEST_P(EveryKernels, PerceptronGradientsMatchFiniteDifferences) {
  for (Activation activation : {Activation::kRelu, Activation::kSigmoid}) {
    for (int out : {1, 3, 11}) {
      const int members = 2, rows = 7, in = 5, repeated = out % 3;  // 1, 0, 2
      ParameterLayout layout;
      layout.AddScalar("before");
      const Mlp net = layout.AddMlp("net", {in, 20, 9, out}, activation, {}, repeated);
      const int size = static_cast<int>(layout.size());
      const Numbers blocks = Random(1, members * size), inputs = Random(2, members * rows * in);
      const Numbers d_outs = Random(3, members * rows * out);
      const FloatView block = Upload(blocks, members, 1, size), x = Upload(inputs, members, rows, in);
      const FloatView d_out = Upload(d_outs, members, rows, out), gradient = kernels_->NewFloats(members, 1, size);
      const FloatView d_x = kernels_->NewFloats(members, rows, in),
                      d_part = Upload(Random(4, members * rows * 2), members, rows, 2);
      const Numbers before = Download(d_part);
      const MlpTape tape = kernels_->NewTape(net, members, rows);
      kernels_->Forward(block, net, x, tape);
      kernels_->Adjoint(block, net, d_out, tape);
      kernels_->InputGradient(block, net, tape, 0, /*add=*/false, d_x);
      kernels_->InputGradient(block, net, tape, 2, /*add=*/true, d_part);
      kernels_->ParameterGradient(net, x, d_out, tape, gradient);
      for (int m = 0; m < members; ++m) {
        const auto part = [m](const Numbers& all, int size) {
          return Numbers(all.begin() + m * size, all.begin() + (m + 1) * size);
        };
        const Numbers p = part(blocks, size), z = part(inputs, rows * in), d = part(d_outs, rows * out);
        ExpectNear(part(Download(tape.out), rows * out), Literal(net, p, z, rows), 1e-5, "output");
        const Numbers by_x = Differences([&](const Numbers& v) { return Inner(d, Literal(net, p, v, rows)); }, z);
        const Numbers by_p = Differences([&](const Numbers& v) { return Inner(d, Literal(net, v, z, rows)); }, p);
        ExpectNear(part(Download(d_x), rows * in), by_x, 2e-5, "input gradient");
        ExpectNear(part(Download(gradient), size), by_p, 2e-5, "parameter gradient");
        for (int r = 0; r < rows; ++r) {
          for (int c = 0; c < 2; ++c) {
            const size_t i = (m * rows + r) * 2 + c;
            EXPECT_NEAR(Download(d_part)[i] - before[i], by_x[r * in + 2 + c], 1e-4);
          }
        }
      }
    }
  }
}

TEST_P(EveryKernels, AdjointsOfAUnitOutputScaleToThoseOfAnObjective) {
  ParameterLayout layout;
  const Mlp net = layout.AddMlp("net", {3, 16, 16, 1}, Activation::kSigmoid, {1.0});
  const int rows = 9, size = static_cast<int>(layout.size());
  const FloatView block = Upload(Random(1, size), 1, 1, size), x = Upload(Random(2, rows * 3), 1, rows, 3);
  const FloatView ones = Upload(Numbers(rows, 1.0), 1, rows, 1), d_out = Upload(Random(3, rows), 1, rows, 1);
  const MlpTape tape = kernels_->NewTape(net, 1, rows);
  kernels_->Forward(block, net, x, tape);
  kernels_->Adjoint(block, net, d_out, tape);
  const Numbers direct = Download(tape.adjoint[0]);
  kernels_->Adjoint(block, net, ones, tape);
  kernels_->ScaleAdjoint(d_out, tape);
  ExpectNear(Download(tape.adjoint[0]), direct, 1e-5, "adjoint");
}

TEST_P(EveryKernels, SampleGradientMatchesFiniteDifferences) {
  const int rows = 6, n = 3;
  const Numbers mean = Random(1, rows * n), log_std = Random(2, rows * n), noise = Random(3, rows * n, 2);
  const Numbers half{1, 2, 0.5}, centre{0, 0.3, -1}, d_u = Random(4, rows * n), log_alpha{-0.5};
  const auto objective = [&](const Numbers& mu, const Numbers& l) {
    double sum = 0;
    for (int i = 0; i < rows * n; ++i) {
      const double t = std::tanh(mu[i] + std::exp(l[i]) * noise[i]);
      const double log_pi =
          -0.5 * noise[i] * noise[i] - l[i] - 0.5 * std::log(2 * std::acos(-1.0)) - std::log(1 - t * t + 1e-6);
      sum += d_u[i] * (t * half[i % n] + centre[i % n]) + std::exp(log_alpha[0]) / rows * log_pi;
    }
    return sum;
  };
  const ActionBox box{Upload(half, 1, 1, n), Upload(centre, 1, 1, n)};
  const ActionSample sample{kernels_->NewFloats(1, rows, n), kernels_->NewFloats(1, rows, n),
                            kernels_->NewFloats(1, rows, 1)};
  const FloatView d_mean = kernels_->NewFloats(1, rows, n), d_log_std = kernels_->NewFloats(1, rows, n);
  const FloatView stds = Upload(log_std, 1, rows, n), noises = Upload(noise, 1, rows, n);
  kernels_->SampleAction(Upload(mean, 1, rows, n), stds, noises, box, sample);
  kernels_->SampleActionGradient(stds, noises, box, sample, Upload(d_u, 1, rows, n), Upload(log_alpha, 1, 1, 1), d_mean,
                                 d_log_std);
  ExpectNear(Download(d_mean), Differences([&](const Numbers& v) { return objective(v, log_std); }, mean), 1e-4,
             "mean");
  ExpectNear(Download(d_log_std), Differences([&](const Numbers& v) { return objective(mean, v); }, log_std), 1e-4,
             "log std");
}

TEST_P(EveryKernels, LogStdOutsideItsRangePassesNoGradient) {
  const FloatView log_std = Upload({-21, 3, 0}, 1, 3, 1), zero = Upload({0, 0, 0}, 1, 3, 1), one = Upload({1}, 1, 1, 1);
  const ActionBox box{one, Upload({0}, 1, 1, 1)};
  const ActionSample sample{kernels_->NewFloats(1, 3, 1), kernels_->NewFloats(1, 3, 1), kernels_->NewFloats(1, 3, 1)};
  const FloatView d_mean = kernels_->NewFloats(1, 3, 1), d_log_std = kernels_->NewFloats(1, 3, 1);
  kernels_->SampleAction(zero, log_std, zero, box, sample);
  kernels_->SampleActionGradient(log_std, zero, box, sample, zero, Upload({0}, 1, 1, 1), d_mean, d_log_std);
  const Numbers d = Download(d_log_std);
  EXPECT_EQ(d[0], 0);
  EXPECT_EQ(d[1], 0);
  EXPECT_NEAR(d[2], -1.0 / 3, 1e-6);
}

struct MapCase {
  int rows = 40, n = 3, q = 6, x = 2;
  Numbers k, J, f, G, x_dot, u;
};

MapCase RandomMap(double size) {
  MapCase c;
  c.k = Random(1, c.rows, size), c.J = Random(2, c.rows * (c.q + c.x), size), c.f = Random(3, c.rows * c.q);
  c.G = Random(4, c.rows * c.q * c.n), c.x_dot = Random(5, c.rows * c.x), c.u = Random(6, c.rows * c.n, 1.2);
  c.k[0] = -1e-6, c.k[1] = -20, c.k[2] = 0;
  for (int i = 0; i < c.q + c.x; ++i) c.J[3 * (c.q + c.x) + i] = 0;  // the action cannot influence row 3
  return c;
}

// Fills action, log_pi (from 0) and record for the case; the views live in `kernels`.
SafeMapOutput RunMap(Kernels* kernels, const MapCase& c, FloatView* u) {
  const auto doubles = [&](const Numbers& values, int rows, int cols) {
    const DoubleView view = kernels->NewDoubles(1, rows, cols);
    kernels->Upload(values.data(), view);
    return view;
  };
  *u = kernels->NewFloats(1, c.rows, c.n);
  const std::vector<float> narrow(c.u.begin(), c.u.end());
  kernels->Upload(narrow.data(), *u);
  const SafeMapInput in{doubles(c.k, c.rows, 1),
                        doubles(c.J, c.rows, c.q + c.x),
                        doubles(c.f, c.rows, c.q),
                        doubles(c.G, c.rows, c.q * c.n),
                        doubles(c.x_dot, c.rows, c.x),
                        doubles({25}, 1, 1),
                        doubles({3}, 1, 1),
                        doubles({-3}, 1, 1)};
  const SafeMapOutput out{kernels->NewFloats(1, c.rows, c.n), kernels->NewFloats(1, c.rows, 1),
                          kernels->NewDoubles(1, c.rows, SafeMapRecordSize(c.n))};
  kernels->SafeMap(in, *u, out);
  return out;
}

TEST_P(EveryKernels, SafeMapEqualsTheActorsMap) {
  for (double size : {0.1, 1.0, 30.0}) {
    const MapCase c = RandomMap(size);
    FloatView u;
    const SafeMapOutput out = RunMap(kernels_.get(), c, &u);
    const Numbers record = Download(out.record), log_pi = Download(out.log_pi);
    SafeMap map(SafeMapDims{1, c.n, c.q, c.x});
    for (int r = 0; r < c.rows; ++r) {
      SafeMapTerms terms;
      terms.k = &c.k[r], terms.J_k = &c.J[r * (c.q + c.x)], terms.J_x = &c.J[r * (c.q + c.x) + c.q];
      terms.f = &c.f[r * c.q], terms.G = &c.G[r * c.q * c.n], terms.x_dot = &c.x_dot[r * c.x];
      map.Set(terms, SafeMapGains{25, 3});
      Numbers action(c.n);
      map.Apply(&c.u[r * c.n], action.data());
      for (int i = 0; i < c.n; ++i) {
        EXPECT_NEAR(record[r * SafeMapRecordSize(c.n) + c.n + 2 + i], action[i], 1e-12)
            << "row " << r << ", size " << size;
      }
      EXPECT_NEAR(-log_pi[r], std::max(map.log_det(), -3.0), 1e-6);
    }
  }
}

TEST_P(EveryKernels, SafeMapGradientMatchesFiniteDifferencesWithScaleHeld) {
  const MapCase c = RandomMap(0.3);
  FloatView u;
  const SafeMapOutput out = RunMap(kernels_.get(), c, &u);
  const Numbers record = Download(out.record), d_action = Random(7, c.rows * c.n);
  const FloatView d_u = kernels_->NewFloats(1, c.rows, c.n);
  kernels_->SafeMapGradient(out.record, u, Upload(d_action, 1, c.rows, c.n), d_u);
  const Numbers ours = Download(d_u);
  const int width = SafeMapRecordSize(c.n);
  for (int r = 0; r < c.rows; ++r) {
    const double scale = record[r * width + c.n + 1];
    // <d_action, scale * a_raw(u)>, with a_raw from the same row at shifted u.
    const auto objective = [&](const Numbers& v) {
      SafeMapRow row;
      row.n = c.n, row.q = c.q, row.x = c.x, row.k = c.k[r], row.J = &c.J[r * (c.q + c.x)], row.f = &c.f[r * c.q];
      row.G = &c.G[r * c.q * c.n], row.x_dot = &c.x_dot[r * c.x], row.gain = 25, row.slack_beta = 3;
      const std::vector<float> shifted(v.begin(), v.end());
      Numbers moved(width);
      MapRow(row, shifted.data(), moved.data());
      double sum = 0;
      for (int i = 0; i < c.n; ++i) sum += d_action[r * c.n + i] * scale * moved[c.n + 2 + i] / moved[c.n + 1];
      return sum;
    };
    const Numbers at(c.u.begin() + r * c.n, c.u.begin() + (r + 1) * c.n);
    const Numbers reference = Differences(objective, at, 1.0 / 1024);  // a power of two: exact in float32
    for (int i = 0; i < c.n; ++i) {
      if (std::abs(std::abs(at[i]) - 1) < 2e-3) continue;  // at the kink
      EXPECT_NEAR(ours[r * c.n + i], reference[i], 2e-3) << "row " << r;
    }
  }
}

// Of TD3 (algorithms.md 12), in a box that is not centred.
TEST_P(EveryKernels, DeterministicActionsFollowTheirDefinition) {
  const int rows = 9, n = 2;
  const Numbers half{0.75, 1.5}, centre{0.25, -1}, raw = Random(1, rows * n, 2), noise = Random(2, rows * n, 4);
  const ActionBox box{Upload(half, 1, 1, n), Upload(centre, 1, 1, n)};
  const FloatView action = kernels_->NewFloats(1, rows, n), scaled = kernels_->NewFloats(1, rows, n);
  kernels_->DeterministicAction(Upload(raw, 1, rows, n), box, action);
  kernels_->ActionInHalfRanges(action, box, scaled);
  const auto literal = [&](const Numbers& at) {
    Numbers result;
    for (size_t i = 0; i < at.size(); ++i) result.push_back(std::tanh(at[i]) + centre[i % n] / half[i % n]);
    return result;
  };
  ExpectNear(Download(scaled), literal(raw), 1e-6, "in half ranges");
  const Numbers d_scaled = Random(3, rows * n);
  const FloatView d_raw = kernels_->NewFloats(1, rows, n);
  kernels_->DeterministicActionGradient(action, box, Upload(d_scaled, 1, rows, n), d_raw);
  ExpectNear(Download(d_raw), Differences([&](const Numbers& at) { return Inner(d_scaled, literal(at)); }, raw), 1e-5,
             "gradient");

  kernels_->SmoothAction(Upload(noise, 1, rows, n), UploadDoubles({0.2}, 1, 1, 1), UploadDoubles({0.5}, 1, 1, 1), box,
                         action);
  const Numbers smooth = Download(action);
  int cut = 0, boxed = 0;
  for (int i = 0; i < rows * n; ++i) {
    const double drawn = std::min(std::max(0.2 * noise[i], -0.5), 0.5), low = centre[i % n] - half[i % n],
                 high = centre[i % n] + half[i % n], moved = std::tanh(raw[i]) * half[i % n] + centre[i % n] + drawn;
    EXPECT_NEAR(smooth[i], std::min(std::max(moved, low), high), 1e-6) << i;
    cut += std::abs(drawn) == 0.5, boxed += moved < low || moved > high;
  }
  EXPECT_GT(cut, 0);
  EXPECT_GT(boxed, 0);
}

TEST_P(EveryKernels, MinTargetTakesTheSmallerCriticAndStopsAtAbsorbingStates) {
  const FloatView y = kernels_->NewFloats(1, 3, 1);
  kernels_->MinTarget(Upload({1, 2, 3}, 1, 3, 1), Upload({0, 0, 1}, 1, 3, 1), Upload({5, -1, 7}, 1, 3, 1),
                      Upload({4, 2, 8}, 1, 3, 1), 0.5, y);
  EXPECT_EQ(Download(y), (Numbers{3, 1.5, 3}));
}

// The barrier's loss by its definition (algorithms.md 13), with a state-dependent G and a box that is not centred.
struct BarrierCase {
  int rows = 30, q = 4, n = 2;
  Numbers f, G, u, cost, half{0.75, 1.5}, centre{0.25, -1}, numbers{0.01, 100, 70, 3, 8, 0.6};

  double Loss(const Numbers& V, const Numbers& J) const {
    double safe = 0, unsafe = 0, relaxed = 0, safe_rows = 0, unsafe_rows = 0;
    for (int r = 0; r < rows; ++r) {
      if (cost[r] > 0) {
        ++unsafe_rows, unsafe += std::max(numbers[0] - V[r], 0.0);
      } else {
        ++safe_rows, safe += std::max(numbers[0] + V[r], 0.0);
      }
      double phi = numbers[5] * V[r];
      for (int d = 0; d < q; ++d) phi += J[r * q + d] * f[r * q + d];
      for (int i = 0; i < n; ++i) {
        double L = 0;
        for (int d = 0; d < q; ++d) L += J[r * q + d] * G[(r * q + d) * n + i];
        const double filtered = u[r * n + i] - numbers[4] / 2 * L;
        phi += L * std::min(std::max(filtered, centre[i] - half[i]), centre[i] + half[i]);
      }
      relaxed += std::max(phi, 0.0);
    }
    const auto mean = [](double sum, double count) { return count > 0 ? sum / count : 0; };
    return numbers[1] * mean(safe, safe_rows) + numbers[2] * mean(unsafe, unsafe_rows) + numbers[3] * relaxed / rows;
  }
};

TEST_P(EveryKernels, BarrierLossFollowsItsDefinitionAndItsGradientsMatchFiniteDifferences) {
  for (const double label : {0.0, 1.0, -1.0}) {  // both labels, or one that no row has
    BarrierCase c;
    c.f = Random(1, c.rows * c.q), c.G = Random(2, c.rows * c.q * c.n), c.u = Random(3, c.rows * c.n);
    c.cost = Random(4, c.rows);
    for (double& cost : c.cost) cost = label == 0 ? cost : label;
    const Numbers V = Random(5, c.rows), J = Random(6, c.rows * c.q, 0.5);
    const FloatView d_V = kernels_->NewFloats(1, c.rows, 1), d_J = kernels_->NewFloats(1, c.rows, c.q);
    const DoubleView loss = kernels_->NewDoubles(1, 1, 1);
    kernels_->BarrierLoss({Upload(V, 1, c.rows, 1),
                           Upload(J, 1, c.rows, c.q),
                           UploadDoubles(c.f, 1, c.rows, c.q),
                           UploadDoubles(c.G, 1, c.rows, c.q * c.n),
                           Upload(c.u, 1, c.rows, c.n),
                           Upload(c.cost, 1, c.rows, 1),
                           {Upload(c.half, 1, 1, c.n), Upload(c.centre, 1, 1, c.n)},
                           UploadDoubles(c.numbers, 1, 1, BarrierInput::kNumbers)},
                          d_V, d_J, loss);
    EXPECT_NEAR(Download(loss)[0], c.Loss(V, J), 1e-5 * c.Loss(V, J));
    ExpectNear(Download(d_V), Differences([&](const Numbers& at) { return c.Loss(at, J); }, V, 1e-7), 1e-5, "for V");
    ExpectNear(Download(d_J), Differences([&](const Numbers& at) { return c.Loss(V, at); }, J, 1e-7), 1e-5, "for J");
  }
}

// `known` records beside the case's own rows; slacks from 1e-5 to wide ones stand in one map.
struct JoinedCase {
  MapCase map;
  int known = 5;
  Numbers records;
};

JoinedCase RandomJoined(int n, int known) {
  JoinedCase c;
  c.map.n = n, c.known = known;
  const int rows = c.map.rows;
  MapCase& m = c.map;
  m.k = Random(11, rows, 2), m.J = Random(12, rows * (m.q + m.x)), m.f = Random(13, rows * m.q);
  m.G = Random(14, rows * m.q * n), m.x_dot = Random(15, rows * m.x), m.u = Random(16, rows * n, 1.2);
  c.records = Random(17, rows * known * (n + 2));
  NamedStream stream(18);
  for (int i = 0; i < rows * known; ++i) {
    double* const record = &c.records[i * (n + 2)];
    const double kind = stream.Uniform();
    record[0] = kind < 0.4 ? -stream.Uniform(0.01, 3) : kind < 0.7 ? -stream.Uniform(0, 1e-4) : stream.Uniform(0, 1);
    const double size = kind > 0.95 ? 0 : std::pow(10, stream.Uniform(-3, 1));
    for (int j = 0; j < n; ++j) record[2 + j] *= size;
  }
  for (int j = 0; j < n; ++j) c.records[2 + j] = c.records[n + 2 + 2 + j];  // two parallel rows in the first state
  return c;
}

struct JoinedRun {
  DoubleView map;
  FloatView u;
  SafeMapOutput out;
};

JoinedRun RunJoined(Kernels* kernels, const JoinedCase& c) {
  const auto doubles = [&](const Numbers& values, int rows, int cols) {
    const DoubleView view = kernels->NewDoubles(1, rows, cols);
    kernels->Upload(values.data(), view);
    return view;
  };
  const MapCase& m = c.map;
  const DoubleView floor = doubles({-3}, 1, 1);
  const SafeMapInput learned{doubles(m.k, m.rows, 1),
                             doubles(m.J, m.rows, m.q + m.x),
                             doubles(m.f, m.rows, m.q),
                             doubles(m.G, m.rows, m.q * m.n),
                             doubles(m.x_dot, m.rows, m.x),
                             doubles({25}, 1, 1),
                             doubles({3}, 1, 1),
                             floor};
  JoinedRun run;
  run.map = kernels->NewDoubles(1, m.rows, JoinedMapSize(m.n));
  run.u = kernels->NewFloats(1, m.rows, m.n);
  const std::vector<float> narrow(m.u.begin(), m.u.end());
  kernels->Upload(narrow.data(), run.u);
  run.out = {kernels->NewFloats(1, m.rows, m.n), kernels->NewFloats(1, m.rows, 1), kernels->NewDoubles(1, m.rows, 1)};
  kernels->JoinMap({learned, doubles(c.records, m.rows, c.known * (m.n + 2))}, run.map);
  kernels->JoinedMap(run.map, floor, run.u, run.out);
  return run;
}

// The fused path runs the actor's code; the tensor path repeats it, and where slacks differ by 1e5 each rounds its own
// way: by 1e-10 of the basis, by more of an offset that the rescale takes back (1e-9 of the action).
TEST_P(EveryKernels, TheJoinedMapEqualsTheActorsMap) {
  const bool fused = GetParam() == "fused";
  for (const int n : {1, 2, 3, 5}) {
    for (const int known : {1, 2, 17}) {
      const JoinedCase c = RandomJoined(n, known);
      const MapCase& m = c.map;
      const JoinedRun run = RunJoined(kernels_.get(), c);
      const Numbers states = Download(run.map), actions = Download(run.out.action), log_pi = Download(run.out.log_pi);
      SafeMap map(SafeMapDims{1 + known, n, m.q, m.x});
      for (int r = 0; r < m.rows; ++r) {
        const double* const J = &m.J[r * (m.q + m.x)];
        map.Set({&m.k[r], J, J + m.q, &m.f[r * m.q], &m.G[r * m.q * n], &m.x_dot[r * m.x]},
                &c.records[r * known * (n + 2)], SafeMapGains{25, 3});
        const double* const state = &states[r * JoinedMapSize(n)];
        const std::string what =
            "row " + std::to_string(r) + ", n " + std::to_string(n) + ", known " + std::to_string(known);
        for (int i = 0; i < n * n; ++i) EXPECT_NEAR(state[i], map.basis()[i], fused ? 1e-12 : 1e-9) << what;
        for (int i = 0; i < n; ++i) {
          const double offset = map.offset()[i];
          EXPECT_NEAR(state[n * n + i], offset, (fused ? 1e-12 : 1e-7) * (1 + std::abs(offset))) << what;
        }
        EXPECT_NEAR(state[n * n + n], map.log_det(), fused ? 1e-12 : 1e-6) << what;
        Numbers action(n);
        map.Apply(&m.u[r * n], action.data());
        for (int i = 0; i < n; ++i) EXPECT_NEAR(actions[r * n + i], action[i], 1e-6) << what;
        EXPECT_NEAR(-log_pi[r], std::max(map.log_det(), -3.0), 1e-6) << what;
      }
    }
  }
}

TEST_P(EveryKernels, TheJoinedMapsGradientMatchesFiniteDifferencesWithScaleHeld) {
  const JoinedCase c = RandomJoined(3, 4);
  const int rows = c.map.rows, n = 3;
  const JoinedRun run = RunJoined(kernels_.get(), c);
  const Numbers d_action = Random(7, rows * n);
  const FloatView d_u = kernels_->NewFloats(1, rows, n);
  kernels_->JoinedMapGradient(run.map, run.out.record, run.u, Upload(d_action, 1, rows, n), d_u);
  const Numbers ours = Download(d_u), states = Download(run.map), scales = Download(run.out.record);
  for (int r = 0; r < rows; ++r) {
    const double* const state = &states[r * JoinedMapSize(n)];
    const auto objective = [&](const Numbers& u) {
      Numbers action(n);
      const double scale = ApplySafeMap(n, state, state + n * n, u.data(), action.data());
      double sum = 0;
      for (int i = 0; i < n; ++i) sum += d_action[r * n + i] * scales[r] * action[i] / scale;
      return sum;
    };
    const Numbers at(c.map.u.begin() + r * n, c.map.u.begin() + (r + 1) * n);
    const Numbers reference = Differences(objective, at);
    for (int i = 0; i < n; ++i) {
      if (std::abs(std::abs(at[i]) - 1) < 1e-4) continue;  // at the kink
      EXPECT_NEAR(ours[r * n + i], reference[i], 1e-4) << "row " << r;
    }
  }
}

TEST_P(EveryKernels, ANaNReachesTheJoinedActionOfItsRowAlone) {
  JoinedCase c = RandomJoined(3, 4);
  c.records[2 * 4 * 5] = std::nan("");  // k of row 2's first record
  const Numbers actions = Download(RunJoined(kernels_.get(), c).out.action);
  for (int i = 0; i < c.map.rows * 3; ++i) EXPECT_EQ(std::isnan(actions[i]), i / 3 == 2) << "row " << i / 3;
}

TEST_P(EveryKernels, RiskIsMeanPlusMarginTimesDeviation) {
  const Numbers mean{-1, 0.5, 25, 2}, log_std{-1, 0, 1, 5};
  const FloatView gradient_mean = Upload({1, 1, 1, 1}, 1, 4, 1), gradient_log_std = Upload({2, 2, 2, 2}, 1, 4, 1);
  const DoubleView k = kernels_->NewDoubles(1, 4, 1), J = kernels_->NewDoubles(1, 4, 1);
  kernels_->GaussianRisk(Upload(mean, 1, 4, 1), Upload(log_std, 1, 4, 1), gradient_mean, gradient_log_std,
                         UploadDoubles({0.195}, 1, 1, 1), UploadDoubles({0.7}, 1, 1, 1), k, J);
  for (int r = 0; r < 4; ++r) {
    const double spread = 0.195 * std::exp(std::min(log_std[r], 2.0));
    EXPECT_NEAR(Download(k)[r], std::log1p(std::exp(mean[r])) + spread - 0.7, 1e-5);
    const double slope = log_std[r] <= 2 ? 2 * spread : 0;  // clamped: no gradient
    EXPECT_NEAR(Download(J)[r], 1 / (1 + std::exp(-mean[r])) + slope, 1e-5);
  }
}

TEST_P(EveryKernels, AdamFollowsItsDefinitionAndSparesTheInactive) {
  const int n = 21;
  const Numbers start = Random(1, 2 * n), gradient = Random(2, 2 * n);
  const AdamRange range{Upload(start, 2, 1, n),
                        Upload(gradient, 2, 1, n),
                        kernels_->NewFloats(2, 1, n),
                        kernels_->NewFloats(2, 1, n),
                        UploadDoubles({0.01, 0.01}, 2, 1, 1),
                        kernels_->NewDoubles(2, 1, 1),
                        UploadDoubles({1, 0}, 2, 1, 1)};
  for (int step = 0; step < 3; ++step) kernels_->Adam(range);
  const Numbers after = Download(range.parameters);
  for (int i = 0; i < n; ++i) {
    // With a constant gradient every bias-corrected step is lr * sign (up to eps).
    EXPECT_NEAR(after[i], start[i] - 3 * 0.01 * (gradient[i] > 0 ? 1 : -1), 1e-5);
    EXPECT_EQ(after[n + i], start[n + i]);
  }
  EXPECT_EQ(Download(range.steps), (Numbers{3, 0}));
}

TEST_P(EveryKernels, AdamRefusesAGradientThatIsNotFinite) {
  for (double bad : {std::nan(""), HUGE_VAL}) {
    Numbers gradient = Random(2, 40);
    gradient[17] = bad;
    const Numbers start = Random(1, 40);
    const AdamRange range{Upload(start, 1, 1, 40),       Upload(gradient, 1, 1, 40),     kernels_->NewFloats(1, 1, 40),
                          kernels_->NewFloats(1, 1, 40), UploadDoubles({0.01}, 1, 1, 1), kernels_->NewDoubles(1, 1, 1),
                          UploadDoubles({1}, 1, 1, 1)};
    kernels_->Adam(range);
    EXPECT_EQ(Download(range.parameters), start);
    EXPECT_EQ(Download(range.active), Numbers{0});
    EXPECT_EQ(Download(range.steps), Numbers{0});
  }
}

TEST_P(EveryKernels, LevelFeaturesAreCosinesOfWholeMultiples) {
  const Numbers levels{0, 1, 0.5, 0.25f, 0.1f, 1e-7f, 0.99999994f, 0.7310586f};
  const int members = 2, rows = 2, count = 2, features = 64;
  const FloatView out = kernels_->NewFloats(members, rows * count, features);
  kernels_->LevelFeatures(Upload(levels, members, rows, count), out);
  const Numbers values = Download(out);
  const double tolerance = GetParam() == "fused" ? 3e-7 : 3e-5;  // the tensors round the angle first
  for (size_t i = 0; i < values.size(); ++i) {
    const double level = static_cast<float>(levels[i / features]);
    EXPECT_NEAR(values[i], std::cos(std::acos(-1.0) * static_cast<double>(i % features) * level), tolerance)
        << "level " << level << " multiple " << i % features;
  }
}

TEST(FastMath, StaysWithinTwoUlpOfTheExactExponential) {
  double worst = 0;
  for (double x = -86; x < 88; x += 0.000977) {
    const float at = static_cast<float>(x), value = FastExp(at);
    const double exact = std::exp(static_cast<double>(at));
    worst = std::max(worst, std::abs(value - exact) / exact);
  }
  EXPECT_LT(worst, 2 * 1.1920929e-7);
  EXPECT_EQ(FastExp(0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(FastExp(std::nanf(""))));
  EXPECT_TRUE(std::isfinite(FastExp(1e30f)));
  EXPECT_GE(FastExp(-1e30f), 0);
}

}  // namespace
}  // namespace datacom::learner
