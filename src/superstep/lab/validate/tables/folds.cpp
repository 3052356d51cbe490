#include "superstep/lab/validate/tables/folds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "superstep/base/statistics.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/validate/application_rows.h"
#include "superstep/machine/rates/kept.h"

namespace superstep::lab {
namespace {

// Models are too many to be left out one by one: as many groups of them as a tenth needs.
constexpr std::size_t model_groups = 10;
constexpr double infinite = std::numeric_limits<double>::infinity();

// FNV-1a: the same groups on every machine.
std::size_t group_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash % model_groups;
}

std::string left_out(const TableCall& call, Fold fold) {
  switch (fold) {
    case Fold::none: return {};
    case Fold::model: return fmt::format("{}", group_of(call.model));
    case Fold::machine: return call.machine;
    case Fold::source: return call.source;
    case Fold::kept: return {};
  }
  return {};
}

using Calls = std::vector<FoldedCall*>;

std::string cell_of(const TableCall& call) {
  const bool kernel = !call.call.place.empty();
  return fmt::format("{}|{}|{}", call.call.own, call.software, kernel ? "" : call.model);
}

// Rows of one cell weigh as the square root of their number: 500 of one table do not outvote 20 machines.
void set_weights(std::vector<TableCall>& calls) {
  std::map<std::string, double> counts;
  for (const TableCall& call : calls)
    if (call.understood()) ++counts[cell_of(call)];
  for (TableCall& call : calls)
    if (call.understood()) call.call.weight = 1 / std::sqrt(counts[cell_of(call)]);
}

std::vector<const machine::MeasuredCall*> measured(const Calls& calls, Fold fold,
                                                   const std::string& without) {
  std::vector<const machine::MeasuredCall*> chosen;
  for (const FoldedCall* call : calls)
    if (fold == Fold::none || left_out(*call->of, fold) != without) chosen.push_back(&call->of->call);
  return chosen;
}

// One fit: of a law, without a group.
struct Task {
  const std::string* law;
  Calls* calls;
  Fold fold;
  std::string without;
};

std::vector<Task> tasks_of(std::map<std::string, Calls>& by_law, const std::vector<Fold>& folds) {
  std::vector<Task> tasks;
  for (auto& [law, calls] : by_law)
    for (const Fold fold : folds) {
      std::set<std::string> groups;
      for (const FoldedCall* call : calls) groups.insert(left_out(*call->of, fold));
      for (const std::string& group : groups) tasks.push_back({&law, &calls, fold, group});
    }
  return tasks;
}

// The roofline of the facts times the median of what calls of its law and type took over it.
void set_one_share(Calls& calls) {
  std::map<std::string, std::vector<double>> ratios;
  const auto key = [](const FoldedCall& call) { return call.of->call.law() + call.of->precision; };
  for (const FoldedCall* call : calls)
    if (call->of->roofline_seconds > 0)
      ratios[key(*call)].push_back(call->of->call.seconds / call->of->roofline_seconds);
  for (FoldedCall* call : calls)
    if (call->of->roofline_seconds > 0)
      call->one_share = call->of->roofline_seconds * median(ratios[key(*call)]);
}

}  // namespace

const char* name_of(Fold fold) {
  constexpr const char* names[] = {"seen", "model left out", "machine left out", "source left out",
                                   "as the program has it"};
  return names[static_cast<std::size_t>(fold)];
}

double FoldedCall::error(Fold fold) const {
  const double found = seconds[static_cast<std::size_t>(fold)];
  return of->understood() && found > 0 ? std::log(found / of->call.seconds) : infinite;
}

void for_each_table(const std::filesystem::path& folder,
                    const std::function<void(const PublishedTable&)>& what) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  std::ranges::sort(files);
  bool found = false;
  for (const std::filesystem::path& file : files) {
    const PublishedTable table(file);
    if (!has_application_rows(table)) continue;
    what(table);
    found = found || table.rows() > 0;
  }
  if (!found)
    throw Error(ErrorCode::bad_file, "has no table of measurements", folder.string(),
                "expected *.csv with the columns workload, machine, metric, value");
}

std::vector<TableCall> read_calls(const std::filesystem::path& folder) {
  const TableFacts facts = read_table_facts(folder);
  std::vector<TableCall> calls;
  for_each_table(folder, [&](const PublishedTable& table) {
    for (std::size_t row = 0; row < table.rows(); ++row) calls.push_back(call_of(table, row, facts));
  });
  set_weights(calls);
  return calls;
}

Folded fold_calls(const std::vector<TableCall>& calls, const std::vector<Fold>& folds, int threads) {
  Folded folded;
  folded.calls.resize(calls.size());
  std::map<std::string, Calls> by_law;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    folded.calls[i].of = &calls[i];
    if (calls[i].understood()) by_law[calls[i].call.law()].push_back(&folded.calls[i]);
  }
  for (auto& [law, of] : by_law) {
    set_one_share(of);
    folded.laws[law];
    for (FoldedCall* call : of)
      call->seconds[static_cast<std::size_t>(Fold::kept)] =
          machine::kept_laws().seconds_by_neighbours(call->of->call);
  }
  std::vector<Fold> all{Fold::none};
  all.insert(all.end(), folds.begin(), folds.end());
  std::vector<Task> tasks = tasks_of(by_law, all);
  ThreadPool pool(threads);
  pool.parallel_for(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t item, int) {
    const Task& task = tasks[static_cast<std::size_t>(item)];
    machine::FittedLaws laws(measured(*task.calls, task.fold, task.without));
    for (FoldedCall* call : *task.calls)
      if (left_out(*call->of, task.fold) == task.without)
        call->seconds[static_cast<std::size_t>(task.fold)] = laws.seconds_by_neighbours(call->of->call);
    if (task.fold == Fold::none) folded.laws.at(*task.law) = std::move(laws);
  });
  return folded;
}

namespace {

// Of values with weights: the smallest that at least this share of the weight does not exceed.
double weighted_quantile(std::vector<std::pair<double, double>> values, double share) {
  std::ranges::sort(values);
  double all = 0, sum = 0;
  for (const auto& [value, weight] : values) all += weight;
  for (const auto& [value, weight] : values)
    if ((sum += weight) >= share * all) return value;
  return values.empty() ? 0 : values.back().first;
}

using Cells = std::map<std::string, std::vector<const FoldedCall*>>;

// Split conformal, a tenth below and a tenth above apart: host effects only slow down. Every cell has the
// same weight, and one cell more lies outside. `half` 0 and 1 are every other cell, 2 all.
struct Bounds {
  double low = 0, high = 0;
};
Bounds conformal_bounds(const Cells& cells, Fold fold, std::size_t half) {
  constexpr double tail = 0.1;
  std::vector<std::pair<double, double>> above{{infinite, 1.0}}, below{{infinite, 1.0}};
  std::size_t number = 0;
  for (const auto& [name, calls] : cells) {
    if (half < 2 && number++ % 2 != half) continue;
    for (const FoldedCall* call : calls) {
      if (!call->of->understood()) continue;
      const double error = call->error(fold), weight = 1 / static_cast<double>(calls.size());
      above.emplace_back(std::isfinite(error) ? -error : infinite, weight);
      below.emplace_back(std::isfinite(error) ? error : infinite, weight);
    }
  }
  return {-weighted_quantile(std::move(below), 1 - tail), weighted_quantile(std::move(above), 1 - tail)};
}

// The share of the rows inside the interval that the other half of the cells gives.
double share_inside(const Cells& cells, Fold fold) {
  double inside = 0, all = 0;
  const Bounds bounds[2] = {conformal_bounds(cells, fold, 1), conformal_bounds(cells, fold, 0)};
  std::size_t number = 0;
  for (const auto& [name, calls] : cells) {
    const Bounds& other = bounds[number++ % 2];
    for (const FoldedCall* call : calls) {
      if (!call->of->understood()) continue;
      const double weight = 1 / static_cast<double>(calls.size()), error = -call->error(fold);
      all += weight;
      inside += error >= other.low && error <= other.high ? weight : 0;
    }
  }
  return all > 0 ? inside / all : 0;
}

FamilyErrors::Of errors_under(const Cells& cells, Fold fold) {
  FamilyErrors::Of of{.known = true};
  std::vector<std::pair<double, double>> errors;
  std::vector<double> biases;
  double all = 0;
  // Of FamilyErrors, by their names: within 10 and 30 %, and the 90th percentile.
  constexpr double near = 0.1, far = 0.3, most = 0.9;
  for (const auto& [name, calls] : cells)
    for (const FoldedCall* call : calls) {
      const double weight = 1 / static_cast<double>(calls.size()), log = call->error(fold);
      // Of the value as published: a rate is the other way up.
      const double error =
          std::isfinite(log) ? std::abs(std::expm1(call->of->is_rate ? -log : log)) : infinite;
      errors.emplace_back(error, weight);
      if (std::isfinite(log)) biases.push_back(log);
      all += weight;
      of.within10 += error <= near ? weight : 0;
      of.within30 += error <= far ? weight : 0;
    }
  of.within10 /= all;
  of.within30 /= all;
  of.median = weighted_quantile(errors, 0.5);
  of.p90 = weighted_quantile(errors, most);
  of.bias = biases.empty() ? 1 : std::exp(median(biases));
  const Bounds bounds = conformal_bounds(cells, fold, 2);
  of.low = bounds.low;
  of.high = bounds.high;
  of.inside = share_inside(cells, fold);
  return of;
}

FamilyErrors errors_of_family(const std::string& family, const Cells& cells, const std::vector<Fold>& folds) {
  FamilyErrors errors{.family = family, .cells = cells.size()};
  std::vector<std::pair<double, double>> one_share;
  for (const auto& [name, calls] : cells)
    for (const FoldedCall* call : calls) {
      ++errors.rows;
      errors.understood += call->of->understood();
      const double log = call->one_share > 0 ? std::log(call->one_share / call->of->call.seconds) : infinite;
      one_share.emplace_back(
          std::isfinite(log) ? std::abs(std::expm1(call->of->is_rate ? -log : log)) : infinite,
          1 / static_cast<double>(calls.size()));
    }
  errors.one_share_median = weighted_quantile(one_share, 0.5);
  // By its name: the 90th percentile.
  constexpr double most = 0.9;
  errors.one_share_p90 = weighted_quantile(one_share, most);
  for (const Fold fold : folds) errors.fold[static_cast<std::size_t>(fold)] = errors_under(cells, fold);
  return errors;
}

}  // namespace

std::vector<FamilyErrors> errors_by_family(const Folded& folded, const std::vector<Fold>& folds) {
  std::map<std::string, Cells> by_family;
  std::map<std::string, std::set<std::string>> laws;
  for (const FoldedCall& call : folded.calls) {
    by_family[call.of->family][cell_of(*call.of)].push_back(&call);
    if (!call.of->understood()) continue;
    by_family["all that is understood"][cell_of(*call.of)].push_back(&call);
    laws[call.of->family].insert(call.of->call.law());
    laws["all that is understood"].insert(call.of->call.law());
  }
  std::vector<Fold> all{Fold::kept, Fold::none};
  all.insert(all.end(), folds.begin(), folds.end());
  std::vector<FamilyErrors> errors;
  for (const auto& [family, cells] : by_family) {
    errors.push_back(errors_of_family(family, cells, all));
    for (const std::string& law : laws[family])
      errors.back().constants += folded.laws.at(law).constant_count();
  }
  std::ranges::stable_partition(errors, [](const FamilyErrors& e) { return !e.family.starts_with("all "); });
  return errors;
}

machine::Spreads spreads_of(const Folded& folded, const std::vector<Fold>& folds) {
  machine::Spreads spreads;
  std::set<std::pair<std::string, std::string>> measured;
  for (const Fold fold : {Fold::model, Fold::machine}) {
    if (std::ranges::find(folds, fold) == folds.end()) continue;
    std::map<std::string, Cells> classes;
    for (const FoldedCall& call : folded.calls) {
      if (!call.of->understood()) continue;
      const std::string cell = cell_of(*call.of);
      const bool model = fold == Fold::model;
      for (const std::string& software : {std::string(), call.of->software})
        classes[machine::spread_name(call.of->family, software, model)][cell].push_back(&call);
      classes[machine::spread_name("all", {}, model)][cell].push_back(&call);
      measured.emplace(call.of->family, call.of->machine);
    }
    for (const auto& [name, cells] : classes) {
      const Bounds bounds = conformal_bounds(cells, fold, 2);
      constexpr std::size_t least = 20;  // cells, for a tenth at either side
      if (cells.size() >= least && std::isfinite(bounds.low) && std::isfinite(bounds.high))
        spreads.add(name, {std::exp(bounds.low), std::exp(bounds.high), cells.size()});
    }
  }
  for (const auto& [family, machine] : measured) spreads.add_measured(family, machine);
  return spreads;
}

std::vector<std::pair<std::string, std::size_t>> reasons_of(const std::vector<TableCall>& calls) {
  std::map<std::string, std::size_t> counts;
  for (const TableCall& call : calls)
    if (!call.understood()) ++counts[call.reason];
  std::vector<std::pair<std::string, std::size_t>> reasons(counts.begin(), counts.end());
  std::ranges::stable_sort(reasons, [](const auto& a, const auto& b) { return a.second > b.second; });
  return reasons;
}

}  // namespace superstep::lab
