// Grey pictures through JPEG, the codec that learned compression is held against.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "superstep/base/thread_pool.h"

namespace superstep::baseline {

struct GreyImages {
  std::span<const std::uint8_t> pixels;  // [images, height, width]
  int width = 0, height = 0;
};

struct JpegImages {
  std::vector<std::uint8_t> pixels;  // as they come back
  double bytes = 0;                  // of an image, on average
  int quality = 0;                   // 1 to 100
};

// An image counts as the stream of its own: what all have in common (tables of quantisation and of the
// entropy code) is left out, as one file of many small pictures would. Throws Error (unsupported) with the
// words of the library where it refuses a picture.
JpegImages through_jpeg(const GreyImages& images, int quality, ThreadPool& pool);

// At the best quality whose images take at most so many bytes on average; nothing where none does.
std::optional<JpegImages> through_jpeg_within(const GreyImages& images, double bytes, ThreadPool& pool);

// Their peak signal to noise, dB, on a scale of 0 to 255.
std::optional<double> psnr_of_jpeg(const GreyImages& images, double bytes, ThreadPool& pool);

}  // namespace superstep::baseline
