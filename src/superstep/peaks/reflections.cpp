#include "superstep/peaks/reflections.h"

#include <algorithm>
#include <cmath>

#include "superstep/peaks/spot/link.h"

namespace superstep::peaks {
namespace {

Reflection mean_of(std::span<const FoundSpot> spots, std::span<const std::size_t> own) {
  Reflection mean{.first_frame = spots[own[0]].frame};
  for (const std::size_t i : own) {
    const FoundSpot& spot = spots[i];
    mean.intensity += spot.intensity;
    mean.row += spot.intensity * spot.found_row;
    mean.column += spot.intensity * spot.found_column;
    mean.frame += spot.intensity * static_cast<double>(spot.frame);
    mean.row_sigma += std::pow(spot.intensity * spot.row_sigma, 2);
    mean.column_sigma += std::pow(spot.intensity * spot.column_sigma, 2);
    mean.maximum = std::max(mean.maximum, spot.maximum);
    mean.pixels += spot.pixels;
    mean.flags |= spot.flags;
    mean.last_frame = std::max(mean.last_frame, spot.frame);
    ++mean.spots;
  }
  for (double* sum : {&mean.row, &mean.column, &mean.frame}) *sum /= mean.intensity;
  for (double* sum : {&mean.row_sigma, &mean.column_sigma}) *sum = std::sqrt(*sum) / mean.intensity;
  double spread = 0;
  for (const std::size_t i : own)
    spread += spots[i].intensity * std::pow(static_cast<double>(spots[i].frame) - mean.frame, 2);
  mean.frame_width = std::sqrt(spread / mean.intensity);
  return mean;
}

// Where parts of a reflection begin among its spots; those with two spots in a frame are not cut.
std::vector<std::size_t> parts_of(std::span<const FoundSpot> spots, const std::vector<std::size_t>& own,
                                  double valley) {
  std::vector<double> intensity;
  for (const std::size_t i : own) {
    if (!intensity.empty() && spots[i].frame == spots[own[intensity.size() - 1]].frame) return {0};
    intensity.push_back(spots[i].intensity);
  }
  return valley > 0 ? parts_over_frames(intensity, valley) : std::vector<std::size_t>{0};
}

}  // namespace

Reflections merged(std::span<const FoundSpot> spots, std::span<const std::int64_t> group, double valley) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < spots.size(); ++i) {
    const auto number = static_cast<std::size_t>(group[i]);
    if (number >= groups.size()) groups.resize(number + 1);
    groups[number].push_back(i);
  }
  Reflections all{.reflections = {}, .of_spot = std::vector<std::int64_t>(spots.size())};
  for (const std::vector<std::size_t>& own : groups) {
    if (own.empty()) continue;
    std::vector<std::size_t> begins = parts_of(spots, own, valley);
    begins.push_back(own.size());
    for (std::size_t part = 0; part + 1 < begins.size(); ++part) {
      const std::span<const std::size_t> these(own.data() + begins[part], begins[part + 1] - begins[part]);
      for (const std::size_t i : these) all.of_spot[i] = static_cast<std::int64_t>(all.reflections.size());
      all.reflections.push_back(mean_of(spots, these));
      if (begins.size() > 2) all.reflections.back().flags |= overlaps;
    }
  }
  return all;
}

}  // namespace superstep::peaks
