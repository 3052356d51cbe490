// PNG through libpng.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/file/pictures/decoders.h"

namespace superstep::data::pictures {
namespace {

class PngDecoder {
 public:
  PngDecoder(std::span<const std::byte> bytes, const std::string& where) : rest_(bytes), where_(where) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, leave, ignore);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) throw Error(ErrorCode::out_of_memory, "no memory to decode it", where_);
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  Decoded decode() {
    if (!read_header()) refuse();
    Decoded decoded{blank(width_, height_, channels_, where_), 1};
    std::vector<png_bytep> rows;
    for (png_uint_32 y = 0; y < height_; ++y)
      rows.push_back(decoded.picture.pixels.data() +
                     std::size_t{y} * width_ * static_cast<std::size_t>(channels_));
    if (!read_rows(rows.data())) refuse();
    decoded.orientation = exif();
    return decoded;
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error(ErrorCode::bad_file, std::string("is damaged: ") + words_, where_);
  }

  static void leave(png_structp png, png_const_charp words) {
    auto* self = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::strncpy(self->words_, words, sizeof self->words_ - 1);
    std::longjmp(self->back_, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
  static void take(png_structp png, png_bytep to, std::size_t count) {
    auto* self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (count > self->rest_.size()) png_error(png, "the file ends before the picture does");
    std::memcpy(to, self->rest_.data(), count);
    self->rest_ = self->rest_.subspan(count);
  }

  // No object with a destructor may be made between setjmp() and where longjmp() leaves from.
  bool read_header() {
    if (setjmp(back_)) return false;
    png_set_read_fn(png_, this, take);
    png_read_info(png_, info_);
    int depth = 0, kind = 0;
    png_get_IHDR(png_, info_, &width_, &height_, &depth, &kind, nullptr, nullptr, nullptr);
    png_set_strip_16(png_);
    if (kind == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (kind == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    channels_ = png_get_channels(png_, info_);
    return channels_ == 1 || channels_ == 3;
  }

  bool read_rows(png_bytepp rows) {
    if (setjmp(back_)) return false;
    png_read_image(png_, rows);
    png_read_end(png_, info_);
    return true;
  }

  int exif() const {
    png_uint_32 size = 0;
    png_bytep block = nullptr;
    if (png_get_eXIf_1(png_, info_, &size, &block) == 0 || !block) return 1;
    return exif_orientation({reinterpret_cast<const std::byte*>(block), size});
  }

  std::span<const std::byte> rest_;
  const std::string& where_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  png_uint_32 width_ = 0, height_ = 0;
  int channels_ = 0;
  char words_[200] = "";
  std::jmp_buf back_;
};

}  // namespace

Decoded decode_png(std::span<const std::byte> bytes, const std::string& where) {
  return PngDecoder(bytes, where).decode();
}

}  // namespace superstep::data::pictures
