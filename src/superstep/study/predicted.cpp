#include "superstep/study/predicted.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/validate/application_rows.h"
#include "superstep/machine/ipu/kept_plans.h"
#include "superstep/study/known.h"

namespace superstep::study {
namespace {}  // namespace

std::string why_not_predicted(const Cells& cells, const Cell& cell) {
  const std::string &metric = cells.text(cell, "metric"), &machine = cells.text(cell, "machine");
  if (is_quality(metric) || metric == "epochs_to_target" || metric == "time_to_solution" ||
      metric == "steps_to_quality")
    return "what a training reaches is not predicted";
  if (machine.empty()) return "the machine is not said";
  if (machine == "cpu") return "processors are measured here";
  if (metric.starts_with("ratio_to_gpu")) return "the other machine is not said";
  if (cells.text(cell, "precision") == "int8") return "8-bit integers have no cost model";
  return cell.predictable ? "" : "no cost model has this form of it";
}

namespace {

// What a throughput is for a thousand dollars of machines.
void divide_by_price(Figure& figure, const Cells& cells, const Cell& cell, const std::vector<Price>& prices) {
  const auto price = std::ranges::find(prices, cells.text(cell, "machine"), &Price::machine);
  if (!figure.value) return;
  if (price == prices.end()) {
    figure = {.value = {}, .words = "no price is given of the machine"};
    return;
  }
  constexpr double thousand = 1000;
  const double units = static_cast<double>(std::max<std::int64_t>(1, cells.count(cell, "units")));
  const double share = thousand / (price->dollars * units);
  *figure.value *= share;
  figure.low *= share;
  figure.high *= share;
  figure.words += fmt::format("; {:.0f} x ${:.2f}", units, price->dollars);
}

Figure figure_of(lab::ApplicationRows& rows, const Cells& cells, const Cell& cell,
                 const std::vector<Price>& prices) {
  if (std::string why = why_not_predicted(cells, cell); !why.empty())
    return {.value = {}, .words = std::move(why)};
  if (cells.text(cell, "metric") == "time_to_quality")
    return {.value = {}, .words = "the steps to the quality are not measured yet"};
  try {
    const lab::RowPrediction found = rows.predict(cell.row);
    Figure figure{found.value, found.low, found.high, found.reason, found.memory_ends};
    if (cells.text(cell, "metric") == "throughput_per_price") divide_by_price(figure, cells, cell, prices);
    return figure;
  } catch (const Error& error) {
    return {.value = {}, .words = error.what()};
  }
}

}  // namespace

std::vector<Figure> predict(const Cells& cells, int threads, const std::vector<Price>& prices) {
  const machine::ipu::KeptPlans kept;
  lab::ApplicationRows rows(cells.asked);
  std::vector<Figure> figures(cells.list.size());
  Progress progress = Progress::passing("predicting", static_cast<double>(figures.size()), "cells");
  std::atomic<std::size_t> done = 0;
  ThreadPool pool(threads);
  pool.parallel_for(static_cast<std::int64_t>(figures.size()), [&](std::int64_t item, int worker) {
    const auto i = static_cast<std::size_t>(item);
    if (worker == 0) progress.update(static_cast<double>(done));
    figures[i] = figure_of(rows, cells, cells.list[i], prices);
    ++done;
  });
  return figures;
}

}  // namespace superstep::study
