#include "superstep/cli/shared/result.h"

#include "superstep/base/file.h"
#include "superstep/cli/command.h"
#include "superstep/machine/machine.h"
#include "superstep/run/environment.h"
#include "superstep/run/ranks/communicator.h"

namespace superstep::cli {
using nlohmann::json;

json to_json(const Metric& metric) {
  json object{{"value", metric.value},
              {"unit", metric.unit},
              {"how", metric.how == How::measured ? "measured" : "predicted"}};
  if (!metric.samples.empty()) object["samples"] = metric.samples;
  if (metric.low) object["low"] = *metric.low;
  if (metric.high) object["high"] = *metric.high;
  return object;
}

std::string machine_of_backend(const std::string& backend) {
  for (const machine::Machine& machine : machine::machines())
    if (machine.id() == backend) return backend;
  return "cpu";
}

void write_result(const CommandResult& result) {
  if (common().json.empty() || run::launched_rank() > 0) return;
  json metrics = json::object();
  for (const Metric& metric : result.metrics) metrics[metric.name] = to_json(metric);
  const json object{{"schema", "superstep-result/1"},
                    {"command", result.command},
                    {"created", run::iso_time()},
                    {"program", run::program_record()},
                    {"workload", {{"name", result.workload}}},
                    {"machine", {{"id", result.machine}}},
                    {"config", result.config},
                    {"metrics", metrics},
                    {"environment", run::environment_record(thread_count())}};
  write_file_atomically(common().json, object.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

}  // namespace superstep::cli
