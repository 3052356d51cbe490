#include "superstep/lab/measure/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/base/statistics.h"
#include "superstep/base/system/interrupt.h"

namespace superstep::lab {
namespace {

constexpr std::size_t steady_window = 5, fewest_samples = 3;
// Shares of the median, and of the samples, that are flagged. Chosen.
constexpr double notable_drift = 0.05, notable_outliers = 0.05;

// One contender on its way through the protocol.
class Sitting {
 public:
  Sitting(const Contender& contender, const Protocol& protocol, Clock& clock)
      : contender_(contender), protocol_(protocol), clock_(clock) {
    result_.name = contender.name;
  }

  void warm_up() {
    const double begun = clock_.seconds();
    std::vector<double> times;
    do {
      times.push_back(time(1));
      result_.warm_up_seconds = clock_.seconds() - begun;
      result_.steady = is_steady(times);
    } while (!warm(times.size()) && result_.warm_up_seconds < protocol_.warm_up_limit);
    if (!warm(times.size())) result_.flags.push_back("warm-up ended at its limit, before times were steady");
    result_.first_call = times.front();
    result_.warm_up_calls = static_cast<std::int64_t>(times.size());
    const auto tail = std::span(times).last(std::min(times.size(), steady_window));
    const double call = std::max(quantile(tail, 0.5), 1e-9);  // s: the clock's grain
    result_.calls_per_sample =
        std::max<std::int64_t>(1, std::llround(std::ceil(protocol_.least_sample_seconds / call)));
  }

  bool wants_more() {
    const std::size_t count = result_.samples.size();
    if (count < fewest_samples) return true;
    if (static_cast<std::int64_t>(count) >= protocol_.most_samples) return stop(StopReason::count);
    if (used_ >= protocol_.budget_seconds) return stop(StopReason::budget);
    // Sorting all samples after every one would cost more than taking them.
    if (static_cast<int>(count) < protocol_.least_samples || used_ < protocol_.least_seconds) return true;
    if (count < next_look_) return true;
    next_look_ = count + count / 4 + 1;
    const record::Summary summary = record::summarize(result_.samples);
    if (summary.high - summary.low > protocol_.interval * summary.median) return true;
    return stop(StopReason::tight);
  }

  void take_turn() {
    time(1);
    for (int i = 0; i < protocol_.samples_a_turn && (i == 0 || wants_more()); ++i) take_sample();
  }

  void take_sample() {
    const double seconds = time(result_.calls_per_sample);
    used_ += seconds;
    result_.samples.push_back(seconds / static_cast<double>(result_.calls_per_sample));
  }

  Measurement finish() {
    result_.summary = record::summarize(result_.samples);
    for (std::string& flag : flags_of(result_.summary, protocol_.least_samples))
      result_.flags.push_back(std::move(flag));
    return std::move(result_);
  }

 private:
  bool warm(std::size_t calls) const {
    return static_cast<int>(calls) >= protocol_.warm_up_calls &&
           result_.warm_up_seconds >= protocol_.warm_up_seconds && result_.steady;
  }

  // The medians of the last five calls and of the five before agree.
  bool is_steady(std::span<const double> times) const {
    if (times.size() < 2 * steady_window) return false;
    const double now = quantile(times.last(steady_window), 0.5);
    const double before = quantile(times.last(2 * steady_window).first(steady_window), 0.5);
    return std::abs(now - before) <= protocol_.steady_change * before;
  }

  double time(std::int64_t calls) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "while measuring " + contender_.name);
    if (contender_.timed) return contender_.timed(calls);
    const double begun = clock_.seconds();
    for (std::int64_t i = 0; i < calls; ++i) contender_.call();
    return clock_.seconds() - begun;
  }

  bool stop(StopReason reason) {
    result_.stop = reason;
    return false;
  }

  const Contender& contender_;
  const Protocol& protocol_;
  Clock& clock_;
  Measurement result_;
  double used_ = 0;
  std::size_t next_look_ = 0;
};

}  // namespace

const char* name_of(StopReason reason) {
  switch (reason) {
    case StopReason::tight: return "interval is tight";
    case StopReason::budget: return "budget ended";
    case StopReason::count: return "enough samples";
  }
  return "";
}

std::vector<std::string> flags_of(const record::Summary& summary, int least_samples) {
  std::vector<std::string> flags;
  if (static_cast<int>(summary.count) < least_samples)
    flags.push_back(fmt::format("{} samples, {} wanted", summary.count, least_samples));
  if (std::abs(summary.drift) > notable_drift)
    flags.push_back(fmt::format("drift {:+.0f} %", 100 * summary.drift));
  const double share = static_cast<double>(summary.outliers.size()) / std::max(1.0, double(summary.count));
  if (share > notable_outliers)
    flags.push_back(fmt::format("{} of {} samples are outliers", summary.outliers.size(), summary.count));
  return flags;
}

std::vector<Measurement> measure_interleaved(std::span<const Contender> contenders, const Protocol& protocol,
                                             Clock& clock) {
  std::vector<Sitting> sittings;
  for (const Contender& contender : contenders) sittings.emplace_back(contender, protocol, clock);
  for (Sitting& sitting : sittings) sitting.warm_up();
  std::vector<std::size_t> order(sittings.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  RandomStream random(protocol.seed);
  while (!order.empty()) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (std::size_t i : order) contenders.size() == 1 ? sittings[i].take_sample() : sittings[i].take_turn();
    std::erase_if(order, [&](std::size_t i) { return !sittings[i].wants_more(); });
  }
  std::vector<Measurement> results;
  for (Sitting& sitting : sittings) results.push_back(sitting.finish());
  return results;
}

Measurement measure(const Contender& contender, const Protocol& protocol, Clock& clock) {
  return std::move(measure_interleaved(std::span(&contender, 1), protocol, clock).front());
}

}  // namespace superstep::lab
