// The first page of a TIFF as a picture, through libtiff's own conversion of colors: stripes and tiles,
// palettes, planes, CMYK and YCbCr. Stacks of numbers are file/tiff.h's.
#include <fmt/format.h>
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/file/check.h"
#include "superstep/file/pictures/decoders.h"

namespace superstep::data::pictures {
namespace {

// A file in memory as libtiff asks for one.
struct Memory {
  std::span<const std::byte> bytes;
  std::uint64_t at = 0;

  static tmsize_t read(thandle_t handle, void* to, tmsize_t count) {
    auto& self = *static_cast<Memory*>(handle);
    if (self.at >= self.bytes.size() || count <= 0) return 0;
    const auto taken =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(count), self.bytes.size() - self.at);
    std::memcpy(to, self.bytes.data() + self.at, taken);
    self.at += taken;
    return static_cast<tmsize_t>(taken);
  }
  static tmsize_t write(thandle_t, void*, tmsize_t) { return 0; }
  static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    auto& self = *static_cast<Memory*>(handle);
    const std::uint64_t base = whence == SEEK_CUR ? self.at : whence == SEEK_END ? self.bytes.size() : 0;
    return self.at = base + offset;
  }
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t handle) { return static_cast<Memory*>(handle)->bytes.size(); }
};

class TiffPicture {
 public:
  TiffPicture(std::span<const std::byte> bytes, const std::string& where) : memory_{bytes}, where_(where) {
    TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options, &TiffPicture::keep, this);
    TIFFOpenOptionsSetWarningHandlerExtR(
        options, [](TIFF*, void*, const char*, const char*, va_list) { return 1; }, nullptr);
    tiff_ = TIFFClientOpenExt("picture", "rm", &memory_, Memory::read, Memory::write, Memory::seek,
                              Memory::close, Memory::size, nullptr, nullptr, options);
    TIFFOpenOptionsFree(options);
    if (!tiff_) refuse();
  }
  ~TiffPicture() {
    if (tiff_) TIFFClose(tiff_);
  }
  TiffPicture(const TiffPicture&) = delete;
  TiffPicture& operator=(const TiffPicture&) = delete;

  Decoded decode() {
    std::uint32_t width = 0, height = 0;
    TIFFGetField(tiff_, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tiff_, TIFFTAG_IMAGELENGTH, &height);
    char reason[1024] = "";
    if (!TIFFRGBAImageOK(tiff_, reason))
      throw Error(ErrorCode::unsupported, fmt::format("has pixels that are no colors ({})", reason), where_,
                  "save it with 8 or 16 bits, in gray or color; stacks of numbers are given as one file");
    Decoded decoded{blank(width, height, is_gray() ? 1 : 3, where_), orientation()};
    require_plausible_ratio(4.0 * width * height, static_cast<double>(memory_.bytes.size()), where_);
    read(decoded.picture);
    return decoded;
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error(ErrorCode::bad_file, fmt::format("is damaged: {}", message_.empty() ? "no page" : message_),
                where_);
  }

  static int keep(TIFF*, void* self, const char*, const char* format, va_list arguments) {
    char text[300];
    std::vsnprintf(text, sizeof text, format, arguments);
    static_cast<TiffPicture*>(self)->message_ = text;
    return 1;
  }

  bool is_gray() const {
    std::uint16_t kind = PHOTOMETRIC_MINISBLACK;
    TIFFGetField(tiff_, TIFFTAG_PHOTOMETRIC, &kind);
    return kind == PHOTOMETRIC_MINISBLACK || kind == PHOTOMETRIC_MINISWHITE;
  }
  int orientation() const {
    std::uint16_t orientation = 1;
    TIFFGetFieldDefaulted(tiff_, TIFFTAG_ORIENTATION, &orientation);
    return orientation <= 8 ? orientation : 1;
  }

  // Rows as they lie, whatever their orientation is.
  void read(Picture& picture) {
    TIFFRGBAImage image;
    char reason[1024] = "";
    if (!TIFFRGBAImageBegin(&image, tiff_, 1, reason)) {
      message_ = reason;
      refuse();
    }
    image.req_orientation = image.orientation;
    std::vector<std::uint32_t> raster(std::size_t{image.width} * image.height);
    const int read = TIFFRGBAImageGet(&image, raster.data(), image.width, image.height);
    TIFFRGBAImageEnd(&image);
    if (!read || !message_.empty()) refuse();
    std::uint8_t* to = picture.pixels.data();
    for (const std::uint32_t pixel : raster) {
      *to++ = static_cast<std::uint8_t>(TIFFGetR(pixel));
      if (picture.channels == 1) continue;
      *to++ = static_cast<std::uint8_t>(TIFFGetG(pixel));
      *to++ = static_cast<std::uint8_t>(TIFFGetB(pixel));
    }
  }

  Memory memory_;
  const std::string& where_;
  TIFF* tiff_ = nullptr;
  std::string message_;
};

}  // namespace

Decoded decode_tiff(std::span<const std::byte> bytes, const std::string& where) {
  return TiffPicture(bytes, where).decode();
}

}  // namespace superstep::data::pictures
