// Pictures as cameras and microscopes save them: JPEG, PNG, TIFF and WebP, decoded to bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace superstep::data {

// Bytes [height, width, channels]: one channel of gray or three of red, green and blue.
struct Picture {
  int width = 0, height = 0, channels = 3;
  std::vector<std::uint8_t> pixels;
};

// What a picture is by its first bytes.
enum class PictureForm : std::uint8_t { jpeg, png, tiff, webp, none };
PictureForm picture_form_of(std::span<const std::byte> bytes);

// Whether a name ends as pictures' do, in capitals or small letters: jpg, jpeg, jpe, png, tif, tiff, webp.
bool is_picture_name(const std::filesystem::path& path);

// Upright, as the file's Exif orientation says. Of 16 bits the upper eight are taken; palettes, one bit, CMYK
// and YCbCr become gray or red, green and blue; opacity is left out. Of several pages the first is taken.
// Throws Error with `where`: bad_file (no picture, damaged, cut short, more pixels than any picture has),
// unsupported (a kind that is not read, which it names), out_of_memory.
Picture decode_picture(std::span<const std::byte> bytes, const std::string& where);

// The same of a file. Throws also what opening it throws.
Picture read_picture(const std::filesystem::path& path);

// One channel, by the weights of ITU-R 601-2 (299, 587, 114 of 1000), as Pillow's convert("L"); or three.
Picture in_gray(const Picture& picture);
Picture in_color(Picture picture);

}  // namespace superstep::data
