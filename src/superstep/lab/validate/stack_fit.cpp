#include "superstep/lab/validate/stack_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>

#include "superstep/base/progress.h"
#include "superstep/base/statistics.h"
#include "superstep/lab/validate/application_rows.h"
#include "superstep/lab/validate/row_run.h"
#include "superstep/machine/configuration/resolve.h"
#include "superstep/machine/cost_model.h"
#include "superstep/machine/predict.h"

namespace superstep::lab {
namespace {

using machine::Machine;

// A graph at its batch, and the kernels of it.
struct Prepared {
  graph::Graph graph;
  double gradient_bytes = 0;
  std::map<bool, std::vector<machine::Work>> works;  // by whether kernels are fused across layers
};

struct FitRow {
  RowRun run;
  machine::PredictSettings settings;
  std::string row_workload;
  double published = 0, samples = 0;
  std::shared_ptr<Prepared> prepared;
};

// "pytorch-eager launch" -> its value.
using Values = std::map<std::pair<std::string, std::string>, double>;
using Rows = std::vector<const FitRow*>;

double seconds_of(const FitRow& row, const Values& values) {
  Machine machine = machine_of(row.run);
  for (const auto& [key, value] : values)
    if (key.first == row.run.stack) machine = machine.with(key.second, value);
  const bool fuses = machine::cost_model(machine)->work_options().fuse_across_layers;
  auto& works = row.prepared->works[fuses];
  if (works.empty())
    works = machine::works_of(row.prepared->graph, row.settings.precision, {.fuse_across_layers = fuses});
  return machine::fed_step_seconds(machine, row.prepared->graph, works, row.prepared->gradient_bytes,
                                   row.settings);
}

double log_error(const FitRow& row, const Values& values) {
  return std::log(row.samples / seconds_of(row, values) / row.published);
}

// Rows far off count as twice at most, so that no single one decides (chosen).
constexpr double most_loss = 0.7;

double loss(const Rows& rows, const Values& values, const std::string& stack) {
  double sum = 0;
  for (const FitRow* row : rows)
    if (row->run.stack == stack) sum += std::min(most_loss, std::abs(log_error(*row, values)));
  return sum;
}

class Fitter {
 public:
  explicit Fitter(const std::vector<StackFit::Value>& constants) : constants_(constants) {}

  Values fit(const Rows& rows, int rounds) const {
    Values values;
    for (const StackFit::Value& c : constants_) values[{c.stack, c.name}] = c.before;
    double step = 0.5;  // of the logarithm; made smaller from round to round
    for (int round = 0; round < rounds; ++round, step *= 0.7)
      for (const StackFit::Value& c : constants_) move(rows, c, step, values);
    return values;
  }

 private:
  static void move(const Rows& rows, const StackFit::Value& c, double step, Values& values) {
    double& value = values[{c.stack, c.name}];
    double best = loss(rows, values, c.stack);
    for (const double direction : {-1.0, 1.0}) {
      const double old = value;
      value = std::clamp(std::max(old, c.high / 100) * std::exp(direction * step), c.low, c.high);
      const double found = loss(rows, values, c.stack);
      if (found < best)
        best = found;
      else
        value = old;
    }
  }

  const std::vector<StackFit::Value>& constants_;
};

StackFit::Errors errors_of(const std::string& left_out, std::vector<double> logs) {
  StackFit::Errors errors{.left_out = left_out, .rows = logs.size()};
  if (logs.empty()) return errors;
  std::vector<double> relative;
  for (double& log : logs) {
    relative.push_back(std::abs(std::expm1(log)));
    log = std::abs(log);
  }
  constexpr double most = 0.9, held = 0.8;  // by their names: a 90th percentile, and intervals of 80 %
  errors.median = quantile(relative, 0.5);
  errors.p90 = quantile(relative, most);
  errors.half_width = quantile(logs, held);
  return errors;
}

std::vector<double> logs_of(const Rows& rows, const Values& values) {
  std::vector<double> logs;
  for (const FitRow* row : rows) logs.push_back(log_error(*row, values));
  return logs;
}

std::vector<FitRow> rows_of(const PublishedTable& table) {
  std::vector<FitRow> rows;
  std::map<std::string, std::shared_ptr<Prepared>> prepared;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const std::string& metric = table.text(i, "metric");
    const bool model = !known_workload(table.text(i, "workload")).empty();
    if (metric != "throughput" || !model) continue;
    FitRow row{.run = run_of_row(table, i),
               .row_workload = table.text(i, "workload"),
               .published = table.number(i, "value", 0)};
    if (row.run.question.stated.micro_batch == 0 || row.run.stack.empty() || row.published <= 0) continue;
    const Machine machine = machine_of(row.run);
    if (machine.style() != machine::Style::kernel_by_kernel) continue;
    // A micro-batch that is said leaves nothing to search for: no graph is asked for.
    row.settings = machine::plausible_configurations(machine, row.run.question, {}).front().settings;
    if (!row.settings.pipeline.empty()) continue;
    const std::int64_t micro = row.settings.micro_batch;
    std::shared_ptr<Prepared>& found = prepared[row.run.graph_key(micro) + row.settings.precision.name];
    if (!found) {
      graph::Graph graph = graph_of(row.run, micro);
      const double bytes = machine::predict(machine, graph, row.settings).stages[0].memory.parameters;
      found = std::make_shared<Prepared>(Prepared{std::move(graph), bytes, {}});
    }
    row.prepared = found;
    row.samples =
        static_cast<double>(row.settings.micro_batch) * row.settings.accumulate * row.settings.replicas;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<StackFit::Value> open_constants(const std::vector<FitRow>& rows) {
  std::vector<StackFit::Value> values;
  std::set<std::string> stacks;
  for (const FitRow& row : rows) {
    if (!stacks.insert(row.run.stack).second) continue;
    const Machine machine = machine_of(row.run);
    for (const machine::Constant& c : machine.stack()->constants)
      if (c.open) values.push_back({row.run.stack, c.name, c.unit, c.value, c.value, c.low, c.high});
  }
  return values;
}

using KeyOf = std::function<std::string(const FitRow&)>;

// Each group fitted without it and judged on it; the last one is all of them.
std::vector<StackFit::Errors> without_each(const Fitter& fitter, const Rows& rows, const KeyOf& key_of,
                                           int rounds) {
  std::set<std::string> keys;
  for (const FitRow* row : rows) keys.insert(key_of(*row));
  std::vector<StackFit::Errors> result;
  std::vector<double> all;
  Progress progress("leaving out", static_cast<double>(keys.size()), "groups");
  for (const std::string& key : keys) {
    Rows learnt, judged;
    for (const FitRow* row : rows) (key_of(*row) == key ? judged : learnt).push_back(row);
    const std::vector<double> logs = logs_of(judged, fitter.fit(learnt, rounds));
    all.insert(all.end(), logs.begin(), logs.end());
    result.push_back(errors_of(key, logs));
    progress.update(static_cast<double>(result.size()), key);
  }
  result.push_back(errors_of("all", all));
  return result;
}

}  // namespace

StackFit fit_stacks(const PublishedTable& table, int rounds) {
  const std::vector<FitRow> all = rows_of(table);
  StackFit fit{.constants = open_constants(all)};
  Rows rows;
  for (const FitRow& row : all)
    if (std::ranges::any_of(fit.constants, [&](const auto& c) { return c.stack == row.run.stack; }))
      rows.push_back(&row);
  fit.rows = rows.size();
  const Fitter fitter(fit.constants);
  fit.before = errors_of("none", logs_of(rows, {}));
  const Values values = fitter.fit(rows, rounds);
  fit.fitted = errors_of("none", logs_of(rows, values));
  for (StackFit::Value& c : fit.constants) c.after = values.at({c.stack, c.name});
  fit.workloads = without_each(
      fitter, rows, [](const FitRow& row) { return row.row_workload; }, rounds);
  fit.machines = without_each(
      fitter, rows, [](const FitRow& row) { return row.run.machine; }, rounds);
  return fit;
}

}  // namespace superstep::lab
