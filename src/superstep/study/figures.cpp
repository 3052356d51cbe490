#include "superstep/study/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/statistics.h"
#include "superstep/base/text.h"
#include "superstep/lab/validate/application_rows.h"
#include "superstep/record/member.h"
#include "superstep/study/known.h"
#include "superstep/study/to_quality.h"
#include "superstep/workload/workload.h"

namespace superstep::study {
namespace {

using record::Quantity;

double scale_of(const std::string& unit) { return unit == "GB/s" ? 1e-9 : lab::scale_of_unit(unit); }

Figure none(std::string why) { return {.value = {}, .words = std::move(why)}; }

Figure rate(const Quantity& quantity, double factor) {
  return {quantity.value * factor, quantity.low.value_or(0) * factor, quantity.high.value_or(0) * factor, {}};
}

// `amount` divided by it.
Figure inverse(const Quantity& quantity, double amount) {
  const double low = quantity.high.value_or(0), high = quantity.low.value_or(0);
  return {amount / quantity.value, low > 0 ? amount / low : 0, high > 0 ? amount / high : 0, {}};
}

double things_a_sample(const std::string& workload) {
  for (const workload::Workload& known : workload::workloads())
    if (known.name == workload) return known.things_a_sample;
  return 1;
}

// What feeding adds to a step, where the loader does not work beside it.
Figure host_part(const Quantity& fed, const Quantity& step, double batch, double scale) {
  return {std::max(0.0, batch / fed.value - step.value) * scale, 0, 0, {}};
}

// As the row counts: fed by the host unless its note says otherwise.
const Quantity* throughput_of(const record::Result& result, const std::string& note) {
  const Quantity* fed = result.find("throughput_with_data");
  return fed && note.find("pipeline not counted") == std::string::npos ? fed : result.find("throughput");
}

Figure first_epoch(const record::Result& result, const Quantity& throughput) {
  const Quantity* compile = result.find("compile_time");
  constexpr double imagenet = 1281167;  // training images, as the paper's runs had
  const double seconds = imagenet / throughput.value + (compile ? compile->value : 0);
  return {imagenet / seconds, 0, 0, "an epoch of ImageNet at this rate, behind the time to compile"};
}

Figure from_bench(const record::Result& result, const Cells& cells, const Cell& cell) {
  const std::string &metric = cells.text(cell, "metric"), &unit = cells.text(cell, "unit"),
                    &note = cells.text(cell, "note");
  const double scale = scale_of(unit), batch = record::number_member(result.config, "batch", 1);
  const Quantity *fed = throughput_of(result, note), *step = result.find("step_time");
  if (metric == "throughput" && fed) return rate(*fed, things_a_sample(cells.text(cell, "workload")));
  if (metric == "throughput_first_epoch" && fed) return first_epoch(result, *fed);
  if (metric == "epoch_time" && fed)
    return inverse(*fed, lab::epoch_samples_of(note) / things_a_sample(cells.text(cell, "workload")) * scale);
  if (metric == "step_time" && step) return rate(*step, scale);
  if (metric == "host_time" && fed && step) return host_part(*fed, *step, batch, scale);
  if (metric == "latency_per_sample" && step) return rate(*step, scale / batch);
  const Quantity* direct = result.find(metric == "compute_rate" ? "flops_rate" : metric);
  if (direct) return rate(*direct, scale);
  return none(fmt::format("bench says no {}", metric));
}

// Half over single: the least and the most that both intervals leave.
Figure ratio_of(const record::Result& half, const record::Result& single) {
  const Quantity *a = half.find("throughput"), *b = single.find("throughput");
  if (!a || !b) return none("bench says no throughput");
  return {a->value / b->value,
          a->low.value_or(0) / b->high.value_or(b->value),
          b->low.value_or(0) > 0 ? a->high.value_or(0) / *b->low : 0,
          {}};
}

Figure mean_of(const std::vector<Figure>& figures) {
  Figure mean{.value = 0.0, .words = {}};
  const double share = 1.0 / static_cast<double>(figures.size());
  for (const Figure& figure : figures) {
    if (!figure.value) return figure;
    *mean.value += share * *figure.value;
    mean.low += share * figure.low;
    mean.high += share * figure.high;
  }
  return mean;
}

// Of several seeds the mean, and where the seeds lie.
Figure from_trainings(std::span<const Kept* const> kept, const std::string& name, double factor) {
  std::vector<double> values;
  for (const Kept* one : kept) {
    const Quantity* found = one->results.front().find(name);
    if (!found) return none(fmt::format("the training says no {}", name));
    values.push_back(found->value * factor);
  }
  const auto [low, high] = std::ranges::minmax(values);
  return {mean(values), values.size() > 1 ? low : 0, values.size() > 1 ? high : 0, {}};
}

Figure from_scaling(const Kept& kept, const Cells& cells, const Cell& cell) {
  const std::int64_t units = std::max<std::int64_t>(1, cells.count(cell, "units"));
  for (const record::Result& result : kept.results) {
    if (record::integer_member(result.config, "ranks", 0) != units) continue;
    const bool efficiency = cells.text(cell, "metric") == "scaling_efficiency";
    if (efficiency && units == 1) return {1.0 * scale_of(cells.text(cell, "unit")), 0, 0, {}};
    const Quantity* found = result.find(efficiency ? "scaling_efficiency" : "throughput");
    if (found) return rate(*found, scale_of(cells.text(cell, "unit")));
  }
  return none(fmt::format("{} ranks were not run", units));
}

// Against 100 % there is no link here to hold a rate against: the rate itself is said.
Figure from_all_reduce(const Kept& kept, const Cells& cells, const Cell& cell) {
  const Quantity* bus = kept.results.front().find("in_place_busbw");
  if (!bus) return none("bench says no bus bandwidth");
  constexpr double giga = 1e9;
  if (cells.text(cell, "unit") == "%")
    return none(
        fmt::format("{:.3g} GB/s on the bus between processes of this computer, which have no link whose "
                    "share it could be",
                    bus->value / giga));
  return rate(*bus, 1 / giga);
}

std::string details_of(const Recipe& recipe, const record::Result& result) {
  std::vector<std::string> words{recipe.precision};
  const std::int64_t batch = record::integer_member(result.config, "batch", recipe.batch);
  if (batch > 0) words.push_back(fmt::format("batch {}", batch));
  if (recipe.measure && recipe.measure->way == Way::train)
    words.push_back(fmt::format("{} steps", record::integer_member(result.config, "steps", 0)));
  if (recipe.measure && !recipe.measure->workload.empty()) words.push_back(recipe.measure->workload);
  return join(words, ", ");
}

Figure of_way(const Cells& cells, const Cell& cell, const Recipe& recipe, std::span<const Kept* const> kept) {
  const Measure& measure = *recipe.measure;
  const std::string& metric = cells.text(cell, "metric");
  if (measure.way == Way::train)
    return from_trainings(kept, measure.quantity.empty() ? metric : measure.quantity, measure.factor);
  if (measure.way == Way::scale) return from_scaling(*kept.front(), cells, cell);
  if (measure.way == Way::all_reduce) return from_all_reduce(*kept.front(), cells, cell);
  std::vector<Figure> figures;
  if (metric == "speedup_half_over_single")
    for (std::size_t i = 0; i + 1 < kept.size(); i += 2)
      figures.push_back(ratio_of(kept[i]->results.front(), kept[i + 1]->results.front()));
  else
    for (const Kept* one : kept) figures.push_back(from_bench(one->results.front(), cells, cell));
  return mean_of(figures);
}

// The first of the jobs that found nothing, in its words.
const Kept* failed(std::span<const Kept* const> kept) {
  for (const Kept* one : kept)
    if (one->results.empty()) return one;
  return nullptr;
}

}  // namespace

Figure measured_figure(const Cells& cells, const Cell& cell, const Recipe& recipe,
                       std::span<const Kept* const> kept) {
  if (!recipe.why.empty()) return none(recipe.why);
  if (kept.empty()) return none("not measured yet: the time was over");
  if (const Kept* one = failed(kept)) return none(one->failure);
  const record::Result& first = kept.front()->results.front();
  if (first.config.contains("not_run") && first.config["not_run"].is_string())
    return none(first.config["not_run"].get<std::string>());
  if (recipe.measure->way == Way::quality) return measured_to_quality(cells, cell, recipe, *kept.front());
  Figure figure = of_way(cells, cell, recipe, kept);
  if (!figure.value) return figure;
  const std::string details = details_of(recipe, first);
  figure.words = figure.words.empty() ? details : details + "; " + figure.words;
  if (kept.size() > 1 && recipe.measure->way == Way::train)
    figure.words += fmt::format(", mean of {} seeds", kept.size());
  return figure;
}

Figure executed_figure(const Cells& cells, const Cell& cell, const Recipe& recipe,
                       std::span<const Kept* const> kept) {
  if (!recipe.why.empty()) return none(recipe.why);
  if (kept.empty()) return none("not executed yet: the time was over");
  if (const Kept* one = failed(kept)) return none(one->failure);
  const record::Result& result = kept.front()->results.front();
  const std::string &metric = cells.text(cell, "metric"), &unit = cells.text(cell, "unit");
  const Quantity *throughput = result.find("throughput"), *step = result.find("step_time");
  Figure figure = none("the engine says no time");
  if (metric == "throughput" && throughput)
    figure = rate(*throughput, things_a_sample(cells.text(cell, "workload")));
  else if (metric == "epoch_time" && throughput)
    figure = inverse(*throughput, lab::epoch_samples_of(cells.text(cell, "note")) /
                                      things_a_sample(cells.text(cell, "workload")) * scale_of(unit));
  else if (metric == "step_time" && step)
    figure = rate(*step, scale_of(unit));
  else if (metric == "latency_per_sample" && step)
    figure = rate(*step, scale_of(unit) / static_cast<double>(recipe.batch));
  if (figure.value) figure.words = fmt::format("{}, batch {}", recipe.precision, recipe.batch);
  return figure;
}

}  // namespace superstep::study
