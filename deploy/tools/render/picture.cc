#include "deploy/tools/render/picture.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/shared_files.h"
#include "ft2build.h"
#include FT_FREETYPE_H
#include FT_OUTLINE_H
#include FT_STROKER_H

namespace datacom::tools {
namespace {

constexpr double kUnit = 64;          // FreeType's units in a pixel
constexpr size_t kMostPoints = 1000;  // of one outline, whose points FreeType counts with 16 bits

// FreeType's library and the two faces. One per thread, because FreeType's objects are not thread-safe.
class Fonts {
 public:
  static Fonts& Get() {
    thread_local Fonts fonts;
    return fonts;
  }
  Fonts(const Fonts&) = delete;
  Fonts& operator=(const Fonts&) = delete;
  ~Fonts() {
    for (const FT_Face face : faces_) FT_Done_Face(face);  // does nothing for null
    FT_Done_FreeType(library_);
  }
  FT_Library library() const { return library_; }
  // Null when the font is missing.
  FT_Face Face(double size, bool bold) const {
    const FT_Face face = faces_[bold ? 1 : 0];
    if (face != nullptr) FT_Set_Char_Size(face, 0, std::lround(size * kUnit), 72, 72);
    return face;
  }
  const absl::Status& status() const { return status_; }

 private:
  Fonts() {
    FT_Init_FreeType(&library_);
    const char* const names[] = {"DejaVuSans.ttf", "DejaVuSans-Bold.ttf"};
    for (int i = 0; i < 2; ++i) {
      const std::string path =
          FindSharedFile(absl::StrCat("fonts/", names[i]), absl::StrCat("/usr/share/fonts/truetype/dejavu/", names[i]));
      if (FT_New_Face(library_, path.c_str(), 0, &faces_[i]) == 0) continue;
      status_ = absl::UnavailableError(
          absl::StrCat("the font ", path, " cannot be read; install Debian's package fonts-dejavu-core"));
    }
  }
  FT_Library library_ = nullptr;
  FT_Face faces_[2] = {nullptr, nullptr};
  absl::Status status_;
};

// What FreeType's rasteriser fills: coverage by rows counted from the bottom.
struct Target {
  uint8_t* pixels;
  int width, height;
  Colour colour;
};

void Blend(const Colour& colour, double part, uint8_t* pixel) {
  const double channels[3] = {colour.blue, colour.green, colour.red};
  for (int i = 0; i < 3; ++i) {
    pixel[i] = static_cast<uint8_t>(std::lround(pixel[i] + part * (255 * channels[i] - pixel[i])));
  }
}

void BlendSpans(int y, int count, const FT_Span* spans, void* user) {
  const Target& target = *static_cast<const Target*>(user);
  uint8_t* const row = target.pixels + 4 * size_t{1} * target.width * (target.height - 1 - y);
  for (const FT_Span* at = spans; at < spans + count; ++at) {
    const FT_Span& span = *at;
    const double part = target.colour.alpha * span.coverage / 255;
    for (int x = span.x; x < span.x + span.len; ++x) Blend(target.colour, part, row + 4 * x);
  }
}

void FillOutline(FT_Outline* outline, Target target) {
  FT_Raster_Params parameters = {};
  parameters.flags = FT_RASTER_FLAG_AA | FT_RASTER_FLAG_DIRECT | FT_RASTER_FLAG_CLIP;
  parameters.gray_spans = &BlendSpans;
  parameters.user = &target;
  parameters.clip_box = {0, 0, target.width, target.height};
  FT_Outline_Render(Fonts::Get().library(), outline, &parameters);
}

// Of a point counted from the top left of a picture of this height.
FT_Vector Vector(const Point& point, int height) {
  return {std::lround(kUnit * point.x), std::lround(kUnit * (height - point.y))};
}

// The next character of UTF-8 text, which loses it; a wrong byte stands for itself.
FT_ULong TakeCharacter(absl::string_view* text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>((*text)[i]); };
  const size_t length = byte(0) < 0xC0 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  FT_ULong character = length == 1 ? byte(0) : byte(0) & (0x7F >> length);
  for (size_t i = 1; i < std::min(length, text->size()); ++i) character = character << 6 | (byte(i) & 0x3F);
  text->remove_prefix(std::min(length, text->size()));
  return character;
}

// Loads the glyph of the next character unhinted, so that text scales evenly; returns how far it advances in pixels.
double LoadNextGlyph(FT_Face face, absl::string_view* text) {
  constexpr double kAdvanceUnit = 65536;
  if (FT_Load_Char(face, TakeCharacter(text), FT_LOAD_NO_BITMAP | FT_LOAD_NO_HINTING) != 0) return 0;
  return static_cast<double>(face->glyph->linearHoriAdvance) / kAdvanceUnit;
}

}  // namespace

absl::Status FontStatus() { return Fonts::Get().status(); }

Picture::Picture(int width, int height)
    : width_(width), height_(height), pixels_(std::make_unique<uint8_t[]>(4 * size_t{1} * width * height)) {}

void Picture::FillRectangle(double left, double top, double width, double height, const Colour& colour) {
  const double right = left + width, bottom = top + height;
  FT_Vector points[] = {Vector({left, top}, height_), Vector({right, top}, height_), Vector({right, bottom}, height_),
                        Vector({left, bottom}, height_)};
  char tags[] = {FT_CURVE_TAG_ON, FT_CURVE_TAG_ON, FT_CURVE_TAG_ON, FT_CURVE_TAG_ON};
  short ends[] = {3};  // NOLINT(google-runtime-int): FreeType's type
  FT_Outline outline = {1, 4, points, tags, ends, FT_OUTLINE_NONE};
  FillOutline(&outline, {pixels(), width_, height_, colour});
}

void Picture::StrokeRectangle(double left, double top, double width, double height, double line, const Colour& colour) {
  const double half = line / 2, right = left + width, bottom = top + height;
  FillRectangle(left - half, top - half, width + line, line, colour);
  FillRectangle(left - half, bottom - half, width + line, line, colour);
  FillRectangle(left - half, top + half, line, height - line, colour);
  FillRectangle(right - half, top + half, line, height - line, colour);
}

void Picture::StrokeLine(const std::vector<Point>& points, double line, const Colour& colour) {
  const FT_Library library = Fonts::Get().library();
  FT_Stroker stroker = nullptr;
  if (points.size() < 2 || FT_Stroker_New(library, &stroker) != 0) return;
  FT_Stroker_Set(stroker, std::lround(kUnit * line / 2), FT_STROKER_LINECAP_ROUND, FT_STROKER_LINEJOIN_ROUND, 0);
  for (size_t from = 0; from + 1 < points.size(); from += kMostPoints) {
    const size_t to = std::min(from + kMostPoints, points.size() - 1);  // the next piece begins with it
    FT_Stroker_Rewind(stroker);
    FT_Vector at = Vector(points[from], height_);
    FT_Stroker_BeginSubPath(stroker, &at, /*open=*/1);
    bool moved = false;
    for (size_t i = from + 1; i <= to; ++i) {
      FT_Vector next = Vector(points[i], height_);
      moved = moved || next.x != at.x || next.y != at.y;
      FT_Stroker_LineTo(stroker, &next);
      at = next;
    }
    if (!moved) continue;  // FreeType leaves such lines out, and crashes at the end of a path without any
    FT_Stroker_EndSubPath(stroker);
    FT_UInt count = 0, contours = 0;
    FT_Outline outline;
    if (FT_Stroker_GetCounts(stroker, &count, &contours) != 0) continue;
    if (FT_Outline_New(library, count, static_cast<FT_Int>(contours), &outline) != 0) continue;
    outline.n_points = outline.n_contours = 0;  // Export appends
    FT_Stroker_Export(stroker, &outline);
    FillOutline(&outline, {pixels(), width_, height_, colour});
    FT_Outline_Done(library, &outline);
  }
  FT_Stroker_Done(stroker);
}

double Picture::TextWidth(absl::string_view text, double size, bool bold) {
  const FT_Face face = Fonts::Get().Face(size, bold);
  double width = 0;
  while (face != nullptr && !text.empty()) width += LoadNextGlyph(face, &text);
  return width;
}

void Picture::Text(absl::string_view text, double x, double y, double size, const Colour& colour, double anchor,
                   bool bold, bool upwards) {
  const FT_Face face = Fonts::Get().Face(size, bold);
  double along = -anchor * TextWidth(text, size, bold);
  FT_Matrix quarter = {0, -0x10000, 0x10000, 0};  // a quarter turn to the left
  while (face != nullptr && !text.empty()) {
    const double advance = LoadNextGlyph(face, &text);
    const Point at = upwards ? Point{x, y - along} : Point{x + along, y};
    const FT_Vector origin = Vector(at, height_);
    FT_Outline* const outline = &face->glyph->outline;
    if (upwards) FT_Outline_Transform(outline, &quarter);
    FT_Outline_Translate(outline, origin.x, origin.y);
    FillOutline(outline, {pixels(), width_, height_, colour});
    along += advance;
  }
}

void Picture::Paste(const Picture& other, int left, int top) {
  const int from = std::max(0, -left), to = std::min(other.width(), width_ - left);
  if (from >= to) return;
  for (int row = std::max(0, -top); row < std::min(other.height(), height_ - top); ++row) {
    std::memcpy(pixels() + size_t{1} * (top + row) * stride() + 4 * (left + from),
                other.pixels() + size_t{1} * row * other.stride() + 4 * from, 4 * size_t{1} * (to - from));
  }
}

void Picture::PasteStretched(const Picture& other, double left, double top, double width, double height) {
  const auto source = [](int at, double begin, double length, int count) {
    return static_cast<int>(std::floor((at + 0.5 - begin) / length * count));
  };
  for (int y = std::max(0, static_cast<int>(top)); y < std::min<double>(height_, top + height); ++y) {
    const int row = source(y, top, height, other.height());
    if (row < 0 || row >= other.height()) continue;
    for (int x = std::max(0, static_cast<int>(left)); x < std::min<double>(width_, left + width); ++x) {
      const int column = source(x, left, width, other.width());
      if (column < 0 || column >= other.width()) continue;
      std::memcpy(pixels() + size_t{1} * y * stride() + 4 * x,
                  other.pixels() + size_t{1} * row * other.stride() + 4 * column, 4);
    }
  }
}

std::string Picture::Png() const {
  std::vector<uint8_t> rgb(3 * size_t{1} * width_ * height_);
  for (size_t i = 0; i < rgb.size() / 3; ++i) {
    for (size_t channel = 0; channel < 3; ++channel) rgb[3 * i + channel] = pixels()[4 * i + 2 - channel];
  }
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = width_;
  image.height = height_;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string content(size, '\0');
  if (png_image_write_to_memory(&image, content.data(), &size, 0, rgb.data(), 0, nullptr) == 0) return "";
  content.resize(size);
  return content;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
