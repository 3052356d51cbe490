#include "superstep/lab/advise/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/lab/advise/reasons.h"
#include "superstep/machine/cost_model.h"
#include "superstep/page/page.h"

namespace superstep::lab {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Of one unit: operations a byte at the kernels' borders, and operations a second.
struct Point {
  double intensity = 0, rate = 0;
};

Point point_of(const Option& best) {
  const machine::Prediction& prediction = best.prediction;
  const double replica_flops = prediction.flops / best.settings.replicas;
  return {prediction.border_bytes > 0 ? replica_flops / prediction.border_bytes : 0,
          prediction.flops / prediction.step_seconds / prediction.units};
}

page::Series roof_of(const MachineAdvice& one, double first, double last) {
  const machine::Bounds bounds =
      machine::cost_model(one.machine)->bounds(one.best_option()->settings.precision);
  page::Series roof{
      .label = "", .x = {first}, .y = {std::min(bounds.peak_flops, first * bounds.memory_rate)}};
  const double ridge = bounds.peak_flops / bounds.memory_rate;
  if (ridge > first && ridge < last) {
    roof.x.push_back(ridge);
    roof.y.push_back(bounds.peak_flops);
  }
  roof.x.push_back(last);
  roof.y.push_back(std::min(bounds.peak_flops, last * bounds.memory_rate));
  return roof;
}

// Plots tell as many series apart as they have colours.
constexpr std::size_t shown_machines = 8;

std::vector<const MachineAdvice*> leading(const Advice& advice) {
  std::vector<const MachineAdvice*> chosen;
  for (const MachineAdvice& one : advice.machines)
    if (one.best_option() && chosen.size() < shown_machines) chosen.push_back(&one);
  return chosen;
}

void add_roofline(page::Page& page, const Advice& advice) {
  const auto machines = leading(advice);
  if (machines.empty()) return;
  page::Plot plot{.title = "One unit of each machine",
                  .x_label = "FLOP a byte at the borders of kernels",
                  .y_label = "FLOP/s",
                  .log_x = true,
                  .log_y = true,
                  .series = {}};
  double first = point_of(*machines.front()->best_option()).intensity, last = first;
  for (const MachineAdvice* one : machines) {
    const Point point = point_of(*one->best_option());
    first = std::min(first, point.intensity / 4);
    last = std::max(last, point.intensity * 4);
  }
  for (const MachineAdvice* one : machines) {
    page::Series roof = roof_of(*one, first, last);
    roof.label = "roof of " + one->machine.id();
    plot.series.push_back(std::move(roof));
  }
  for (const MachineAdvice* one : machines) {
    const Point point = point_of(*one->best_option());
    plot.series.push_back({.label = one->machine.id(),
                           .x = {point.intensity},
                           .y = {point.rate},
                           .style = page::Series::Style::points});
  }
  page.heading("Roofline");
  page.paragraph(
      "A roof is the peak in the precision chosen there, and the memory that kernels stream from. A point is "
      "the model's "
      "best configuration: how far it lies below its roof is what launches, exchanges, small products and "
      "the host cost.");
  page.plot(plot);
}

void add_pareto(page::Page& page, const Advice& advice) {
  page::Plot plot{.title = "All configurations that fit",
                  .x_label = advice.trains ? "s an update" : "s a call",
                  .y_label = "samples/s",
                  .log_x = true,
                  .log_y = true,
                  .series = {}};
  for (const MachineAdvice* one : leading(advice)) {
    page::Series series{.label = one->machine.id(), .x = {}, .y = {}, .style = page::Series::Style::points};
    for (const Option& option : one->options)
      if (option.prediction.fits) {
        series.x.push_back(fed_seconds(option.prediction).value);
        series.y.push_back(option.prediction.samples / series.x.back());
      }
    plot.series.push_back(std::move(series));
  }
  for (const Measured& measured : advice.here)
    plot.series.push_back({.label = "this computer, " + measured.what,
                           .x = {measured.seconds},
                           .y = {measured.samples / measured.seconds},
                           .style = page::Series::Style::points});
  if (advice.search.latency_limit > 0) plot.vertical.push_back({advice.search.latency_limit, "at most"});
  if (advice.search.rate_wanted > 0) plot.horizontal.push_back({advice.search.rate_wanted, "wanted"});
  page.heading("What a wait buys")
      .paragraph("Up and to the left is better; who has another one there is not worth having.");
  page.plot(plot);
}

void add_ranking(page::Page& page, const Advice& advice) {
  Rows rows;
  std::vector<std::size_t> first;
  for (const MachineAdvice& one : advice.machines) {
    const Option* best = one.best_option();
    if (best && one.first_place == 1) first.push_back(rows.size());
    rows.push_back({!best ? "-"
                    : one.first_place == one.last_place
                        ? fmt::format("{}", one.first_place)
                        : fmt::format("{} to {}", one.first_place, one.last_place),
                    one.machine.name(), best ? split_of(best->settings) : "-",
                    best ? best->settings.precision.name : "-",
                    best ? fmt::format("{}", best->settings.micro_batch) : "-",
                    best ? amount_of(advice.goal, best->figure.value) : "-",
                    best ? interval_of(advice.goal, best->figure) : "-", join(one.reasons, "; "),
                    join(coverage_words(one.coverage, one.machine), "; ")});
  }
  page.heading(fmt::format("Ranked by {}", name_of(advice.goal)));
  page.paragraph(
      "All figures are predictions; the interval is meant to hold 80 %. Machines whose intervals overlap "
      "cannot be told apart: their places are ranges.");
  page.table({"place", "machine", "split", "precision", "micro-batch", name_of(advice.goal), "80 %", "why",
              "operators"},
             rows, first);
}

void add_changes(page::Page& page, const Advice& advice) {
  Rows rows;
  for (const MachineAdvice& one : advice.machines)
    for (const Change& change : one.changes)
      rows.push_back({one.machine.id(), change.what, fmt::format("{:.2g} times", change.gain), change.note});
  if (rows.empty()) return;
  page.heading("What would gain")
      .paragraph("Each change was made to the model, and predicted again in the same configuration.");
  page.table({"machine", "change", "gain", "what it costs"}, rows);
}

void add_ladder(page::Page& page, const Advice& advice) {
  Rows rows;
  for (const MachineAdvice& one : advice.machines)
    if (const Option* best = one.best_option()) {
      const machine::Prediction& p = best->prediction;
      rows.push_back({one.machine.id(), format_seconds(p.peak_seconds), format_seconds(p.roofline_seconds),
                      format_seconds(p.step_seconds), format_seconds(fed_seconds(p).value), bound_of(*best),
                      one.machine.file(), one.machine.digest()});
    }
  if (rows.empty()) return;
  page.heading("From the peak to the prediction");
  page.table(
      {"machine", "at peak", "roofline", "model", "fed by its host", "bound by", "constants", "digest"},
      rows);
}

}  // namespace

void write_page(const Advice& advice, const std::filesystem::path& file) {
  page::Page page(fmt::format("Where to {} {}", advice.trains ? "train" : "serve", advice.model));
  page.paragraph(text_of(advice, false).substr(0, text_of(advice, false).find('\n')));
  add_ranking(page, advice);
  add_changes(page, advice);
  if (!advice.here.empty()) {
    Rows rows;
    for (const Measured& m : advice.here)
      rows.push_back({m.what, format_seconds(m.seconds), format_si(m.samples / m.seconds, "samples/s")});
    page.heading("This computer, measured").table({"configuration", "a call", "throughput"}, rows);
  }
  page.begin_row().begin_column();
  add_pareto(page, advice);
  page.end_column().begin_column();
  add_roofline(page, advice);
  page.end_column().end_row();
  add_ladder(page, advice);
  page.write(file);
}

}  // namespace superstep::lab
