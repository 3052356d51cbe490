#include "superstep/workload/vision/brain_volumes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

namespace superstep::workload {
namespace {

constexpr std::size_t levels = 256;  // of a byte

// Published bounds of what is varied, and the percentiles that volumes are clipped at.
constexpr double scale_by = 0.05, turn_by = 15 * std::numbers::pi / 180;
constexpr double low_share = 0.10, high_share = 0.99;

// The grey level that a share of the voxels does not exceed.
double level_of_share(const std::vector<double>& histogram, double share) {
  double total = 0, seen = 0;
  for (const double count : histogram) total += count;
  for (std::size_t level = 0; level < histogram.size(); ++level)
    if ((seen += histogram[level]) >= share * total) return static_cast<double>(level);
  return static_cast<double>(histogram.size() - 1);
}

// Of a plane [size, size], between its pixels.
double interpolated(std::span<const float> plane, std::int64_t size, double x, double y) {
  const double most = static_cast<double>(size - 1);
  x = std::clamp(x, 0.0, most);
  y = std::clamp(y, 0.0, most);
  const auto left = std::min(static_cast<std::int64_t>(x), std::max<std::int64_t>(0, size - 2)),
             top = std::min(static_cast<std::int64_t>(y), std::max<std::int64_t>(0, size - 2));
  const double u = x - static_cast<double>(left), v = y - static_cast<double>(top);
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return static_cast<double>(
        plane[static_cast<std::size_t>(std::min(row, size - 1) * size + std::min(column, size - 1))]);
  };
  return (1 - v) * ((1 - u) * at(top, left) + u * at(top, left + 1)) +
         v * ((1 - u) * at(top + 1, left) + u * at(top + 1, left + 1));
}

float nearest(std::span<const float> plane, std::int64_t size, double x, double y) {
  const auto column = std::llround(x), row = std::llround(y);
  const bool inside = column >= 0 && row >= 0 && column < size && row < size;
  return inside ? plane[static_cast<std::size_t>(row * size + column)] : 0.0f;
}

// Where a pixel of the varied slice comes from.
struct Motion {
  double cosine = 1, sine = 0, middle = 0;
  bool mirrored = false;

  std::pair<double, double> source(std::int64_t column, std::int64_t row) const {
    double x = static_cast<double>(column) - middle;
    const double y = static_cast<double>(row) - middle;
    if (mirrored) x = -x;
    return {middle + cosine * x + sine * y, middle - sine * x + cosine * y};
  }
};

}  // namespace

VolumeScales::Channel VolumeScales::scale_of(const std::vector<double>& histogram) {
  Channel channel{.low = level_of_share(histogram, low_share), .high = level_of_share(histogram, high_share)};
  double count = 0, sum = 0, squares = 0;
  for (std::size_t level = 0; level < levels; ++level) {
    const double value = std::clamp(static_cast<double>(level), channel.low, channel.high);
    count += histogram[level];
    sum += histogram[level] * value;
    squares += histogram[level] * value * value;
  }
  channel.mean = sum / std::max(1.0, count);
  const double variance = squares / std::max(1.0, count) - channel.mean * channel.mean;
  channel.per_unit = channel.high > channel.low ? 1 / std::sqrt(variance) : 0;
  return channel;
}

VolumeScales::VolumeScales(const Tensor& slices, const Tensor* volumes)
    : planes_(static_cast<std::size_t>(slices.shape()[1])) {
  const auto bytes = slices.as<std::uint8_t>();
  const auto count = static_cast<std::size_t>(slices.shape()[0]);
  const std::size_t plane = bytes.size() / std::max<std::size_t>(1, count * planes_);
  std::map<double, std::size_t> numbers;
  std::vector<std::vector<double>> histograms;
  for (std::size_t i = 0; i < count; ++i) {
    const double name = volumes ? volumes->at(static_cast<std::int64_t>(i)) : 0;
    const auto [found, is_new] = numbers.try_emplace(name, numbers.size());
    if (is_new) histograms.resize(histograms.size() + planes_, std::vector<double>(levels));
    volume_of_.push_back(found->second);
    for (std::size_t c = 0; c < planes_; ++c)
      for (const std::uint8_t value : bytes.subspan((i * planes_ + c) * plane, plane))
        ++histograms[found->second * planes_ + c][value];
  }
  for (const auto& histogram : histograms) channels_.push_back(scale_of(histogram));
}

void VolumeScales::scale(const Tensor& slices, std::int64_t index, std::span<float> row) const {
  const std::size_t slice = static_cast<std::size_t>(index), plane = row.size() / planes_;
  const auto bytes = slices.as<std::uint8_t>().subspan(slice * row.size(), row.size());
  for (std::size_t c = 0; c < planes_; ++c) {
    const Channel& channel = channels_[volume_of_[slice] * planes_ + c];
    for (std::size_t i = c * plane; i < (c + 1) * plane; ++i)
      row[i] = static_cast<float>(
          (std::clamp(static_cast<double>(bytes[i]), channel.low, channel.high) - channel.mean) *
          channel.per_unit);
  }
}

void vary_slice(RandomStream& random, std::int64_t size, std::span<float> image, std::span<float> mask) {
  const double scale = random.uniform(1 - scale_by, 1 + scale_by), angle = random.uniform(-turn_by, turn_by);
  const Motion motion{.cosine = std::cos(angle) / scale,
                      .sine = std::sin(angle) / scale,
                      .middle = static_cast<double>(size - 1) / 2,
                      .mirrored = random.uniform() < 0.5};
  const auto plane = static_cast<std::size_t>(size * size);
  const std::vector<float> slice(image.begin(), image.end()), lesion(mask.begin(), mask.end());
  for (std::int64_t row = 0; row < size; ++row)
    for (std::int64_t column = 0; column < size; ++column) {
      const auto [x, y] = motion.source(column, row);
      const auto at = static_cast<std::size_t>(row * size + column);
      for (std::size_t c = 0; c < image.size() / plane; ++c)
        image[c * plane + at] =
            static_cast<float>(interpolated(std::span(slice).subspan(c * plane, plane), size, x, y));
      if (!mask.empty()) mask[at] = nearest(lesion, size, x, y);
    }
}

}  // namespace superstep::workload
