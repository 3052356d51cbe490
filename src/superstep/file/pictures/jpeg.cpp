// JPEG through libjpeg-turbo.
#include <csetjmp>
#include <cstdio>
#include <cstring>

// After <cstdio>, whose FILE it takes for granted.
#include <jerror.h>
#include <jpeglib.h>

#include "superstep/base/error.h"
#include "superstep/file/pictures/decoders.h"

namespace superstep::data::pictures {
namespace {

// Passes over a progressive picture at most: encoders make about ten, and each of thousands in a small file
// would cost as much as decoding all of it. Chosen.
constexpr int most_scans = 500;

// libjpeg ends the process on an error unless it is told where to go instead.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char words[JMSG_LENGTH_MAX] = "";
};

void leave(j_common_ptr codec) {
  auto* errors = reinterpret_cast<JpegErrors*>(codec->err);
  codec->err->format_message(codec, errors->words);
  std::longjmp(errors->back, 1);
}

// What it only warns of and what leaves gray where pixels should be is an error here: a stream that ends
// early, codes that are none. Bytes too many are as harmless as they are usual.
void leave_on_warning(j_common_ptr codec, int level) {
  const int code = codec->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
                    code == JWRN_BOGUS_PROGRESSION))
    leave(codec);
}

void watch_scans(j_common_ptr codec) {
  auto* decoder = reinterpret_cast<j_decompress_ptr>(codec);
  if (decoder->input_scan_number <= most_scans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(codec->err);
  std::snprintf(errors->words, sizeof errors->words, "more than %d passes over it", most_scans);
  std::longjmp(errors->back, 1);
}

class JpegDecoder {
 public:
  JpegDecoder(std::span<const std::byte> bytes, const std::string& where) : where_(where) {
    codec_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = leave;
    errors_.manager.emit_message = leave_on_warning;
    jpeg_create_decompress(&codec_);
    progress_.progress_monitor = watch_scans;
    codec_.progress = &progress_;
    bytes_ = bytes;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&codec_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  Decoded decode() {
    if (!read_header()) refuse();
    Decoded decoded{blank(codec_.image_width, codec_.image_height,
                          codec_.out_color_space == JCS_GRAYSCALE ? 1 : 3, where_),
                    exif_of_markers()};
    std::vector<std::uint8_t> line(std::size_t{codec_.image_width} * 4);
    if (!read_rows(decoded.picture, line.data())) refuse();
    return decoded;
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error(ErrorCode::bad_file, std::string("is damaged: ") + errors_.words, where_);
  }

  // No object with a destructor may be made between setjmp() and where longjmp() leaves from.
  bool read_header() {
    if (setjmp(errors_.back)) return false;
    jpeg_mem_src(&codec_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    jpeg_save_markers(&codec_, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(&codec_, TRUE);
    const J_COLOR_SPACE kind = codec_.jpeg_color_space;
    codec_.out_color_space = kind == JCS_GRAYSCALE                  ? JCS_GRAYSCALE
                             : kind == JCS_CMYK || kind == JCS_YCCK ? JCS_CMYK
                                                                    : JCS_RGB;
    return true;
  }

  bool read_rows(Picture& picture, std::uint8_t* line) {
    if (setjmp(errors_.back)) return false;
    jpeg_start_decompress(&codec_);
    const std::size_t row_bytes =
        std::size_t{codec_.output_width} * static_cast<std::size_t>(picture.channels);
    while (codec_.output_scanline < codec_.output_height) {
      std::uint8_t* to = picture.pixels.data() + codec_.output_scanline * row_bytes;
      JSAMPROW row = codec_.out_color_space == JCS_CMYK ? line : to;
      jpeg_read_scanlines(&codec_, &row, 1);
      if (codec_.out_color_space == JCS_CMYK) from_cmyk(line, to);
    }
    jpeg_finish_decompress(&codec_);
    return true;
  }

  // Adobe's programs write the inks turned round (255 is none). Each color is what its ink and black leave.
  void from_cmyk(const std::uint8_t* line, std::uint8_t* rgb) const {
    const int turn = codec_.saw_Adobe_marker ? 255 : 0;
    for (JDIMENSION x = 0; x < codec_.output_width; ++x, line += 4, rgb += 3) {
      const int light = 255 - (line[3] ^ turn);
      for (int c = 0; c < 3; ++c) {
        const int covered = light * (line[c] ^ turn) + 128;  // over 255, rounded, without a division
        rgb[c] = static_cast<std::uint8_t>(light - ((covered + (covered >> 8)) >> 8));
      }
    }
  }

  int exif_of_markers() const {
    for (const jpeg_marker_struct* marker = codec_.marker_list; marker; marker = marker->next)
      if (marker->data_length > 6 && std::memcmp(marker->data, "Exif\0\0", 6) == 0)
        return exif_orientation({reinterpret_cast<const std::byte*>(marker->data), marker->data_length});
    return 1;
  }

  std::span<const std::byte> bytes_;
  const std::string& where_;
  JpegErrors errors_;
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct codec_;
};

}  // namespace

Decoded decode_jpeg(std::span<const std::byte> bytes, const std::string& where) {
  return JpegDecoder(bytes, where).decode();
}

}  // namespace superstep::data::pictures
