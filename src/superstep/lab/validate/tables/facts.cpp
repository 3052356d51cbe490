#include "superstep/lab/validate/tables/facts.h"

#include <algorithm>
#include <charconv>

#include "superstep/lab/validate/table.h"

namespace superstep::lab {
namespace {

constexpr double tera = 1e12, giga = 1e9, mega = 1e6;

// A number, or 0 where a cell says something in words.
double number_in(const PublishedTable& table, std::size_t row, const char* column) {
  const std::string& cell = table.text(row, column);
  double value = 0;
  std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return value;
}

machine::MachineFacts machine_in(const PublishedTable& table, std::size_t row) {
  const auto of = [&](const char* column, double unit) { return unit * number_in(table, row, column); };
  machine::MachineFacts facts{
      .id = table.text(row, "id"), .name = table.text(row, "name"), .style = table.text(row, "style")};
  facts.processors = of("processors", 1);
  facts.clock = of("clock_GHz", giga);
  facts.peak_f32 = of("peak_f32_TFLOPS", tera);
  facts.peak_tf32 = of("peak_tf32_TFLOPS", tera);
  facts.peak_bf16 = of("peak_bf16_TFLOPS", tera);
  facts.peak_f16 = of("peak_f16_TFLOPS", tera);
  facts.peak_fp8 = of("peak_fp8_TFLOPS", tera);
  facts.peak_i8 = of("peak_i8_TOPS", tera);
  facts.memory = of("memory_GB", giga);
  facts.memory_rate = of("memory_GBps", giga);
  facts.cache = of("cache_MB", mega);
  facts.link_rate = of("link_GBps_one_way", giga);
  facts.units_joined = of("units_joined", 1);
  machine::complete(facts);
  return facts;
}

ModelFacts model_in(const PublishedTable& table, std::size_t row) {
  const auto of = [&](const char* column, double unit = 1) { return unit * number_in(table, row, column); };
  ModelFacts facts{.kind = table.text(row, "kind"),
                   .sums = {},
                   .layers = of("layers"),
                   .width = of("width"),
                   .heads = of("heads"),
                   .kv_heads = of("kv_heads"),
                   .ffn = of("ffn"),
                   .vocabulary = of("vocab"),
                   .sequence = of("sequence"),
                   .experts = of("experts"),
                   .active_experts = of("active_experts"),
                   .gated = of("gated_ffn") > 0};
  if (facts.kv_heads == 0) facts.kv_heads = facts.heads;
  if (const double macs = of("gmacs_forward", giga); macs > 0)
    facts.sums = machine::typical_sums(macs, of("activations_M", mega), of("params_M", mega));
  return facts;
}

}  // namespace

TableFacts read_table_facts(const std::filesystem::path& folder) {
  TableFacts facts;
  if (const auto file = folder / "machines-facts.csv"; std::filesystem::exists(file)) {
    const PublishedTable table(file);
    for (std::size_t row = 0; row < table.rows(); ++row)
      facts.machines[table.text(row, "id")] = machine_in(table, row);
  }
  for (const machine::Machine& machine : machine::machines())
    facts.machines.emplace(machine.id(), machine::facts_of(machine));
  if (const auto file = folder / "models.csv"; std::filesystem::exists(file)) {
    const PublishedTable table(file);
    for (std::size_t row = 0; row < table.rows(); ++row)
      facts.models[table.text(row, "id")] = model_in(table, row);
  }
  return facts;
}

}  // namespace superstep::lab
