// PNG files are decoded here by hand (chunks, CRCs, inflate, filters), so that the encoder is checked by
// something other than itself.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "superstep/base/encoding/base64.h"
#include "superstep/base/error.h"
#include "superstep/page/page.h"

namespace superstep::page {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint32_t big_endian(const Bytes& file, std::size_t at) {
  return std::uint32_t{file[at]} << 24 | file[at + 1] << 16 | file[at + 2] << 8 | file[at + 3];
}

// Chunks by name, data of chunks of one name joined. Empty when the signature or a CRC is wrong.
std::map<std::string, Bytes> chunks_of(const Bytes& file) {
  static constexpr std::uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  std::map<std::string, Bytes> chunks;
  if (file.size() < 8 || std::memcmp(file.data(), signature, 8) != 0) return {};
  for (std::size_t at = 8; at + 12 <= file.size();) {
    const std::uint32_t length = big_endian(file, at);
    if (at + 12 + length > file.size()) return {};
    const auto crc = crc32(0, file.data() + at + 4, length + 4);
    if (crc != big_endian(file, at + 8 + length)) return {};
    Bytes& data = chunks[std::string(file.begin() + at + 4, file.begin() + at + 8)];
    data.insert(data.end(), file.begin() + at + 8, file.begin() + at + 8 + length);
    at += 12 + length;
  }
  return chunks;
}

int paeth(int left, int up, int corner) {
  const int estimate = left + up - corner;
  const int a = std::abs(estimate - left), b = std::abs(estimate - up), c = std::abs(estimate - corner);
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

int predicted(int filter, int left, int up, int corner) {
  switch (filter) {
    case 1: return left;
    case 2: return up;
    case 3: return (left + up) / 2;
    case 4: return paeth(left, up, corner);
    default: return 0;
  }
}

Image decode(const std::vector<std::byte>& png) {
  Bytes file(png.size());
  std::memcpy(file.data(), png.data(), png.size());
  auto chunks = chunks_of(file);
  const Bytes header = chunks["IHDR"], packed = chunks["IDAT"];
  if (header.size() != 13 || header[8] != 8 || header[9] != 2 || !chunks.contains("IEND")) return {};
  Image image{static_cast<int>(big_endian(header, 0)), static_cast<int>(big_endian(header, 4)), {}};
  const std::size_t row = 3u * image.width;
  Bytes lines((row + 1) * image.height);
  uLongf size = lines.size();
  if (uncompress(lines.data(), &size, packed.data(), packed.size()) != Z_OK || size != lines.size())
    return {};
  image.rgb.resize(row * image.height);
  for (std::size_t y = 0; y < static_cast<std::size_t>(image.height); ++y)
    for (std::size_t x = 0; x < row; ++x) {
      const int left = x >= 3 ? image.rgb[y * row + x - 3] : 0, up = y ? image.rgb[(y - 1) * row + x] : 0;
      const int corner = x >= 3 && y ? image.rgb[(y - 1) * row + x - 3] : 0;
      const std::uint8_t* const line = &lines[y * (row + 1)];
      image.rgb[y * row + x] = static_cast<std::uint8_t>(line[1 + x] + predicted(line[0], left, up, corner));
    }
  return image;
}

Image noise(int width, int height) {
  Image image{width, height, {}};
  for (int i = 0; i < 3 * width * height; ++i)
    image.rgb.push_back(static_cast<std::uint8_t>(i * i * 37 + i / 7));
  return image;
}

TEST(Png, DecodesBackToTheSamePixels) {
  for (const auto& [width, height] : {std::pair{1, 1}, {11, 11}, {64, 3}, {200, 150}}) {
    const Image image = noise(width, height), back = decode(encode_png(image));
    EXPECT_EQ(back.width, width);
    EXPECT_EQ(back.height, height);
    EXPECT_EQ(back.rgb, image.rgb);
  }
}

TEST(Png, TheDecoderOfTheTestNoticesAFlippedBit) {
  auto file = encode_png(noise(8, 8));
  file[file.size() / 2] ^= std::byte{1};
  EXPECT_TRUE(decode(file).rgb.empty());
}

TEST(Png, RefusesAPictureThatIsNotOne) {
  EXPECT_THROW(encode_png(Image{0, 4, {}}), Error);
  try {
    encode_png(Image{2, 2, {1, 2, 3}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "a picture of 2 x 2 pixels cannot have 3 bytes of color");
  }
}

std::array<int, 3> pixel(const Image& image, std::size_t index) {
  return {image.rgb[3 * index], image.rgb[3 * index + 1], image.rgb[3 * index + 2]};
}

TEST(Colormap, MapsTheEndsAndMarksNan) {
  const std::vector<float> values = {2, 3, 4, NAN, -INFINITY, INFINITY};
  const Image image = colored(values, 3, 2, Colormap::viridis);
  EXPECT_EQ(pixel(image, 0), (std::array{68, 1, 84}));
  EXPECT_EQ(pixel(image, 2), (std::array{253, 231, 37}));
  EXPECT_EQ(pixel(image, 3), (std::array{255, 0, 255}));
  EXPECT_EQ(pixel(image, 4), pixel(image, 0));
  EXPECT_EQ(pixel(image, 5), pixel(image, 2));
  EXPECT_EQ(pixel(colored(values, 3, 2, Colormap::gray, 0.0f, 8.0f), 2), (std::array{128, 128, 128}));
}

TEST(Colormap, ConstantAndEmptyPicturesAreDrawn) {
  const std::vector<float> constant(4, 7.0f);
  EXPECT_EQ(pixel(colored(constant, 2, 2, Colormap::gray), 3), (std::array{127, 127, 127}));
  EXPECT_TRUE(colored({}, 0, 0, Colormap::gray).rgb.empty());
  EXPECT_THROW(colored(constant, 3, 2, Colormap::gray), Error);
}

TEST(Colormap, PhaseIsCyclicSmoothAndInGamut) {
  constexpr float pi = std::numbers::pi_v<float>;
  std::vector<float> angles;
  for (int i = 0; i < 256; ++i) angles.push_back(-pi + 2 * pi * static_cast<float>(i) / 255);
  const Image ring = colored(angles, 256, 1, Colormap::phase);
  EXPECT_EQ(pixel(ring, 0), pixel(ring, 255));
  for (std::size_t i = 1; i < 256; ++i)
    for (std::size_t c = 0; c < 3; ++c) EXPECT_LE(std::abs(pixel(ring, i)[c] - pixel(ring, i - 1)[c]), 8);
}

TEST(Base64, MatchesTheVectorsOfRfc4648) {
  const auto encoded = [](std::string_view text) { return base64_encode(std::as_bytes(std::span(text))); };
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace superstep::page
