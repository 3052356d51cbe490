#include "superstep/lab/validate/tables/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/lab/validate/tables/choices.h"
#include "superstep/machine/rates/kept.h"

namespace superstep::lab {
namespace {

constexpr std::array<std::pair<const char*, Fold>, 3> fold_names{
    {{"model", Fold::model}, {"machine", Fold::machine}, {"source", Fold::source}}};

std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "-";
}

std::string factors(double low, double high) {
  if (!std::isfinite(low) || !std::isfinite(high)) return "-";
  return fmt::format("{:.2f} and {:.2f}", std::exp(low), std::exp(high));
}

const FamilyErrors::Of& of(const FamilyErrors& family, Fold fold) {
  return family.fold[static_cast<std::size_t>(fold)];
}

std::vector<Fold> shown(const TablesReport& report) {
  std::vector<Fold> all{Fold::kept};
  if (!report.folds.empty()) all.push_back(Fold::none);
  all.insert(all.end(), report.folds.begin(), report.folds.end());
  return all;
}

// One table: its header and its rows of cells.
struct Cells {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

Cells errors_table(const TablesReport& report) {
  Cells cells{.header = {"family", "rows", "understood", "cells", "constants"}, .rows = {}};
  for (const Fold fold : shown(report))
    cells.header.emplace_back(fmt::format("{}: median, 90th", name_of(fold)));
  cells.header.emplace_back("one constant a type: median, 90th");
  for (const FamilyErrors& family : report.families) {
    std::vector<std::string> row{family.family, fmt::format("{}", family.rows),
                                 fmt::format("{}", family.understood), fmt::format("{}", family.cells),
                                 fmt::format("{}", family.constants)};
    for (const Fold fold : shown(report))
      row.push_back(fmt::format("{}, {}", percent(of(family, fold).median), percent(of(family, fold).p90)));
    row.push_back(fmt::format("{}, {}", percent(family.one_share_median), percent(family.one_share_p90)));
    cells.rows.push_back(std::move(row));
  }
  return cells;
}

Cells shares_table(const TablesReport& report) {
  Cells cells{.header = {"family", "left out", "bias", "within 10 %", "within 30 %", "80 % between",
                         "inside that of other cells"},
              .rows = {}};
  for (const FamilyErrors& family : report.families)
    for (const Fold fold : shown(report)) {
      const FamilyErrors::Of& errors = of(family, fold);
      if (family.understood == 0) continue;
      cells.rows.push_back({family.family, name_of(fold), fmt::format("{:.2f}", errors.bias),
                            percent(errors.within10), percent(errors.within30),
                            factors(errors.low, errors.high), percent(errors.inside)});
    }
  return cells;
}

Cells choices_table(const TablesReport& report) {
  Cells cells{.header = {"machines", "mode", "rows", "law", "model", "taken"}, .rows = {}};
  for (const machine::Choice& one : report.choices)
    cells.rows.push_back({one.style, one.training ? "train" : "infer", fmt::format("{}", one.rows),
                          fmt::format("{:.2f}", std::exp(one.law_error)),
                          fmt::format("{:.2f}", std::exp(one.model_error)), one.law() ? "law" : "model"});
  return cells;
}

std::string as_text(const Cells& cells) {
  TextTable table(cells.header);
  for (const auto& row : cells.rows) table.add_row(row);
  return table.to_string();
}

std::string as_markdown(const Cells& cells) {
  std::string text = fmt::format("| {} |\n|", join(cells.header, " | "));
  for (std::size_t i = 0; i < cells.header.size(); ++i) text += "---|";
  text += "\n";
  for (const auto& row : cells.rows) text += fmt::format("| {} |\n", join(row, " | "));
  return text;
}

std::string beaten_by(const TablesReport& report) {
  std::string text;
  for (const FamilyErrors& family : report.families)
    for (const Fold fold : report.folds)
      if (family.understood > 0 && of(family, fold).median > family.one_share_median)
        text += fmt::format("- {}, {}: {} by the law, {} by one constant a type, which had seen all rows\n",
                            family.family, name_of(fold), percent(of(family, fold).median),
                            percent(family.one_share_median));
  return text;
}

void keep_rates(const Folded& folded, const std::vector<Fold>& folds,
                const std::vector<machine::Choice>& choices, const std::filesystem::path& folder) {
  std::vector<const machine::FittedLaws*> laws;
  for (const auto& [name, law] : folded.laws) laws.push_back(&law);
  write_file_atomically(folder / "laws.csv", machine::laws_text(laws));
  write_file_atomically(folder / "factors.csv", machine::factors_text(laws));
  write_file_atomically(folder / "intervals.csv", machine::spreads_text(spreads_of(folded, folds)));
  write_file_atomically(folder / "kernels.csv", machine::kernels_text(laws));
  if (!choices.empty()) write_file_atomically(folder / "choices.csv", machine::choices_text(choices));
}

// Every row: what it is of, its value, and what was predicted of it under each fold, in its unit.
std::string rows_text(const Folded& folded, const std::vector<Fold>& folds) {
  std::vector<Fold> all{Fold::kept, Fold::none};
  all.insert(all.end(), folds.begin(), folds.end());
  std::string text = "id,family,workload,machine,framework,precision,value";
  for (const Fold fold : all) text += fmt::format(",{}", name_of(fold));
  text += ",kind,reason\n";
  const auto cell = [](std::string words) {
    std::ranges::replace(words, ',', ';');
    return words;
  };
  for (const FoldedCall& call : folded.calls) {
    const TableCall& of = *call.of;
    text += fmt::format("{},{},{},{},{},{},{:.6g}", cell(of.id), of.family, cell(of.model), of.machine,
                        cell(of.software), of.precision, of.published);
    for (const Fold fold : all) {
      const double seconds = call.seconds[static_cast<std::size_t>(fold)];
      text += seconds > 0 ? fmt::format(",{:.6g}", of.value_of(seconds)) : ",";
    }
    text += fmt::format(",{},{}\n", of.understood() ? cell(of.call.kinds.front()) : "", cell(of.reason));
  }
  return text;
}

}  // namespace

std::vector<Fold> folds_from(const std::string& names) {
  std::vector<Fold> folds;
  std::vector<std::string> known;
  for (const auto& [name, fold] : fold_names) known.emplace_back(name);
  for (const std::string& wanted : split(names, ',')) {
    const auto found =
        std::ranges::find(fold_names, wanted, [](const auto& one) { return std::string(one.first); });
    if (found == fold_names.end())
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not what can be left out", wanted),
                  "--folds", unknown_name_hint(wanted, known));
    if (std::ranges::find(folds, found->second) == folds.end()) folds.push_back(found->second);
  }
  return folds;
}

TablesReport report_tables(const TablesSettings& settings) {
  const std::vector<TableCall> calls = read_calls(settings.folder);
  const Folded folded = fold_calls(calls, settings.folds, settings.threads);
  std::vector<machine::Choice> choices;
  if (settings.with_models) choices = choices_of(settings.folder, folded, settings.folds, settings.threads);
  if (!settings.keep_in.empty()) keep_rates(folded, settings.folds, choices, settings.keep_in);
  if (!settings.rows_in.empty()) write_file_atomically(settings.rows_in, rows_text(folded, settings.folds));
  return {.rows = calls.size(),
          .understood = static_cast<std::size_t>(
              std::ranges::count_if(calls, [](const TableCall& call) { return call.understood(); })),
          .folds = settings.folds,
          .families = errors_by_family(folded, settings.folds),
          .reasons = reasons_of(calls),
          .choices = std::move(choices)};
}

std::string text_of(const TablesReport& report) {
  std::string text =
      fmt::format("{} of {} rows are understood ({})\n\n{}\n{}\n", report.understood, report.rows,
                  percent(static_cast<double>(report.understood) /
                          static_cast<double>(std::max<std::size_t>(1, report.rows))),
                  as_text(errors_table(report)), as_text(shares_table(report)));
  if (!report.reasons.empty()) text += "not understood, by reason:\n";
  for (const auto& [reason, rows] : report.reasons) text += fmt::format("  {:6} {}\n", rows, reason);
  return text;
}

std::string page_of(const TablesReport& report) {
  std::string text = fmt::format(R"(# How accurate predictions of kernels, collectives and models are

Made by `superstep validate --tables DIR --folds model,machine,source --out docs/accuracy.md`; the tables are public
measurements that are not part of the repository ([machines.md](machines.md#tables-of-measurements)). {} of {} rows are
understood. Errors are of the value as published; every cell (a machine, a type, a stack, a model or a kind of kernel) has the same
weight. What counts is the error with the model, the machine or the source left out of the fit: a shape that was never
measured, or a machine of which a data sheet alone is known. The last column is the baseline: the roofline of the data sheet times
one constant of a kind and a type, fitted on all rows. Below 3 % equal runs differ, too.

These are the laws of `machine/rates`, by which `superstep predict` answers for language models, networks of pictures and
primitives of GPUs ([machines.md](machines.md#laws-of-few-constants)), with the intervals of the second table where they have
20 cells: those of the model left out on a machine that was measured, of the machine left out on others. Workloads of the zoo and
model files go by the law of networks where the third table says that it is nearer, and by the models of single machines
([machines.md](machines.md#what-the-errors-are)) elsewhere. Constants of networks serve both of their families, which count them both; the
last line counts them once.

{}
The share of all rows near what was published, the median of predicted over published time (bias), and the factors on a predicted
time between which four fifths of the published ones lie, a tenth below and a tenth above; the last column counts how many rows lie
between the factors of the other half of the cells.

{}
)",
                                 report.understood, report.rows, as_markdown(errors_table(report)),
                                 as_markdown(shares_table(report)));
  if (!report.choices.empty())
    text +=
        "The law of networks, with the model or the machine left out of its fit, beside the models of single "
        "machines, which none of\nthese rows is fitted to; factors that predictions are off by, means of "
        "the logarithm:\n\n" +
        as_markdown(choices_table(report)) + "\n";
  if (const std::string lost = beaten_by(report); !lost.empty())
    text += "Not better than the baseline:\n\n" + lost + "\n";
  text += "Rows that are not understood:\n\n| rows | why |\n|---|---|\n";
  for (const auto& [reason, rows] : report.reasons) text += fmt::format("| {} | {} |\n", rows, reason);
  return text;
}

std::vector<Metric> metrics_of(const TablesReport& report) {
  std::vector<Metric> metrics;
  const auto add = [&](const std::string& name, double value) {
    if (std::isfinite(value))
      metrics.push_back({.name = name, .value = value, .unit = "", .how = How::predicted});
  };
  add("rows", static_cast<double>(report.rows));
  add("understood", static_cast<double>(report.understood));
  if (report.families.empty()) return metrics;
  const FamilyErrors& all = report.families.back();
  add("constants", static_cast<double>(all.constants));
  constexpr std::array prefixes{"seen", "model_left_out", "machine_left_out", "source_left_out", "kept"};
  for (const Fold fold : shown(report)) {
    const std::string prefix = prefixes[static_cast<std::size_t>(fold)];
    add(prefix + "_median_error", of(all, fold).median);
    add(prefix + "_p90_error", of(all, fold).p90);
    add(prefix + "_interval_coverage", of(all, fold).inside);
  }
  return metrics;
}

}  // namespace superstep::lab
