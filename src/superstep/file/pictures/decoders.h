// Inside of the pictures' layer: the decoders of each form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "superstep/file/pictures/picture.h"

namespace superstep::data::pictures {

// A picture as it lies in its file, and how it is to be turned (Exif, tag 0x0112): 1 is upright, 2 to 8 are
// mirrored or turned; what is none of these counts as 1.
struct Decoded {
  Picture picture;
  int orientation = 1;
};

// Throw Error (bad_file, unsupported, out_of_memory) with `where`.
Decoded decode_jpeg(std::span<const std::byte> bytes, const std::string& where);
Decoded decode_png(std::span<const std::byte> bytes, const std::string& where);
Decoded decode_webp(std::span<const std::byte> bytes, const std::string& where);
Decoded decode_tiff(std::span<const std::byte> bytes, const std::string& where);

// Memory for the pixels. Throws Error (bad_file) where a header claims more of them than are believed,
// (out_of_memory) where they do not fit.
Picture blank(std::uint64_t width, std::uint64_t height, int channels, const std::string& where);

// The orientation that a block of Exif says (a TIFF header and its first directory, "Exif\0\0" in front or
// not); 1 where it says none, also of a damaged block.
int exif_orientation(std::span<const std::byte> block);

}  // namespace superstep::data::pictures
