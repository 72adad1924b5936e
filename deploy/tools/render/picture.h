// A picture in memory with two-dimensional drawing (Cairo) of text, lines and areas, and PNG output.
// Not thread-safe; owns its pixels. Coordinates are pixels from the top left.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_PICTURE_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_PICTURE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cairo.h"

namespace datacom::tools {

struct Colour {
  double red = 0, green = 0, blue = 0, alpha = 1;
};

class Picture {
 public:
  Picture(int width, int height);  // black

  int width() const { return width_; }
  int height() const { return height_; }
  int stride() const { return 4 * width_; }
  // [height][width] pixels of blue, green, red and an unused byte. Call Changed() after writing to them.
  uint8_t* pixels() { return pixels_.get(); }
  const uint8_t* pixels() const { return pixels_.get(); }
  void Changed() { cairo_surface_mark_dirty(surface_.get()); }

  // Cairo draws all other lines and areas.
  cairo_t* cairo() { return cairo_.get(); }
  void SetColour(const Colour& colour);
  void FillRectangle(double left, double top, double width, double height, const Colour& colour);
  // anchor: the part of `text` that lies left of x: 0 begins at x, 0.5 is centred, 1 ends at x. y is the baseline.
  void Text(absl::string_view text, double x, double y, double size, const Colour& colour, double anchor = 0,
            bool bold = false);
  void TextUpwards(absl::string_view text, double x, double y, double size, const Colour& colour, double anchor);
  double TextWidth(absl::string_view text, double size, bool bold = false);
  void Paste(const Picture& other, double left, double top);

  std::string Png();  // the file's content

 private:
  template <void (*Free)(cairo_surface_t*)>
  struct SurfaceDeleter {
    void operator()(cairo_surface_t* surface) const { Free(surface); }
  };
  struct CairoDeleter {
    void operator()(cairo_t* cairo) const { cairo_destroy(cairo); }
  };
  void SetFont(double size, bool bold);

  const int width_, height_;
  std::unique_ptr<uint8_t[]> pixels_;
  std::unique_ptr<cairo_surface_t, SurfaceDeleter<cairo_surface_destroy>> surface_;
  std::unique_ptr<cairo_t, CairoDeleter> cairo_;
};

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_PICTURE_H_
// SPDX-License-Identifier: Apache-2.0
