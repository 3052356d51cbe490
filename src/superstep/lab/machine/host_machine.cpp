#include "superstep/lab/machine/host_machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/lab/bench/primitive_run.h"
#include "superstep/lab/machine/host_times.h"
#include "superstep/lab/machine/peak_kernels.h"
#include "superstep/lab/machine/product_sizes.h"
#include "superstep/lab/machine/rates.h"
#include "superstep/lab/measure/protocol.h"
#include "superstep/lab/processor/kernel_measurement.h"
#include "superstep/record/environment.h"
#include "superstep/record/host_load.h"

namespace superstep::lab {
namespace {

constexpr int peak_trials = 40;

// Products of our own engine, by size: what it reaches of the peak, and from which size on.
ProductRates measure_products(int threads) {
  // Seconds: half of one a size, at most.
  const Protocol protocol{.warm_up_calls = 3,
                          .warm_up_seconds = 0.02,
                          .warm_up_limit = 0.2,
                          .interval = 0,
                          .budget_seconds = 0.3};
  ProductRates found;
  // Square products from a few tiles of registers to beyond the second-level cache.
  for (std::int64_t n = 16; n <= 2048; n *= 2) {
    const Primitive primitive{.kind = PrimitiveKind::gemm, .name = "product", .m = n, .n = n, .k = n};
    PrimitiveRun run(primitive, {}, "cpu", threads);
    const Measurement measured = measure({"product", [&] { run.call(); }}, protocol);
    found.flops.push_back(corrected_flops(primitive));
    found.rates.push_back(corrected_flops(primitive) / measured.summary.min);
  }
  return found;
}

class HostMeasurement {
 public:
  explicit HostMeasurement(const HostMachineSettings& settings) : settings_(settings) {}

  HostMachine run() {
    describe();
    for (const int threads : thread_counts()) measure_threads(threads);
    add_times();
    add_constants();
    add_kernels();
    machine_.busy = !load_.warning().empty();
    return std::move(machine_);
  }

 private:
  void say(const std::string& what) const {
    if (interrupted()) throw Error(ErrorCode::interrupted, "while measuring the machine");
    if (settings_.progress) settings_.progress(what);
  }

  std::vector<int> thread_counts() const {
    std::vector<int> counts;
    const int most = measuring_threads(settings_.threads);  // names tell how many there really were
    for (int n = 1; n < most; n *= 2) counts.push_back(n);
    counts.push_back(most);
    return counts;
  }

  void describe() {
    const nlohmann::json host = record::environment_record(settings_.threads)["host"];
    machine_.id = settings_.id;
    machine_.name = host["processor"].is_string() ? host["processor"].get<std::string>() : "processor";
    machine_.host = host["hostname"].is_string() ? host["hostname"].get<std::string>() : "this host";
    machine_.date = record::iso_time();
    const record::CacheSizes caches = record::cache_sizes();
    for (const auto& [name, bytes] :
         {std::pair{"L1_size", caches.level1}, {"L2_size", caches.level2}, {"L3_size", caches.level3}})
      if (bytes > 0)
        add({name, "B", static_cast<double>(bytes), static_cast<double>(bytes), static_cast<double>(bytes),
             "as the host's topology says"});
    const double memory = host["memory_bytes"].is_number() ? host["memory_bytes"].get<double>() : 0;
    add({"memory_size", "B", memory, memory, memory, "as the system says"});
  }

  void add(HostQuantity quantity) { machine_.measured.push_back(std::move(quantity)); }

  const HostQuantity& find(const std::string& name) const {
    const auto found = std::ranges::find(machine_.measured, name, &HostQuantity::name);
    if (found == machine_.measured.end()) throw Error(ErrorCode::internal, "was not measured", name);
    return *found;
  }
  bool has(const std::string& name) const {
    return std::ranges::find(machine_.measured, name, &HostQuantity::name) != machine_.measured.end();
  }

  void measure_threads(int threads) {
    const std::string suffix = fmt::format("_{}", threads),
                      where = fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
    say(fmt::format("peak of {}", where));
    if (threads == 1)
      add(rate_of("clock", "Hz", measure_rates(1, dependent_addition_work, peak_trials),
                  "dependent additions, a cycle each"));
    using Entry = std::pair<const char*, Work (*)()>;
    for (const auto& [name, make] :
         {Entry{"f32_fma", f32_fma_work}, Entry{"bf16_dot", bf16_dot_work}, Entry{"int8_dot", int8_dot_work}})
      if (make()) add(rate_of(name + suffix, "FLOP/s", measure_rates(threads, make, peak_trials), where));
    for (const MemoryLevel& level : memory_levels(threads)) {
      const KeptBuffers kept;
      for (const Access access : {Access::read, Access::copy, Access::triad}) {
        say(fmt::format("{} of {}, {}", name_of(access), level.name, where));
        add(rate_of(fmt::format("{}_{}{}", level.name, name_of(access), suffix), "B/s",
                    measure_rates(
                        threads, [&] { return memory_work(level.bytes, access); }, 20),
                    fmt::format("{}, buffers of {} B per thread", where, level.bytes)));
      }
    }
    say("barrier and fork-join of " + where);
    add(barrier_time(threads));
    add(fork_join_time(threads));
  }

  void add_times() {
    say("allocation");
    add(allocation_time());
    say("files");
    const auto folder = settings_.folder.empty() ? std::filesystem::temp_directory_path() : settings_.folder;
    for (HostQuantity& rate : file_rates(folder, settings_.file_bytes)) add(std::move(rate));
    say("an operator's overhead");
    PrimitiveRun run(
        {.kind = PrimitiveKind::relu, .name = "relu", .width = 1, .height = 1, .channels = 1, .batch = 1}, {},
        "cpu", 1);
    // Seconds.
    const Measurement one =
        measure({"relu", [&] { run.call(); }}, {.warm_up_seconds = 0.05, .budget_seconds = 0.3});
    add(time_of("operator_overhead", one.samples, "a call of a plan with one element to work on"));
    add_products();
  }

  void add_products() {
    say("products of the engine");
    const ProductRates products = measure_products(settings_.threads);
    add(rate_of("product_best", "FLOP/s", {std::ranges::max(products.rates)},
                "the best square product of the engine, f32"));
    const double half = half_rate_flops(products);
    add({"product_half_flops", "FLOP", half, half, half,
         "where products reach half of that, between sizes that double"});
  }

  void add_kernels() {
    if (settings_.probes == 0) return;
    machine_.kernels =
        measure_kernels({.threads = measuring_threads(settings_.threads),
                         .probes = settings_.probes,
                         .peaks = {.flops = find("f32_fma_1").value,
                                   .bytes = find(has("L3_copy_1") ? "L3_copy_1" : "L2_copy_1").value,
                                   .memory_bytes = find("memory_read_1").value,
                                   .cache = has("L3_size") ? find("L3_size").value : find("L2_size").value},
                         .progress = [this](const std::string& what) { say(what); }});
  }

  void constant(const char* name, const std::string& from, const char* unit, std::string note = {}) {
    const HostQuantity& q = find(from);
    machine_.constants.push_back(
        {name, unit, q.value, q.low, q.high, note.empty() ? q.note : std::move(note)});
  }
  void share(const char* name, const std::string& part, const std::string& whole, std::string note) {
    const double value = std::min(1.0, find(part).value / find(whole).value);
    machine_.constants.push_back(
        {name, "", value, std::min(value, find(part).low / find(whole).value), value, std::move(note)});
  }

  void add_constants() {
    const std::string all = fmt::format("_{}", settings_.threads);
    const double threads = settings_.threads;
    machine_.constants.push_back({"processors", "", threads, threads, threads, "threads measured with"});
    constant("clock", "clock", "Hz");
    constant("peak_f32", "f32_fma" + all, "FLOP/s");
    constant("peak_f16", (has("bf16_dot" + all) ? "bf16_dot" : "f32_fma") + all, "FLOP/s",
             has("bf16_dot" + all) ? "bf16 dot products" : "as f32: no such instruction");
    if (has("int8_dot" + all)) constant("peak_i8", "int8_dot" + all, "FLOP/s");
    share("matrix_efficiency", "product_best", "f32_fma" + all,
          "the best product of the engine over the peak");
    constant("matrix_half_flops", "product_half_flops", "FLOP");
    constant("memory", "memory_size", "B");
    constant("memory_rate", "memory_read" + all, "B/s");
    share("memory_efficiency", "memory_triad" + all, "memory_read" + all, "triad over reading");
    if (has("L3_size")) {
      constant("cache", "L3_size", "B");
      constant("cache_rate", "L3_copy" + all, "B/s");
    }
    constant("launch_overhead", "operator_overhead", "s");
    constant("link_rate", "memory_copy" + all, "B/s", "ranks on one host exchange through its memory");
    constant("link_latency", "barrier" + all, "s");
    constant("host_rate", "memory_copy" + all, "B/s", "the machine is the host: a copy in memory");
    constant("host_latency", "fork_join" + all, "s");
  }

  const HostMachineSettings& settings_;
  HostMachine machine_;
  record::HostLoad load_;
};

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string line_of(const HostQuantity& q) {
  std::string line = fmt::format("{} = {{ value = {:.6g}, unit = {}, kind = {}, source = {}", q.name, q.value,
                                 quoted(q.unit), quoted(q.kind), q.kind == "ME" ? "\"HOST\"" : "\"\"");
  // Rounded outwards, so that the range holds the value as it is written.
  line += fmt::format(", range = [{:.6g}, {:.6g}]", std::min(q.low, q.value) * (1 - 1e-5),
                      std::max(q.high, q.value) * (1 + 1e-5));
  if (!q.note.empty()) line += ", note = " + quoted(q.note);
  return line + " }\n";
}

std::string kernels_text(const machine::ProcessorTimes& kernels) {
  if (kernels.times.empty()) return {};
  std::string text = fmt::format(
      "\n# What the engine's kernels took: operations, bytes, bytes of the plan around them, threads that "
      "share one,\n"
      "# threads at work, seconds.\n[kernels]\ninstructions = {}\nthreads = {}\nstep_overhead = {:.4g}\n"
      "uncertainty = {:.4g}\n\n[kernels.times]\n",
      quoted(kernels.instructions), kernels.threads, std::max(0.0, kernels.step_overhead),
      kernels.uncertainty);
  std::map<std::string, std::string> rows;
  for (const machine::KernelTime& time : kernels.times) {
    std::string& list = rows[time.kernel];
    list += fmt::format("{}[{:.6g}, {:.6g}, {:.4g}, {}, {}, {:.4g}]", list.empty() ? "" : ", ", time.flops,
                        time.bytes, time.working_set, time.sharing, time.busy, time.seconds);
  }
  for (const auto& [kernel, list] : rows) text += fmt::format("{} = [{}]\n", quoted(kernel), list);
  return text;
}

}  // namespace

HostMachine measure_host(const HostMachineSettings& settings) { return HostMeasurement(settings).run(); }

std::string to_toml(const HostMachine& machine) {
  std::string text = fmt::format(
      "# Measured by superstep machine measure: the best of many trials, and the range from it to the median "
      "one.\n");
  text += fmt::format("id = {}\nname = {}\nstyle = \"kernel-by-kernel\"\n\n[sources]\n", quoted(machine.id),
                      quoted(machine.name));
  text +=
      fmt::format("HOST = {}\n\n[constants]\n",
                  quoted(fmt::format("measured on {}{}{} at {}{}", machine.host,
                                     machine.through.empty() ? "" : " through ", machine.through,
                                     machine.date, machine.busy ? ", while it had other work to do" : "")));
  for (const HostQuantity& constant : machine.constants) text += line_of(constant);
  text += "\n# Everything that was measured; a suffix _N is the number of threads.\n[measured]\n";
  for (const HostQuantity& quantity : machine.measured) text += line_of(quantity);
  return text + kernels_text(machine.kernels);
}

record::Result to_result(const HostMachine& machine, int threads) {
  record::Result result{.command = "machine", .id = machine.id, .workload = "machine", .mode = "measure"};
  result.config = {{"threads", threads}};
  for (const HostQuantity& q : machine.measured) {
    record::Quantity quantity{.name = q.name, .unit = q.unit, .value = q.value, .low = q.low, .high = q.high};
    quantity.statistic = "best";
    quantity.details = {{"note", q.note}};
    result.quantities.push_back(std::move(quantity));
  }
  return result;
}

}  // namespace superstep::lab
