#include "superstep/peaks/spot/frame_spots.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace superstep::peaks {
namespace {

struct Sums {
  double weight = 0, row = 0, column = 0;                // of values above the background
  double counts = 0, row_spread = 0, column_spread = 0;  // about the centroid, by counts
  float maximum = 0;
  std::int32_t pixels = 0, at_row = 0, at_column = 0;
};

// `add(sums, row, column, value)` for every pixel of every region.
template <class Add>
void for_pixels_of(const Runs& runs, std::vector<Sums>& sums, Add add) {
  for (const PixelRun& run : runs.runs)
    for (std::int32_t i = 0; i < run.size(); ++i)
      add(sums[static_cast<std::size_t>(run.label)], run.row, run.begin + i,
          runs.values[run.first + static_cast<std::uint32_t>(i)]);
}

std::vector<Sums> sums_of(const Runs& runs, int regions, double background) {
  std::vector<Sums> sums(static_cast<std::size_t>(regions));
  for_pixels_of(runs, sums, [&](Sums& sum, std::int32_t row, std::int32_t column, float value) {
    const double weight = std::max(0.0, double{value} - background);
    sum.weight += weight;
    sum.row += weight * row;
    sum.column += weight * column;
    if (sum.pixels++ > 0 && value <= sum.maximum) return;
    sum.maximum = value;
    sum.at_row = row;
    sum.at_column = column;
  });
  for (Sums& sum : sums) {
    if (!(sum.weight > 0)) continue;
    sum.row /= sum.weight;
    sum.column /= sum.weight;
  }
  for_pixels_of(runs, sums, [&](Sums& sum, std::int32_t row, std::int32_t column, float value) {
    const double counts = std::max(0.0, double{value});
    sum.row_spread += counts * (row - sum.row) * (row - sum.row);
    sum.column_spread += counts * (column - sum.column) * (column - sum.column);
  });
  return sums;
}

// A pixel without data: the mean of those around it that have; the background where none has.
float filled(const Frame& frame, std::int32_t row, std::int32_t column, float background) {
  float sum = 0;
  int count = 0;
  for (std::int32_t r = std::max(0, row - 1); r <= std::min(frame.height() - 1, row + 1); ++r)
    for (std::int32_t c = std::max(0, column - 1); c <= std::min(frame.width() - 1, column + 1); ++c) {
      float value = 0;
      frame.values(
          static_cast<std::size_t>(r) * static_cast<std::size_t>(frame.width()) + static_cast<std::size_t>(c),
          {&value, 1});
      if (!std::isnan(value)) sum += value, ++count;
    }
  return count > 0 ? sum / static_cast<float>(count) : background;
}

// Pixels of the patch by their region: `own`, another spot's (background), or none.
void erase_others(const FrameSpots& found, int label, std::int32_t row, std::int32_t first_column, bool clean,
                  std::span<float> line) {
  const float empty = clean ? 0 : static_cast<float>(found.level.background);
  const auto end = first_column + static_cast<std::int32_t>(line.size());
  auto run = std::ranges::lower_bound(found.runs, std::pair(row, first_column), {},
                                      [](const PixelRun& r) { return std::pair(r.row, r.end); });
  std::int32_t next = first_column;  // all before it is done
  for (; run != found.runs.end() && run->row == row && run->begin < end; ++run) {
    const std::int32_t begin = std::clamp(run->begin, first_column, end),
                       behind = std::clamp(run->end, first_column, end);
    if (clean) std::fill(line.begin() + (next - first_column), line.begin() + (begin - first_column), empty);
    const bool erases = clean ? run->label != label : run->label >= 0 && run->label != label;
    if (erases)
      std::fill(line.begin() + (begin - first_column), line.begin() + (behind - first_column), empty);
    next = std::max(next, behind);
  }
  if (clean) std::fill(line.begin() + (next - first_column), line.end(), empty);
}

// One row of a patch, its part within the frame. Says whether pixels of it have no data.
bool take_line(const Frame& frame, std::int32_t row, std::int32_t column, float background,
               std::span<float> line) {
  frame.values(static_cast<std::size_t>(row) * static_cast<std::size_t>(frame.width()) +
                   static_cast<std::size_t>(column),
               line);
  bool gaps = false;
  for (std::size_t i = 0; i < line.size(); ++i)
    if (std::isnan(line[i]))
      gaps = true, line[i] = filled(frame, row, column + static_cast<std::int32_t>(i), background);
  return gaps;
}

void take_patch(const Frame& frame, FrameSpots& found, int label, const FindSettings& settings,
                std::span<float> patch) {
  FoundSpot& spot = found.spots[static_cast<std::size_t>(label)];
  const int size = settings.patch;
  const std::int32_t first_row = patch_begin(spot.row, size), first_column = patch_begin(spot.column, size);
  const std::int32_t left = std::max(0, first_column), right = std::min(frame.width(), first_column + size);
  if (left > first_column || right < first_column + size) spot.flags |= at_edge;
  std::ranges::fill(patch, settings.clean ? 0 : static_cast<float>(found.level.background));
  for (std::int32_t row = first_row; row < first_row + size; ++row) {
    if (row < 0 || row >= frame.height()) {
      spot.flags |= at_edge;
      continue;
    }
    const std::span<float> line =
        patch.subspan(static_cast<std::size_t>((row - first_row) * size + left - first_column),
                      static_cast<std::size_t>(right - left));
    if (take_line(frame, row, left, static_cast<float>(found.level.background), line)) spot.flags |= has_gaps;
    erase_others(found, label, row, left, settings.clean, line);
  }
}

// The median of the rim of a patch: what a spot stands on. The background where the rim has no data.
double surroundings(const Frame& frame, const Sums& spot, int size, double background) {
  std::vector<float> rim;
  const std::int32_t top = patch_begin(spot.at_row, size), left = patch_begin(spot.at_column, size);
  const auto take = [&](std::int32_t row, std::int32_t column) {
    if (row < 0 || row >= frame.height() || column < 0 || column >= frame.width()) return;
    float value = 0;
    frame.values(static_cast<std::size_t>(row) * static_cast<std::size_t>(frame.width()) +
                     static_cast<std::size_t>(column),
                 {&value, 1});
    if (!std::isnan(value)) rim.push_back(value);
  };
  for (std::int32_t i = 0; i < size - 1; ++i) {
    take(top, left + i);
    take(top + i, left + size - 1);
    take(top + size - 1, left + size - 1 - i);
    take(top + size - 1 - i, left);
  }
  if (rim.empty()) return background;
  const auto middle = rim.begin() + static_cast<std::ptrdiff_t>(rim.size() / 2);
  std::ranges::nth_element(rim, middle);
  return double{*middle};
}

// Counts above the background add their own variance to the background's.
bool stands_out(const Frame& frame, const Sums& spot, const Level& level, const FindSettings& settings) {
  if (!(settings.contrast > 0) || settings.patch < 3) return true;
  const double around = surroundings(frame, spot, settings.patch, level.background);
  const double variance = level.sigma * level.sigma + std::max(0.0, around - level.background);
  return double{spot.maximum} - around > settings.contrast * std::sqrt(variance);
}

}  // namespace

// Regions become spots; those that are none have no label.
void SpotFinder::sum_up(const Frame& frame, FrameSpots& found, int regions,
                        const std::vector<std::int32_t>& component) const {
  const std::vector<Sums> sums = sums_of(runs_, regions, found.level.background);
  std::vector<std::int32_t> label(sums.size(), -1);
  std::vector<int> spots_of(component.empty() ? 0 : static_cast<std::size_t>(component.back()) + 1);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Sums& sum = sums[i];
    if (sum.pixels < settings_.least_pixels || !(sum.weight > 0) ||
        !stands_out(frame, sum, found.level, settings_))
      continue;
    label[i] = static_cast<std::int32_t>(found.spots.size());
    ++spots_of[static_cast<std::size_t>(component[i])];
    found.spots.push_back({.frame = found.frame,
                           .row = sum.at_row,
                           .column = sum.at_column,
                           .maximum = sum.maximum - static_cast<float>(found.level.background),
                           .intensity = sum.weight,
                           .pixels = sum.pixels,
                           .row_sigma = std::sqrt(sum.row_spread) / sum.weight,
                           .column_sigma = std::sqrt(sum.column_spread) / sum.weight});
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (label[i] >= 0 && spots_of[static_cast<std::size_t>(component[i])] > 1)
      found.spots[static_cast<std::size_t>(label[i])].flags |= overlaps;
  found.runs = runs_.runs;
  for (PixelRun& run : found.runs) run.label = label[static_cast<std::size_t>(run.label)];
}

FrameSpots SpotFinder::find(const Frame& frame, std::int64_t number) {
  FrameSpots found{.frame = number, .level = level_of(frame)};
  found.threshold = settings_.threshold.above(found.level);
  find_runs(frame, found.threshold, runs_);
  const int components = label_runs(runs_.runs);
  std::vector<std::int32_t> component(static_cast<std::size_t>(components));
  std::iota(component.begin(), component.end(), 0);
  const int regions = settings_.part
                          ? watershed_.part(runs_, components, {settings_.valley, found.level}, component)
                          : components;
  sum_up(frame, found, regions, component);
  const auto area = static_cast<std::size_t>(settings_.patch) * static_cast<std::size_t>(settings_.patch);
  found.patches.resize(found.spots.size() * area);
  for (std::size_t i = 0; i < found.spots.size(); ++i)
    take_patch(frame, found, static_cast<int>(i), settings_,
               std::span(found.patches).subspan(i * area, area));
  return found;
}

}  // namespace superstep::peaks
