#include "superstep/edge/live/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/integers.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/physics/xray/ptycho_stitch.h"

namespace superstep::edge {
namespace {

constexpr double one = 16777216;           // 2^24, of a sum
constexpr double farthest = 1LL << 30;     // px: where a position is still a place
constexpr double largest_value = 1 << 15;  // squares of many windows fit into 64 bits

std::int64_t fixed(double value) { return std::llround(value * one); }

std::vector<float> middle_of(std::span<const float> window, std::int64_t n, std::int64_t crop) {
  std::vector<float> values;
  const std::int64_t first = (n - crop) / 2;
  for (std::int64_t y = first; y < first + crop; ++y)
    for (std::int64_t x = first; x < first + crop; ++x)
      values.push_back(window[static_cast<std::size_t>(y * n + x)]);
  return values;
}

// On whole pixels, where a position is off by what decimals of metres leave.
double snapped(double value) {
  const double whole = std::round(value);
  return std::abs(value - whole) < 1e-6 ? whole : value;
}

}  // namespace

StitchSettings stitch_settings_from_text(const std::string& text) {
  StitchSettings settings;
  for (const std::string& word : split(text, ',')) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    std::string value = word.substr(std::min(equals + 1, word.size()));
    if (name == "pixel" && value.ends_with("nm")) value.resize(value.size() - 2);
    const auto number = finite_number(value);
    if (name == "pixel" && number && *number > 1e-3 && *number < 1e9)
      settings.pixel = *number * 1e-9;
    else if (name == "crop" && number && *number >= 1 && *number <= 4096)
      settings.crop = static_cast<std::int64_t>(*number);
    else if (name == "mean" && (value == "kept" || value == "removed"))
      settings.phase_mean = value == "removed";
    else if (name == "output" && !value.empty())
      settings.output = value;
    else
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' says nothing about stitching", word),
                  "--stitch", "pixel=10nm, crop=12, mean=kept or removed, output=NAME, separated by commas");
  }
  return settings;
}

std::vector<StitchCanvas::Deposit> StitchCanvas::deposits(std::span<const float> values, std::int64_t crop,
                                                          double top, double left) const {
  const auto row = static_cast<std::int64_t>(std::floor(top)),
             column = static_cast<std::int64_t>(std::floor(left));
  const double fy = top - static_cast<double>(row), fx = left - static_cast<double>(column);
  std::vector<Deposit> all;
  for (std::int64_t y = 0; y < crop; ++y)
    for (std::int64_t x = 0; x < crop; ++x) {
      const double value = values[static_cast<std::size_t>(y * crop + x)];
      for (const std::int64_t dy : {0, 1})
        for (const std::int64_t dx : {0, 1}) {
          const double share = (dy == 1 ? fy : 1 - fy) * (dx == 1 ? fx : 1 - fx);
          if (share == 0) continue;
          all.push_back({row + y + dy,
                         column + x + dx,
                         {fixed(share * value), fixed(share * value * value), fixed(share)}});
        }
    }
  return all;
}

bool StitchCanvas::add(std::span<const float> window, std::int64_t n, std::pair<double, double> position) {
  const std::int64_t crop = std::min(settings_.crop, n);
  std::vector<float> values = middle_of(window, n, crop);
  for (const float value : values)
    if (!(std::abs(value) < largest_value)) return false;
  const double half = static_cast<double>(crop) / 2;
  const double top = snapped(position.first / settings_.pixel - half),
               left = snapped(position.second / settings_.pixel - half);
  if (!(std::abs(top) < farthest && std::abs(left) < farthest)) return false;
  if (settings_.phase_mean) data::remove_circular_mean(values);
  const std::vector<Deposit> all = deposits(values, crop, top, left);
  std::set<Place> wanted;
  for (const Deposit& deposit : all) wanted.insert({floor_div(deposit.y, side), floor_div(deposit.x, side)});
  std::size_t more = 0;
  for (const Place& place : wanted) more += !tiles_.contains(place);
  if (tiles_.size() + more > settings_.most_tiles) return false;
  for (const Place& place : wanted) tiles_.try_emplace(place, static_cast<std::size_t>(side * side));
  for (const Deposit& deposit : all) {
    const Place place{floor_div(deposit.y, side), floor_div(deposit.x, side)};
    Cell& cell = tiles_.at(place)[static_cast<std::size_t>((deposit.y - place.first * side) * side +
                                                           deposit.x - place.second * side)];
    cell.sum += deposit.cell.sum;
    cell.square += deposit.cell.square;
    cell.weight += deposit.cell.weight;
  }
  ++added_;
  return true;
}

StitchedPicture StitchCanvas::picture() const {
  std::int64_t top = INT64_MAX, left = INT64_MAX, bottom = INT64_MIN, right = INT64_MIN;
  const auto for_cells = [this](const auto& use) {
    for (const auto& [place, tile] : tiles_)
      for (std::int64_t i = 0; i < side * side; ++i)
        if (const Cell& cell = tile[static_cast<std::size_t>(i)]; cell.weight > 0)
          use(place.first * side + i / side, place.second * side + i % side, cell);
  };
  for_cells([&](std::int64_t y, std::int64_t x, const Cell&) {
    top = std::min(top, y), bottom = std::max(bottom, y), left = std::min(left, x),
    right = std::max(right, x);
  });
  if (bottom < top) return {};
  StitchedPicture picture{.top = top,
                          .left = left,
                          .height = static_cast<int>(bottom - top + 1),
                          .width = static_cast<int>(right - left + 1)};
  const auto pixels = static_cast<std::size_t>(picture.height) * static_cast<std::size_t>(picture.width);
  picture.mean.assign(pixels, std::numeric_limits<float>::quiet_NaN());
  picture.spread = picture.mean;
  picture.weight.assign(pixels, 0);
  for_cells([&](std::int64_t y, std::int64_t x, const Cell& cell) {
    const auto at = static_cast<std::size_t>((y - top) * picture.width + x - left);
    const double weight = static_cast<double>(cell.weight), mean = static_cast<double>(cell.sum) / weight;
    picture.mean[at] = static_cast<float>(mean);
    picture.spread[at] =
        static_cast<float>(std::sqrt(std::max(0.0, static_cast<double>(cell.square) / weight - mean * mean)));
    picture.weight[at] = static_cast<float>(weight / one);
  });
  return picture;
}

}  // namespace superstep::edge
