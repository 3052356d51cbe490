#include "superstep/target/cpu/kernels/fourier/fourier_lines.h"

#include <algorithm>

namespace superstep::kernels {

namespace {

// Numbers of a line that a bundle keeps in the second-level cache, three times over: longer lines come in
// bundles of fewer.
constexpr std::int64_t numbers_in_cache = 32 * 1024;
constexpr std::int64_t least_width = 4;

}  // namespace

std::vector<FourierDimension> joined_dimensions(std::vector<FourierDimension> dimensions) {
  std::erase_if(dimensions, [](const FourierDimension& d) { return d.count == 1; });
  std::ranges::stable_sort(dimensions, std::greater<>(), &FourierDimension::x);
  std::vector<FourierDimension> joined;
  for (const FourierDimension& d : dimensions) {
    const bool one = !joined.empty() && joined.back().x == d.count * d.x && joined.back().y == d.count * d.y;
    if (one)
      joined.back() = {joined.back().count * d.count, d.x, d.y};
    else
      joined.push_back(d);
  }
  return joined;
}

FourierOffset offset_of(std::span<const FourierDimension> dimensions, std::int64_t number) {
  FourierOffset offset;
  for (std::size_t i = dimensions.size(); i-- > 0;) {
    const FourierDimension& d = dimensions[i];
    offset.x += number % d.count * d.x;
    offset.y += number % d.count * d.y;
    number /= d.count;
  }
  return offset;
}

std::int64_t count_of(std::span<const FourierDimension> dimensions) {
  std::int64_t count = 1;
  for (const FourierDimension& d : dimensions) count *= d.count;
  return count;
}

FourierBundles bundles_of(std::vector<FourierDimension> dimensions, std::int64_t unit, std::int64_t lanes,
                          std::int64_t length) {
  FourierBundles bundles;
  bundles.others = joined_dimensions(std::move(dimensions));
  const auto width = [&](const FourierDimension& d) { return std::min(d.count, lanes); };
  // Neighbours are read as they lie; otherwise as many lines as there are.
  auto best = bundles.others.end();
  for (auto d = bundles.others.begin(); d != bundles.others.end(); ++d) {
    const bool neighbours = d->x == unit && 2 * d->count >= lanes;
    if (best == bundles.others.end() || neighbours || width(*d) > width(*best)) best = d;
    if (neighbours) break;
  }
  if (best != bundles.others.end()) {
    bundles.side = *best;
    bundles.others.erase(best);
  }
  const std::int64_t fitting = std::max(numbers_in_cache / std::max<std::int64_t>(1, length), least_width);
  bundles.width = std::max<std::int64_t>(1, std::min(width(bundles.side), fitting));
  return bundles;
}

}  // namespace superstep::kernels
