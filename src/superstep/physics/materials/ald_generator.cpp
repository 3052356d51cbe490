#include "superstep/physics/materials/ald_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "superstep/base/progress.h"
#include "superstep/base/random.h"
#include "superstep/file/csv.h"
#include "superstep/physics/materials/ald.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

enum Purpose : std::uint32_t { settings_stream, noise_stream };

// What a design study does not know: the time constants of both purges and the masses of both reactions.
struct Unknown {
  const char* name;
  const char* unit;
  double low, high;
};
constexpr Unknown unknowns[] = {
    {"purge_a", "s", 0.05, 0.5}, {"purge_b", "s", 0.05, 0.5}, {"mass_a", "", 0.1, 1}, {"mass_b", "", 0.1, 1}};
constexpr int trace_points = 100;

class AldGenerator final : public Generator {
 public:
  AldGenerator(std::string chemistry, int cycles, double noise, double step)
      : chemistry_(std::move(chemistry)),
        process_(find_ald_chemistry(chemistry_)),
        cycles_(cycles),
        noise_(noise),
        step_(step) {
    fields_ = {{"settings", ElementType::f64, {4}, "s, s, 1, 1", "purge_a, purge_b, mass_a, mass_b"},
               {"gpc", ElementType::f64, {cycles_}, "", "growth in each cycle, with noise"},
               {"trace",
                ElementType::f64,
                {trace_points},
                "",
                "mass gained in the last cycle, evenly in time, with noise"}};
  }
  std::string_view name() const override { return "tad-ald"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    RandomStream random(seed, index, settings_stream), noise(seed, index, noise_stream);
    std::array<double, 4> settings;
    for (std::size_t k = 0; k < 4; ++k) settings[k] = random.uniform(unknowns[k].low, unknowns[k].high);
    AldProcess process = process_;
    process.first.purge_s = settings[0], process.second.purge_s = settings[1];
    process.mass_a = settings[2], process.mass_b = settings[3];
    std::vector<double> trace;
    std::vector<double> growth = growth_per_cycle(process, cycles_, step_, &trace);
    for (double& value : growth) value += noise_ * noise.normal();
    put_all<double>(out[0], settings);
    put_all<double>(out[1], growth);
    for (std::size_t k = 0; double& value : elements<double>(out[2], trace_points))
      value = trace[++k * trace.size() / trace_points - 1] + noise_ * noise.normal();
  }

  void write(const WriteRequest& request) const override {
    if (request.path.extension() == ".csv" || request.path.extension() == ".tsv")
      write_table(request);
    else
      Generator::write(request);
  }

  nlohmann::json parameters() const override {
    nlohmann::json ranges;
    for (const Unknown& unknown : unknowns) ranges[unknown.name] = {unknown.low, unknown.high};
    return {{"chemistry", chemistry_},
            {"cycles", cycles_},
            {"noise", noise_},
            {"step", step_},
            {"ranges", ranges}};
  }

 private:
  void write_table(const WriteRequest& request) const {
    std::vector<std::string> header{"sample"};
    for (const Unknown& unknown : unknowns) header.emplace_back(unknown.name);
    for (int cycle = 1; cycle <= cycles_; ++cycle) header.push_back(fmt::format("gpc_{}", cycle));
    CsvWriter table(request.path, header);
    Progress progress("generating tad-ald", static_cast<double>(request.samples), "samples");
    constexpr std::uint64_t block_samples = 1024;
    for (std::uint64_t first = 0; first < request.samples; first += block_samples) {
      const std::uint64_t count = std::min(block_samples, request.samples - first);
      const auto block = generate_in_memory(*this, request.seed, first, count, *request.pool);
      for (std::uint64_t k = 0; k < count; ++k) {
        table.cell(static_cast<std::int64_t>(first + k));
        for (double value : block[0].as<double>().subspan(4 * k, 4)) table.cell(value);
        const auto cycles = static_cast<std::uint64_t>(cycles_);
        for (double value : block[1].as<double>().subspan(cycles * k, cycles)) table.cell(value);
        table.end_row();
      }
      progress.update(static_cast<double>(first + count));
    }
    table.close();
  }

  std::string chemistry_;
  AldProcess process_;
  int cycles_;
  double noise_, step_;
  std::vector<Field> fields_;
};

std::unique_ptr<Generator> make(const Options& options) {
  const AldProcess& process = find_ald_chemistry(options.text("chemistry"));
  const double step =
      options.text("step") == "auto" ? default_time_step(process) : options.number("step", 1e-7, 0.1);
  const double cycle = process.dose_a_s + process.purge_a_s + process.dose_b_s + process.purge_b_s;
  if (cycle / step < trace_points)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a step of {} s leaves fewer than {} steps in a cycle", step, trace_points),
                "option step", "give a smaller one");
  return std::make_unique<AldGenerator>(options.text("chemistry"),
                                        static_cast<int>(options.integer("cycles", 1, 100000)),
                                        options.number("noise", 0, 1), step);
}

}  // namespace

GeneratorEntry ald_generator() {
  return {"tad-ald",
          "growth per cycle of atomic layer deposition for random settings",
          {{"chemistry", "reference", "reference, Al2O3-200C, Al2O3-100C, TiO2-200C or W-200C"},
           {"cycles", "50", "cycles of a growth curve"},
           {"noise", "0.01", "standard deviation of the measured growth"},
           {"step", "auto", "time step in s; auto: by the fastest rate, 0.01 for the reference"}},
          make};
}

}  // namespace superstep::data
