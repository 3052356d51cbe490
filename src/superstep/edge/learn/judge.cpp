#include "superstep/edge/learn/judge.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <numeric>

#include "superstep/base/random.h"
#include "superstep/base/statistics.h"
#include "superstep/edge/service/job.h"

namespace superstep::edge {
namespace {

template <class Use>
void for_middle(std::int64_t window, std::int64_t crop, const Use& use) {
  const std::int64_t size = std::min(window, crop), first = (window - size) / 2;
  for (std::int64_t y = first; y < first + size; ++y)
    for (std::int64_t x = first; x < first + size; ++x) use(static_cast<std::size_t>(y * window + x));
}

double wrapped(double angle) { return std::remainder(angle, 2 * std::numbers::pi); }

}  // namespace

std::vector<float> answers_to(Version& version, std::span<const LearnSample> samples) {
  std::vector<float> all;
  const auto most = static_cast<std::size_t>(version.max_batch());
  for (std::size_t first = 0; first < samples.size(); first += most) {
    const auto some = samples.subspan(first, std::min(most, samples.size() - first));
    const auto rows = static_cast<std::int64_t>(some.size());
    std::vector<Tensor> inputs;
    for (const ServedPort& port : version.ports().inputs) {
      std::vector<std::int64_t> extents = port.shape.extents();
      extents.insert(extents.begin(), rows);
      inputs.emplace_back(port.element, Shape(std::move(extents)));
    }
    float* to = inputs[0].as<float>().data();
    for (const LearnSample& sample : some)
      for (const float count : sample.scan->pattern(sample.index)) *to++ = std::log1p(std::max(0.0f, count));
    std::vector<Tensor> outputs = make_outputs(version.ports(), rows);
    const RowRange range{.inputs = inputs, .outputs = outputs, .first = 0, .count = rows};
    version.run(0, {&range, 1});
    const auto values = outputs.back().as<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<double> phase_errors(std::span<const float> answers, std::span<const LearnSample> samples,
                                 std::int64_t crop) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto label = samples[i].scan->label(samples[i].index);
    const auto answer = answers.subspan(i * label.size(), label.size());
    double sum = 0, count = 0;
    for_middle(samples[i].scan->window, crop, [&](std::size_t at) {
      sum += std::abs(wrapped(static_cast<double>(answer[at]) - static_cast<double>(label[at])));
      ++count;
    });
    errors.push_back(sum / count);
  }
  return errors;
}

double turn_between(std::span<const float> answers, const LearnScan& scan, std::int64_t crop) {
  std::complex<double> sum = 0;
  for (std::size_t i = 0; i < scan.size(); ++i) {
    const auto label = scan.label(i);
    for_middle(scan.window, crop, [&](std::size_t at) {
      sum += std::polar(1.0,
                        static_cast<double>(answers[i * label.size() + at]) - static_cast<double>(label[at]));
    });
  }
  return std::arg(sum);
}

void turn(LearnScan& scan, double angle) {
  for (float& value : scan.labels) value = static_cast<float>(wrapped(static_cast<double>(value) + angle));
}

double lower_bound_of_gain(std::span<const double> before, std::span<const double> after, std::uint64_t seed,
                           int draws) {
  if (before.empty()) return 0;
  std::vector<double> means;
  for (int draw = 0; draw < draws; ++draw) {
    RandomStream random(seed, static_cast<std::uint64_t>(draw));
    double sum = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::size_t at = random.below(before.size());
      sum += before[at] - after[at];
    }
    means.push_back(sum / static_cast<double>(before.size()));
  }
  std::ranges::sort(means);
  constexpr double left_out = 0.05;
  return means[static_cast<std::size_t>(left_out * static_cast<double>(draws))];
}

double standard_error_of_gain(std::span<const double> before, std::span<const double> after) {
  const double count = static_cast<double>(before.size());
  if (count < 2) return 0;
  const double gain = mean(before) - mean(after);
  double squares = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double away = before[i] - after[i] - gain;
    squares += away * away;
  }
  return std::sqrt(squares / (count - 1) / count);
}

bool is_worse(std::span<const double> now, std::span<const double> before) {
  return mean(now) - mean(before) > 2 * standard_error_of_gain(now, before);
}

}  // namespace superstep::edge
