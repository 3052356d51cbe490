// A stitched picture in files that others open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "superstep/edge/live/canvas.h"

namespace superstep::edge {

struct PictureFacts {
  std::string series, model, version;
  double pixel = 0;                                              // m
  std::map<std::uint64_t, std::pair<double, double>> positions;  // m (y, x), of every frame in the picture
};

// CXI, as far as it is of results: /entry_1/image_1 with the picture, its spread and weight, and
// /entry_1/sample_1/geometry_1/translation; the entry's `definition` says NXcxi_ptycho. Throws Error (io).
void write_picture_cxi(const std::filesystem::path& path, const StitchedPicture& picture,
                       const PictureFacts& facts);
// Greyscale of 8 bits; which values black and white are is in the tag ImageDescription. Throws Error (io).
void write_picture_tiff(const std::filesystem::path& path, const StitchedPicture& picture,
                        const PictureFacts& facts);

}  // namespace superstep::edge
