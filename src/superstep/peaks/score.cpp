#include "superstep/peaks/score.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "superstep/base/statistics.h"
#include "superstep/file/form.h"
#include "superstep/file/hdf5/hdf5.h"

namespace superstep::peaks {
namespace {

std::vector<double> column(const data::Hdf5File& file, const char* name, std::int64_t count) {
  const std::int64_t shape[] = {count};
  const Tensor values = file.read(name, ElementType::f64, shape);
  return {values.as<double>().begin(), values.as<double>().end()};
}

// Places by squares of a grid, so that near ones are found without looking at all.
class Grid {
 public:
  Grid(std::span<const Place> places, double side) : places_(places), side_(side) {
    for (std::size_t i = 0; i < places.size(); ++i) squares_[square(places[i], 0, 0)].push_back(i);
  }
  template <class Visit>
  void near(const Place& place, Visit visit) const {
    for (int down = -1; down <= 1; ++down)
      for (int right = -1; right <= 1; ++right)
        if (const auto found = squares_.find(square(place, down, right)); found != squares_.end())
          for (const std::size_t i : found->second) visit(i, places_[i]);
  }

 private:
  using Square = std::pair<std::int64_t, std::int64_t>;
  Square square(const Place& place, int down, int right) const {
    return {static_cast<std::int64_t>(std::floor(place.row / side_)) + down,
            static_cast<std::int64_t>(std::floor(place.column / side_)) + right};
  }
  std::span<const Place> places_;
  double side_;
  std::map<Square, std::vector<std::size_t>> squares_;
};

double apart(const Place& a, const Place& b) { return std::hypot(a.row - b.row, a.column - b.column); }

struct Pair {
  double distance = 0;
  std::size_t found = 0, truth = 0;
};

std::vector<Pair> pairs_within(std::span<const Place> found, std::span<const Place> truth,
                               const ScoreSettings& settings) {
  const Grid grid(truth, settings.reach);
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < found.size(); ++i)
    grid.near(found[i], [&](std::size_t j, const Place& place) {
      const double distance = apart(found[i], place);
      if (distance <= settings.reach && std::abs(found[i].frame - place.frame) <= settings.frame_reach)
        pairs.push_back({distance, i, j});
    });
  std::ranges::stable_sort(pairs, {}, &Pair::distance);
  return pairs;
}

double mean_of(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return mean(all);
}

}  // namespace

std::optional<Truth> read_truth(const std::filesystem::path& frames, bool merged) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(frames, none) || data::form_of(frames) != data::FileForm::hdf5)
    return {};
  const data::Hdf5File file(frames);
  const bool turning = file.contains("spot_frame");
  if (!turning && !file.contains("peak_fidx")) return {};
  const bool reflections = turning && merged;
  const std::vector<double> row = column(file, reflections ? "spot_row" : "peak_row", -1);
  const auto count = static_cast<std::int64_t>(row.size());
  const std::vector<double> across = column(file, reflections ? "spot_col" : "peak_col", count),
                            frame = column(file, reflections ? "spot_frame" : "peak_fidx", count);
  // Files of others have no amplitudes: all are expected.
  const char* const height = reflections ? "spot_amplitude" : "amplitude";
  const std::vector<double> amplitude =
      file.contains(height) ? column(file, height, count)
                            : std::vector<double>(row.size(), std::numeric_limits<double>::infinity());
  Truth truth{.places = {}, .turning = reflections};
  for (std::size_t i = 0; i < row.size(); ++i)
    truth.places.push_back({row[i], across[i], frame[i], amplitude[i]});
  return truth;
}

Score score(std::span<const Place> found, std::span<const Place> truth, const ScoreSettings& settings) {
  const auto is_expected = [&](const Place& place) { return place.amplitude >= settings.least_amplitude; };
  Score score{.given = found.size()};
  const Grid neighbors(truth, settings.near);
  std::vector<bool> found_taken(found.size()), truth_taken(truth.size());
  for (const Pair& pair : pairs_within(found, truth, settings)) {
    if (found_taken[pair.found] || truth_taken[pair.truth]) continue;
    found_taken[pair.found] = truth_taken[pair.truth] = true;
    const Place& place = truth[pair.truth];
    bool alone = true;
    neighbors.near(place, [&](std::size_t j, const Place& other) {
      if (j != pair.truth && is_expected(other) && apart(place, other) < settings.near &&
          std::abs(place.frame - other.frame) <= 2 * settings.frame_reach)
        alone = false;
    });
    if (is_expected(place)) ++score.found;
    (alone ? score.isolated : score.overlapping).push_back(pair.distance);
    score.frame_errors.push_back(std::abs(found[pair.found].frame - place.frame));
  }
  score.expected = static_cast<std::size_t>(std::ranges::count_if(truth, is_expected));
  score.false_ones = static_cast<std::size_t>(std::ranges::count(found_taken, false));
  return score;
}

std::vector<Metric> score_metrics(const PeakTable& table, const PeaksSettings& settings) {
  const std::optional<Truth> truth = read_truth(settings.frames, settings.merge);
  if (!truth) return {};
  std::vector<Place> found;
  for (const Reflection& each : table.merged.reflections)
    found.push_back({each.row, each.column, each.frame, double{each.maximum}});
  // A center halfway between pixels has two thirds of its amplitude in the highest, of the narrowest peaks:
  // twice the threshold is surely above it.
  ScoreSettings how{.least_amplitude = 2 * (table.mean_threshold - table.mean_background)};
  if (truth->turning) how.frame_reach = 1.5;  // the mean of few photons over several frames
  const Score of = score(found, truth->places, how);
  const auto share = [](std::size_t part, std::size_t of_all) {
    return of_all > 0 ? static_cast<double>(part) / static_cast<double>(of_all) : 0.0;
  };
  std::vector<Metric> metrics{{.name = "found_share", .value = share(of.found, of.expected)},
                              {.name = "false_share", .value = share(of.false_ones, of.given)}};
  const auto add = [&](const char* name, double value, const char* unit) {
    if (std::isfinite(value)) metrics.push_back({.name = name, .value = value, .unit = unit});
  };
  add("error_px_mean", mean_of(of.isolated, of.overlapping), "px");
  add("error_px_mean_isolated", mean(of.isolated), "px");
  add("error_px_mean_overlapping", mean(of.overlapping), "px");
  if (truth->turning) add("frame_error_mean", mean(of.frame_errors), "frames");
  return metrics;
}

}  // namespace superstep::peaks
