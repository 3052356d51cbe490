#include "superstep/lab/validate/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "superstep/base/progress.h"
#include "superstep/base/statistics.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/validate/application_rows.h"
#include "superstep/lab/validate/operator_rows.h"

namespace superstep::lab {
namespace {

using machine::Machine;

Machine machine_of(const PublishedTable& table, const ValidateOptions& options) {
  if (!options.machine.empty()) return machine::find_machine(options.machine);
  const double tiles = table.rows() ? table.number(0, "tiles", 0) : 0;
  for (const Machine& machine : machine::machines())
    if (machine.style() == machine::Style::bulk_synchronous && machine.value("tiles") == tiles)
      return machine;
  throw Error(ErrorCode::bad_file, fmt::format("no machine has {} tiles", tiles), table.where(),
              "name one with --on");
}

RowResult operator_row(const machine::ipu::Hardware& hardware, const PublishedTable& table, std::size_t row) {
  RowResult result{.name = table.text(row, "name"),
                   .family = table.text(row, "kind"),
                   .quantity = "cycles",
                   .unit = "cycles",
                   .published = table.number(row, "cycles", 0),
                   .predicted = {},
                   .reason = "no planner for this operator",
                   .tile_published = table.number(row, "max_tile_bytes", 0),
                   .total_published = table.number(row, "total_bytes", 0)};
  const auto plan = plan_operator_row(hardware, table, row);
  if (!plan) return result;
  result.predicted = plan->cycles.total();
  const machine::ipu::Cycles& c = plan->cycles;
  result.reason =
      fmt::format("{}; {} (compute {:.0f}, exchange {:.0f}, sync {:.0f}, rearrange {:.0f}, control {:.0f})",
                  plan->vertex, plan->partition, c.compute, c.exchange, c.sync, c.rearrange, c.control);
  result.tile_predicted = largest_tile(hardware, *plan);
  result.total_predicted = plan->bytes.total() * static_cast<double>(hardware.tiles);
  return result;
}

std::vector<RowResult> operator_rows(const PublishedTable& table, const Machine& machine,
                                     const ValidateOptions& options) {
  const machine::ipu::Hardware hardware = machine::ipu::hardware_of(machine);
  std::vector<std::size_t> wanted;
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (options.family.empty() || table.text(row, "kind") == options.family) wanted.push_back(row);
  std::vector<RowResult> results(wanted.size());
  ThreadPool pool(options.threads);
  pool.parallel_for(static_cast<std::int64_t>(wanted.size()), [&](std::int64_t item, int) {
    const auto i = static_cast<std::size_t>(item);
    results[i] = operator_row(hardware, table, wanted[i]);
  });
  return results;
}

RowResult application_row(ApplicationRows& rows, const PublishedTable& table, std::size_t row) {
  const RowPrediction prediction = rows.predict(row);
  return {.name = table.text(row, "id"),
          .family = table.text(row, "machine"),
          .quantity = table.text(row, "metric"),
          .unit = table.text(row, "unit"),
          .subject = fmt::format("{} {} {} {}", table.text(row, "workload"), table.text(row, "mode"),
                                 table.text(row, "metric"), table.text(row, "unit")),
          .published = table.number(row, "value", 0),
          .predicted = prediction.value,
          .reason = prediction.reason,
          .low = prediction.low,
          .high = prediction.high,
          .peak = prediction.peak,
          .roofline = prediction.roofline};
}

std::vector<RowResult> application_rows(const PublishedTable& table, const ValidateOptions& options) {
  std::vector<std::size_t> wanted;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!options.machine.empty() && table.text(row, "machine") != options.machine) continue;
    if (!options.family.empty() && !table.text(row, "workload").starts_with(options.family)) continue;
    wanted.push_back(row);
  }
  ApplicationRows rows(table);
  std::vector<RowResult> results(wanted.size());
  Progress progress("predicting", static_cast<double>(wanted.size()), "rows");
  std::atomic<std::size_t> done = 0;
  ThreadPool pool(options.threads);
  pool.parallel_for(static_cast<std::int64_t>(wanted.size()), [&](std::int64_t item, int worker) {
    const std::size_t row = wanted[static_cast<std::size_t>(item)];
    if (worker == 0) progress.update(static_cast<double>(done), table.text(row, "id"));
    results[static_cast<std::size_t>(item)] = application_row(rows, table, row);
    ++done;
  });
  return results;
}

// The factor within which 80 % of the predictions are; errors are relative ones.
double factor_of(const std::vector<double>& errors) {
  constexpr double held = 0.8;  // as intervals
  std::vector<double> logs;
  for (const double error : errors) logs.push_back(std::abs(std::log1p(error)));
  return logs.empty() ? 1 : std::exp(quantile(logs, held));
}

ErrorSummary summarize(const std::string& family, std::vector<double> errors, std::size_t rows) {
  ErrorSummary summary{.family = family, .rows = rows, .covered = errors.size()};
  summary.factor = factor_of(errors);
  for (double& error : errors) error = std::abs(error);
  constexpr double close = 0.3;  // the "within 30 %" of docs/machines.md
  for (double error : errors) summary.within += error <= close ? 1 : 0;
  if (errors.empty()) return summary;
  summary.median = quantile(errors, 0.5);
  summary.p90 = quantile(errors, 0.9);  // by its name
  summary.worst = *std::max_element(errors.begin(), errors.end());
  return summary;
}

template <class ErrorOf>
std::vector<ErrorSummary> by_family(const std::vector<RowResult>& rows, ErrorOf error_of) {
  std::vector<std::string> families;
  for (const RowResult& row : rows)
    if (std::find(families.begin(), families.end(), row.family) == families.end())
      families.push_back(row.family);
  families.emplace_back("all");
  std::vector<ErrorSummary> summaries;
  for (const std::string& family : families) {
    std::vector<double> errors, widths;
    std::size_t count = 0, inside = 0;
    for (const RowResult& row : rows) {
      if (family != "all" && row.family != family) continue;
      ++count;
      if (const std::optional<double> error = error_of(row)) errors.push_back(*error);
      if (!row.predicted || row.high <= 0) continue;
      widths.push_back(row.width());
      inside += row.inside() ? 1 : 0;
    }
    summaries.push_back(summarize(family, errors, count));
    summaries.back().with_interval = widths.size();
    summaries.back().inside = inside;
    if (!widths.empty()) summaries.back().median_width = quantile(widths, 0.5);
  }
  return summaries;
}

std::optional<double> cycles_error(const RowResult& row) {
  return row.predicted && row.published > 0 ? std::optional(row.error()) : std::nullopt;
}

std::optional<double> tile_error(const RowResult& row) {
  if (!row.predicted || row.tile_published <= 0) return std::nullopt;
  return row.tile_predicted / row.tile_published - 1;
}

std::optional<double> total_error(const RowResult& row) {
  if (!row.predicted || row.total_published <= 0) return std::nullopt;
  return row.total_predicted / row.total_published - 1;
}

}  // namespace

double RowResult::width() const { return std::sqrt(high / low); }

// What is closer than this may well be another order on another day (the goal of rankings).
constexpr double clear_ratio = 1.3;

Rankings rankings_of(const std::vector<RowResult>& rows) {
  Rankings rankings;
  for (const RowResult& a : rows)
    for (const RowResult& b : rows) {
      // a is the one that was measured larger, so that a pair is met once.
      if (a.subject.empty() || a.subject != b.subject || a.family == b.family) continue;
      if (!a.predicted || !b.predicted || a.published <= clear_ratio * b.published) continue;
      ++rankings.pairs;
      if (*a.predicted > *b.predicted)
        ++rankings.right;
      else
        rankings.wrong.push_back(fmt::format("{} above {}", a.name, b.name));
    }
  return rankings;
}

std::vector<Metric> Validation::metrics() const {
  const ErrorSummary& all = families.back();
  const auto metric = [](const char* name, double value) {
    return Metric{.name = name, .value = value, .unit = "", .how = How::predicted};
  };
  std::vector<Metric> metrics{metric("median_error", all.median),
                              metric("p90_error", all.p90),
                              metric("worst_error", all.worst),
                              metric("passed", static_cast<double>(all.within)),
                              metric("failed", static_cast<double>(all.covered - all.within)),
                              metric("skipped", static_cast<double>(all.rows - all.covered)),
                              metric("memory_median_error", memory.back().median)};
  if (all.with_interval > 0) {
    metrics.push_back(metric("interval_coverage",
                             static_cast<double>(all.inside) / static_cast<double>(all.with_interval)));
    metrics.push_back(metric("interval_width", all.median_width));
  }
  return metrics;
}

Validation validate(const std::filesystem::path& file, const ValidateOptions& options) {
  return validate(PublishedTable(file), options);
}

Validation validate(const PublishedTable& table, const ValidateOptions& options) {
  Validation validation{.file = table.where()};
  if (has_operator_rows(table)) {
    const Machine machine = machine_of(table, options);
    validation.machine = machine.id();
    validation.rows = operator_rows(table, machine, options);
  } else if (has_application_rows(table)) {
    validation.machine = "each row's own machine";
    validation.rows = application_rows(table, options);
  } else {
    throw Error(ErrorCode::bad_file, "is of no known kind of published rows", table.where(),
                "known are single operators (columns kind, tiles, cycles) and applications (workload, "
                "machine, metric, value)");
  }
  validation.families = by_family(validation.rows, cycles_error);
  validation.memory = by_family(validation.rows, tile_error);
  validation.total = by_family(validation.rows, total_error);
  return validation;
}

namespace {

// Mean of |log(predicted / published)|, in which over- and underestimates weigh the same; rows far off count
// as one and a half at most, so that no single row decides.
constexpr double most_loss = 0.4;  // the logarithm of one and a half

double loss_of(const PublishedTable& table, const Machine& machine, const ValidateOptions& options) {
  double sum = 0;
  std::size_t count = 0;
  for (const RowResult& row : operator_rows(table, machine, options)) {
    if (!row.predicted) continue;
    sum += std::min(most_loss, std::abs(std::log(*row.predicted / row.published)));
    ++count;
  }
  return sum / static_cast<double>(std::max<std::size_t>(1, count));
}

}  // namespace

Fit fit_open_constants(const std::filesystem::path& file, const ValidateOptions& options, int rounds) {
  const PublishedTable table(file);
  Fit fit{machine_of(table, options)};
  fit.loss_before = fit.loss_after = loss_of(table, fit.machine, options);
  double step = 0.25;  // of the range
  for (int round = 0; round < rounds; ++round, step *= 0.6) {
    const std::vector<machine::Constant> constants = fit.machine.constants();
    for (const machine::Constant& constant : constants) {
      if (!constant.open) continue;
      for (double direction : {-step, step}) {
        const double value =
            std::clamp(fit.machine.value(constant.name) + direction * (constant.high - constant.low),
                       constant.low, constant.high);
        Machine moved = fit.machine.with(constant.name, value);
        const double loss = loss_of(table, moved, options);
        if (loss >= fit.loss_after) continue;
        fit.loss_after = loss;
        fit.machine = std::move(moved);
        break;
      }
    }
  }
  return fit;
}

}  // namespace superstep::lab
