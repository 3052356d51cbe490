#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/tiff.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

std::vector<std::uint8_t> ramp(int count, int start) {
  std::vector<std::uint8_t> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<std::uint8_t>(start + 7 * i));
  return values;
}

std::string message_of(const std::filesystem::path& path) {
  try {
    read_tiff(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A little-endian TIFF of one page made by hand: 10 x 2 pixels of one bit, white is 0.
std::string one_bit_file(std::uint16_t photometric, std::uint32_t width = 10, std::uint32_t bits = 1) {
  std::string file("II\x2a\0\x08\0\0\0", 8);
  const auto put16 = [&](std::uint32_t v) { file += {static_cast<char>(v), static_cast<char>(v >> 8)}; };
  const auto put32 = [&](std::uint32_t v) { put16(v & 0xffff), put16(v >> 16); };
  const auto entry = [&](std::uint32_t tag, std::uint32_t type, std::uint32_t value) {
    put16(tag), put16(type), put32(1), put32(value);
  };
  put16(7);
  entry(256, 4, width), entry(257, 4, 2), entry(258, 3, bits), entry(262, 3, photometric);
  entry(273, 4, 8 + 2 + 7 * 12 + 4), entry(278, 4, 2), entry(279, 4, 4);
  put32(0);
  return file + std::string("\xa0\x40\x01\x80", 4);  // rows 1010000001, 0000000110
}

TEST(Tiff, ReadsBackPagesInEveryCompression) {
  const ScratchFolder folder;
  for (auto compression : {TiffCompression::none, TiffCompression::lzw, TiffCompression::deflate}) {
    TiffWriter writer(folder / "a.tif", compression, 0, "two pages");
    writer.add_page(ramp(12, 0), 4, 3);
    writer.add_page(ramp(12, 100), 4, 3);
    writer.close();
    const Tensor pages = read_tiff(folder / "a.tif");
    EXPECT_EQ(pages.shape(), (Shape{2, 3, 4}));
    EXPECT_EQ(pages.type(), ElementType::u8);
    EXPECT_EQ(pages.at(5), 35);
    EXPECT_EQ(pages.at(12), 100);
  }
}

TEST(Tiff, ReadsColourAndBigTiff) {
  const ScratchFolder folder;
  TiffWriter writer(folder / "rgb.tif", TiffCompression::lzw, std::uint64_t{3} << 30);
  writer.add_page(ramp(18, 1), 3, 2, 3);
  writer.close();
  EXPECT_EQ(read_text_file(folder / "rgb.tif")[2], 43);  // the version of a BigTIFF
  const Tensor pages = read_tiff(folder / "rgb.tif");
  EXPECT_EQ(pages.shape(), (Shape{1, 2, 3, 3}));
  EXPECT_EQ(pages.at(17), (1 + 7 * 17) % 256);
}

TEST(Tiff, ExpandsOneBitImages) {
  const ScratchFolder folder;
  write_file_atomically(folder / "bits.tif", one_bit_file(1));
  const Tensor black_is_zero = read_tiff(folder / "bits.tif");
  EXPECT_EQ(black_is_zero.shape(), (Shape{1, 2, 10}));
  EXPECT_EQ(black_is_zero.at(0), 1);
  EXPECT_EQ(black_is_zero.at(1), 0);
  EXPECT_EQ(black_is_zero.at(9), 1);
  EXPECT_EQ(black_is_zero.at(17), 1);
  write_file_atomically(folder / "bits.tif", one_bit_file(0));
  EXPECT_EQ(read_tiff(folder / "bits.tif").at(1), 1);
}

TEST(Tiff, RefusesDamageWithFileAndPage) {
  const ScratchFolder folder;
  EXPECT_NE(message_of(folder / "none.tif").find("there is no such file"), std::string::npos);
  write_file_atomically(folder / "text.tif", std::string_view("not an image"));
  EXPECT_NE(message_of(folder / "text.tif").find("is not a TIFF file"), std::string::npos);
  write_file_atomically(folder / "huge.tif", one_bit_file(1, 4000000000u));
  EXPECT_NE(message_of(folder / "huge.tif").find("huge.tif: page 1"), std::string::npos);
  write_file_atomically(folder / "four.tif", one_bit_file(1, 10, 4));
  EXPECT_NE(message_of(folder / "four.tif").find("has pixels of 4 bits"), std::string::npos);

  TiffWriter writer(folder / "b.tif", TiffCompression::none);
  writer.add_page(ramp(12, 0), 4, 3);
  writer.add_page(ramp(16, 0), 4, 4);
  writer.close();
  EXPECT_NE(message_of(folder / "b.tif").find("page 2: differs from the first page"), std::string::npos);
  const std::string whole = read_text_file(folder / "b.tif");
  for (std::size_t length :
       {std::size_t{3}, std::size_t{30}, std::size_t{150}, std::size_t{200}, whole.size() - 20}) {
    write_file_atomically(folder / "cut.tif", std::string_view(whole).substr(0, length));
    EXPECT_NE(message_of(folder / "cut.tif"), "") << length;
  }
}

TEST(Tiff, UnfinishedWriterLeavesNothing) {
  const ScratchFolder folder;
  { TiffWriter(folder / "c.tif", TiffCompression::none).add_page(ramp(4, 0), 2, 2); }
  EXPECT_EQ(folder.file_count(), 0);
  EXPECT_THROW(TiffWriter(folder / "no" / "such.tif", TiffCompression::none), Error);
}

}  // namespace
}  // namespace superstep::data
