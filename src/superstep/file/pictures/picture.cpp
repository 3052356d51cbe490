#include "superstep/file/pictures/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/mapped_file.h"
#include "superstep/file/form.h"
#include "superstep/file/pictures/decoders.h"

namespace superstep::data {
namespace {

// Pixels of a picture at most: sixteen times those of a camera of 16 million. Chosen; a header that claims
// more is not believed.
constexpr std::uint64_t most_pixels = std::uint64_t{1} << 28;

// Where pixel (x, y) of an upright picture lies in one of this orientation, by its place in memory.
std::size_t place_in(const Picture& lying, int orientation, int x, int y) {
  const bool turned = orientation >= 5;
  int column = turned ? y : x, row = turned ? x : y;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  if (from_right) column = lying.width - 1 - column;
  if (from_below) row = lying.height - 1 - row;
  return (static_cast<std::size_t>(row) * static_cast<std::size_t>(lying.width) +
          static_cast<std::size_t>(column)) *
         static_cast<std::size_t>(lying.channels);
}

Picture upright(pictures::Decoded decoded) {
  const Picture& lying = decoded.picture;
  if (decoded.orientation <= 1 || decoded.orientation > 8) return std::move(decoded.picture);
  const bool turned = decoded.orientation >= 5;
  Picture picture{.width = turned ? lying.height : lying.width,
                  .height = turned ? lying.width : lying.height,
                  .channels = lying.channels,
                  .pixels = {}};
  picture.pixels.reserve(lying.pixels.size());
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x) {
      const auto from =
          lying.pixels.begin() + static_cast<std::ptrdiff_t>(place_in(lying, decoded.orientation, x, y));
      picture.pixels.insert(picture.pixels.end(), from, from + lying.channels);
    }
  return picture;
}

// What else it may be, for the message.
const char* other_form(std::string_view begin) {
  if (begin.starts_with("GIF8")) return "a GIF";
  if (begin.starts_with("BM")) return "a BMP";
  if (begin.starts_with("%PDF")) return "a PDF";
  if (begin.size() > 12 && begin.substr(4, 4) == "ftyp") return "an HEIF or AVIF picture, or a film";
  if (begin.starts_with("SIMPLE  =")) return "a FITS file";
  return nullptr;
}

}  // namespace

PictureForm picture_form_of(std::span<const std::byte> bytes) {
  using namespace std::string_view_literals;
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()),
                               std::min<std::size_t>(bytes.size(), 16));
  if (begin.starts_with("\xff\xd8\xff"sv)) return PictureForm::jpeg;
  if (begin.starts_with("\x89PNG\r\n\x1a\n"sv)) return PictureForm::png;
  if (begin.starts_with("RIFF"sv) && begin.substr(8, 4) == "WEBP"sv) return PictureForm::webp;
  for (const std::string_view mark : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv})
    if (begin.starts_with(mark)) return PictureForm::tiff;
  return PictureForm::none;
}

bool is_picture_name(const std::filesystem::path& path) {
  return ends_in(path, {".jpg", ".jpeg", ".jpe", ".png", ".tif", ".tiff", ".webp"});
}

Picture decode_picture(std::span<const std::byte> bytes, const std::string& where) {
  if (bytes.empty()) throw Error(ErrorCode::bad_file, "is empty", where);
  switch (picture_form_of(bytes)) {
    case PictureForm::jpeg: return upright(pictures::decode_jpeg(bytes, where));
    case PictureForm::png: return upright(pictures::decode_png(bytes, where));
    case PictureForm::webp: return upright(pictures::decode_webp(bytes, where));
    case PictureForm::tiff: return upright(pictures::decode_tiff(bytes, where));
    case PictureForm::none: break;
  }
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()),
                               std::min<std::size_t>(bytes.size(), 16));
  if (const char* other = other_form(begin))
    throw Error(ErrorCode::unsupported, fmt::format("is {}", other), where,
                "JPEG, PNG, TIFF and WebP are read");
  throw Error(ErrorCode::bad_file, "is no picture", where, "JPEG, PNG, TIFF and WebP are read");
}

// Copied, not looked at where it is mapped: a file that is cut short meanwhile would end the program.
Picture read_picture(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::vector<std::byte> bytes(file.bytes().size());
  file.read(file.bytes(), bytes.data());
  return decode_picture(bytes, path.string());
}

Picture in_gray(const Picture& picture) {
  if (picture.channels == 1) return picture;
  Picture gray{.width = picture.width, .height = picture.height, .channels = 1, .pixels = {}};
  gray.pixels.resize(picture.pixels.size() / 3);
  // The weights times 2^16, half of one added to round.
  for (std::size_t i = 0; i < gray.pixels.size(); ++i) {
    const std::uint8_t* rgb = picture.pixels.data() + 3 * i;
    gray.pixels[i] =
        static_cast<std::uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
  }
  return gray;
}

Picture in_color(Picture picture) {
  if (picture.channels == 3) return picture;
  Picture color{.width = picture.width, .height = picture.height, .channels = 3, .pixels = {}};
  color.pixels.reserve(3 * picture.pixels.size());
  for (const std::uint8_t gray : picture.pixels) color.pixels.insert(color.pixels.end(), 3, gray);
  return color;
}

namespace pictures {

Picture blank(std::uint64_t width, std::uint64_t height, int channels, const std::string& where) {
  if (width == 0 || height == 0) throw Error(ErrorCode::bad_file, "has no pixels", where);
  if (width > most_pixels || height > most_pixels / width)
    throw Error(
        ErrorCode::bad_file,
        fmt::format("claims {} x {} pixels, more than the {} that are believed", width, height, most_pixels),
        where, "save it in parts, or smaller");
  const std::uint64_t bytes = width * height * static_cast<std::uint64_t>(channels);
  constexpr std::uint64_t worth_asking = 64 << 20;  // of smaller ones the system need not be asked: chosen
  if (bytes > worth_asking) require_memory(static_cast<double>(bytes), where);
  return {.width = static_cast<int>(width),
          .height = static_cast<int>(height),
          .channels = channels,
          .pixels = std::vector<std::uint8_t>(bytes)};
}

}  // namespace pictures
}  // namespace superstep::data
