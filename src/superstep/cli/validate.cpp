// superstep validate [FILE.csv]: predictions beside published numbers.
#include "superstep/lab/validate/validate.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/lab/validate/application_rows.h"
#include "superstep/lab/validate/published.h"
#include "superstep/lab/validate/stack_fit.h"
#include "superstep/lab/validate/tables/report.h"
#include "superstep/machine/ipu/kept_plans.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::string file, machine, family, tables, folds, page, keep, rows;
  bool verbose = false;
  int fit = 0;
};

constexpr const char* footer =
    "Files: cycles of single operators (columns kind, tiles, cycles), or results of applications and "
    "primitives "
    "(workload, machine, metric, value).\nNothing is fitted to a row: constants come from the machine file, "
    "and "
    "`superstep list machines --constants` shows which of them are open.\n"
    "Examples:\n  superstep validate                         the papers' rows\n  superstep validate ops.csv "
    "--verbose\n  superstep validate results.csv --on gc200    its "
    "rows alone, with their errors\n"
    "  superstep validate --tables measurements --folds model,machine --out accuracy.md";

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

void print_rows(const lab::Validation& validation, bool with_reasons) {
  const bool operators = validation.with_interval() == 0;
  std::vector<std::string> header{"row",
                                  operators ? "family" : "machine",
                                  "published",
                                  "predicted",
                                  "unit",
                                  "error",
                                  operators ? "tile published" : "interval",
                                  operators ? "tile predicted" : "inside"};
  const bool with_ladder = with_reasons && !operators;
  if (with_ladder) header.insert(header.end(), {"at peak", "roofline"});
  if (with_reasons) header.emplace_back("why");
  TextTable table(header);
  for (const lab::RowResult& row : validation.rows) {
    std::string first = "-", second = "-";
    if (row.predicted && operators && row.tile_published > 0) {
      first = fmt::format("{:.0f}", row.tile_published);
      second = fmt::format("{:.0f}", row.tile_predicted);
    } else if (row.predicted && row.high > 0) {
      first = fmt::format("{:.4g} to {:.4g}", row.low, row.high);
      second = row.inside() ? "yes" : "no";
    }
    std::vector<std::string> cells{row.name,
                                   row.family,
                                   fmt::format("{:.6g}", row.published),
                                   row.predicted ? fmt::format("{:.6g}", *row.predicted) : "-",
                                   row.unit,
                                   row.predicted ? fmt::format("{:+.1f} %", 100 * row.error()) : "-",
                                   first,
                                   second};
    if (with_ladder)
      for (const double value : {row.peak, row.roofline})
        cells.push_back(row.predicted && value > 0 ? fmt::format("{:.4g}", value) : "-");
    if (with_reasons) cells.push_back(row.reason);
    table.add_row(cells);
  }
  fmt::print("{}\n", table.to_string());
}

void print_summary(const char* what, const std::vector<lab::ErrorSummary>& families) {
  const bool intervals = families.back().with_interval > 0;
  std::vector<std::string> header{what,    "rows",        "covered",        "median", "90th percentile",
                                  "worst", "within 30 %", "80 % within x/÷"};
  if (intervals) header.insert(header.end(), {"inside", "median width x/÷"});
  TextTable table(header);
  for (const lab::ErrorSummary& family : families) {
    std::vector<std::string> cells{family.family, fmt::format("{}", family.rows),
                                   fmt::format("{}", family.covered)};
    for (const double error : {family.median, family.p90, family.worst})
      cells.push_back(family.covered > 0 ? percent(error) : "-");
    cells.push_back(fmt::format("{}", family.within));
    cells.push_back(family.covered > 0 ? fmt::format("{:.2f}", family.factor) : "-");
    if (intervals) {
      cells.push_back(fmt::format("{} of {}", family.inside, family.with_interval));
      cells.push_back(family.with_interval > 0 ? fmt::format("{:.2f}", family.median_width) : "-");
    }
    table.add_row(cells);
  }
  fmt::print("{}\n", table.to_string());
}

void print_missed(const lab::Validation& validation) {
  std::vector<std::string> missed;
  for (const lab::RowResult& row : validation.rows)
    if (!row.predicted) missed.push_back(fmt::format("  {}: {}", row.name, row.reason));
  if (!missed.empty()) fmt::print("not covered, counted as misses:\n{}\n", join(missed, "\n"));
}

void print_rankings(const lab::Rankings& rankings) {
  if (rankings.pairs == 0) return;
  fmt::print("pairs of machines in the published order, of those more than 1.3 times apart: {} of {}\n",
             rankings.right, rankings.pairs);
  for (const std::string& pair : rankings.wrong) fmt::print("  not: {}\n", pair);
  fmt::print("\n");
}

void print_fit(const lab::Fit& fit) {
  fmt::print("mean |log error|: {:.4f} before, {:.4f} after\n", fit.loss_before, fit.loss_after);
  for (const machine::Constant& constant : fit.machine.constants())
    if (constant.open)
      fmt::print("  {} = {:.6g}  ({} to {})\n", constant.name, constant.value, constant.low, constant.high);
}

void print_errors(const char* what, const std::vector<lab::StackFit::Errors>& errors) {
  TextTable table({what, "rows", "median", "90th percentile", "80 % within a factor of"});
  for (const lab::StackFit::Errors& e : errors)
    table.add_row({e.left_out, fmt::format("{}", e.rows), percent(e.median), percent(e.p90),
                   fmt::format("{:.2f}", std::exp(e.half_width))});
  fmt::print("{}\n", table.to_string());
}

void print_stack_fit(const lab::StackFit& fit) {
  TextTable table({"stack", "constant", "file", "fitted", "range", "unit"});
  for (const lab::StackFit::Value& c : fit.constants)
    table.add_row({c.stack, c.name, fmt::format("{:.3g}", c.before), fmt::format("{:.3g}", c.after),
                   fmt::format("{:.3g} to {:.3g}", c.low, c.high), c.unit});
  fmt::print("{} constants on {} rows\n{}\n", fit.constants.size(), fit.rows, table.to_string());
  lab::StackFit::Errors before = fit.before, fitted = fit.fitted;
  before.left_out = "as in the files";
  fitted.left_out = "fitted";
  print_errors("constants", {before, fitted});
  print_errors("workload left out", fit.workloads);
  print_errors("machine left out", fit.machines);
}

void fit(const Arguments& arguments, const lab::ValidateOptions& options) {
  const lab::PublishedTable table =
      arguments.file.empty() ? lab::published_results() : lab::PublishedTable(arguments.file);
  if (lab::has_application_rows(table)) return print_stack_fit(lab::fit_stacks(table, arguments.fit));
  print_fit(lab::fit_open_constants(arguments.file, options, arguments.fit));
}

void validate_tables(const Arguments& arguments) {
  lab::TablesSettings settings{.folder = arguments.tables,
                               .folds = {},
                               .threads = thread_count(),
                               .keep_in = arguments.keep,
                               .rows_in = arguments.rows,
                               .with_models = !arguments.page.empty() || !arguments.keep.empty()};
  const machine::ipu::KeptPlans kept;
  if (!arguments.folds.empty()) settings.folds = lab::folds_from(arguments.folds);
  const lab::TablesReport report = lab::report_tables(settings);
  if (!arguments.page.empty()) write_file_atomically(arguments.page, lab::page_of(report));
  if (!common().quiet) fmt::print("{}", lab::text_of(report));
  write_result(command_result("validate", "", {{"tables", arguments.tables}, {"folds", arguments.folds}},
                              lab::metrics_of(report), "each row's own machine"));
}

void validate(const Arguments& arguments) {
  if (!arguments.file.empty() && !arguments.tables.empty())
    throw Error(ErrorCode::invalid_argument, "takes a file of rows or a folder of tables, not both",
                "validate", "superstep validate ROWS.csv, or superstep validate --tables DIR");
  if (!arguments.tables.empty()) return validate_tables(arguments);
  const lab::ValidateOptions options{arguments.machine, arguments.family, thread_count()};
  if (arguments.fit > 0) return fit(arguments, options);
  const machine::ipu::KeptPlans kept;
  const lab::Validation validation = lab::validate(
      arguments.file.empty() ? lab::published_results() : lab::PublishedTable(arguments.file), options);
  if (!common().quiet) {
    // Applications are few, and each is a story of its own; operators are summed up.
    if (arguments.verbose || validation.with_interval() > 0) print_rows(validation, arguments.verbose);
    fmt::print("predicted with the constants of {}\n\n", validation.machine);
    print_summary("error", validation.families);
    if (validation.memory.back().covered > 0) print_summary("fullest tile", validation.memory);
    if (validation.total.back().covered > 0) print_summary("all tiles", validation.total);
    if (const lab::ErrorSummary& all = validation.families.back(); all.with_interval > 0)
      fmt::print("inside their interval, which is meant to hold 80 %: {} of {} ({})\n\n", all.inside,
                 all.with_interval,
                 percent(static_cast<double>(all.inside) / static_cast<double>(all.with_interval)));
    print_rankings(lab::rankings_of(validation.rows));
    print_missed(validation);
  }
  write_result(command_result("validate", "", {{"file", validation.file}, {"machine", validation.machine}},
                              validation.metrics(), validation.machine));
}

}  // namespace

void declare_validate(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  command
      .add_option("file", arguments->file,
                  "CSV of published rows; without it, those of the papers that are built in")
      ->type_name("FILE");
  command
      .add_option("--tables", arguments->tables,
                  "a folder of tables of measurements, with machines-facts.csv and models.csv beside them")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  command
      .add_option(
          "--folds", arguments->folds,
          "with --tables: what is left out of the fit in turn and judged by it: model, machine, source")
      ->type_name("NAME,...");
  command
      .add_option("--keep-rates", arguments->keep,
                  "with --tables: a folder for laws.csv and kernels.csv, fitted over all rows")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  command
      .add_option("--rows", arguments->rows,
                  "with --tables: write every row with its predictions, what was left out too (CSV)")
      ->type_name("FILE");
  command.add_option("--out", arguments->page, "with --tables: write the same as a page (Markdown)")
      ->type_name("FILE");
  command
      .add_option("--on", arguments->machine,
                  "the machine of operator rows (default: by its tiles); of applications, only its rows")
      ->type_name("MACHINE");
  command.add_option("--set", arguments->family, "only rows of this family")->type_name("NAME");
  command.add_flag("--verbose", arguments->verbose,
                   "every row with what it rests on: the plan, or what was assumed and what bounds it");
  command
      .add_option("--fit", arguments->fit,
                  "move the open constants within their ranges in so many rounds, and print them")
      ->type_name("ROUNDS")
      ->check(whole_number_from(1, 10000));
  command.footer(footer);
  command.callback([arguments] { validate(*arguments); });
}

}  // namespace superstep::cli
