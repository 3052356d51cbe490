#include <fmt/format.h>

#include <optional>

#include "superstep/lab/report/bench_report.h"
#include "superstep/lab/validate/table.h"

namespace superstep::lab {
namespace {

std::int64_t parameter(const Result& result, const char* name) {
  const auto found = result.parameters.find(name);
  return found != result.parameters.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

// DeepBench's sheets list products by their shape; its times are of one forward product, in every sheet.
bool is_same_product(const Result& result, const std::string& published) {
  return result.mode == "infer" && parameter(result, "k") > 0 &&
         published == fmt::format("gemm_{}x{}x{}_nn", parameter(result, "m"), parameter(result, "n"), parameter(result, "k"));
}

bool is_partner(const Result& result, const PublishedTable& table, std::size_t row) {
  const std::string& workload = table.text(row, "workload");
  if (is_same_product(result, workload)) return true;
  return result.workload == workload && result.mode == table.text(row, "mode");
}

// Our figure in the unit of the published one.
std::optional<double> ours_as(const Result& result, const std::string& metric, const std::string& unit) {
  const Quantity *time = result.find("step_time"), *direct = result.find(metric);
  const double batch = result.config.value("batch", 1.0);
  if (metric == "time" && time) return time->value * (unit == "ms" ? 1e3 : unit == "us" ? 1e6 : 1);
  if (metric == "latency_per_sample" && time) return time->value / batch * (unit == "us" ? 1e6 : unit == "ms" ? 1e3 : 1);
  if (metric == "step_time" && time) return time->value * (unit == "ms" ? 1e3 : 1);
  if (!direct) return std::nullopt;
  return direct->value * (unit == "%" ? 100 : 1);
}

}  // namespace

std::vector<PublishedRatio> compare_with_published(const std::vector<Result>& results, const std::filesystem::path& published) {
  const PublishedTable table(published);
  std::vector<PublishedRatio> ratios;
  for (std::size_t row = 0; row < table.rows(); ++row)
    for (const Result& result : results) {
      if (!is_partner(result, table, row)) continue;
      const std::string &metric = table.text(row, "metric"), &unit = table.text(row, "unit");
      const auto ours = ours_as(result, metric, unit);
      const double value = table.number(row, "value", 0);
      if (!ours || value == 0) continue;
      ratios.push_back({table.text(row, "id"), table.text(row, "source"), table.text(row, "machine"),
                        table.text(row, "precision"), metric, unit, result.id, value, *ours, *ours / value});
    }
  return ratios;
}

}  // namespace superstep::lab
