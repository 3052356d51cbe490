#include "superstep/run/sample/sample_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "superstep/base/statistics.h"
#include "superstep/base/text.h"
#include "superstep/file/csv.h"

namespace superstep::run {
namespace {

using sampling::Chains;
using sampling::Iteration;

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
constexpr double agreed_below = 1.01;       // Vehtari et al. (2021), section 1
constexpr double few_effective = 400;       // in all: the same, for four chains
constexpr double little_information = 0.3;  // Betancourt, arXiv 1604.00695, section 3

// Number k of rows of `width` numbers, by chain.
template <class T>
Chains column(std::span<const ChainRecord> records, std::vector<T> ChainRecord::*values, std::size_t width,
              std::size_t k) {
  Chains chains;
  for (const ChainRecord& record : records) {
    std::vector<double>& chain = chains.emplace_back();
    const std::vector<T>& all = record.*values;
    for (std::size_t at = k; at < all.size(); at += width) chain.push_back(static_cast<double>(all[at]));
  }
  return chains;
}

std::vector<NumberSummary> summaries(std::size_t count, ThreadPool& pool, auto&& name, auto&& chains) {
  std::vector<NumberSummary> all(count);
  pool.parallel_for(static_cast<std::int64_t>(count), [&](std::int64_t item, int) {
    const auto k = static_cast<std::size_t>(item);
    all[k] = summarise(name(k), chains(k));
  });
  return all;
}

// "fc1.weight[3][0]": without commas, for tables.
std::string element_name(const SampledParameter& parameter, std::size_t element) {
  std::string place;
  auto rest = static_cast<std::int64_t>(element);
  for (int axis = static_cast<int>(parameter.type.shape.rank()); axis-- > 0;) {
    const std::int64_t extent = parameter.type.shape[axis];
    place = fmt::format("[{}]{}", rest % extent, place);
    rest /= extent;
  }
  return parameter.name + place;
}

std::string name_of_parameter(const Posterior& posterior, std::size_t place) {
  for (const SampledParameter& parameter : posterior.parameters())
    if (place < parameter.offset + parameter.count) return element_name(parameter, place - parameter.offset);
  return {};
}

// Behind the warm-up, of all chains.
double mean_of(std::span<const ChainRecord> records, auto&& value) {
  double sum = 0, count = 0;
  for (const ChainRecord& record : records)
    for (const Iteration& iteration : record.iterations)
      if (!iteration.warm_up) sum += static_cast<double>(value(iteration)), ++count;
  return sum / count;
}

void count_iterations(MethodSummary& summary, const sampling::ChainSettings& settings,
                      std::span<const ChainRecord> records) {
  summary.acceptance = mean_of(records, [](const Iteration& i) { return i.acceptance; });
  summary.step = mean_of(records, [](const Iteration& i) { return i.step; });
  summary.evaluations = mean_of(records, [](const Iteration& i) { return i.evaluations; });
  summary.energy_information = nothing;
  const bool has_momenta = summary.method == "nuts" || summary.method == "hmc";
  for (const ChainRecord& record : records) {
    std::vector<double> energies;
    for (const Iteration& iteration : record.iterations) {
      if (iteration.warm_up) continue;
      energies.push_back(iteration.energy);
      summary.divergent += iteration.divergent;
      summary.at_most_doublings += summary.method == "nuts" && iteration.depth >= settings.most_doublings;
    }
    if (has_momenta) {
      const double found = sampling::energy_information(energies);
      if (!(summary.energy_information <= found)) summary.energy_information = found;
    }
    summary.warm_up_seconds = std::max(summary.warm_up_seconds, record.warm_up_seconds);
    summary.draw_seconds = std::max(summary.draw_seconds, record.draw_seconds);
  }
}

nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

nlohmann::json to_json(const Agreement& agreement) {
  return {{"numbers", agreement.numbers},
          {"agreed", agreement.agreed},
          {"worst_r_hat", number(agreement.worst_r_hat)},
          {"worst", agreement.worst},
          {"least_bulk_effective", number(agreement.least_bulk)},
          {"least_tail_effective", number(agreement.least_tail)}};
}

}  // namespace

NumberSummary summarise(std::string name, const Chains& chains) {
  NumberSummary summary{.name = std::move(name), .convergence = sampling::convergence(chains)};
  std::vector<double> all;
  for (const auto& chain : chains) all.insert(all.end(), chain.begin(), chain.end());
  summary.mean = mean(all);
  double squares = 0;
  for (const double value : all) squares += (value - summary.mean) * (value - summary.mean);
  summary.deviation = std::sqrt(squares / std::max<double>(1, static_cast<double>(all.size()) - 1));
  summary.low = quantile(all, 0.05), summary.middle = median(all), summary.high = quantile(all, 0.95);
  return summary;
}

Agreement agreement(std::span<const NumberSummary> numbers) {
  Agreement found{
      .numbers = numbers.size(), .worst_r_hat = nothing, .least_bulk = nothing, .least_tail = nothing};
  const auto lower = [](double& least, double value) {
    if (std::isfinite(value) && !(least <= value)) least = value;
  };
  for (const NumberSummary& each : numbers) {
    const sampling::Convergence& own = each.convergence;
    found.agreed += own.r_hat < agreed_below;
    if (std::isfinite(own.r_hat) && !(own.r_hat <= found.worst_r_hat))
      found.worst_r_hat = own.r_hat, found.worst = each.name;
    lower(found.least_bulk, own.bulk);
    lower(found.least_tail, own.tail);
  }
  return found;
}

std::vector<double> predictive_log_densities(std::span<const ChainRecord> records, std::size_t samples) {
  std::vector<double> logs(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0, count = 0;
    for (const ChainRecord& record : records)
      for (std::size_t at = i; at < record.log_likelihoods.size(); at += samples)
        largest = std::max(largest, record.log_likelihoods[at]), ++count;
    for (const ChainRecord& record : records)
      for (std::size_t at = i; at < record.log_likelihoods.size(); at += samples)
        sum += std::exp(record.log_likelihoods[at] - largest);
    logs[i] = largest + std::log(sum / count);
  }
  return logs;
}

MethodSummary summarise(const std::string& method, const sampling::ChainSettings& settings,
                        const Posterior& posterior, const PosteriorData& data,
                        std::span<const ChainRecord> records, ThreadPool& pool) {
  MethodSummary summary{.method = method, .chains = static_cast<int>(records.size())};
  summary.draws = records.front().draws();
  const std::size_t size = posterior.size();
  const std::vector<std::string> scales = posterior.names_of_scales();
  summary.parameters = summaries(
      size - scales.size(), pool, [&](std::size_t k) { return name_of_parameter(posterior, k); },
      [&](std::size_t k) { return column(records, &ChainRecord::positions, size, k); });
  summary.scales = summaries(
      scales.size(), pool, [&](std::size_t k) { return scales[k]; },
      [&](std::size_t k) {
        Chains chains = column(records, &ChainRecord::positions, size, size - scales.size() + k);
        for (auto& chain : chains)
          for (double& value : chain) value = std::exp(value);
        return chains;
      });
  const std::size_t width =
      summary.draws > 0 ? records.front().predictions.size() / static_cast<std::size_t>(summary.draws) : 0;
  const std::size_t samples = data.held_out_indices.size(), each = samples > 0 ? width / samples : 0;
  summary.predictions = summaries(
      width, pool,
      [&](std::size_t k) {
        return each == 1 ? fmt::format("prediction[{}]", data.held_out_indices[k])
                         : fmt::format("prediction[{}][{}]", data.held_out_indices[k / each], k % each);
      },
      [&](std::size_t k) { return column(records, &ChainRecord::predictions, width, k); });
  Chains densities;
  for (const ChainRecord& record : records) {
    densities.emplace_back();
    for (const Iteration& iteration : record.iterations)
      if (!iteration.warm_up) densities.back().push_back(iteration.log_density);
  }
  summary.log_density = summarise("log density", densities);
  count_iterations(summary, settings, records);
  summary.of_parameters = agreement(summary.parameters);
  summary.of_predictions = agreement(summary.predictions);
  const double effective =
      summary.predictions.empty() ? summary.log_density.convergence.bulk : summary.of_predictions.least_bulk;
  summary.effective_a_second = effective / summary.draw_seconds;
  summary.log_likelihoods = predictive_log_densities(records, samples);
  summary.log_likelihood = samples > 0 ? mean(summary.log_likelihoods) : nothing;
  return summary;
}

std::vector<std::string> MethodSummary::warnings() const {
  std::vector<std::string> lines;
  const double all = static_cast<double>(draws) * chains;
  if (divergent > 0)
    lines.push_back(fmt::format(
        "{} of {} transitions diverged: the density bends more sharply than the step; give a larger --accept",
        divergent, format_count(all)));
  if (at_most_doublings > 0)
    lines.push_back(
        fmt::format("{} of {} paths were cut at --doublings before they turned: slower, not wrong",
                    at_most_doublings, format_count(all)));
  if (energy_information < little_information)
    lines.push_back(fmt::format("energy information {:.2g} is below {}: tails are hardly reached",
                                energy_information, little_information));
  const Agreement& judged = predictions.empty() ? of_parameters : of_predictions;
  const char* const what = predictions.empty() ? "parameters" : "predictions";
  if (judged.agreed < judged.numbers)
    lines.push_back(
        fmt::format("r-hat of {} of {} {} is {} or more (worst {:.3f}, {}): more --warm-up or --draws",
                    judged.numbers - judged.agreed, judged.numbers, what, agreed_below, judged.worst_r_hat,
                    judged.worst));
  if (judged.least_bulk < few_effective)
    lines.push_back(fmt::format("{:.0f} effective draws are few for {}: {:.0f} and more are trusted",
                                judged.least_bulk, what, few_effective));
  return lines;
}

nlohmann::json to_json(const MethodSummary& s) {
  nlohmann::json scales = nlohmann::json::object();
  for (const NumberSummary& scale : s.scales)
    scales[scale.name] = {
        {"mean", number(scale.mean)}, {"low", number(scale.low)}, {"high", number(scale.high)}};
  return {{"method", s.method},
          {"chains", s.chains},
          {"draws", s.draws},
          {"parameters", to_json(s.of_parameters)},
          {"predictions", to_json(s.of_predictions)},
          {"scales", scales},
          {"log_density", number(s.log_density.mean)},
          {"acceptance", number(s.acceptance)},
          {"step", number(s.step)},
          {"gradients_a_draw", number(s.evaluations)},
          {"energy_information", number(s.energy_information)},
          {"divergent", s.divergent},
          {"paths_cut", s.at_most_doublings},
          {"warm_up_seconds", s.warm_up_seconds},
          {"draw_seconds", s.draw_seconds},
          {"effective_draws_a_second", number(s.effective_a_second)},
          {"log_likelihood", number(s.log_likelihood)},
          {"told", s.told},
          {"warnings", s.warnings()}};
}

void write_table(const std::filesystem::path& path, const MethodSummary& summary) {
  data::CsvWriter file(path, {"name", "mean", "deviation", "error_of_mean", "q05", "q50", "q95", "r_hat",
                              "effective_bulk", "effective_tail"});
  for (const auto* numbers : {&summary.scales, &summary.predictions, &summary.parameters})
    for (const NumberSummary& n : *numbers) {
      file.cell(n.name).cell(n.mean).cell(n.deviation).cell(n.convergence.error_of_mean);
      file.cell(n.low).cell(n.middle).cell(n.high);
      file.cell(n.convergence.r_hat).cell(n.convergence.bulk).cell(n.convergence.tail);
      file.end_row();
    }
  file.close();
}

}  // namespace superstep::run
