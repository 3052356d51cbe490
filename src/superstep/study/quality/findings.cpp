#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "superstep/base/text.h"
#include "superstep/study/quality/report.h"
#include "superstep/study/quality/tables.h"
#include "superstep/study/report.h"

namespace superstep::study {
namespace {

std::string times(double ratio) { return fmt::format("{:.2g} times", ratio); }

std::string place_words(const QualityCost& cost) {
  return fmt::format("{}{}, {}, batch {}", cost.machine,
                     cost.units > 1 ? fmt::format(" x {}", cost.units) : "", cost.precision, cost.batch);
}

void of_laws(const QualityReport& report, std::vector<std::string>& said) {
  for (const std::string& precision : report.settings.precisions) {
    const auto law = std::ranges::find(report.laws, precision, &BatchLaw::precision);
    if (law == report.laws.end()) {
      said.push_back(
          fmt::format("In {}, no critical batch is found: fewer than two batches reached the target with "
                      "every seed after their first epoch, or a larger one "
                      "does not save steps in proportion.",
                      precision));
      continue;
    }
    const auto [least, most] = std::ranges::minmax(report.settings.batches);
    const bool inside =
        law->critical_batch >= static_cast<double>(least) && law->critical_batch <= static_cast<double>(most);
    said.push_back(
        fmt::format("In {}, steps follow {} (1 + {} / batch){}: from a batch of about {} on, larger ones "
                    "hardly save steps{}.",
                    precision, number_words(law->least_steps), number_words(law->critical_batch),
                    law->batches == 2 ? ", by two batches alone, so that nothing checks it"
                                      : fmt::format(" to {:.0f} %", 100 * law->largest_deviation),
                    number_words(law->critical_batch),
                    inside ? "" : " (outside the batches that were tried, so this is extrapolated)"));
  }
}

// Of one precision, at the last steps of its trainings: the median, least and most of what is resolved.
struct LastNoise {
  double median = 0, least = 0, most = 0;
};
std::optional<LastNoise> last_noise(const QualityReport& report, const std::string& precision) {
  std::vector<double> scales;
  for (const MeasuredNoise& each : report.noises)
    if (each.precision == precision && each.step > 0 && each.scale && std::isfinite(each.scale->batch))
      scales.push_back(each.scale->batch);
  if (scales.empty()) return std::nullopt;
  std::ranges::sort(scales);
  return LastNoise{scales[scales.size() / 2], scales.front(), scales.back()};
}

// How well what is measured in seconds foretells what the trainings measure.
void of_noise(const QualityReport& report, std::vector<std::string>& said) {
  for (const std::string& precision : report.settings.precisions) {
    const auto noise = last_noise(report, precision);
    if (!noise) continue;
    std::string words =
        fmt::format("In {}, the gradient noise scale at the trainings' ends is {} ({} to {})", precision,
                    number_words(noise->median), number_words(noise->least), number_words(noise->most));
    const auto law = std::ranges::find(report.laws, precision, &BatchLaw::precision);
    if (law == report.laws.end()) {
      said.push_back(words + "; there is no measured critical batch to hold it against.");
      continue;
    }
    const double ratio = noise->median / law->critical_batch;
    said.push_back(fmt::format("{}: {} the critical batch that the trainings measure ({}).", words,
                               times(ratio), number_words(law->critical_batch)));
  }
}

// Steps that no law is made of.
void of_first_epochs(const QualityReport& report, std::vector<std::string>& said) {
  std::vector<std::string> rows;
  for (const Reached& each : report.reached)
    if (each.by_all() && !each.resolved())
      rows.push_back(fmt::format("{} at {}", each.precision, each.batch));
  if (rows.empty()) return;
  said.push_back(
      fmt::format("Reached within the first epoch, so that the steps are those of the epoch and no law is "
                  "made of them: {}. A harder target, or fewer --samples, resolves them.",
                  join(rows, ", ")));
}

void of_precisions(const QualityReport& report, std::vector<std::string>& said) {
  for (std::size_t i = 1; i < report.settings.precisions.size(); ++i) {
    std::vector<double> ratios;
    for (const Reached& other : report.reached)
      for (const Reached& first : report.reached)
        if (first.precision == report.settings.precisions[0] &&
            other.precision == report.settings.precisions[i] && first.batch == other.batch &&
            first.reached > 0 && other.reached > 0 && first.steps > 0)
          ratios.push_back(other.steps / first.steps);
    if (ratios.empty()) continue;
    const auto [least, most] = std::ranges::minmax(ratios);
    constexpr double same = 0.01;  // of the steps: less than an epoch is long
    if (least > 1 - same && most < 1 + same)
      said.push_back(fmt::format("{} takes as many steps as {} at the same batch.",
                                 report.settings.precisions[i], report.settings.precisions[0]));
    else
      said.push_back(fmt::format("{} takes {} to {} the steps of {} at the same batch.",
                                 report.settings.precisions[i], times(least), times(most),
                                 report.settings.precisions[0]));
  }
}

void of_failures(const QualityReport& report, std::vector<std::string>& said) {
  for (const Training& training : report.trainings) {
    if (training.ending == Ending::reached) continue;
    said.push_back(fmt::format(
        "{}, batch {}, seed {}: {}.", training.precision, training.batch, training.seed,
        training.ending == Ending::failed     ? "failed: " + training.words
        : training.ending == Ending::diverged ? "diverged: " + training.words
                                              : fmt::format("not reached in {:.0f} steps (came to {})",
                                                            training.steps, number_words(training.best))));
  }
}

void of_costs(const QualityReport& report, std::vector<std::string>& said) {
  const QualityCost *fastest = nullptr, *least = nullptr;
  for (const QualityCost& cost : report.costs) {
    if (!cost.seconds.value) continue;
    if (!fastest || *cost.seconds.value < *fastest->seconds.value) fastest = &cost;
    if (!least || *cost.joules.value < *least->joules.value) least = &cost;
  }
  if (!fastest) return;
  said.push_back(
      fmt::format("Predicted fastest: {}, {}.", place_words(*fastest), seconds_words(fastest->seconds)));
  said.push_back(fmt::format("Predicted with the least energy: {}, {}.", place_words(*least),
                             energy_words(least->joules)));
  for (const QualityCost& cost : report.costs)
    if (&cost != fastest && cost.machine != fastest->machine && cost.seconds.value &&
        cost.seconds.low < fastest->seconds.high) {
      said.push_back("The fastest is not certain: intervals of other machines reach into its own.");
      return;
    }
}

}  // namespace

std::vector<std::string> findings_of(const QualityReport& report) {
  std::vector<std::string> said;
  of_laws(report, said);
  of_first_epochs(report, said);
  of_noise(report, said);
  of_precisions(report, said);
  of_costs(report, said);
  of_failures(report, said);
  return said;
}

}  // namespace superstep::study
