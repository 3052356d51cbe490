#include "superstep/lab/advise/reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/text.h"

namespace superstep::lab {
namespace {

using machine::PredictSettings;

bool same_but_batch(const PredictSettings& a, const PredictSettings& b) {
  return a.precision.name == b.precision.name && a.replicas == b.replicas && a.recompute == b.recompute &&
         a.pipeline.size() == b.pipeline.size();
}

bool same_but_precision(const PredictSettings& a, const PredictSettings& b) {
  return a.micro_batch == b.micro_batch && a.replicas == b.replicas && a.recompute == b.recompute &&
         a.pipeline.size() == b.pipeline.size() && a.precision.name != b.precision.name;
}

const Option* with_batch(const std::vector<Option>& options, const Option& best, std::int64_t batch) {
  for (const Option& option : options)
    if (option.settings.micro_batch == batch && same_but_batch(option.settings, best.settings))
      return &option;
  return nullptr;
}

double rate_of(const Option& option) {
  return option.prediction.samples / fed_seconds(option.prediction).value;
}

// The unit that lacks most.
double overflow_bytes(const Option& option) {
  double most = 0;
  for (const machine::Stage& stage : option.prediction.stages) {
    most = std::max(most, stage.memory.total() - stage.memory.limit);
    if (stage.memory.tile_limit > 0)
      most = std::max(most, stage.memory.fullest_tile - stage.memory.tile_limit);
  }
  return most;
}

std::string share_of_bound(const Option& option) {
  const machine::Prediction& prediction = option.prediction;
  const machine::Parts& p = prediction.step;
  const double largest =
      std::max({p.compute, p.memory, p.exchange, p.sync, p.host, p.launch, p.collective, p.fill});
  if (bound_of(option) != p.largest()) return fmt::format("bound by {}", bound_of(option));
  return fmt::format("bound by {} ({:.0f} % of a step)", p.largest(),
                     100 * largest / fed_seconds(prediction).value);
}

// What the larger or smaller micro-batch would do.
void add_batch(const std::vector<Option>& options, const Option& best, std::vector<std::string>& reasons) {
  const std::int64_t batch = best.settings.micro_batch;
  const Option *half = with_batch(options, best, batch / 2), *twice = with_batch(options, best, batch * 2);
  if (half && half->prediction.fits && batch > 1)
    reasons.push_back(fmt::format("micro-batch {} adds {:.0f} % to {}", batch,
                                  100 * (rate_of(best) / rate_of(*half) - 1), batch / 2));
  if (twice && !twice->prediction.fits)
    reasons.push_back(fmt::format("{} lacks {} of memory", batch * 2, format_bytes(overflow_bytes(*twice))));
}

// Differences below this share are none (chosen).
constexpr double least_difference = 1.02;

void add_precision(const std::vector<Option>& options, const Option& best,
                   std::vector<std::string>& reasons) {
  for (const Option& option : options) {
    if (!same_but_precision(option.settings, best.settings) || !option.prediction.fits) continue;
    const double gain = rate_of(best) / rate_of(option);
    const std::string& other = option.settings.precision.name;
    if (gain >= least_difference)
      reasons.push_back(fmt::format("{:.2g} times as fast as in {}", gain, other));
    else
      reasons.push_back(fmt::format("{} gains nothing", other));
  }
}

bool fits_on_one_unit_whole(const std::vector<Option>& options) {
  return std::ranges::any_of(options, [](const Option& option) {
    return option.prediction.fits && !option.settings.recompute && option.settings.pipeline.empty();
  });
}

void add_split(const std::vector<Option>& options, const Option& best, std::vector<std::string>& reasons) {
  if (fits_on_one_unit_whole(options)) return;
  if (!best.settings.pipeline.empty())
    reasons.push_back(fmt::format("needs {} units{}", best.settings.pipeline.size(),
                                  best.settings.recompute ? " and recomputation" : ""));
  else if (best.settings.recompute)
    reasons.emplace_back("fits with recomputation only");
}

// Loaders work ahead: as many as keep up with the machine.
void add_loaders(const Option& best, std::vector<std::string>& reasons) {
  const double wanted = best.prediction.host.loader / fed_seconds(best.prediction).value;
  if (wanted > 1)
    reasons.push_back(
        fmt::format("needs {:.0f} loader processes per replica to keep it fed", std::ceil(wanted)));
}

void add_limits(const Option& best, const SearchSettings& settings, std::vector<std::string>& reasons) {
  if (best.within_limits) return;
  const double step = fed_seconds(best.prediction).value;
  if (settings.latency_limit > 0 && step > settings.latency_limit)
    reasons.push_back(fmt::format("misses {}: a call takes {}", format_seconds(settings.latency_limit),
                                  format_seconds(step)));
  if (settings.rate_wanted > 0 && rate_of(best) < settings.rate_wanted)
    reasons.push_back(fmt::format("misses {}", format_si(settings.rate_wanted, "samples/s")));
}

std::vector<std::string> why_none(const std::vector<Option>& options, const SearchSettings& settings) {
  const Option* nearest = nullptr;
  for (const Option& option : options)
    if (!nearest || overflow_bytes(option) < overflow_bytes(*nearest)) nearest = &option;
  if (!nearest) return {"nothing could be tried"};
  if (std::ranges::any_of(options, [](const Option& option) { return option.prediction.fits; }))
    return {fmt::format("it fits, but the {} of this machine is not known", name_of(settings.goal))};
  return {fmt::format("does not fit: nearest is micro-batch {} on {}{}, which lacks {} a unit",
                      nearest->settings.micro_batch, split_of(nearest->settings),
                      nearest->settings.recompute ? ", recomputed" : "",
                      format_bytes(overflow_bytes(*nearest)))};
}

}  // namespace

void add_guesses(const machine::Machine& machine, const Option& best, std::vector<std::string>& reasons) {
  constexpr double good_part = 0.1;  // of a call (chosen)
  const machine::Prediction& prediction = best.prediction;
  const std::pair<const char*, double> parts[] = {{"host_call", prediction.host.call},
                                                  {"operator_cycles", prediction.step.fill},
                                                  {"section_switch", prediction.step.fill}};
  for (const auto& [name, seconds] : parts)
    for (const machine::Constant& constant : machine.constants()) {
      if (constant.name != name || constant.kind != machine::Kind::guess) continue;
      const double share = seconds / fed_seconds(prediction).value;
      if (share < good_part) continue;
      const auto amount = [&](double value) {
        return constant.unit == "s" ? format_seconds(value) : fmt::format("{:g} {}", value, constant.unit);
      };
      reasons.push_back(fmt::format("{:.0f} % of a call rests on a guess: {} {} ({} to {})", 100 * share,
                                    name, amount(constant.value), amount(constant.low),
                                    amount(constant.high)));
    }
}

std::string split_of(const PredictSettings& settings) {
  std::vector<std::string> shares, words;
  for (const int share : settings.pipeline) shares.push_back(fmt::format("{}", share));
  if (!shares.empty()) words.push_back(fmt::format("[{}] over {} units", join(shares, ","), shares.size()));
  if (settings.replicas > 1) words.push_back(fmt::format("{} replicas", settings.replicas));
  return words.empty() ? "1 unit" : join(words, " x ");
}

std::string bound_of(const Option& option) {
  const machine::Prediction& prediction = option.prediction;
  machine::HostPath path = prediction.host;
  path.loader = 0;
  const char* by_host = path.bound_by(prediction.step_seconds);
  return by_host ? by_host : prediction.step.largest();
}

std::vector<std::string> reasons_of(const std::vector<Option>& options, const Option* best,
                                    const SearchSettings& settings) {
  if (!best) return why_none(options, settings);
  std::vector<std::string> reasons{share_of_bound(*best)};
  if (const auto& law = best->prediction.by_law)
    reasons.push_back(law->measured_machine ? "by the law of networks"
                                            : "by the law of networks, none of which was measured on it");
  if (!best->set_up.empty()) reasons.push_back("as in " + best->set_up);
  add_limits(*best, settings, reasons);
  add_split(options, *best, reasons);
  add_batch(options, *best, reasons);
  add_precision(options, *best, reasons);
  add_loaders(*best, reasons);
  return reasons;
}

}  // namespace superstep::lab
