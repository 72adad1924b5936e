#include "deploy/tools/render/picture.h"

namespace datacom::tools {
namespace {

cairo_status_t Append(void* closure, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

Picture::Picture(int width, int height)
    : width_(width), height_(height), pixels_(std::make_unique<uint8_t[]>(4 * size_t{1} * width * height)) {
  surface_.reset(cairo_image_surface_create_for_data(pixels_.get(), CAIRO_FORMAT_RGB24, width, height, stride()));
  cairo_.reset(cairo_create(surface_.get()));
}

void Picture::SetColour(const Colour& colour) {
  cairo_set_source_rgba(cairo(), colour.red, colour.green, colour.blue, colour.alpha);
}

void Picture::FillRectangle(double left, double top, double width, double height, const Colour& colour) {
  SetColour(colour);
  cairo_rectangle(cairo(), left, top, width, height);
  cairo_fill(cairo());
}

void Picture::SetFont(double size, bool bold) {
  cairo_select_font_face(cairo(), "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                         bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(cairo(), size);
}

double Picture::TextWidth(absl::string_view text, double size, bool bold) {
  SetFont(size, bold);
  cairo_text_extents_t extents;
  cairo_text_extents(cairo(), std::string(text).c_str(), &extents);
  return extents.x_advance;
}

void Picture::Text(absl::string_view text, double x, double y, double size, const Colour& colour, double anchor,
                   bool bold) {
  SetFont(size, bold);
  SetColour(colour);
  cairo_move_to(cairo(), x - anchor * TextWidth(text, size, bold), y);
  cairo_show_text(cairo(), std::string(text).c_str());
}

void Picture::TextUpwards(absl::string_view text, double x, double y, double size, const Colour& colour,
                          double anchor) {
  cairo_save(cairo());
  cairo_translate(cairo(), x, y);
  cairo_rotate(cairo(), -1.5707963267948966);
  Text(text, 0, 0, size, colour, anchor);
  cairo_restore(cairo());
}

void Picture::Paste(const Picture& other, double left, double top) {
  cairo_set_source_surface(cairo(), other.surface_.get(), left, top);
  cairo_paint(cairo());
}

std::string Picture::Png() {
  cairo_surface_flush(surface_.get());
  std::string content;
  cairo_surface_write_to_png_stream(surface_.get(), &Append, &content);
  return content;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
