#include "superstep/study/predicted.h"

#include <fmt/format.h>

#include <atomic>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/validate/application_rows.h"
#include "superstep/machine/ipu/kept_plans.h"
#include "superstep/study/known.h"

namespace superstep::study {
namespace {

// Why nothing is predicted; empty: it may be.
std::string refused(const Cells& cells, const Cell& cell) {
  const std::string &metric = cells.text(cell, "metric"), &machine = cells.text(cell, "machine");
  if (is_quality(metric) || metric == "epochs_to_target" || metric == "time_to_solution")
    return "what a training reaches is not predicted";
  if (machine.empty()) return "the machine is not said";
  if (machine == "cpu") return "processors are measured here";
  if (metric.starts_with("ratio_to_gpu")) return "the other machine is not said";
  if (cells.text(cell, "precision") == "int8") return "8-bit integers have no cost model";
  return cell.predictable ? "" : "no cost model has this form of it";
}

Figure figure_of(lab::ApplicationRows& rows, const Cells& cells, const Cell& cell) {
  if (std::string why = refused(cells, cell); !why.empty()) return {.value = {}, .words = std::move(why)};
  try {
    const lab::RowPrediction found = rows.predict(cell.row);
    return {found.value, found.low, found.high, found.reason, found.memory_ends};
  } catch (const Error& error) {
    return {.value = {}, .words = error.what()};
  }
}

}  // namespace

std::vector<Figure> predict(const Cells& cells, int threads) {
  const machine::ipu::KeptPlans kept;
  lab::ApplicationRows rows(cells.table);
  std::vector<Figure> figures(cells.list.size());
  Progress progress = Progress::passing("predicting", static_cast<double>(figures.size()), "cells");
  std::atomic<std::size_t> done = 0;
  ThreadPool pool(threads);
  pool.parallel_for(static_cast<std::int64_t>(figures.size()), [&](std::int64_t item, int worker) {
    const auto i = static_cast<std::size_t>(item);
    if (worker == 0) progress.update(static_cast<double>(done));
    figures[i] = figure_of(rows, cells, cells.list[i]);
    ++done;
  });
  return figures;
}

}  // namespace superstep::study
