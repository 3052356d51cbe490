// The columns of published results, so that ours can stand under theirs.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/text.h"
#include "superstep/lab/formats/writers.h"

namespace superstep::lab {
namespace {

using nlohmann::json;

// RFC 4180: quotes around what holds a comma, a quote or a line end; quotes are doubled.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string setting(const record::Result& result, const char* name) {
  const auto found = result.config.find(name);
  if (found == result.config.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string row_of(const record::Result& result, const record::Quantity& quantity) {
  const std::string precision = setting(result, "precision"), batch = setting(result, "batch");
  const std::string global = setting(result, "global_batch");
  const std::vector<std::string> cells{cell(result.id),
                                       "superstep",
                                       quantity.how == How::measured ? "measured" : "predicted",
                                       cell(result.workload),
                                       cell(result.mode),
                                       cell(result.machine),
                                       std::to_string(result.units),
                                       "superstep",
                                       cell(precision),
                                       cell(setting(result, "micro_batch")),
                                       cell(global.empty() ? batch : global),
                                       cell(setting(result, "replicas")),
                                       cell(setting(result, "pipeline")),
                                       cell(setting(result, "accumulate")),
                                       cell(quantity.name),
                                       std::isfinite(quantity.value) ? fmt::format("{}", quantity.value) : "",
                                       cell(quantity.unit),
                                       cell(join(quantity.flags, "; "))};
  return join(cells, ",") + "\n";
}

}  // namespace

std::string write_csv(const std::vector<record::Result>& results) {
  std::string text =
      "id,source,place,workload,mode,machine,units,framework,precision,micro_batch,global_batch,replicas,"
      "pipeline_stages,grad_accum,metric,value,unit,note\n";
  for (const record::Result& result : results)
    for (const record::Quantity& quantity : result.quantities) text += row_of(result, quantity);
  return text;
}

}  // namespace superstep::lab
