#include <poplar/exceptions.hpp>

#include "superstep/base/text.h"
#include "superstep/poplar/core/engine_data.h"

namespace poplar::core {
namespace {

bool is_true(const std::string& name, const std::string& value) {
  if (value == "true") return true;
  if (value == "false") return false;
  throw invalid_option(fmt::format("{} is '{}': take true or false", name, value));
}

// Options of these groups speak of hardware, of its tools or of how code is made: there is nothing here that
// they could change.
constexpr std::array<std::string_view, 8> groups{"autoReport.", "debug.",    "exchange.",        "opt.",
                                                 "prng.",       "profiler.", "streamCallbacks.", "target."};

bool in_a_group(const std::string& name) {
  for (const std::string_view group : groups)
    if (name.starts_with(group) && name.size() > group.size()) return true;
  return false;
}

constexpr std::array<std::string_view, 3> reports{"autoReport.all", "autoReport.outputGraphProfile",
                                                  "autoReport.outputExecutionProfile"};

}  // namespace

OptionFlags with_environment(OptionFlags options) {
  readJSONFromEnv("POPLAR_ENGINE_OPTIONS", options);
  return options;
}

std::string report_file(const OptionFlags& options) {
  bool wanted = false;
  std::string folder = ".";
  for (const auto& [name, value] : options) {
    if (std::ranges::find(reports, name) != reports.end()) wanted = is_true(name, value) || wanted;
    if (name == "autoReport.directory") folder = value;
  }
  return wanted ? folder + "/profile.pop" : std::string();
}

bsp::CompileOptions compile_options(const OptionFlags& options) {
  bsp::CompileOptions result;
  result.allow_undefined_reads = true;  // legal: the value is any
  result.allow_vertex_aliases = true;
  result.merge_equal_constants = true;  // libraries pad with thousands of them
  for (const auto& [name, value] : options) {
    if (name == "debug.allowOutOfMemory") {
      result.allow_out_of_memory = is_true(name, value);
    } else if (!in_a_group(name)) {
      std::vector<std::string> known;
      for (const std::string_view group : groups) known.push_back(std::string(group) + "*");
      throw invalid_option(
          fmt::format("there is no engine option '{}': {}", name, superstep::unknown_name_hint(name, known)));
    }
  }
  return result;
}

bsp::SummaryOptions summary_options(const OptionFlags& options) {
  bsp::SummaryOptions result;
  for (const auto& [name, value] : options) {
    if (name == "showExecutionSteps")
      result.show_execution_steps = is_true(name, value);
    else if (name == "showVarStorage")
      result.show_variables = is_true(name, value);
    else if (name != "showOptimizations" && name != "showPerIpuMemoryUsage" && name != "colours")
      throw invalid_option(
          fmt::format("there is no report option '{}': {}", name,
                      superstep::unknown_name_hint(
                          name, std::vector<std::string>{"showExecutionSteps", "showVarStorage"})));
  }
  return result;
}

}  // namespace poplar::core
