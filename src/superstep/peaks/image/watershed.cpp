#include "superstep/peaks/image/watershed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace superstep::peaks {
namespace {

// Standard deviations of the difference of two pixels: of a thousand pairs that are alike, three differ by
// more.
constexpr double sure = 3;

// The runs of each component, in their order: [begin[c], begin[c + 1]) of `runs`.
struct RunsOf {
  std::vector<std::size_t> runs, begin;
};

RunsOf runs_by_component(const std::vector<PixelRun>& runs, int components) {
  RunsOf of{std::vector<std::size_t>(runs.size()),
            std::vector<std::size_t>(static_cast<std::size_t>(components) + 1)};
  for (const PixelRun& run : runs) ++of.begin[static_cast<std::size_t>(run.label) + 1];
  std::partial_sum(of.begin.begin(), of.begin.end(), of.begin.begin());
  std::vector<std::size_t> next = of.begin;
  for (std::size_t i = 0; i < runs.size(); ++i) of.runs[next[static_cast<std::size_t>(runs[i].label)]++] = i;
  return of;
}

// Runs cut where the region of neighboring pixels differs; `region` is by the pixels of `runs.values`.
std::vector<PixelRun> cut_runs(const Runs& runs, const std::vector<std::int32_t>& region) {
  std::vector<PixelRun> cut;
  cut.reserve(runs.runs.size());
  for (const PixelRun& run : runs.runs)
    for (std::int32_t i = 0; i < run.size(); ++i) {
      const std::uint32_t at = run.first + static_cast<std::uint32_t>(i);
      if (i == 0 || region[at] != cut.back().label)
        cut.push_back({run.row, run.begin + i, run.begin + i, region[at], at});
      ++cut.back().end;
    }
  return cut;
}

}  // namespace

bool Parting::parts(double lower_maximum, double saddle) const {
  const double depth = lower_maximum - saddle;
  const double variance = std::max(0.0, lower_maximum) + std::max(0.0, saddle);
  const double noise = std::sqrt(std::max(variance, 2 * level.sigma * level.sigma));
  return depth > valley * (lower_maximum - level.background) && depth > sure * noise;
}

int Watershed::part(Runs& runs, int components, const Parting& parting,
                    std::vector<std::int32_t>& component) {
  const RunsOf of = runs_by_component(runs.runs, components);
  std::vector<std::int32_t> region(runs.values.size());
  component.clear();
  int regions = 0;
  for (std::size_t c = 0; c < static_cast<std::size_t>(components); ++c) {
    const std::span<const std::size_t> own(of.runs.data() + of.begin[c], of.begin[c + 1] - of.begin[c]);
    take(runs, own);
    flood(parting);
    const int count = number_basins(regions);
    std::size_t pixel = 0;
    for (const std::size_t r : own)
      for (std::int32_t i = 0; i < runs.runs[r].size(); ++i, ++pixel) {
        region[runs.runs[r].first + static_cast<std::uint32_t>(i)] = pixels_[pixel].basin;
        place_[static_cast<std::size_t>(pixels_[pixel].place)] = -1;
      }
    component.insert(component.end(), static_cast<std::size_t>(count), static_cast<std::int32_t>(c));
    regions += count;
  }
  runs.runs = cut_runs(runs, region);
  return regions;
}

// The pixels of a component, in a box of its own: small ones stay in the cache.
void Watershed::take(const Runs& runs, std::span<const std::size_t> own) {
  const std::int32_t top = runs.runs[own.front()].row, bottom = runs.runs[own.back()].row;
  std::int32_t left = std::numeric_limits<std::int32_t>::max(), right = 0;
  for (const std::size_t r : own) {
    left = std::min(left, runs.runs[r].begin);
    right = std::max(right, runs.runs[r].end);
  }
  stride_ = right - left + 2;
  const auto area = static_cast<std::size_t>(bottom - top + 3) * static_cast<std::size_t>(stride_);
  if (place_.size() < area) place_.resize(area, -1);
  pixels_.clear();
  for (const std::size_t r : own) {
    const PixelRun& run = runs.runs[r];
    for (std::int32_t i = 0; i < run.size(); ++i) {
      const std::int32_t place = (run.row - top + 1) * stride_ + run.begin - left + 1 + i;
      place_[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(pixels_.size());
      pixels_.push_back({place, runs.values[run.first + static_cast<std::uint32_t>(i)], -1});
    }
  }
}

void Watershed::flood(const Parting& parting) {
  order_.clear();
  for (std::size_t i = 0; i < pixels_.size(); ++i)
    order_.push_back({pixels_[i].value, static_cast<std::int32_t>(i)});
  std::ranges::sort(order_, [](const Ranked& a, const Ranked& b) {
    return a.value != b.value ? a.value > b.value : a.pixel < b.pixel;
  });
  basins_.clear();
  for (const Ranked& next : order_) flood_pixel(next.pixel, parting);
}

// The pixel joins its highest neighbor of those that are flooded, and the basins around it meet in it.
void Watershed::flood_pixel(std::int32_t now, const Parting& parting) {
  Pixel& pixel = pixels_[static_cast<std::size_t>(now)];
  const std::int32_t around[] = {-stride_ - 1, -stride_, -stride_ + 1, -1, 1,
                                 stride_ - 1,  stride_,  stride_ + 1};
  std::array<std::int32_t, std::size(around)> basins{};
  std::size_t count = 0;
  const Pixel* highest = nullptr;
  for (const std::int32_t off : around) {
    const std::int32_t at = place_[static_cast<std::size_t>(pixel.place + off)];
    if (at < 0) continue;
    const Pixel& other = pixels_[static_cast<std::size_t>(at)];
    if (other.basin < 0) continue;
    basins[count++] = other.basin;
    if (!highest || other.value > highest->value) highest = &other;
  }
  if (!highest) {
    pixel.basin = static_cast<std::int32_t>(basins_.size());
    basins_.push_back({pixel.value, pixel.basin});
    return;
  }
  pixel.basin = highest->basin;
  for (std::size_t i = 0; i < count; ++i)
    if (basins[i] != pixel.basin) meet(pixel.basin, basins[i], pixel.value, parting);
}

std::int32_t Watershed::find(std::int32_t basin) {
  const auto root = [&](std::int32_t b) -> std::int32_t& {
    return basins_[static_cast<std::size_t>(b)].root;
  };
  while (root(basin) != basin) basin = root(basin) = root(root(basin));
  return basin;
}

// Basins are numbered from the highest maximum down: the later one is the lower.
void Watershed::meet(std::int32_t a, std::int32_t b, float saddle, const Parting& parting) {
  a = find(a), b = find(b);
  if (a == b) return;
  const auto [higher, lower] = std::minmax(a, b);
  Basin& below = basins_[static_cast<std::size_t>(lower)];
  if (!parting.parts(double{below.maximum}, double{saddle})) below.root = higher;
}

// Basins of pixels become regions, from `first` on in the order in which a scan meets them. Returns how many.
int Watershed::number_basins(int first) {
  number_.assign(basins_.size(), -1);
  int count = 0;
  for (Pixel& pixel : pixels_) {
    std::int32_t& number = number_[static_cast<std::size_t>(find(pixel.basin))];
    if (number < 0) number = first + count++;
    pixel.basin = number;
  }
  return count;
}

}  // namespace superstep::peaks
