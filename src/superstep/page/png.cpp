#include <png.h>

#include <cstring>

#include "superstep/base/error.h"
#include "superstep/page/page.h"

namespace superstep::page {
namespace {

void check(const Image& image) {
  const bool sized = image.width > 0 && image.height > 0;
  if (!sized || image.rgb.size() != 3 * static_cast<std::size_t>(image.width) * image.height)
    throw Error(ErrorCode::invalid_argument, "a picture of " + std::to_string(image.width) + " x " +
                                                 std::to_string(image.height) + " pixels cannot have " +
                                                 std::to_string(image.rgb.size()) + " bytes of color");
}

}  // namespace

std::vector<std::byte> encode_png(const Image& image) {
  check(image);
  png_image header;
  std::memset(&header, 0, sizeof header);
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<std::byte> file(size);
  const int done = png_image_write_to_memory(&header, file.data(), &size, 0, image.rgb.data(), 0, nullptr);
  if (!done) throw Error(ErrorCode::internal, std::string("cannot encode a picture: ") + header.message);
  file.resize(size);
  return file;
}

}  // namespace superstep::page
