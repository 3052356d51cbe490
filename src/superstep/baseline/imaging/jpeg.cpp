#include "superstep/baseline/imaging/jpeg.h"

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>

// After <cstdio>, whose FILE it takes for granted.
#include <jpeglib.h>

#include "superstep/base/error.h"
#include "superstep/baseline/imaging/image_pca.h"
#include "superstep/physics/stream_blocks.h"

namespace superstep::baseline {
namespace {

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

// Memory that the library takes by malloc() and makes larger as it writes.
struct JpegStream {
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  ~JpegStream() { std::free(bytes); }
};

struct JpegPicture {
  const std::uint8_t* pixels;
  int width, height, quality;
};

// The tables that images share, and a picture without them. False where the library refuses. No object with
// a destructor may be made between setjmp() and where longjmp() leaves from.
bool encode(const JpegPicture& picture, JpegStream& tables, JpegStream& stream, JpegErrors& errors) {
  jpeg_compress_struct codec;
  codec.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave;
  jpeg_create_compress(&codec);
  if (setjmp(errors.back)) {
    jpeg_destroy_compress(&codec);
    return false;
  }
  codec.image_width = static_cast<JDIMENSION>(picture.width);
  codec.image_height = static_cast<JDIMENSION>(picture.height);
  codec.input_components = 1;
  codec.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, picture.quality, TRUE);
  codec.write_JFIF_header = FALSE;
  jpeg_mem_dest(&codec, &tables.bytes, &tables.size);
  jpeg_write_tables(&codec);
  jpeg_mem_dest(&codec, &stream.bytes, &stream.size);
  jpeg_start_compress(&codec, FALSE);  // tables that were written already are left out
  while (codec.next_scanline < codec.image_height) {
    auto* row = const_cast<JSAMPROW>(picture.pixels +
                                     static_cast<std::size_t>(codec.next_scanline) * codec.image_width);
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  jpeg_destroy_compress(&codec);
  return true;
}

bool decode(const JpegStream& tables, const JpegStream& stream, std::uint8_t* pixels, JpegErrors& errors) {
  jpeg_decompress_struct codec;
  codec.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave;
  jpeg_create_decompress(&codec);
  if (setjmp(errors.back)) {
    jpeg_destroy_decompress(&codec);
    return false;
  }
  jpeg_mem_src(&codec, tables.bytes, tables.size);
  jpeg_read_header(&codec, FALSE);
  jpeg_mem_src(&codec, stream.bytes, stream.size);
  jpeg_read_header(&codec, TRUE);
  jpeg_start_decompress(&codec);
  while (codec.output_scanline < codec.output_height) {
    JSAMPROW row = pixels + static_cast<std::size_t>(codec.output_scanline) * codec.output_width;
    jpeg_read_scanlines(&codec, &row, 1);
  }
  jpeg_finish_decompress(&codec);
  jpeg_destroy_decompress(&codec);
  return true;
}

}  // namespace

JpegImages through_jpeg(const GreyImages& images, int quality, ThreadPool& pool) {
  const auto size = static_cast<std::size_t>(images.width) * static_cast<std::size_t>(images.height);
  const std::size_t count = size > 0 ? images.pixels.size() / size : 0;
  JpegImages made{std::vector<std::uint8_t>(count * size), 0, quality};
  std::vector<double> bytes(count);
  pool.parallel_for(static_cast<std::int64_t>(count), [&](std::int64_t item, int) {
    data::throw_if_interrupted();
    const std::size_t at = static_cast<std::size_t>(item) * size;
    JpegStream tables, stream;
    JpegErrors errors;
    if (!encode({images.pixels.data() + at, images.width, images.height, quality}, tables, stream, errors) ||
        !decode(tables, stream, made.pixels.data() + at, errors))
      throw Error(ErrorCode::unsupported, errors.words, "JPEG");
    bytes[static_cast<std::size_t>(item)] = static_cast<double>(stream.size);
  });
  made.bytes =
      std::accumulate(bytes.begin(), bytes.end(), 0.0) / static_cast<double>(std::max<std::size_t>(1, count));
  return made;
}

std::optional<JpegImages> through_jpeg_within(const GreyImages& images, double bytes, ThreadPool& pool) {
  std::optional<JpegImages> best;
  for (int low = 1, high = 100; low <= high;) {  // a better quality takes more bytes
    const int quality = (low + high) / 2;
    JpegImages made = through_jpeg(images, quality, pool);
    if (made.bytes <= bytes) {
      best = std::move(made);
      low = quality + 1;
    } else {
      high = quality - 1;
    }
  }
  return best;
}

std::optional<double> psnr_of_jpeg(const GreyImages& images, double bytes, ThreadPool& pool) {
  const auto made = through_jpeg_within(images, bytes, pool);
  if (!made) return std::nullopt;
  double square = 0;
  for (std::size_t i = 0; i < images.pixels.size(); ++i)
    square +=
        std::pow((static_cast<double>(made->pixels[i]) - static_cast<double>(images.pixels[i])) / 255, 2);
  return psnr(square / static_cast<double>(std::max<std::size_t>(1, images.pixels.size())));
}

}  // namespace superstep::baseline
