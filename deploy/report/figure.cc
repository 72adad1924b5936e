#include "deploy/report/figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/standard_output.h"
#include "common/config/algorithms.h"
#include "deploy/report/statistics.h"

namespace datacom::report {
namespace {

using Rgb = std::array<int, 3>;

constexpr Rgb kRamp[] = {
    {0x44, 0x01, 0x54}, {0x3b, 0x52, 0x8b}, {0x21, 0x91, 0x8c}, {0x5e, 0xc9, 0x62}, {0xc8, 0xa4, 0x15}};
constexpr const char* kGreys[] = {"#5b6675", "#97a1ad", "#2f3742"};
constexpr char kUnknown[] = "#222222";  // an algorithm that this build does not know

const std::vector<std::vector<int>>& Strokes() {
  static const auto* const kStrokes = new std::vector<std::vector<int>>{{}, {6, 4}, {2, 3}, {10, 3, 2, 3}};
  return *kStrokes;
}

// The colour at `place` of the ramp, from 0 to 1, linear between its entries.
std::string OnRamp(double place) {
  const double at = place * static_cast<double>(std::size(kRamp) - 1);
  const size_t below = std::min(static_cast<size_t>(at), std::size(kRamp) - 2);
  std::string colour = "#";
  for (size_t i = 0; i < 3; ++i) {
    const double low = kRamp[below][i], high = kRamp[below + 1][i];
    absl::StrAppendFormat(&colour, "%02x",
                          static_cast<int>(std::floor(low + (high - low) * (at - static_cast<double>(below)) + 0.5)));
  }
  return colour;
}

// True for several groups of one algorithm.
bool ShareAlgorithm(const std::vector<Group>& groups) {
  return groups.size() > 1 && std::all_of(groups.begin(), groups.end(), [&groups](const Group& group) {
           return group.run().experiment.algorithm() == groups[0].run().experiment.algorithm();
         });
}

}  // namespace

std::vector<Look> LooksOf(const std::vector<Group>& groups) {
  const bool ramp = ShareAlgorithm(groups);
  std::map<std::string, size_t> used;
  std::vector<Look> looks;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (ramp) {
      looks.push_back({OnRamp(static_cast<double>(i) / static_cast<double>(groups.size() - 1)), {}});
      continue;
    }
    const std::string& name = groups[i].run().experiment.algorithm();
    const AlgorithmInfo* const algorithm = FindAlgorithm(name);
    looks.push_back({algorithm == nullptr ? kUnknown : algorithm->colour, Strokes()[used[name]++ % Strokes().size()]});
  }
  return looks;
}

std::string EscapedMarkup(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

std::string BaselineColour(size_t index) { return kGreys[index % std::size(kGreys)]; }

namespace {

constexpr size_t kMostPoints = 60;                        // of a curve
constexpr double kWidth = 330, kHeight = 190, kTop = 24;  // a panel's size and upper margin in pixels

// The attribute of a line's stroke; empty for a solid line.
std::string Dashes(const Look& look) {
  return look.dashes.empty() ? "" : absl::StrCat(" stroke-dasharray=\"", absl::StrJoin(look.dashes, " "), "\"");
}

struct PanelOf {
  std::string quantity;  // of MemberCurve
  std::string title;
  bool from_zero = false;  // never negative: the axis begins at 0
};

struct Axis {
  double low = 0, high = 1, step = 1;

  // Covers [low, high] with about `ticks` round steps of 1, 2 or 5 times a power of ten.
  static Axis Over(double low, double high, int ticks) {
    if (!(high > low)) high = low + 1;
    const double wanted = (high - low) / ticks, power = std::pow(10, std::floor(std::log10(wanted)));
    const double step = power * (wanted <= power ? 1 : wanted <= 2 * power ? 2 : wanted <= 5 * power ? 5 : 10);
    return {step * std::floor(low / step + 1e-9), step * std::ceil(high / step - 1e-9), step};
  }
  double At(double value, double length) const { return (value - low) / (high - low) * length; }
  int ticks() const { return static_cast<int>(std::lround((high - low) / step)) + 1; }
  double tick(int i) const { return step * (std::round(low / step) + i); }
};

using Bands = std::vector<std::pair<double, Interval>>;  // a curve: environment steps, and the interval of the mean

// At most about kMostPoints points of the curve: all, or every second, third, ... one, and the last one.
Bands BandsOf(const Group& group, const std::string& quantity) {
  const Series series = GroupSeries(group, quantity);
  const size_t count = series.steps.size(), stride = (count + kMostPoints - 1) / kMostPoints;
  Bands bands;
  for (size_t i = 0; i < count; ++i) {
    if (i % stride == 0 || i + 1 == count) bands.emplace_back(series.steps[i], series.values[i]);
  }
  return bands;
}

class Panel {
 public:
  Panel(double left, double top, const std::vector<Bands>& curves, const PanelOf& of) : left_(left), top_(top) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double low = of.from_zero ? 0 : kInfinity, high = -kInfinity, last = 0;
    for (const Bands& curve : curves) {
      for (const auto& [steps, value] : curve) {
        low = std::min(low, of.from_zero ? value.mean : value.mean - value.half);
        high = std::max(high, value.mean + value.half);
        last = std::max(last, steps);
      }
    }
    steps_ = Axis::Over(0, last, 4);
    if (last > 0) steps_.high = last;
    if (std::isfinite(low) && std::isfinite(high)) values_ = Axis::Over(low, high, 4);
    opacity_ = std::min(0.18, 0.8 / static_cast<double>(curves.size()));
  }

  std::string Frame(const std::string& title) const {
    std::string svg = absl::StrFormat(
        "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" stroke=\"#999\"/>\n"
        "<text x=\"%g\" y=\"%g\">%s</text>\n"
        "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">environment steps</text>\n",
        left_, top_, kWidth, kHeight, left_, top_ - 8, EscapedMarkup(title), left_ + kWidth / 2, top_ + kHeight + 30);
    for (int i = 0; i < values_.ticks(); ++i) {
      const double y = top_ + kHeight - values_.At(values_.tick(i), kHeight);
      absl::StrAppendFormat(&svg,
                            "<line x1=\"%g\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\" stroke=\"#e5e5e5\"/>\n"
                            "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                            left_, y, left_ + kWidth, y, left_ - 5, y + 4, values_.tick(i));
    }
    for (int i = 0; steps_.tick(i) <= steps_.high * (1 + 1e-9); ++i) {
      const double step = steps_.tick(i);
      absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
                            left_ + steps_.At(step, kWidth), top_ + kHeight + 14,
                            step >= 1000 ? absl::StrFormat("%gk", step / 1000) : absl::StrFormat("%g", step));
    }
    return svg;
  }

  std::string Curve(const Bands& curve, const Look& look) const {
    std::string middle, upper, lower;
    for (const auto& [steps, value] : curve) {
      absl::StrAppend(&middle, Point(steps, value.mean), " ");
      absl::StrAppend(&upper, Point(steps, value.mean + value.half), " ");
      lower = absl::StrCat(Point(steps, value.mean - value.half), " ", lower);
    }
    return absl::StrFormat("<polygon fill=\"%s\" fill-opacity=\"%.2g\" points=\"%s\"/>\n", look.colour, opacity_,
                           upper + lower) +
           absl::StrFormat("<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"%s points=\"%s\"/>\n",
                           look.colour, Dashes(look), middle);
  }

 private:
  std::string Point(double steps, double value) const {
    const double y = std::clamp(values_.At(value, kHeight), 0.0, kHeight);
    return absl::StrFormat("%.1f,%.1f", left_ + steps_.At(steps, kWidth), top_ + kHeight - y);
  }

  const double left_, top_;
  Axis steps_, values_;
  double opacity_ = 0;  // of a band: many bands lie upon each other
};

}  // namespace

std::string RenderFigure(const std::vector<Group>& groups) {
  const std::vector<PanelOf> panels = {{"eval_sum_cost", "Cost sum of an episode", true},
                                       {"eval_return", "Return of an episode", false}};
  const double legend = kTop + kHeight + 50;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"804\" height=\"%g\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      legend + 16 * static_cast<double>(groups.size()));
  const std::vector<Look> looks = LooksOf(groups);
  for (size_t p = 0; p < panels.size(); ++p) {
    std::vector<Bands> curves;
    for (const Group& group : groups) curves.push_back(BandsOf(group, panels[p].quantity));
    const Panel panel(56 + (kWidth + 72) * static_cast<double>(p), kTop, curves, panels[p]);
    svg += panel.Frame(panels[p].title);
    for (size_t i = 0; i < curves.size(); ++i) svg += panel.Curve(curves[i], looks[i]);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    const size_t seeds = groups[i].members.size();
    const double y = legend + 16.0 * static_cast<double>(i);
    absl::StrAppendFormat(&svg,
                          "<line x1=\"56\" y1=\"%g\" x2=\"84\" y2=\"%g\" stroke=\"%s\" stroke-width=\"1.6\"%s/>\n"
                          "<text x=\"90\" y=\"%g\" fill=\"%s\">%s, %d %s</text>\n",
                          y - 4, y - 4, looks[i].colour, Dashes(looks[i]), y, looks[i].colour,
                          EscapedMarkup(ForTerminal(groups[i].title)), seeds,
                          seeds == 1 ? "member" : "members, mean and 95 % band");
  }
  return svg + "</svg>\n";
}

}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0
