// Slices of volumes as the published U-Net takes them: brought to one scale volume by volume, and varied
// while it trains (M. Buda et al., Comput. Biol. Med. 109, 2019).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/base/tensor.h"

namespace superstep::workload {

// Every volume's channels, clipped at their percentiles 10 and 99, less their mean and divided by their
// standard deviation. A channel that does not vary becomes 0.
class VolumeScales {
 public:
  // Slices [n, channels, height, width] of bytes; `volumes` [n]: slices of one number belong together. Null:
  // all are one volume.
  VolumeScales(const Tensor& slices, const Tensor* volumes);

  // A slice of the tensor that it was made of, [channels, height, width].
  void scale(const Tensor& slices, std::int64_t index, std::span<float> row) const;

 private:
  struct Channel {
    double low = 0, high = 0, mean = 0, per_unit = 0;
  };
  static Channel scale_of(const std::vector<double>& histogram);

  std::vector<Channel> channels_;       // of one volume after the other
  std::vector<std::size_t> volume_of_;  // by slice
  std::size_t planes_ = 0;
};

// Larger or smaller by up to 5 %, turned by up to 15 degrees about the middle, and mirrored half of the time.
// `image` [channels, size, size] is interpolated between pixels, of `mask` [size, size] the nearest is taken;
// beyond the border the image goes on as it ends, and there is no lesion.
void vary_slice(RandomStream& random, std::int64_t size, std::span<float> image, std::span<float> mask);

}  // namespace superstep::workload
