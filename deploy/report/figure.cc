#include "deploy/report/figure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "deploy/report/colours.h"

namespace datacom::report {
namespace {

constexpr double kWidth = 330, kHeight = 190, kTop = 24;  // a panel's size and upper margin in pixels

// The attribute of a line's stroke; empty for a solid line.
std::string Dashes(const Look& look) {
  return look.dashes.empty() ? "" : absl::StrCat(" stroke-dasharray=\"", absl::StrJoin(look.dashes, " "), "\"");
}

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

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

class Panel {
 public:
  Panel(double left, const std::vector<Series>& curves, bool from_zero) : left_(left) {
    double low = from_zero ? 0 : std::numeric_limits<double>::infinity(), high = -low, last = 0;
    for (const Series& curve : curves) {
      for (const Interval& value : curve.values) {
        low = std::min(low, value.mean - (from_zero ? 0 : value.half));
        high = std::max(high, value.mean + value.half);
      }
      if (!curve.steps.empty()) last = std::max(last, curve.steps.back());
    }
    steps_ = Axis::Over(0, last, 4);
    if (last > 0) steps_.high = last;
    if (std::isfinite(low) && std::isfinite(high)) values_ = Axis::Over(low, high, 4);
  }

  std::string Frame(const std::string& title) const {
    std::string svg = absl::StrFormat(
        "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" stroke=\"#999\"/>\n"
        "<text x=\"%g\" y=\"%g\">%s</text>\n"
        "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">environment steps</text>\n",
        left_, kTop, kWidth, kHeight, left_, kTop - 8, Escaped(title), left_ + kWidth / 2, kTop + kHeight + 30);
    for (int i = 0; i < values_.ticks(); ++i) {
      const double y = kTop + kHeight - values_.At(values_.tick(i), kHeight);
      absl::StrAppendFormat(&svg,
                            "<line x1=\"%g\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\" stroke=\"#e5e5e5\"/>\n"
                            "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                            left_, y, left_ + kWidth, y, left_ - 5, y + 4, values_.tick(i));
    }
    for (int i = 0; steps_.tick(i) <= steps_.high * (1 + 1e-9); ++i) {
      const double step = steps_.tick(i);
      absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
                            left_ + steps_.At(step, kWidth), kTop + kHeight + 14,
                            step >= 1000 ? absl::StrFormat("%gk", step / 1000) : absl::StrFormat("%g", step));
    }
    return svg;
  }

  std::string Curve(const Series& curve, const Look& look) const {
    std::string middle, upper, lower;
    for (size_t i = 0; i < curve.steps.size(); ++i) {
      const Interval& value = curve.values[i];
      absl::StrAppend(&middle, Point(curve.steps[i], value.mean), " ");
      absl::StrAppend(&upper, Point(curve.steps[i], value.mean + value.half), " ");
      lower = absl::StrCat(Point(curve.steps[i], value.mean - value.half), " ", lower);
    }
    return absl::StrFormat("<polygon fill=\"%s\" fill-opacity=\"0.18\" points=\"%s\"/>\n", look.colour, upper + lower) +
           absl::StrFormat("<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"%s points=\"%s\"/>\n",
                           look.colour, Dashes(look), middle);
  }

 private:
  std::string Point(double steps, double value) const {
    const double y = std::clamp(values_.At(value, kHeight), 0.0, kHeight);
    return absl::StrFormat("%.1f,%.1f", left_ + steps_.At(steps, kWidth), kTop + kHeight - y);
  }

  const double left_;
  Axis steps_, values_;
};

}  // namespace

std::string RenderFigure(const std::vector<Group>& groups) {
  const double legend = kTop + kHeight + 50, height = legend + 16 * static_cast<double>(groups.size());
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"804\" height=\"%g\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      height);
  const std::vector<Look> looks = LooksOf(groups);
  double left = 56;
  for (const auto& [quantity, title, from_zero] : {std::tuple("eval_sum_cost", "Cost sum of an episode", true),
                                                   std::tuple("eval_return", "Return of an episode", false)}) {
    std::vector<Series> curves;
    for (const Group& group : groups) curves.push_back(GroupSeries(group, quantity));
    const Panel panel(left, curves, from_zero);
    svg += panel.Frame(title);
    for (size_t i = 0; i < curves.size(); ++i) svg += panel.Curve(curves[i], looks[i]);
    left += kWidth + 72;
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    const size_t seeds = groups[i].members.size();
    const double y = legend + 16.0 * i;
    absl::StrAppendFormat(&svg,
                          "<line x1=\"56\" y1=\"%g\" x2=\"84\" y2=\"%g\" stroke=\"%s\" stroke-width=\"1.6\"%s/>\n"
                          "<text x=\"90\" y=\"%g\" fill=\"%s\">%s, %d %s</text>\n",
                          y - 4, y - 4, looks[i].colour, Dashes(looks[i]), y, looks[i].colour, Escaped(groups[i].title),
                          seeds, seeds == 1 ? "member" : "members, mean and 95 % band");
  }
  return svg + "</svg>\n";
}

}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0
