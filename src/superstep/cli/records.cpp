// superstep records: what was measured so far.
#include "superstep/record/records.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/record/named_results.h"
#include "superstep/record/result_json.h"

namespace superstep::cli {
namespace {

struct Arguments {
  record::RecordFilter filter;
  std::vector<std::string> names;  // of records
  std::string file, format = "json";
};

// The figure that says most about a run.
std::string headline(const record::Result& result) {
  for (const char* name : {"throughput", "flops_rate", "latency_p50", "step_time", "out_of_place_busbw"})
    if (const record::Quantity* found = result.find(name))
      return fmt::format("{} {}", name, format_si(found->value, found->unit));
  if (result.quantities.empty()) return "";
  return fmt::format("{} {:.4g}", result.quantities[0].name, result.quantities[0].value);
}

bool was_busy(const record::Result& result) {
  const auto pointer = nlohmann::json::json_pointer("/host/load/busy");
  return result.environment.is_object() && result.environment.contains(pointer) &&
         result.environment[pointer] == nlohmann::json(true);
}

void list(const Arguments& arguments) {
  const record::Records records;
  TextTable table({"record", "created", "command", "workload", "mode", "on", "", "notes"});
  for (const record::Result& result : records.list(arguments.filter))
    table.add_row({std::to_string(result.number), result.created, result.command, result.workload,
                   result.mode, result.machine, headline(result),
                   was_busy(result) ? "the machine was busy" : ""});
  fmt::print("{}{}\n", table.empty() ? "there are no such records in " : table.to_string(),
             records.path().string());
}

std::vector<record::Result> named(const Arguments& arguments) {
  std::vector<record::Result> results;
  for (const std::string& name : arguments.names)
    for (record::Result& result : record::load_results(name)) results.push_back(std::move(result));
  return results;
}

void show(const Arguments& arguments) {
  const std::vector<record::Result> results = named(arguments);
  for (const record::Result& result : results) fmt::print("{}", lab::result_details(result));
  if (!common().json.empty()) write_file_atomically(common().json, record::write_results(results));
}

void export_records(const Arguments& arguments) {
  const std::vector<record::Result> results =
      arguments.names.empty() ? record::Records().list(arguments.filter) : named(arguments);
  if (results.empty()) throw Error(ErrorCode::not_found, "there are no such records", "records export");
  const std::string text = lab::find_writer(arguments.format).write(results);
  if (arguments.file.empty()) return fmt::print("{}", text);
  write_file_atomically(arguments.file, text);
  if (!common().quiet) fmt::print("{} records written to {}\n", results.size(), arguments.file);
}

void import_records(const Arguments& arguments) {
  const std::vector<record::Result> results = named(arguments);
  if (results.empty()) throw Error(ErrorCode::bad_file, "there is no result in it", arguments.names.front());
  const std::vector<std::int64_t> numbers = record::Records().add_all(results);
  if (!common().quiet) fmt::print("{} records, {} to {}\n", numbers.size(), numbers.front(), numbers.back());
}

void add_filter(CLI::App& command, Arguments& arguments) {
  command.add_option("--workload", arguments.filter.workload, "show only this workload")->type_name("NAME");
  command.add_option("--command", arguments.filter.command, "show only this command: train, infer, bench")
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
