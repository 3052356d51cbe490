#include "superstep/lab/validate/tables/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
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

TablesReport report_tables(const std::filesystem::path& folder, const std::vector<Fold>& folds, int threads,
                           const std::filesystem::path& keep_in) {
  const std::vector<TableCall> calls = read_calls(folder);
  const Folded folded = fold_calls(calls, folds, threads);
  if (!keep_in.empty()) {
    std::vector<const machine::FittedLaws*> laws;
    for (const auto& [name, law] : folded.laws) laws.push_back(&law);
    write_file_atomically(keep_in / "laws.csv", machine::laws_text(laws));
    write_file_atomically(keep_in / "factors.csv", machine::factors_text(laws));
    write_file_atomically(keep_in / "intervals.csv", machine::spreads_text(spreads_of(folded, folds)));
    write_file_atomically(keep_in / "kernels.csv", machine::kernels_text(laws));
  }
  TablesReport report{.rows = calls.size(),
                      .understood = static_cast<std::size_t>(std::ranges::count_if(
                          calls, [](const TableCall& call) { return call.understood(); })),
                      .folds = folds,
                      .families = errors_by_family(folded, folds),
                      .reasons = reasons_of(calls)};
  return report;
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
20 cells: those of the model left out on a machine that was measured, of the machine left out on others. Workloads of the zoo
go by the models of single machines, whose errors [machines.md](machines.md#what-the-errors-are) has. Constants of networks serve
both of their families, which count them both; the last line counts them once.

{}
The share of all rows near what was published, the median of predicted over published time (bias), and the factors on a predicted
time between which four fifths of the published ones lie, a tenth below and a tenth above; the last column counts how many rows lie
between the factors of the other half of the cells.

{}
)",
                                 report.understood, report.rows, as_markdown(errors_table(report)),
                                 as_markdown(shares_table(report)));
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
