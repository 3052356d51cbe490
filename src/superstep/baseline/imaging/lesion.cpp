#include "superstep/baseline/imaging/lesion.h"

#include <algorithm>
#include <cmath>

#include "superstep/baseline/imaging/bias_field.h"
#include "superstep/baseline/imaging/segment.h"
#include "superstep/baseline/ptychography/face_neighbours.h"

namespace superstep::baseline {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr int growing_rounds = 4;

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments_of(std::span<const std::uint8_t> values, const Bytes& region) {
  double count = 0, sum = 0, squares = 0;
  for (std::size_t i = 0; i < region.size(); ++i)
    if (region[i]) ++count, sum += values[i], squares += double{1} * values[i] * values[i];
  if (count == 0) return {};
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
}

// Adds to `region` what its voxels reach through faces where `open` is not 0.
void flood(const Bytes& open, Bytes& region, int width, int height, int depth) {
  const Extents extents{static_cast<std::size_t>(width), static_cast<std::size_t>(height),
                        static_cast<std::size_t>(depth)};
  std::vector<std::size_t> queue;
  for (std::size_t at = 0; at < region.size(); ++at)
    if (region[at]) queue.push_back(at);
  const auto visit = [&](std::size_t at) {
    if (!open[at] || region[at]) return;
    region[at] = 1;
    queue.push_back(at);
  };
  for (std::size_t next = 0; next < queue.size(); ++next)
    for_each_face_neighbour(queue[next], extents, visit);
}

}  // namespace

Bytes grow_region(std::span<const std::uint8_t> values, std::span<const std::uint8_t> allowed, Bytes region,
                  int width, int height, int depth, double deviations, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const Moments moments = moments_of(values, region);
    const double lowest = moments.mean - deviations * moments.deviation;
    Bytes open(region.size()), grown = region;
    for (std::size_t i = 0; i < open.size(); ++i) open[i] = allowed[i] && values[i] >= lowest;
    flood(open, grown, width, height, depth);
    if (grown == region) break;
    region = std::move(grown);
  }
  return region;
}

Bytes extract_brain(std::span<const std::uint8_t> flair, int width, int height, int slices) {
  const int threshold = otsu_thresholds(flair, 2)[0];
  Bytes bright(flair.size());
  std::transform(flair.begin(), flair.end(), bright.begin(),
                 [&](std::uint8_t value) { return value > threshold; });
  return largest_component(bright, width, height, slices);
}

Bytes segment_lesion(std::span<const std::uint8_t> flair, int width, int height, int slices,
                     const LesionSettings& settings) {
  const Bytes brain = extract_brain(flair, width, height, slices);
  Bytes grey(flair.begin(), flair.end());
  if (settings.correct_bias) grey = without_gain(grey, estimate_gain(grey, brain, width, height, slices, {}));
  Bytes inside, bright(brain.size());
  for (std::size_t i = 0; i < brain.size(); ++i)
    if (brain[i]) inside.push_back(grey[i]);
  const int threshold = otsu_thresholds(inside, settings.classes).back();
  for (std::size_t i = 0; i < brain.size(); ++i) bright[i] = brain[i] && grey[i] > threshold;
  const Bytes lesion = largest_component(bright, width, height, slices);
  if (!(settings.growth > 0)) return lesion;
  return grow_region(grey, brain, lesion, width, height, slices, settings.growth, growing_rounds);
}

}  // namespace superstep::baseline
