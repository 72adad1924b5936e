#include "deploy/tools/render/map_picture.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace datacom::tools {
namespace {

constexpr int kMaxColumns = 5;
constexpr double kLongSide = 260, kLeast = 110;        // a panel's longer side, and the least of the other, in pixels
constexpr double kLeft = 74, kTop = 66, kBottom = 52;  // margins: labels and titles
constexpr double kBetween = 22, kRow = 74;             // between panels, below a row
constexpr double kScale = 96, kBar = 16;               // right margin with the colour bar
constexpr double kText = 12, kHead = 15;
constexpr Colour kInk = {0.11, 0.14, 0.19, 1};
constexpr Colour kSoft = {0.36, 0.4, 0.46, 1};
constexpr Colour kKnownRows = {0.1, 0.55, 0.2, 1};
constexpr Colour kNone = {0.9, 0.91, 0.92, 1};

std::string Short(double value) { return absl::StrFormat("%s%.3g", value < 0 ? "−" : "", std::abs(value)); }

// "x / m" -> "m"; panels whose axes have the same unit keep their proportions.
std::string Unit(const std::string& label) {
  const size_t slash = label.find(" / ");
  return slash == std::string::npos ? "" : label.substr(slash + 3);
}

// Step of 1, 2 or 5 times a power of ten that divides `range` into about four parts.
double TickStep(double range) {
  const double raw = range / 4, power = std::pow(10, std::floor(std::log10(raw)));
  return power * (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10);
}

std::vector<double> Ticks(double low, double high) {
  const double step = TickStep(high - low);
  std::vector<double> ticks;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) ticks.push_back(i * step + 0.0);
  return ticks;
}

// Colour of k on a scale from -limit to limit; values beyond have the end's colour.
Colour MapColour(double constraint, double limit) {
  // Ends and middle of a diverging scale that stays readable with a colour vision deficiency.
  constexpr Colour kFeasible = {0.13, 0.4, 0.67, 1}, kMiddle = {0.97, 0.97, 0.97, 1},
                   kInfeasible = {0.7, 0.09, 0.17, 1};
  const double part = std::sqrt(std::min(std::abs(constraint) / limit, 1.0));  // stretches the boundary
  const Colour& end = constraint < 0 ? kFeasible : kInfeasible;
  const auto mix = [part](double from, double to) { return from + part * (to - from); };
  return {mix(kMiddle.red, end.red), mix(kMiddle.green, end.green), mix(kMiddle.blue, end.blue), 1};
}

// 99th percentile of the absolute values.
double ScaleLimit(const FeasibilityMap& map) {
  std::vector<double> sizes;
  for (const MapPanel& panel : map.panels) {
    for (const double value : panel.constraint) {
      if (std::isfinite(value)) sizes.push_back(std::abs(value));
    }
  }
  if (sizes.empty()) return 1;
  const auto at = sizes.begin() + static_cast<ptrdiff_t>(0.99 * static_cast<double>(sizes.size() - 1));
  std::nth_element(sizes.begin(), at, sizes.end());
  return std::max(*at, 1e-6);
}

struct Box {
  double left, top, width, height;
};

// Draws the line where values [y][x] change sign, between the centres of neighbouring cells (marching squares).
void DrawBoundary(const FeasibilityMap& map, const std::vector<double>& values, const Box& box, const Colour& colour,
                  Picture* picture) {
  const int n = map.resolution;
  const double cell_width = box.width / n, cell_height = box.height / n;
  const auto value = [&](int column, int row) { return values[row * n + column]; };
  for (int row = 0; row + 1 < n; ++row) {
    for (int column = 0; column + 1 < n; ++column) {
      // Corners of the square in order. The line crosses each side whose ends differ in sign.
      const int corners[4][2] = {{column, row}, {column + 1, row}, {column + 1, row + 1}, {column, row + 1}};
      Point crossings[4];
      int count = 0;
      for (int i = 0; i < 4; ++i) {
        const int* const a = corners[i];
        const int* const b = corners[(i + 1) % 4];
        const double at_a = value(a[0], a[1]), at_b = value(b[0], b[1]);
        if (!(at_a < 0 && at_b >= 0) && !(at_a >= 0 && at_b < 0)) continue;  // also when one is NaN
        const double part = at_a / (at_a - at_b);
        crossings[count++] = {box.left + (a[0] + part * (b[0] - a[0]) + 0.5) * cell_width,
                              box.top + box.height - (a[1] + part * (b[1] - a[1]) + 0.5) * cell_height};
      }
      for (int i = 0; i + 1 < count; i += 2) {
        picture->StrokeLine({crossings[i], crossings[i + 1]}, 1.6, colour);
      }
    }
  }
}

void DrawValues(const FeasibilityMap& map, const MapPanel& panel, double limit, const Box& box, Picture* picture) {
  const int n = map.resolution;
  Picture cells(n, n);
  for (int row = 0; row < n; ++row) {
    for (int column = 0; column < n; ++column) {
      const double value = panel.constraint[row * n + column];
      const Colour colour = std::isfinite(value) ? MapColour(value, limit) : kNone;
      uint8_t* const pixel = cells.pixels() + size_t{1} * (n - 1 - row) * cells.stride() + 4 * column;
      pixel[0] = static_cast<uint8_t>(std::lround(255 * colour.blue));
      pixel[1] = static_cast<uint8_t>(std::lround(255 * colour.green));
      pixel[2] = static_cast<uint8_t>(std::lround(255 * colour.red));
    }
  }
  picture->PasteStretched(cells, box.left, box.top, box.width, box.height);
}

void DrawFrame(const FeasibilityMap& map, const Box& box, bool y_axis, Picture* picture) {
  const ObservationSlice& slice = map.slice;
  picture->StrokeRectangle(box.left, box.top, box.width, box.height, 1, kInk);
  const double bottom = box.top + box.height;
  for (const double tick : Ticks(slice.x_low, slice.x_high)) {
    const double x = box.left + (tick - slice.x_low) / (slice.x_high - slice.x_low) * box.width;
    picture->FillRectangle(x - 0.5, bottom, 1, 4, kInk);
    picture->Text(Short(tick), x, bottom + 17, kText - 1, kSoft, 0.5);
  }
  picture->Text(slice.x_label, box.left + box.width / 2, bottom + 36, kText, kInk, 0.5);
  if (!y_axis) return;
  for (const double tick : Ticks(slice.y_low, slice.y_high)) {
    const double y = bottom - (tick - slice.y_low) / (slice.y_high - slice.y_low) * box.height;
    picture->FillRectangle(box.left - 4, y - 0.5, 4, 1, kInk);
    picture->Text(Short(tick), box.left - 8, y + 4, kText - 1, kSoft, 1);
  }
  picture->Text(slice.y_label, box.left - 46, box.top + box.height / 2, kText, kInk, 0.5, /*bold=*/false,
                /*upwards=*/true);
}

void DrawScale(double limit, const Box& box, Picture* picture) {
  const int lines = static_cast<int>(box.height);
  for (int i = 0; i < lines; ++i) {
    const double value = limit * (1 - 2 * (i + 0.5) / lines);
    picture->FillRectangle(box.left, box.top + i, kBar, 1, MapColour(value, limit));
  }
  picture->StrokeRectangle(box.left, box.top, kBar, lines, 1, kInk);
  for (const double tick : Ticks(-limit, limit)) {
    const double y = box.top + (1 - tick / limit) / 2 * lines;
    picture->FillRectangle(box.left + kBar, y - 0.5, 4, 1, kInk);
    picture->Text(Short(tick), box.left + kBar + 8, y + 4, kText - 1, kSoft);
  }
  picture->Text("k = CVaR − δ", box.left, box.top - 9, kText, kInk, 0.1);
}

}  // namespace

std::unique_ptr<Picture> DrawFeasibilityMap(const FeasibilityMap& map) {
  const int count = static_cast<int>(map.panels.size()), columns = std::min(count, kMaxColumns);
  const int rows = (count + columns - 1) / columns;
  double width = kLongSide, height = kLongSide;
  if (const std::string unit = Unit(map.slice.x_label); !unit.empty() && unit == Unit(map.slice.y_label)) {
    const double ratio = (map.slice.y_high - map.slice.y_low) / (map.slice.x_high - map.slice.x_low);
    (ratio < 1 ? height : width) *= ratio < 1 ? ratio : 1 / ratio;
    width = std::max(width, kLeast);
    height = std::max(height, kLeast);
  }
  const double whole_width = kLeft + columns * (width + kBetween) + kScale;
  const double whole_height = kTop + rows * (height + kRow) - kRow + kBottom;
  auto picture = std::make_unique<Picture>(static_cast<int>(whole_width), static_cast<int>(whole_height));
  picture->FillRectangle(0, 0, whole_width, whole_height, {1, 1, 1, 1});
  picture->Text(absl::StrCat(map.run, ", member ", map.member, ": ", map.slice.title), 14, 24, kHead, kInk, 0, true);
  if (!map.known.names.empty()) picture->Text("green: a known row is 0", 14, 42, kText, kKnownRows);
  const double limit = ScaleLimit(map);
  for (int i = 0; i < count; ++i) {
    const MapPanel& panel = map.panels[i];
    const int column = i % columns, row = i / columns;
    const Box box = {kLeft + column * (width + kBetween), kTop + row * (height + kRow), width, height};
    DrawValues(map, panel, limit, box, picture.get());
    if (!map.known.names.empty()) DrawBoundary(map, map.known.distance, box, kKnownRows, picture.get());
    DrawBoundary(map, panel.constraint, box, {0, 0, 0, 1}, picture.get());
    DrawFrame(map, box, i % columns == 0, picture.get());
    picture->Text(absl::StrCat("epoch ", panel.epoch, ", δ = ", Short(panel.delta)), box.left + width / 2, box.top - 9,
                  kText, kInk, 0.5, true);
  }
  DrawScale(limit, {kLeft + columns * (width + kBetween) + 4, kTop, kBar, height}, picture.get());
  return picture;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
