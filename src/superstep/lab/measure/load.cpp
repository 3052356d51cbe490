#include "superstep/lab/measure/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/base/statistics.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/record/summary.h"

namespace superstep::lab {
namespace {

constexpr double overload = 1.05;  // offered rate over the rate of answers

void check(const LoadSettings& settings) {
  if (settings.requests < 1)
    throw Error(ErrorCode::invalid_argument, "the number of requests must be at least 1", "--requests");
  if (settings.pattern == LoadPattern::poisson && !(settings.rate > 0))
    throw Error(ErrorCode::invalid_argument, "Poisson arrivals need a rate above 0 requests/s", "--rate");
}

// The moments of arrival after the start; none where they depend on the answers.
class Arrivals {
 public:
  explicit Arrivals(const LoadSettings& settings) : settings_(settings), random_(settings.seed) {}
  double next(double now) {
    if (settings_.pattern == LoadPattern::single_stream) return now;
    if (settings_.pattern == LoadPattern::poisson) at_ -= std::log1p(-random_.uniform()) / settings_.rate;
    return at_;
  }

 private:
  const LoadSettings& settings_;
  RandomStream random_;
  double at_ = 0;
};

void add_flags(LoadReport& report, const LoadSettings& settings) {
  const auto done = static_cast<std::int64_t>(report.latency.size());
  if (done < settings.requests)
    report.flags.push_back(fmt::format("{} of {} requests: the time was over", done, settings.requests));
  if (settings.pattern == LoadPattern::poisson && settings.rate > overload * report.throughput)
    report.flags.push_back("overloaded: requests come faster than they are answered");
}

}  // namespace

const char* name_of(LoadPattern pattern) {
  switch (pattern) {
    case LoadPattern::single_stream: return "single";
    case LoadPattern::offline: return "offline";
    case LoadPattern::poisson: return "poisson";
  }
  return "";
}

LoadPattern load_pattern_from_name(std::string_view name) {
  std::vector<std::string> names;
  for (const LoadPattern pattern : {LoadPattern::single_stream, LoadPattern::offline, LoadPattern::poisson}) {
    if (name == name_of(pattern)) return pattern;
    names.emplace_back(name_of(pattern));
  }
  throw Error(ErrorCode::invalid_argument, "there is no such load pattern", std::string(name),
              unknown_name_hint(name, names));
}

LoadReport run_load(const std::function<void()>& request, const LoadSettings& settings, Clock& clock) {
  check(settings);
  LoadReport report;
  Arrivals arrivals(settings);
  const double start = clock.seconds();
  double end = start, busy = 0;
  for (std::int64_t i = 0; i < settings.requests && end - start < settings.most_seconds; ++i) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "while measuring latency");
    const double arrival = start + arrivals.next(end - start);
    clock.sleep_until(arrival);
    const double begun = clock.seconds();
    request();
    end = clock.seconds();
    busy += end - begun;
    report.latency.push_back(end - arrival);
    report.service.push_back(end - begun);
    report.queueing.push_back(std::max(0.0, begun - arrival));
  }
  const double elapsed = std::max(end - start, 1e-12);  // a clock that stood still divides nothing by zero
  report.throughput = static_cast<double>(report.latency.size()) / elapsed;
  report.busy_share = busy / elapsed;
  add_flags(report, settings);
  return report;
}

std::vector<Metric> metrics_of(const LoadReport& report, const std::string& prefix) {
  std::vector<Metric> metrics;
  const auto add = [&](const char* name, double value, const char* unit) -> Metric& {
    return metrics.emplace_back(Metric{.name = prefix + name, .value = value, .unit = unit, .samples = {}});
  };
  std::vector<double> sorted = report.latency;
  std::ranges::sort(sorted);
  add("throughput", report.throughput, "requests/s");
  add("latency_mean", mean(sorted), "s").samples = report.latency;
  // Percentiles, by their names.
  for (const auto& [share, name] :
       {std::pair{0.5, "latency_p50"}, {0.9, "latency_p90"}, {0.99, "latency_p99"}, {0.999, "latency_p999"}})
    if (sorted.size() >= record::samples_needed(share)) add(name, nearest_rank(sorted, share), "s");
  add("queueing_mean", mean(report.queueing), "s");
  add("busy_share", report.busy_share, "");
  return metrics;
}

}  // namespace superstep::lab
