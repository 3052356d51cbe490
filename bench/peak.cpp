// What one core, and all of them at once, can do at most: f32 and bf16 operations, bandwidth of every level
// of the memory. Every number is the best of several short trials, so that a busy neighbour counts little.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/machine/peak_kernels.h"
#include "superstep/lab/machine/rates.h"

namespace superstep::lab {
namespace {

struct Row {
  std::string name, unit;
  double value;
};

std::vector<Row> measure(int threads) {
  const auto peak = [&](const MakeWork& make) { return best(measure_rates(threads, make)); };
  std::vector<Row> rows;
  rows.push_back({"clock", "Hz", peak(dependent_addition_work) / threads});
  rows.push_back({"f32_fma", "FLOP/s", peak(f32_fma_work)});
  if (bf16_dot_work()) rows.push_back({"bf16_dot", "FLOP/s", peak(bf16_dot_work)});
  if (int8_dot_work()) rows.push_back({"int8_dot", "FLOP/s", peak(int8_dot_work)});
  for (const MemoryLevel& level : memory_levels(threads))
    for (const Access access : {Access::read, Access::write, Access::copy, Access::triad})
      rows.push_back({level.name + "_" + name_of(access), "B/s",
                      peak([&] { return memory_work(level.bytes, access); })});
  return rows;
}

void print(int threads, const std::vector<Row>& rows) {
  fmt::print("{} thread{}, vectors: {} ({} x f32)\n", threads, threads == 1 ? "" : "s", vector_target(),
             f32_lanes());
  TextTable table({"what", "best", "a core and cycle"});
  const double clock = rows[0].value;
  for (const Row& row : rows)
    table.add_row({row.name, format_si(row.value, row.unit),
                   row.name == "clock" ? ""
                                       : fmt::format("{:.1f} {}", row.value / threads / clock,
                                                     row.unit == "B/s" ? "B" : "FLOP")});
  fmt::print("{}\n", table.to_string());
}

nlohmann::json to_json(int threads, const std::vector<Row>& rows) {
  nlohmann::json metrics;
  for (const Row& row : rows)
    metrics[row.name] = {
        {"how", "measured"}, {"unit", row.unit}, {"value", row.value}, {"statistic", "best"}};
  return {{"schema", "superstep-result/1"},
          {"command", "peak"},
          {"config", {{"threads", threads}, {"vectors", vector_target()}}},
          {"metrics", metrics}};
}

void run(const std::vector<int>& thread_counts, const std::string& json) {
  nlohmann::json results = nlohmann::json::array();
  for (int threads : thread_counts) {
    const std::vector<Row> rows = measure(threads);
    print(threads, rows);
    results.push_back(to_json(threads, rows));
  }
  if (!json.empty()) write_file_atomically(json, results.dump(2) + "\n");
}

}  // namespace
}  // namespace superstep::lab

int main(int argc, char** argv) {
  std::vector<int> threads = {1};
  if (superstep::available_processors() > 1) threads.push_back(superstep::available_processors());
  std::string json;
  CLI::App program("Measures the peak of the cores and the bandwidth of the memory.");
  program.add_option("--threads", threads, "thread counts to measure")->check(CLI::Range(1, 4096));
  program.add_option("--json", json, "write the result to this file");
  CLI11_PARSE(program, argc, argv);
  try {
    superstep::lab::run(threads, json);
  } catch (const std::exception& error) {
    fmt::print(stderr, "peak: error: {}\n", error.what());
    return 1;
  }
}
