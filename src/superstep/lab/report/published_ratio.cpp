#include <fmt/format.h>

#include <map>
#include <optional>

#include "superstep/lab/bench/baseline.h"
#include "superstep/lab/bench/configurations.h"
#include "superstep/lab/report/bench_report.h"
#include "superstep/lab/validate/table.h"
#include "superstep/record/member.h"

namespace superstep::lab {
namespace {

std::int64_t parameter(const record::Result& result, const char* name) {
  const auto found = result.parameters.find(name);
  return found != result.parameters.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

// DeepBench's sheets list products by their shape; its times are of one forward product, in every sheet.
bool is_same_product(const record::Result& result, const std::string& published) {
  return result.mode == "infer" && parameter(result, "k") > 0 &&
         published == fmt::format("gemm_{}x{}x{}_nn", parameter(result, "m"), parameter(result, "n"),
                                  parameter(result, "k"));
}

// A primitive at another batch than the published one, asked for or for want of memory, is another primitive.
bool has_published_batch(const record::Result& result) {
  if (!result.parameters.contains("kind")) return true;
  const std::int64_t batch = record::integer_member(result.config, "batch", 0);
  const Primitive* const primitive = published_primitive(result.workload);
  return !primitive || batch == batch_at(*primitive, sizeof(float)) || batch == batch_at(*primitive, 2);
}

bool is_partner(const record::Result& result, const PublishedTable& table, std::size_t row) {
  const std::string& workload = table.text(row, "workload");
  if (is_same_product(result, workload)) return true;
  return result.workload == workload && result.mode == table.text(row, "mode") && has_published_batch(result);
}

// Our figure in the unit of the published one.
std::optional<double> ours_as(const record::Result& result, const std::string& metric,
                              const std::string& unit) {
  const record::Quantity *time = result.find("step_time"), *direct = result.find(metric);
  const double batch = record::number_member(result.config, "batch", 1);
  if (metric == "time" && time) return time->value * (unit == "ms" ? 1e3 : unit == "us" ? 1e6 : 1);
  if (metric == "latency_per_sample" && time)
    return time->value / batch * (unit == "us" ? 1e6 : unit == "ms" ? 1e3 : 1);
  if (metric == "step_time" && time) return time->value * (unit == "ms" ? 1e3 : 1);
  if (!direct) return std::nullopt;
  return direct->value * (unit == "%" ? 100 : 1);
}

struct Partner {
  const record::Result* result;
  double ours;
  bool same_batch;
};

// Of our results at several batches, in each precision: the one at the published batch, else the best.
bool is_nearer(const Partner& a, const Partner& b, bool higher_is_better) {
  if (a.same_batch != b.same_batch) return a.same_batch;
  return higher_is_better ? a.ours > b.ours : a.ours < b.ours;
}

std::map<std::string, Partner> partners_of(const std::vector<record::Result>& results,
                                           const PublishedTable& table, std::size_t row) {
  const std::string &metric = table.text(row, "metric"), &unit = table.text(row, "unit");
  const double batch = table.number(row, "global_batch", 0);
  std::map<std::string, Partner> partners;
  for (const record::Result& result : results) {
    const auto ours = ours_as(result, metric, unit);
    if (!ours || is_baseline(result) || !is_partner(result, table, row)) continue;
    const Partner partner{&result, *ours, record::number_member(result.config, "batch", 0) == batch};
    const auto [found, added] =
        partners.try_emplace(record::text_member(result.config, "precision", ""), partner);
    const bool rate = !unit.ends_with("s") || unit.find('/') != std::string::npos;
    if (!added && is_nearer(partner, found->second, rate)) found->second = partner;
  }
  return partners;
}

}  // namespace

std::vector<PublishedRatio> compare_with_published(const std::vector<record::Result>& results,
                                                   const std::filesystem::path& published) {
  const PublishedTable table(published);
  std::vector<PublishedRatio> ratios;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double value = table.number(row, "value", 0);
    if (value == 0) continue;
    for (const auto& [precision, partner] : partners_of(results, table, row))
      ratios.push_back({table.text(row, "id"), table.text(row, "source"), table.text(row, "machine"),
                        table.text(row, "precision"), table.text(row, "metric"), table.text(row, "unit"),
                        partner.result->id, value, partner.ours, partner.ours / value});
  }
  return ratios;
}

}  // namespace superstep::lab
