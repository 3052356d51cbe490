// Colour images with masks, in volumes of patients, wherever they lie.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

namespace superstep::baseline {

// An HDF5 file with `image` u8 [n, 3, height, width] and, where known, `mask` [n, height, width] and
// `patient` [n]; or a folder of TIFF files as the LGG segmentation set ("kaggle_3m") has them:
// CASE/CASE_NUMBER.tif with three channels of 8 bits and CASE/CASE_NUMBER_mask.tif, not 0 where the lesion
// is. All images are of one size. Throws Error that names the file: not_found, bad_file (no images, another
// shape, a mask that is missing while others are there).
class MaskedImages {
 public:
  explicit MaskedImages(const std::filesystem::path& path);
  ~MaskedImages();

  std::int64_t count() const;
  int height() const;
  int width() const;
  std::size_t plane() const { return static_cast<std::size_t>(height()) * static_cast<std::size_t>(width()); }
  bool labelled() const;

  // Runs of images of one patient, as first and count; without patients, everything is one volume.
  std::vector<std::pair<std::int64_t, std::int64_t>> volumes() const;
  std::vector<std::uint8_t> channel(int which, std::int64_t first, std::int64_t images) const;
  std::vector<std::uint8_t> masks(std::int64_t first, std::int64_t images) const;  // 0 and 1

  class Source;

 private:
  std::unique_ptr<Source> source_;
};

}  // namespace superstep::baseline
