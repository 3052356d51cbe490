// WebP through libwebp, where it was installed when this was built.
#include "superstep/base/error.h"
#include "superstep/file/pictures/decoders.h"

#ifdef SUPERSTEP_WEBP

#include <webp/decode.h>

#include <string_view>

namespace superstep::data::pictures {
namespace {

// The chunk of a RIFF file that holds Exif, if there is one.
std::span<const std::byte> exif_chunk(std::span<const std::byte> bytes) {
  const auto size_at = [&](std::size_t at) {
    std::size_t size = 0;
    for (std::size_t i = 4; i-- > 0;) size = size << 8 | std::to_integer<std::size_t>(bytes[at + i]);
    return size;
  };
  std::size_t at = 12;
  while (at + 8 <= bytes.size()) {
    const std::string_view name(reinterpret_cast<const char*>(bytes.data()) + at, 4);
    const std::size_t size = size_at(at + 4), rest = bytes.size() - at - 8;
    if (size > rest) return {};
    if (name == "EXIF") return bytes.subspan(at + 8, size);
    at += 8 + size + size % 2;
  }
  return {};
}

}  // namespace

Decoded decode_webp(std::span<const std::byte> bytes, const std::string& where) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK)
    throw Error(ErrorCode::bad_file, "is damaged: its header is no WebP header", where);
  if (features.has_animation)
    throw Error(ErrorCode::unsupported, "is an animation", where, "save one of its pictures");
  Decoded decoded{blank(static_cast<std::uint64_t>(features.width),
                        static_cast<std::uint64_t>(features.height), 3, where),
                  exif_orientation(exif_chunk(bytes))};
  if (!WebPDecodeRGBInto(data, bytes.size(), decoded.picture.pixels.data(), decoded.picture.pixels.size(),
                         3 * features.width))
    throw Error(ErrorCode::bad_file, "is damaged or cut short", where);
  return decoded;
}

}  // namespace superstep::data::pictures

#else

namespace superstep::data::pictures {

Decoded decode_webp(std::span<const std::byte>, const std::string& where) {
  throw Error(ErrorCode::unsupported, "is a WebP picture, which this build does not read", where,
              "build it where libwebp-dev is installed, or save it as PNG");
}

}  // namespace superstep::data::pictures

#endif
