// What a sweep says on a terminal and in files of results.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/text.h"
#include "superstep/lab/sweep/sweep.h"

namespace superstep::lab {
namespace {

std::string state_of(const SweepPoint& point) {
  if (!point.refused.empty()) return point.refused;
  return point.prediction.fits ? point.prediction.bound_by_with_data() : "does not fit";
}

std::vector<std::string> row_of(const SweepPoint& point) {
  const machine::Prediction& prediction = point.prediction;
  const bool fits = point.fits();
  return {point.machine,
          point.settings.precision.name + (point.settings.recompute ? ", recomputed" : ""),
          fmt::format("{}", point.settings.micro_batch),
          fmt::format("{}", point.settings.accumulate),
          fmt::format("{}", point.settings.replicas),
          fits ? format_si(prediction.throughput_with_data(), "samples/s") : "-",
          fits ? fmt::format("{} to {}", format_si(prediction.samples / prediction.fed.high, ""),
                             format_si(prediction.samples / prediction.fed.low, ""))
               : "-",
          fits ? format_seconds(prediction.step_seconds_with_data) : "-",
          state_of(point)};
}

// "gc200: does not compute in bf16".
std::string first_refusal(const std::vector<SweepPoint>& points) {
  const auto first =
      std::ranges::find_if(points, [](const SweepPoint& point) { return !point.refused.empty(); });
  return first == points.end() ? std::string() : first->machine + ": " + first->refused;
}

std::string summary_of(const std::vector<SweepPoint>& points, std::size_t shown) {
  std::size_t done = 0, fitting = 0, refused = 0, beyond = 0;
  for (const SweepPoint& point : points) {
    done += point.done;
    fitting += point.fits();
    refused += !point.refused.empty();
    beyond += point.done && !point.prediction.beyond.empty();
  }
  std::string text = fmt::format("{} of {} configurations predicted", done, points.size());
  if (done - fitting - refused > 0) text += fmt::format(", {} do not fit", done - fitting - refused);
  if (refused > 0) text += fmt::format(", {} not possible (the first: {})", refused, first_refusal(points));
  if (beyond > 0) text += fmt::format(", {} lie beyond what the constants were calibrated on", beyond);
  if (shown < done)
    text += fmt::format("; the best {} are shown (--all shows every one, --json keeps them)", shown);
  return text + "\n";
}

}  // namespace

std::string text_of(const std::vector<SweepPoint>& points, std::size_t most) {
  std::vector<const SweepPoint*> shown;
  for (const SweepPoint& point : points)
    if (most == 0 ? point.done : point.fits()) shown.push_back(&point);
  if (most > 0) {
    std::ranges::stable_sort(shown, [](const SweepPoint* a, const SweepPoint* b) {
      return a->prediction.throughput_with_data() > b->prediction.throughput_with_data();
    });
    shown.resize(std::min(most, shown.size()));
  }
  TextTable table({"machine", "precision", "micro-batch", "accumulated", "replicas", "with host data", "80 %",
                   "step", "bound by"});
  for (const SweepPoint* point : shown) table.add_row(row_of(*point));
  return (shown.empty() ? "" : table.to_string() + "\n") + summary_of(points, shown.size());
}

std::vector<record::Result> results_of(const std::vector<SweepPoint>& points, const SweepSettings& settings) {
  std::vector<record::Result> results;
  for (const SweepPoint& point : points) {
    if (!point.done) continue;
    record::Result result{
        .command = "sweep", .workload = settings.model.workload, .mode = settings.trains ? "train" : "infer"};
    const machine::PredictSettings& chosen = point.settings;
    result.id = fmt::format("{}-{}-{}-{}-{}x{}x{}{}", result.workload, result.mode, point.machine,
                            chosen.precision.name, chosen.micro_batch, chosen.accumulate, chosen.replicas,
                            chosen.recompute ? "-recomputed" : "");
    result.machine = point.machine;
    result.units = point.prediction.units;
    result.config = {{"precision", chosen.precision.name}, {"micro_batch", chosen.micro_batch},
                     {"accumulate", chosen.accumulate},    {"replicas", chosen.replicas},
                     {"recompute", chosen.recompute},      {"fits", point.fits()},
                     {"refused", point.refused},           {"bound_by", state_of(point)},
                     {"beyond", point.prediction.beyond}};
    if (point.fits()) result.quantities = record::to_quantities(point.prediction.metrics());
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace superstep::lab
