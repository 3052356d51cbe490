// superstep records: what was measured so far.
#include "superstep/run/records.h"

#include <fmt/format.h>

#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/lab/formats/member.h"
#include "superstep/lab/records/exchange.h"

namespace superstep::cli {
namespace {

struct Arguments {
  run::RecordFilter filter;
  std::vector<std::string> names;  // of records
  std::string file, format = "json";
};

// The figure that says most about a run.
std::string headline(const run::Record& record) {
  for (const char* name : {"throughput", "flops_rate", "latency_p50", "step_time", "out_of_place_busbw"})
    for (const Metric& metric : record.metrics)
      if (metric.name == name) return fmt::format("{} {}", name, format_si(metric.value, metric.unit));
  return record.metrics.empty() ? ""
                                : fmt::format("{} {:.4g}", record.metrics[0].name, record.metrics[0].value);
}

bool was_busy(const run::Record& record) {
  const auto pointer = nlohmann::json::json_pointer("/host/load/busy");
  return record.environment.is_object() && record.environment.contains(pointer) &&
         record.environment[pointer] == nlohmann::json(true);
}

void list(const Arguments& arguments) {
  const run::Records records;
  TextTable table({"record", "created", "command", "workload", "mode", "on", "", "notes"});
  for (const run::Record& record : records.list(arguments.filter))
    table.add_row({std::to_string(record.id), record.created, record.command, record.workload,
                   lab::text_member(record.details, "mode", ""), record.machine, headline(record),
                   was_busy(record) ? "the machine was busy" : ""});
  fmt::print("{}{}\n", table.empty() ? "there are no such records in " : table.to_string(),
             records.path().string());
}

std::vector<lab::Result> named(const Arguments& arguments) {
  std::vector<lab::Result> results;
  for (const std::string& name : arguments.names)
    for (lab::Result& result : lab::load_results(name)) results.push_back(std::move(result));
  return results;
}

std::vector<lab::Result> filtered(const Arguments& arguments) {
  std::vector<lab::Result> results;
  for (const run::Record& record : run::Records().list(arguments.filter))
    results.push_back(lab::to_result(record));
  return results;
}

void show(const Arguments& arguments) {
  const std::vector<lab::Result> results = named(arguments);
  for (const lab::Result& result : results) fmt::print("{}", lab::result_details(result));
  if (!common().json.empty()) write_file_atomically(common().json, lab::write_results(results));
}

void export_records(const Arguments& arguments) {
  const std::vector<lab::Result> results = arguments.names.empty() ? filtered(arguments) : named(arguments);
  if (results.empty()) throw Error(ErrorCode::not_found, "there are no such records", "records export");
  const std::string text = lab::find_writer(arguments.format).write(results);
  if (arguments.file.empty()) return fmt::print("{}", text);
  write_file_atomically(arguments.file, text);
  if (!common().quiet) fmt::print("{} records written to {}\n", results.size(), arguments.file);
}

void import_records(const Arguments& arguments) {
  std::vector<run::Record> records;
  for (const lab::Result& result : named(arguments)) records.push_back(lab::to_record(result));
  const std::vector<std::int64_t> ids = run::Records().add_all(records);
  if (!common().quiet) fmt::print("{} records, {} to {}\n", ids.size(), ids.front(), ids.back());
}

void add_filter(CLI::App& command, Arguments& arguments) {
  command.add_option("--workload", arguments.filter.workload, "of this workload alone")->type_name("NAME");
  command.add_option("--command", arguments.filter.command, "of this command alone: train, infer, bench")
      ->type_name("NAME");
  command.add_option("--most", arguments.filter.most, "at most so many, the newest")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
}

}  // namespace

void declare_records(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  command.require_subcommand(1);
  CLI::App* const listing = command.add_subcommand("list", "the newest records, a line each");
  add_filter(*listing, *a);
  listing->fallthrough();
  listing->callback([a] { list(*a); });
  CLI::App* const showing = command.add_subcommand("show", "every metric of a record");
  showing->add_option("records", a->names, "numbers, files, or last")->required();
  showing->fallthrough();
  showing->callback([a] { show(*a); });
  CLI::App* const exporting =
      command.add_subcommand("export", "records as a file that import and compare read");
  exporting->add_option("records", a->names, "numbers (default: those that the filters leave)");
  exporting->add_option("--out", a->file, "file (default: standard output)")->type_name("FILE");
  exporting->add_option("--format", a->format, "json, google, csv, deepbench, nccl, nccl-json, mllog")
      ->type_name("FORMAT")
      ->capture_default_str();
  add_filter(*exporting, *a);
  exporting->fallthrough();
  exporting->callback([a] { export_records(*a); });
  CLI::App* const importing = command.add_subcommand("import", "add the results of files to the records");
  importing->add_option("files", a->names, "files that --json or export wrote")->required();
  importing->fallthrough();
  importing->callback([a] { import_records(*a); });
  command.footer(
      "Examples:\n"
      "  superstep records list --workload braggnn\n"
      "  superstep records show last\n"
      "  superstep records export 12 13 --out results.json\n"
      "  superstep records import results.json\n"
      "The records are records.sqlite in the user's data folder; SUPERSTEP_HOME names another folder.");
}

}  // namespace superstep::cli
