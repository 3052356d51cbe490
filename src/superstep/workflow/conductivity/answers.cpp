#include "superstep/workflow/conductivity/answers.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/statistics.h"

namespace superstep::workflow {

Ensemble ensemble_of(std::span<const std::vector<double>> members) {
  Ensemble ensemble;
  const auto count = static_cast<double>(members.size());
  for (std::size_t k = 0; k < members.front().size(); ++k) {
    double sum = 0, square = 0;
    for (const auto& member : members) sum += member[k];
    for (const auto& member : members) square += std::pow(member[k] - sum / count, 2);
    ensemble.mean.push_back(sum / count);
    ensemble.spread.push_back(members.size() > 1 ? std::sqrt(square / (count - 1)) : 0);
  }
  return ensemble;
}

Calibration::Calibration(const Ensemble& known, std::span<const double> truth) {
  if (truth.empty())
    throw Error(ErrorCode::invalid_argument, "there are no sections to set intervals by", "calibration");
  least_ = std::max(mean(known.spread), 1e-6);
  for (std::size_t k = 0; k < truth.size(); ++k)
    scores_.push_back(std::abs(truth[k] - known.mean[k]) / (known.spread[k] + least_));
  std::ranges::sort(scores_);
}

double Calibration::factor(double level) const {
  const double rank = std::ceil(level * static_cast<double>(scores_.size() + 1));
  return scores_[static_cast<std::size_t>(std::clamp(rank, 1.0, static_cast<double>(scores_.size()))) - 1];
}

Intervals intervals_of(const Calibration& calibration, const Ensemble& unseen, std::span<const double> truth,
                       double level) {
  Intervals intervals{
      .mean = unseen.mean, .half_width = {}, .levels = {0.5, 0.68, 0.8, 0.9, 0.95}, .covered = {}};
  const auto share_within = [&](double asked) {
    double inside = 0;
    for (std::size_t k = 0; k < truth.size(); ++k)
      inside += std::abs(truth[k] - unseen.mean[k]) <= calibration.half_width(unseen.spread[k], asked);
    return inside / static_cast<double>(truth.size());
  };
  for (const double spread : unseen.spread)
    intervals.half_width.push_back(calibration.half_width(spread, level));
  intervals.inside = share_within(level);
  for (const double asked : intervals.levels) intervals.covered.push_back(share_within(asked));
  return intervals;
}

}  // namespace superstep::workflow
