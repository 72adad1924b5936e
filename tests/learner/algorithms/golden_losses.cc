// Golden cases of single losses and steps.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "common/safety/risk.h"
#include "learner/algorithms/barrier_kernels.h"
#include "learner/algorithms/cost_kernels.h"
#include "learner/algorithms/delta.h"
#include "learner/algorithms/quantile_kernels.h"
#include "learner/algorithms/safe_layer_kernels.h"
#include "learner/nn/kernels.h"
#include "tests/learner/algorithms/arrays.h"
#include "tests/learner/algorithms/golden.h"
#include "tests/learner/test_device.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom::learner {
namespace {

using ::datacom::testing::LargerOrNan;
using nlohmann::json;

FloatView Upload(Kernels* kernels, const std::vector<float>& values, int rows, int cols) {
  const FloatView view = kernels->NewFloats(1, rows, cols);
  kernels->Upload(values.data(), view);
  return view;
}

std::vector<float> Download(Kernels* kernels, const FloatView& view) {
  std::vector<float> values(static_cast<size_t>(view.rows) * view.cols);
  kernels->Download(view, values.data());
  return values;
}

DoubleView Scalar(Kernels* kernels, double value) {
  const DoubleView view = kernels->NewDoubles(1, 1, 1);
  kernels->Upload(&value, view);
  return view;
}

double Value(Kernels* kernels, const DoubleView& view) {
  double value = 0;
  kernels->Download(view, &value);
  return value;
}

double Largest(const std::vector<float>& values) {
  double largest = 0;
  for (float value : values) largest = std::max(largest, std::abs(static_cast<double>(value)));
  return largest;
}

// Inverse softplus, because the kernels take linear outputs.
std::vector<float> Linear(std::vector<float> values) {
  for (float& value : values) {
    value = static_cast<float>(value > 20 ? value : std::log(std::expm1(static_cast<double>(value))));
  }
  return values;
}

// Our gradients are for linear outputs: the released code's gradients times softplus', computed from the value
// `softplus`.
void CheckGradient(const std::vector<float>& ours, const std::vector<float>& reference,
                   const std::vector<float>* softplus, const std::string& label, GoldenReport* report) {
  report->Check(ours.size() == reference.size(), label + " has another size");
  if (ours.size() != reference.size()) return;
  const double largest = Largest(reference);
  for (size_t r = 0; r < ours.size(); ++r) {
    const double slope = softplus == nullptr ? 1 : -std::expm1(-static_cast<double>((*softplus)[r]));
    const double error = std::abs(ours[r] - slope * reference[r]);
    report->worst_gradient = LargerOrNan(error / (largest + 1e-30), report->worst_gradient);
    report->Check(error <= 1e-4 * largest + 1e-9, label + " of entry " + std::to_string(r) + " is off");
  }
}

}  // namespace

GoldenReport CheckGaussianLoss(const json& cases, const std::string& kind) {
  GoldenReport report;
  const std::unique_ptr<Kernels> kernels = MakeKernels(kind, TestDevice(kind));
  int number = 0;
  for (const json& c : cases) {
    const std::string label = kind + ", case " + std::to_string(number++);
    const bool feasibility = c.contains("pred_log_std");
    const char* spread_name = feasibility ? "pred_log_std" : "pred_std";
    const char* next_name = feasibility ? "next_log_std" : "next_std";
    const std::vector<float> mean = Floats(c.at("pred_mean")), spread = Floats(c.at(spread_name));
    const auto mean_output = [&](const char* name) {
      return feasibility ? Linear(Floats(c.at(name))) : Floats(c.at(name));
    };
    const auto spread_output = [&](const char* name) {
      return feasibility ? Floats(c.at(name)) : Linear(Floats(c.at(name)));
    };
    const int rows = static_cast<int>(mean.size());
    const auto upload = [&](const std::vector<float>& values) { return Upload(kernels.get(), values, rows, 1); };
    const FloatView d_mean = kernels->NewFloats(1, rows, 1), d_spread = kernels->NewFloats(1, rows, 1);
    const DoubleView loss = Scalar(kernels.get(), 0);
    const GaussianTarget target{feasibility ? GaussianHead::kFeasibility : GaussianHead::kCost,
                                upload(mean_output("next_mean")),
                                upload(spread_output(next_name)),
                                upload(Floats(c.at("cost"))),
                                upload(Floats(c.at("absorbing"))),
                                upload(std::vector<float>(rows, 1.0f / static_cast<float>(rows))),
                                c.at("gamma")};
    kernels->Group<CostKernels>()->GaussianLoss(upload(mean_output("pred_mean")), upload(spread_output(spread_name)),
                                                target, d_mean, d_spread, loss);
    const double golden_loss = c.at("loss");
    report.Check(std::abs(Value(kernels.get(), loss) - golden_loss) <= 2e-5 * (1 + std::abs(golden_loss)),
                 label + ": loss is off");
    CheckGradient(Download(kernels.get(), d_mean), Floats(c.at("grad_mean")), feasibility ? &mean : nullptr,
                  label + ": gradient for the mean", &report);
    CheckGradient(Download(kernels.get(), d_spread), Floats(c.at(feasibility ? "grad_log_std" : "grad_std")),
                  feasibility ? nullptr : &spread, label + ": gradient for the spread", &report);
  }
  return report;
}

GoldenReport CheckMultiplier(const json& cases, const std::string& kind) {
  GoldenReport report;
  int number = 0;
  for (const json& c : cases) {
    const std::unique_ptr<Kernels> kernels = MakeKernels(kind, TestDevice(kind));
    const std::string label = kind + ", case " + std::to_string(number++);
    const double limit = DiscountedBudget(c.at("cost_limit"), c.at("horizon"), c.at("gamma"));
    report.Check(std::abs(limit - c.at("cost_constraint").get<double>()) < 1e-9, label + ": limit is off");
    const FloatView state = kernels->NewFloats(1, 3, 1), raw = state.Rows(0, 1), gradient = kernels->NewFloats(1, 1, 1);
    const float start = c.at("steps")[0].at("raw_before");
    kernels->Upload(&start, raw);
    const ColumnRange whole{0, 1};
    const AdamRanges adam{state,
                          gradient,
                          &whole,
                          Scalar(kernels.get(), c.at("lr_beta")),
                          Scalar(kernels.get(), 0),
                          Scalar(kernels.get(), 1),
                          {}};
    const DoubleView mean = Scalar(kernels.get(), 0), price = Scalar(kernels.get(), 0);
    const double damping = 2;
    for (const json& step : c.at("steps")) {
      const std::vector<float> estimate = Floats(step.at("batch_cost_estimate"));
      const double before = Download(kernels.get(), raw)[0];
      kernels->RowMean(Upload(kernels.get(), estimate, static_cast<int>(estimate.size()), 1), mean);
      kernels->Group<CostKernels>()->Multiplier(raw, mean, Scalar(kernels.get(), limit), Scalar(kernels.get(), damping),
                                                price, gradient);
      kernels->Adam(adam);
      const auto close = [&](const char* what, double ours, double golden) {
        report.Check(std::abs(ours - golden) <= 2e-6 * (1 + std::abs(golden)),
                     label + ": " + what + " is " + std::to_string(ours) + ", golden " + std::to_string(golden));
      };
      const double mean_estimate = step.at("batch_cost_estimate_mean");
      close("price", Value(kernels.get(), price), std::log1p(std::exp(before)) - damping * (limit - mean_estimate));
      close("gradient", Download(kernels.get(), gradient)[0], step.at("grad_raw"));
      const double after = Download(kernels.get(), raw)[0];
      close("raw value", after, step.at("raw_after"));
      close("multiplier", std::log1p(std::exp(after)), step.at("beta_after"));
    }
  }
  return report;
}

GoldenReport CheckLinearCostLoss(const json& cases, const std::string& kind) {
  GoldenReport report;
  const std::unique_ptr<Kernels> kernels = MakeKernels(kind, TestDevice(kind));
  int number = 0;
  for (const json& c : cases) {
    const std::string label = kind + ", case " + std::to_string(number++);
    const int rows = static_cast<int>(c.at("g").size()), n = static_cast<int>(c.at("g")[0].size());
    const auto upload = [&](const char* name, int cols) {
      return Upload(kernels.get(), Floats(c.at(name)), rows, cols);
    };
    const FloatView prediction = kernels->NewFloats(1, rows, 1), d_slope = kernels->NewFloats(1, rows, n);
    const DoubleView loss = Scalar(kernels.get(), 0);
    kernels->Group<SafeLayerKernels>()->LinearCostLoss(upload("g", n), upload("action", n), upload("prev_cost", 1),
                                                       upload("cost", 1), prediction, d_slope, loss);
    const double golden_loss = c.at("loss");
    report.Check(std::abs(Value(kernels.get(), loss) - golden_loss) <= 2e-6 * (1 + std::abs(golden_loss)),
                 label + ": loss is off");
    CheckGradient(Download(kernels.get(), d_slope), Floats(c.at("grad_g")), nullptr, label + ": gradient", &report);
  }
  return report;
}

namespace {

// "trunk.0.weight", "trunk.0.bias", "trunk.2.weight", ..: a net's arrays in the block of a layout that holds it alone.
std::vector<float> BlockOf(const ParameterLayout& layout, const json& arrays) {
  std::vector<float> block(layout.size());
  for (size_t i = 0; i < layout.arrays().size(); ++i) {
    const std::string golden = "trunk." + std::to_string(i / 2 * 2) + (i % 2 == 0 ? ".weight" : ".bias");
    const std::vector<float> values = AsStored(arrays.at(golden));
    std::copy(values.begin(), values.end(), block.begin() + layout.arrays()[i].offset);
  }
  return block;
}

std::vector<float> Part(const std::vector<float>& block, const ParameterArray& array) {
  return std::vector<float>(block.begin() + array.offset, block.begin() + array.offset + array.size());
}

}  // namespace

GoldenReport CheckBarrierLoss(const json& golden, const std::string& kind) {
  GoldenReport report;
  const std::unique_ptr<Kernels> kernels = MakeKernels(kind, TestDevice(kind));
  Kernels* const k = kernels.get();
  const json& first = golden.at("clbf_loss")[0];
  const int rows = static_cast<int>(first.at("q").size()), n = static_cast<int>(first.at("u_ref")[0].size()), q = 2 * n;
  const int width = static_cast<int>(golden.at("params").at("trunk.0.bias").size());
  ParameterLayout layout;
  const MlpLayout net = layout.AddMlp("barrier", {q, width, width, 1}, Activation::kRelu, {});
  const int size = static_cast<int>(layout.size());
  const FloatView block = Upload(k, BlockOf(layout, golden.at("params")), 1, size);
  const MlpTape tape = k->NewTape(net, 1, rows), tangent = k->NewTape(net, 1, rows);
  const FloatView slope = k->NewFloats(1, rows, q), d_value = k->NewFloats(1, rows, 1);
  const FloatView d_slope = k->NewFloats(1, rows, q), gradient = k->NewFloats(1, 1, size);
  const FloatView ones = Upload(k, std::vector<float>(rows, 1.0f), rows, 1);
  const ActionBox box{Upload(k, std::vector<float>(n, 1.0f), 1, n), Upload(k, std::vector<float>(n, 0.0f), 1, n)};
  const std::vector<double> defaults{0.01, 100, 100, 1, 1000, 1};
  const DoubleView numbers = k->NewDoubles(1, 1, BarrierInput::kNumbers), loss = Scalar(k, 0);
  k->Upload(defaults.data(), numbers);
  int number = 0;
  for (const json& c : golden.at("clbf_loss")) {
    const std::string label = kind + ", case " + std::to_string(number++);
    const std::vector<float> states = Floats(c.at("q"));
    std::vector<double> f(static_cast<size_t>(rows) * q), G(static_cast<size_t>(rows) * q * n);
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i < n; ++i) f[r * q + i] = states[r * q + n + i], G[(r * q + n + i) * n + i] = 1;
    }
    const DoubleView f_view = k->NewDoubles(1, rows, q), G_view = k->NewDoubles(1, rows, q * n);
    k->Upload(f.data(), f_view), k->Upload(G.data(), G_view);
    const FloatView x = Upload(k, states, rows, q);
    k->Forward(block, net, x, tape);
    k->Adjoint(block, net, ones, tape);
    k->InputGradient(block, net, tape, 0, /*add=*/false, slope);
    k->Group<BarrierKernels>()->BarrierLoss({tape.out, slope, f_view, G_view, Upload(k, Floats(c.at("u_ref")), rows, n),
                                             Upload(k, Floats(c.at("cost")), rows, 1), box, numbers},
                                            d_value, d_slope, loss);
    k->SlopeGradient(block, net, x, d_value, d_slope, tape, tangent, gradient);
    CheckGradient(Download(k, tape.out), Floats(c.at("V")), nullptr, label + ": V", &report);
    CheckGradient(Download(k, slope), Floats(c.at("J")), nullptr, label + ": J", &report);
    const double golden_loss = c.at("loss");
    report.Check(std::abs(Value(k, loss) - golden_loss) <= 1e-5 * (1 + std::abs(golden_loss)), label + ": loss is off");
    const std::vector<float> ours = Download(k, gradient), reference = BlockOf(layout, c.at("grads"));
    for (const ParameterArray& array : layout.arrays()) {
      CheckGradient(Part(ours, array), Part(reference, array), nullptr, label + ": gradient of " + array.name, &report);
    }
  }
  return report;
}

GoldenReport CheckQuantileLoss(const json& cases, const std::string& kind) {
  GoldenReport report;
  const std::unique_ptr<Kernels> kernels = MakeKernels(kind, TestDevice(kind));
  int number = 0;
  for (const json& c : cases) {
    const std::string label = kind + ", case " + std::to_string(number++);
    const int rows = c.at("B"), count = c.at("N");
    // The kernel takes linear outputs. The loss depends on differences only, and softplus is the identity for large
    // values. Shifting all values up keeps ties exact.
    const auto shifted = [&](const char* name) {
      std::vector<float> values = Floats(c.at(name));
      for (float& value : values) value += 64;
      return Upload(kernels.get(), values, static_cast<int>(values.size()), 1);
    };
    const FloatView d_value = kernels->NewFloats(1, rows * count, 1);
    const DoubleView loss = Scalar(kernels.get(), 0);
    const std::vector<float> weights(rows, 1.0f / static_cast<float>(rows));
    kernels->Group<QuantileKernels>()->QuantileLoss(shifted("q"), shifted("target"),
                                                    Upload(kernels.get(), Floats(c.at("tau")), rows, count),
                                                    Upload(kernels.get(), weights, rows, 1), d_value, loss);
    const double golden_loss = c.at("loss");
    report.Check(std::abs(Value(kernels.get(), loss) - golden_loss) <= 2e-5 * (1 + std::abs(golden_loss)),
                 label + ": loss is off");
    CheckGradient(Download(kernels.get(), d_value), Floats(c.at("grad_q")), nullptr, label + ": gradient", &report);
  }
  return report;
}

GoldenReport CheckDelta(const json& golden) {
  GoldenReport report;
  int number = 0;
  for (const json& c : golden.at("cases")) {
    AlgorithmConfig config;
    config.algorithm = "datacom";
    config.members.resize(1);
    v1::Hyper& hyper = config.members[0].hyper;
    hyper.set_init_delta(c.at("init_delta"));
    hyper.set_delta_lr(c.at("lr"));
    hyper.set_cost_budget(c.at("cost_budget"));
    config.learner.set_discount(c.at("gamma"));
    config.horizon = c.at("horizon");
    Delta delta(config);
    const std::string label = "case " + std::to_string(number++);
    report.Check(std::abs(DiscountedBudget(hyper.cost_budget(), config.horizon, config.learner.discount()) -
                          c.at("discounted_budget").get<double>()) < 1e-6,
                 label + ": discounted budget is off");
    for (const json& step : c.at("steps")) {
      const std::vector<float> costs = Floats(step.at("episode_costs"));
      const std::vector<double> cvar = step.at("cvar").get<std::vector<double>>();
      report.Check(std::abs(delta.value(0) - step.at("delta_before").get<double>()) < 1e-5,
                   label + ": delta before is off");
      delta.ApplyEpisode(0, static_cast<int>(costs.size()) - 1, costs.data(), cvar.data());
      report.Check(std::abs(delta.gradient(0) - step.at("grad_raw").get<double>()) < 1e-5, label + ": gradient is off");
      report.Check(std::abs(ArrayAccess::RawOfDelta(delta, 0) - step.at("raw_after").get<double>()) < 1e-5,
                   label + ": raw value is off");
      report.Check(std::abs(delta.value(0) - step.at("delta_after").get<double>()) < 1e-5, label + ": delta is off");
    }
    report.Check(delta.steps(0) == c.at("steps").size(), label + ": steps are miscounted");
  }
  return report;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
