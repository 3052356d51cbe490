#include "superstep/cli/shared/outcome.h"

#include <fmt/format.h>

#include "superstep/base/file.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/cli/command.h"
#include "superstep/lab/records/exchange.h"
#include "superstep/run/environment.h"
#include "superstep/run/ranks/communicator.h"

namespace superstep::cli {
namespace {

void complete(std::vector<lab::Result>& results, const run::HostLoad& load) {
  const nlohmann::json environment = run::environment_record(thread_count(), &load);
  const std::string warning = load.warning(), now = run::iso_time();
  for (lab::Result& result : results) {
    result.environment = environment;
    result.program = run::program_record();
    result.created = now;
    if (warning.empty()) continue;
    for (lab::Quantity& quantity : result.quantities)
      if (!quantity.samples.empty()) quantity.flags.push_back(warning);
  }
}

void show(const std::vector<lab::Result>& results, const OutputChoice& output) {
  const std::string text =
      output.format == "text" ? lab::result_table(results) : lab::find_writer(output.format).write(results);
  if (!output.file.empty()) return write_file_atomically(output.file, text);
  if (!common().quiet || output.format != "text") fmt::print("{}", text);
}

void write_json(const std::vector<lab::Result>& results) {
  if (!common().json.empty()) write_file_atomically(common().json, lab::write_results(results));
}

}  // namespace

void keep_results(std::vector<lab::Result>& results, const run::HostLoad& load, bool record) {
  if (run::launched_rank() > 0) return;
  complete(results, load);
  if (record) run::keep_records(lab::to_records(results));
  write_json(results);
}

void finish_results(std::vector<lab::Result>& results, const run::HostLoad& load,
                    const OutputChoice& output) {
  if (run::launched_rank() > 0) return;
  complete(results, load);
  if (output.record) run::keep_records(lab::to_records(results));
  if (output.file.empty()) show(results, output);  // also when the files cannot be written
  write_json(results);
  if (!output.file.empty()) show(results, output);
  if (const std::string warning = load.warning(); !warning.empty() && !common().quiet)
    tell(fmt::format("note: {}\n", warning));
}

}  // namespace superstep::cli
