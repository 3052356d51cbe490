#include "superstep/edge/learn/scan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace superstep::edge {
namespace {

constexpr std::uint64_t run_of_frames = 16, tenths = 10;

template <class T>
void keep_parts(std::vector<T>& all, const std::vector<bool>& kept) {
  if (all.empty()) return;
  const std::size_t values = all.size() / kept.size();
  std::size_t to = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    for (std::size_t k = 0; k < values; ++k) all[to++] = all[i * values + k];
  }
  all.resize(to);
}

}  // namespace

bool LearnScan::is_held_out(std::size_t i) const {
  if (positions.empty()) return numbers[i] / run_of_frames % tenths == tenths - 1;
  double y = 0, x = 0;
  for (const auto& position : positions) y += position.first, x += position.second;
  const double count = static_cast<double>(positions.size());
  const double angle = std::atan2(positions[i].first - y / count, positions[i].second - x / count);
  constexpr double sector = 2 * std::numbers::pi / tenths;
  return angle >= 0 && angle < sector;
}

void LearnScan::keep(const std::vector<bool>& kept) {
  keep_parts(patterns, kept);
  keep_parts(positions, kept);
  keep_parts(labels, kept);
  keep_parts(numbers, kept);
}

std::vector<LearnSample> samples_of(const LearnScan& scan, std::optional<bool> held_out) {
  std::vector<LearnSample> samples;
  for (std::size_t i = 0; i < scan.size(); ++i)
    if (!held_out || scan.is_held_out(i) == *held_out) samples.push_back({&scan, i});
  return samples;
}

std::vector<FrameFeatures> features_of_scan(const LearnScan& scan) {
  constexpr std::size_t most = 2000;
  std::vector<FrameFeatures> features;
  const std::size_t every = std::max<std::size_t>(1, scan.size() / most);
  for (std::size_t i = 0; i < scan.size(); i += every)
    features.push_back(features_of(scan.pattern(i), scan.window));
  return features;
}

bool is_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace superstep::edge
