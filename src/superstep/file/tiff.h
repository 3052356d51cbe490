// TIFF files in and out (libtiff): greyscale and RGB, one or many pages, uncompressed, LZW or deflate.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "superstep/base/tensor.h"

namespace superstep::data {

// All pages of a file: [pages, height, width], or [pages, height, width, channels] when there are several.
// Elements are as in the file: u8, u16, u32, i8, i16, i32, f16, f32 or f64; one-bit images come as u8, 0
// black and 1 white. Where the file says that 0 is white (WhiteIsZero: TIFF 6.0, PhotometricInterpretation),
// numbers of every depth are turned round, so that more is brighter. A stack of ImageJ, which has one
// directory for planes that lie one after the other, is read wholly. Throws Error: not_found, bad_file
// (damaged; pages that differ in size or type), unsupported (tiles, palettes, planes apart, other colors,
// other depths), each with the file and the page.
Tensor read_tiff(const std::filesystem::path& path);

enum class TiffCompression { none, lzw, deflate };

// Writes under a temporary name; close() puts the file in place. A writer destroyed before that leaves
// nothing behind. Throws Error (io).
class TiffWriter {
 public:
  // `expected_bytes`: of all pixels; beyond 2 GB the file becomes a BigTIFF. `description` goes to the first
  // page (tag ImageDescription).
  TiffWriter(const std::filesystem::path& path, TiffCompression compression, std::uint64_t expected_bytes = 0,
             std::string description = {});
  ~TiffWriter();
  TiffWriter(const TiffWriter&) = delete;
  TiffWriter& operator=(const TiffWriter&) = delete;

  // `pixels`: [height, width, channels] of 8 bits; channels 1 (0 is black) or 3.
  void add_page(std::span<const std::uint8_t> pixels, int width, int height, int channels = 1);
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace superstep::data
