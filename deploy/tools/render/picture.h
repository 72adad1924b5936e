// A picture in memory with two-dimensional drawing of text, lines and areas, and PNG output. FreeType draws all of it
// with smooth edges, so that no library for displays is needed; libpng writes the file.
// Not thread-safe; owns its pixels. Coordinates are pixels from the top left.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_PICTURE_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_PICTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace datacom::tools {

struct Colour {
  double red = 0, green = 0, blue = 0, alpha = 1;
};

struct Point {
  double x = 0, y = 0;
};

// The fonts DejaVu Sans and its bold face, which Text draws with. UNAVAILABLE, naming the package, when one is missing:
// text is then left out. Looks for them once; thread-safe.
absl::Status FontStatus();

class Picture {
 public:
  Picture(int width, int height);  // black

  int width() const { return width_; }
  int height() const { return height_; }
  int stride() const { return 4 * width_; }
  // [height][width] pixels of blue, green, red and an unused byte.
  uint8_t* pixels() { return pixels_.get(); }
  const uint8_t* pixels() const { return pixels_.get(); }

  void FillRectangle(double left, double top, double width, double height, const Colour& colour);
  // The edge of a rectangle; the middle of the line lies on the rectangle's sides.
  void StrokeRectangle(double left, double top, double width, double height, double line, const Colour& colour);
  // A line with round ends and corners through the points; nothing with less than two.
  void StrokeLine(const std::vector<Point>& points, double line, const Colour& colour);
  // anchor: the part of `text` (UTF-8) that lies left of x: 0 begins at x, 0.5 is centred, 1 ends at x. y is the
  // baseline; size is the height of a line of the font. upwards: turned to the left around (x, y).
  void Text(absl::string_view text, double x, double y, double size, const Colour& colour, double anchor = 0,
            bool bold = false, bool upwards = false);
  static double TextWidth(absl::string_view text, double size, bool bold = false);
  void Paste(const Picture& other, int left, int top);
  // Pastes `other` stretched over a rectangle: each pixel takes the colour of the nearest one of `other`.
  void PasteStretched(const Picture& other, double left, double top, double width, double height);

  // The file's content; empty when libpng fails.
  std::string Png() const;

 private:
  const int width_, height_;
  std::unique_ptr<uint8_t[]> pixels_;
};

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_PICTURE_H_
// SPDX-License-Identifier: Apache-2.0
