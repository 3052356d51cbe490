// The page of a sampling run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/random.h"
#include "superstep/base/statistics.h"
#include "superstep/base/text.h"
#include "superstep/page/page.h"
#include "superstep/run/sample/sample.h"

namespace superstep::run {
namespace {

using page::Page;
using page::Plot;
using page::Series;

std::string share(double value) { return fmt::format("{:.3g}", value); }

void add_forecasts(Page& page, const SampleReport& report) {
  if (report.held_out == 0) return;
  page.heading("Log-likelihood of held-out samples");
  std::vector<std::vector<std::string>> rows;
  const double unit = report.references.log_unit;
  const auto add = [&](const std::string& what, const std::string& who, double value) {
    rows.push_back({what, who, fmt::format("{:.4f}", value - unit)});
  };
  if (report.constant) add("floor", report.constant->method, report.constant->value);
  if (report.references.floor) add("floor", report.references.floor->method, report.references.floor->value);
  std::vector<std::size_t> main;
  for (const MethodSummary& method : report.methods) {
    main.push_back(rows.size());
    add("sampled", method.method, method.log_likelihood);
  }
  if (report.references.ceiling)
    add("ceiling", report.references.ceiling->method, report.references.ceiling->value);
  page.table({"", "forecast", "nat a sample"}, rows, main);
  page.paragraph(
      "Means over the samples of log p(target | input): for the sampled model the log of the mean density "
      "over all draws. More is better.");
}

void add_methods(Page& page, const SampleReport& report) {
  page.heading("How well it was drawn");
  std::vector<std::vector<std::string>> rows;
  for (const MethodSummary& m : report.methods)
    rows.push_back({m.method, fmt::format("{} x {}", m.chains, m.draws), share(m.acceptance), share(m.step),
                    share(m.evaluations), fmt::format("{}", m.divergent), share(m.energy_information),
                    fmt::format("{} of {}", m.of_predictions.agreed, m.of_predictions.numbers),
                    fmt::format("{:.0f}", m.of_predictions.least_bulk), share(m.effective_a_second),
                    format_seconds(m.warm_up_seconds), format_seconds(m.draw_seconds)});
  page.table({"method", "draws", "acceptance", "step", "gradients a draw", "divergent", "energy information",
              "predictions with r-hat < 1.01", "least effective draws", "effective draws a second", "warm-up",
              "draws"},
             rows);
  for (const MethodSummary& m : report.methods)
    for (const std::string& line : m.warnings()) page.paragraph(m.method + ": " + line);
}

Plot empty_plot(std::string title, std::string x_label, std::string y_label) {
  Plot plot;
  plot.title = std::move(title), plot.x_label = std::move(x_label), plot.y_label = std::move(y_label);
  return plot;
}

// One number of every iteration, a line a chain.
Plot trace(const std::vector<ChainRecord>& records, std::string title, std::string label, auto&& value) {
  Plot plot = empty_plot(std::move(title), "draw", std::move(label));
  for (std::size_t c = 0; c < records.size(); ++c) {
    Series series;
    series.label = fmt::format("chain {}", c + 1);
    for (std::int64_t d = 0; d < records[c].draws(); ++d) {
      series.x.push_back(static_cast<double>(d));
      series.y.push_back(value(records[c], static_cast<std::size_t>(d)));
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

const sampling::Iteration& drawn(const ChainRecord& record, std::size_t draw) {
  return record.iterations[static_cast<std::size_t>(record.warm_ups()) + draw];
}

Plot r_hats(const MethodSummary& method) {
  std::vector<double> of_parameters, of_predictions;
  double high = 1.02;
  const auto gather = [&](const std::vector<NumberSummary>& numbers, std::vector<double>& to) {
    for (const NumberSummary& each : numbers)
      if (std::isfinite(each.convergence.r_hat)) {
        to.push_back(each.convergence.r_hat);
        high = std::max(high, to.back());
      }
  };
  gather(method.parameters, of_parameters);
  gather(method.predictions, of_predictions);
  Plot plot = empty_plot("Do the chains agree?", "r-hat", "numbers");
  plot.series.push_back(page::histogram("parameters", of_parameters, 0.99, high, 40));
  if (!of_predictions.empty())
    plot.series.push_back(page::histogram("predictions", of_predictions, 0.99, high, 40));
  plot.vertical.push_back({1.01, "1.01"});
  return plot;
}

// Energies about their mean, and how far they move from a draw to the next (Betancourt, arXiv 1604.00695).
Plot energies(const std::vector<ChainRecord>& records) {
  std::vector<double> own, moves;
  for (const ChainRecord& record : records) {
    std::vector<double> chain;
    for (std::int64_t d = 0; d < record.draws(); ++d)
      chain.push_back(drawn(record, static_cast<std::size_t>(d)).energy);
    const double centre = mean(chain);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      own.push_back(chain[i] - centre);
      if (i > 0) moves.push_back(chain[i] - chain[i - 1]);
    }
  }
  double reach = 1;
  for (const double value : own) reach = std::max(reach, std::abs(value));
  Plot plot = empty_plot("Do momenta reach every energy?", "energy, nat", "draws");
  plot.series.push_back(page::histogram("about their mean", own, -reach, reach, 40));
  plot.series.push_back(page::histogram("from draw to draw", moves, -reach, reach, 40));
  return plot;
}

// The middle nine tenths of what may come, noise included.
struct Band {
  std::vector<double> low, middle, high, low_with_noise, high_with_noise;
};
Band forecast_band(const std::vector<ChainRecord>& records, const Likelihood& likelihood, std::size_t samples,
                   std::size_t size, std::optional<std::size_t> place) {
  Band band;
  RandomStream random(1);
  for (std::size_t i = 0; i < samples; ++i) {
    std::vector<double> means, values;
    for (const ChainRecord& record : records)
      for (std::size_t d = 0; d < static_cast<std::size_t>(record.draws()); ++d) {
        means.push_back(static_cast<double>(record.predictions[d * samples + i]));
        const double scale = place ? std::exp(static_cast<double>(record.positions[d * size + *place]))
                                   : likelihood.scale.value_or(0);
        double noise = random.normal();
        if (likelihood.kind == Likelihood::Kind::laplace) {  // the difference of two exponential numbers
          noise = std::log(1 - random.uniform()) - std::log(1 - random.uniform());
        }
        values.push_back(means.back() + scale * noise);
      }
    band.low.push_back(quantile(means, 0.05)), band.high.push_back(quantile(means, 0.95));
    band.middle.push_back(median(means));
    band.low_with_noise.push_back(quantile(values, 0.05));
    band.high_with_noise.push_back(quantile(values, 0.95));
  }
  return band;
}

void add_band(Page& page, const SampleSettings& settings, const SampleReport& report,
              const PosteriorData& data, const std::vector<ChainRecord>& records) {
  const std::size_t samples = data.held_out_indices.size(), size = report.parameters;
  const auto draws = static_cast<std::size_t>(records.front().draws());
  if (samples == 0 || draws == 0 || records.front().predictions.size() != samples * draws) return;
  const std::vector<Likelihood> likelihoods =
      likelihoods_of(Model(settings.model).recipe().loss, settings.noise, settings.model.workload);
  if (!likelihoods[0].has_scale()) return;
  const std::optional<std::size_t> place =
      likelihoods.size() == 1 && likelihoods[0].samples_scale() ? std::optional(size - 1) : std::nullopt;
  if (likelihoods.size() > 1) return;
  const Band band = forecast_band(records, likelihoods[0], samples, size, place);
  Plot plot = empty_plot("Forecasts of held-out samples", "sample", likelihoods[0].term.target);
  std::vector<double> x, truth;
  double inside = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    x.push_back(static_cast<double>(data.held_out_indices[i]));
    truth.push_back(data.held_out_targets[0].at(static_cast<std::int64_t>(i)));
    inside += truth[i] >= band.low_with_noise[i] && truth[i] <= band.high_with_noise[i];
  }
  plot.series.push_back({"90 % of values", x, band.middle, band.low_with_noise, band.high_with_noise});
  plot.series.push_back({"90 % of means", x, band.middle, band.low, band.high});
  plot.series.push_back({"came", x, truth, {}, {}, Series::Style::points});
  page.plot(plot);
  page.paragraph(fmt::format("{:.0f} of {} values lie inside the band of 90 %.", inside, samples));
}

}  // namespace

void write_page(const std::filesystem::path& path, const SampleSettings& settings, const SampleReport& report,
                const PosteriorData& data, const std::vector<std::vector<ChainRecord>>& records) {
  Page page(fmt::format("{}: draws of its posterior", settings.model.workload));
  page.paragraph(fmt::format("{} parameters given {} samples, prior {}, seed {}.", report.parameters,
                             format_count(static_cast<double>(report.training)), to_string(settings.prior),
                             settings.model.seed));
  add_forecasts(page, report);
  add_methods(page, report);
  const std::vector<ChainRecord>& main = records.front();
  const MethodSummary& method = report.methods.front();
  if (method.draws > 0) {
    add_band(page, settings, report, data, main);
    page.heading("Chains of " + method.method);
    page.begin_row();
    page.plot(trace(main, "Log density", "nat",
                    [](const ChainRecord& r, std::size_t d) { return drawn(r, d).log_density; }));
    const std::size_t size = report.parameters, scales = method.scales.size();
    for (std::size_t k = 0; k < scales; ++k)
      page.plot(trace(main, method.scales[k].name, "", [&](const ChainRecord& r, std::size_t d) {
        return std::exp(static_cast<double>(r.positions[d * size + size - scales + k]));
      }));
    page.plot(trace(main, method.parameters.front().name, "", [&](const ChainRecord& r, std::size_t d) {
      return static_cast<double>(r.positions[d * size]);
    }));
    page.plot(r_hats(method));
    if (std::isfinite(method.energy_information)) page.plot(energies(main));
    page.end_row();
    page.paragraph(
        "Parameters of a network can be exchanged and turned without a change of what it says: their chains "
        "need not agree where its predictions do.");
  }
  page.write(path);
}

}  // namespace superstep::run
