#include "superstep/cli/result.h"

#include <sys/utsname.h>

#include <fstream>

#include "superstep/base/file.h"
#include "superstep/cli/command.h"

namespace superstep::cli {
namespace {

using nlohmann::json;

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "";
}

json environment() {
  utsname system{};
  ::uname(&system);
  return {
      {"host", {{"system", system.sysname}, {"release", system.release}, {"processor", processor_model()}}},
      {"software", {{"superstep", SUPERSTEP_VERSION}, {"compiler", __VERSION__}}},
      {"threads", thread_count()}};
}

}  // namespace

json to_json(const Metric& metric) {
  json object{{"value", metric.value},
              {"unit", metric.unit},
              {"how", metric.how == How::measured ? "measured" : "predicted"}};
  if (!metric.samples.empty()) object["samples"] = metric.samples;
  if (metric.low) object["low"] = *metric.low;
  if (metric.high) object["high"] = *metric.high;
  return object;
}

void write_result(const CommandResult& result) {
  if (common().json.empty()) return;
  json metrics = json::object();
  for (const Metric& metric : result.metrics) metrics[metric.name] = to_json(metric);
  const json object{{"schema", "superstep-result/1"},
                    {"command", result.command},
                    {"workload", {{"name", result.workload}}},
                    {"machine", {{"id", "cpu"}}},
                    {"config", result.config},
                    {"metrics", metrics},
                    {"environment", environment()}};
  write_file_atomically(common().json, object.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

}  // namespace superstep::cli
