#include "superstep/edge/learn/signs.h"

#include "superstep/base/statistics.h"

namespace superstep::edge {

DriftSigns::Seen DriftSigns::look(const LearnScan& scan, std::span<const double> errors,
                                  const LearnScan* reference) {
  constexpr double level = 0.001;
  constexpr std::size_t window = 50;  // errors are means of so many
  const std::vector<FrameFeatures> features = features_of_scan(scan);
  if (reference_.empty()) reference_ = reference ? features_of_scan(*reference) : features;
  const InputDrift drift = input_drift(reference_, features, level);
  Seen seen{.inputs = drift.found};
  for (std::size_t first = 0; first + window <= errors.size(); first += window)
    seen.labels = error_trend_.add(mean(errors.subspan(first, window))) || seen.labels;
  seen.trend = seen.values["errors"] = error_trend_.statistic();
  for (std::size_t i = 0; i < frame_features; ++i)
    seen.values[name_of_feature(i)] = drift.features[i].probability;
  return seen;
}

void DriftSigns::begin_anew(const LearnScan& scan) {
  error_trend_.forget();
  reference_ = features_of_scan(scan);
}

}  // namespace superstep::edge
