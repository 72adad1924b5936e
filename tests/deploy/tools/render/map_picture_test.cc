// Looks at the pixels of drawn feasibility maps.
#include "deploy/tools/render/map_picture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "gtest/gtest.h"

namespace datacom::tools {
namespace {

// A map whose constraint is x: the boundary is the line x = 0.
FeasibilityMap Plane(int resolution) {
  FeasibilityMap map;
  map.resolution = resolution;
  map.slice.title = "plane";
  map.slice.x_label = "x / m", map.slice.y_label = "v / m/s";
  map.slice.x_low = map.slice.y_low = -1;
  map.panels.resize(1);
  for (int cell = 0; cell < resolution * resolution; ++cell) {
    map.panels[0].constraint.push_back(map.X(cell % resolution));
  }
  return map;
}

std::array<int, 3> PixelAt(const Picture& picture, int x, int y) {
  const uint8_t* const pixel = picture.pixels() + y * picture.stride() + 4 * x;
  return {pixel[2], pixel[1], pixel[0]};
}

TEST(MapPicture, IsBlueWhereFeasibleRedWhereInfeasibleAndBlackOnTheBoundary) {
  const auto picture = DrawFeasibilityMap(Plane(40));
  int y = 150, left = 0, right = 0, dark_from = 0, dark_to = 0;  // the panel's row of pixels, read from the left
  for (int x = 80; x < 330; ++x) {
    const auto [red, green, blue] = PixelAt(*picture, x, y);
    if (red < 70 && green < 70 && blue < 70) {
      if (dark_from == 0) dark_from = x;
      dark_to = x;
    } else if (blue > red + 20) {
      ++left;
      EXPECT_EQ(dark_from, 0) << "blue at " << x << " right of the boundary";
    } else if (red > blue + 20) {
      ++right;
      EXPECT_NE(dark_from, 0) << "red at " << x << " left of the boundary";
    }
  }
  EXPECT_GT(left, 80);
  EXPECT_GT(right, 80);
  EXPECT_LT(dark_to - dark_from, 4);
  EXPECT_NEAR((dark_from + dark_to) / 2.0, 74 + 130, 3);  // the panel's middle
}

// FreeType crashes at the end of a path without a line, and leaves out lines of no length.
TEST(MapPicture, ALineWithoutALengthIsNotDrawnAndEndsNoPath) {
  Picture picture(20, 20);
  picture.StrokeLine({{5, 10}, {5, 10}}, 2, {1, 1, 1, 1});
  picture.StrokeLine({{5, 10}, {5.001, 10.001}}, 2, {1, 1, 1, 1});
  EXPECT_EQ(PixelAt(picture, 5, 10), (std::array<int, 3>{0, 0, 0}));
  picture.StrokeLine({{5, 10}, {5, 10}, {15, 10}}, 2, {1, 1, 1, 1});
  EXPECT_EQ(PixelAt(picture, 10, 10), (std::array<int, 3>{255, 255, 255}));
}

TEST(MapPicture, ShowsWhereAKnownRowIsZeroInGreen) {
  FeasibilityMap map = Plane(40);
  const auto green_pixels = [&map] {
    const auto picture = DrawFeasibilityMap(map);
    int count = 0;
    for (int x = 80; x < 330; ++x) {
      const auto [red, green, blue] = PixelAt(*picture, x, 150);
      count += green > red + 40 && green > blue + 40;
      if (green > red + 40 && green > blue + 40) EXPECT_NEAR(x, 74 + 0.75 * 260, 4) << "the row is 0 at x = 0.5";
    }
    return count;
  };
  EXPECT_EQ(green_pixels(), 0);
  map.known.names = {"wall"};
  for (int cell = 0; cell < 40 * 40; ++cell) {
    map.known.distance.push_back(0.5 - map.X(cell % 40));
    map.known.row.push_back(0);
  }
  EXPECT_GE(green_pixels(), 1);
}

TEST(MapPicture, IsGreyWithoutAStateAndGrowsByRowsOfPanels) {
  FeasibilityMap map = Plane(20);
  std::fill(map.panels[0].constraint.begin(), map.panels[0].constraint.end(), std::nan(""));
  const auto [red, green, blue] = PixelAt(*DrawFeasibilityMap(map), 200, 200);
  EXPECT_NEAR(red, blue, 8);
  EXPECT_NEAR(red, green, 8);
  const int height = DrawFeasibilityMap(map)->height();
  map.panels.resize(6, map.panels[0]);
  EXPECT_GT(DrawFeasibilityMap(map)->height(), 1.7 * height);
}

}  // namespace
}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
