#include "superstep/cli/shared/outcome.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/cli/command.h"
#include "superstep/record/environment.h"
#include "superstep/record/records.h"
#include "superstep/record/result_json.h"
#include "superstep/record/without_places.h"
#include "superstep/run/environment.h"
#include "superstep/run/ranks/communicator.h"

namespace superstep::cli {
namespace {

void complete(record::Result& result, const nlohmann::json& environment, const std::string& now) {
  result.environment = environment;
  result.environment["device"] = run::devices_of(result.machine);
  result.program = record::program_record();
  result.created = now;
  if (common().for_others) result = record::without_places(std::move(result));
}

void complete_all(std::vector<record::Result>& results, const record::HostLoad& load) {
  const nlohmann::json environment = record::environment_record(thread_count(), &load);
  const std::string warning = load.warning(), now = record::iso_time();
  for (record::Result& result : results) {
    complete(result, environment, now);
    if (warning.empty()) continue;
    for (record::Quantity& quantity : result.quantities)
      if (!quantity.samples.empty()) quantity.flags.push_back(warning);
  }
}

void show(const std::vector<record::Result>& results, const OutputChoice& output) {
  const std::string text =
      output.format == "text" ? lab::result_table(results) : lab::find_writer(output.format).write(results);
  if (!output.file.empty()) return write_file_atomically(output.file, text);
  if (!common().quiet || output.format != "text") fmt::print("{}", text);
}

void write_json(const std::vector<record::Result>& results) {
  if (!common().json.empty()) write_file_atomically(common().json, record::write_results(results));
}

enum class Keep { yes, no };

void finish(record::Result result, Keep keep) {
  if (run::launched_rank() > 0) return;  // the first rank speaks for all
  if (keep == Keep::no && common().json.empty()) return;
  const nlohmann::json own = result.environment;
  complete(result, own.is_null() ? record::environment_record(thread_count()) : own, record::iso_time());
  const std::vector<record::Result> results{std::move(result)};
  if (keep == Keep::yes) record::keep(results);
  write_json(results);
}

}  // namespace

record::Result command_result(std::string command, std::string workload, nlohmann::json config,
                              const std::vector<Metric>& metrics, std::string machine) {
  record::Result result{.command = std::move(command), .workload = std::move(workload)};
  result.config = std::move(config);
  result.quantities = record::to_quantities(metrics);
  result.machine = std::move(machine);
  return result;
}

void write_result(record::Result result) { finish(std::move(result), Keep::no); }

void keep_and_write_result(record::Result result) { finish(std::move(result), Keep::yes); }

void keep_results(std::vector<record::Result>& results, const record::HostLoad& load, bool record) {
  if (run::launched_rank() > 0) return;
  complete_all(results, load);
  if (record) record::keep(results);
  write_json(results);
}

void finish_results(std::vector<record::Result>& results, const record::HostLoad& load,
                    const OutputChoice& output) {
  if (run::launched_rank() > 0) return;
  complete_all(results, load);
  if (output.record) record::keep(results);
  if (output.file.empty()) show(results, output);  // also when the files cannot be written
  write_json(results);
  if (!output.file.empty()) show(results, output);
  if (const std::string warning = load.warning(), now = record::iso_time();
      !warning.empty() && !common().quiet)
    tell(fmt::format("note: {}\n", warning));
}

}  // namespace superstep::cli
