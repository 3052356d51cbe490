#include "superstep/physics/xray/bragg_patches.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "superstep/physics/imaging/components.h"

namespace superstep::data {
namespace {

struct Summit {
  float height = 0;
  int pixel = 0;
};

// The highest pixel of every component; the first in scan order where there are several.
void find_summits(std::span<const float> patch, std::span<const std::int32_t> labels,
                  std::vector<Summit>& summits) {
  for (std::size_t i = 0; i < patch.size(); ++i) {
    Summit& summit = summits[static_cast<std::size_t>(labels[i])];
    if (labels[i] > 0 && patch[i] > summit.height) summit = {patch[i], static_cast<int>(i)};
  }
}

// The component whose summit is nearest to the middle.
int central_component(std::span<const Summit> summits, int size) {
  int nearest = 0, least = std::numeric_limits<int>::max();
  for (std::size_t label = 1; label < summits.size(); ++label) {
    const int row = summits[label].pixel / size - size / 2, column = summits[label].pixel % size - size / 2;
    if (row * row + column * column >= least) continue;
    least = row * row + column * column;
    nearest = static_cast<int>(label);
  }
  return nearest;
}

}  // namespace

void crop(std::span<const float> image, int width, int height, int first_column, int first_row, int size,
          std::span<float> patch) {
  const int begin = std::clamp(-first_column, 0, size), end = std::clamp(width - first_column, begin, size);
  for (int row = 0; row < size; ++row) {
    float* out = &patch[static_cast<std::size_t>(row * size)];
    const int from = first_row + row;
    std::fill_n(out, size, 0.0f);
    if (from < 0 || from >= height || begin == end) continue;
    const float* first = image.data() + static_cast<std::ptrdiff_t>(from) * width + (first_column + begin);
    std::copy(first, first + (end - begin), out + begin);
  }
}

void keep_central_component(std::span<float> patch, int size) {
  thread_local std::vector<std::int32_t> labels, stack;  // called for every patch of every batch
  thread_local std::vector<Summit> summits;
  labels.resize(patch.size());
  const int count = label_components<float>(patch, size, size, labels, stack);
  if (count == 0) return;
  summits.assign(static_cast<std::size_t>(count) + 1, {});
  find_summits(patch, labels, summits);
  const int keep = central_component(summits, size);
  for (std::size_t i = 0; i < patch.size(); ++i)
    if (labels[i] != keep) patch[i] = 0;
}

void scale_to_unit(std::span<float> patch) {
  const auto [low, high] = std::ranges::minmax(patch);
  const float range = high > low ? high - low : 1;
  for (float& value : patch) value = (value - low) / range;
}

int crop_origin(double position, int size) { return static_cast<int>(position) - size / 2; }

}  // namespace superstep::data
