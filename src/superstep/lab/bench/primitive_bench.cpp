#include "superstep/lab/bench/primitive_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/text.h"
#include "superstep/lab/bench/energy_rows.h"
#include "superstep/lab/bench/primitive_check.h"
#include "superstep/lab/bench/primitive_run.h"
#include "superstep/lab/bench/timeline.h"
#include "superstep/lab/machine/rates.h"
#include "superstep/lab/measure/quantities.h"

namespace superstep::lab {
namespace {

struct Entry {
  Primitive primitive;  // at the batch that is run
  PrimitiveOptions options;
  std::int64_t wanted_batch;
  std::string refusal = {};  // why it was not run
  bool wrong = false;        // it did not compute what it should
  std::unique_ptr<PrimitiveRun> run = nullptr;
  CheckReport check = {};
  std::optional<Measurement> measurement = {};
};

std::string mode_of(const Entry& entry) { return name_of(entry.options.passes); }

// The largest batch whose tensors fit, halving from what is wanted.
std::int64_t fitting_batch(const Primitive& primitive, std::int64_t wanted, std::size_t element_bytes,
                           Passes passes, double bytes) {
  std::int64_t batch = wanted;
  while (batch > 1 && tensor_bytes(with_batch(primitive, batch), element_bytes, passes) > bytes) batch /= 2;
  return batch;
}

Entry make_entry(const PrimitiveBenchSettings& settings, const Primitive& primitive,
                 const std::string& precision, Passes passes) {
  const std::size_t bytes = size_in_bytes(element_of(precision));
  const std::int64_t wanted = settings.batch > 0 ? settings.batch : batch_at(primitive, bytes);
  const double free = available_memory();
  const double share = settings.memory_share / static_cast<double>(settings.precisions.size());
  const bool halve = free > 0 && !settings.whole_batches;
  const std::int64_t batch = halve ? fitting_batch(primitive, wanted, bytes, passes, share * free) : wanted;
  Entry entry{with_batch(primitive, batch), {.precision = precision, .passes = passes}, wanted};
  if (const double needed = tensor_bytes(entry.primitive, bytes, passes); free > 0 && needed > share * free)
    entry.refusal =
        fmt::format("memory ends: its tensors take {}, {:.0f} % of the {} that are free are {}",
                    format_bytes(needed), 100 * share, format_bytes(free), format_bytes(share * free));
  return entry;
}

// Where no kernel takes most of the work, what would be timed is the reference evaluation, which is not made
// for speed; a user who asks for that target gets it.
void refuse_reference(const Entry& entry, const std::string& target) {
  constexpr double most_share = 0.5;
  if (target == "reference" || entry.run->reference_share() <= most_share) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("the {} target has no kernel for {} in {}: the reference evaluation would run",
                          target, name_of(entry.primitive.kind), entry.options.precision));
}

void prepare(Entry& entry, const PrimitiveBenchSettings& settings) {
  if (!entry.refusal.empty()) return;
  try {
    entry.run =
        std::make_unique<PrimitiveRun>(entry.primitive, entry.options, settings.target, settings.threads);
    refuse_reference(entry, settings.target);
    entry.check = check_primitive(*entry.run);
  } catch (const Error& error) {
    const bool wrong = error.code() == ErrorCode::internal;
    if (!wrong && error.code() != ErrorCode::unsupported && error.code() != ErrorCode::out_of_memory) throw;
    entry.run.reset();
    entry.wrong = wrong;
    entry.refusal = (wrong ? "wrong result: " : "") + error.message();
  } catch (const std::bad_alloc&) {
    entry.run.reset();
    entry.refusal = "out of memory";
  }
}

void join(std::optional<Measurement>& all, Measurement next, const Protocol& protocol) {
  if (!all) {
    all = std::move(next);
    return;
  }
  all->samples.insert(all->samples.end(), next.samples.begin(), next.samples.end());
  all->warm_up_calls += next.warm_up_calls;
  all->warm_up_seconds += next.warm_up_seconds;
  all->steady = all->steady && next.steady;
  all->summary = record::summarize(all->samples);
  all->flags = flags_of(all->summary, protocol.least_samples);
}

void time_all(std::vector<Entry>& entries, const Protocol& protocol) {
  std::vector<Contender> contenders;
  std::vector<Entry*> timed;
  for (Entry& entry : entries)
    if (entry.run) {
      timed.push_back(&entry);
      contenders.push_back({entry.primitive.name + " " + mode_of(entry) + " " + entry.options.precision,
                            [run = entry.run.get()] { run->call(); }});
    }
  std::vector<Measurement> measurements = measure_interleaved(contenders, protocol);
  for (std::size_t i = 0; i < timed.size(); ++i)
    join(timed[i]->measurement, std::move(measurements[i]), protocol);
}

double flops_of(const Entry& entry, double (*count)(const Primitive&)) {
  return count(entry.primitive) * operations_factor(entry.primitive.kind, entry.options.passes);
}

void add_rates(record::Result& result, const Entry& entry, const MachinePeak& peak) {
  const Measurement& measured = *entry.measurement;
  const double flops = flops_of(entry, corrected_flops), peak_rate = peak_of(peak, entry.options.precision);
  result.quantities.push_back(time_quantity("step_time", measured));
  result.quantities.push_back(rate_quantity("throughput", static_cast<double>(batch_of(entry.primitive)),
                                            "samples/s", measured, KeepSamples::yes));
  result.quantities.push_back(rate_quantity("flops_rate", flops, "FLOP/s", measured));
  result.quantities.push_back(
      rate_quantity("flops_emani2022", flops_of(entry, printed_flops), "FLOP/s", measured));
  if (peak_rate > 0) {
    result.quantities.push_back(rate_quantity("compute_utilization", flops / peak_rate, "", measured));
    result.add("peak_flops", peak_rate, "FLOP/s");
    result.quantities.back().statistic = "best";
  }
  const std::size_t element = size_in_bytes(element_of(entry.options.precision));
  const double bytes = tensor_bytes(entry.primitive, element, entry.options.passes);
  result.quantities.push_back(rate_quantity("bandwidth", bytes, "B/s", measured));
  if (peak.copy_bandwidth > 0)
    result.quantities.push_back(
        rate_quantity("memory_utilization", bytes / peak.copy_bandwidth, "", measured));
}

std::vector<record::TimelineEvent> timeline_of(const Entry& entry, const PrimitiveBenchSettings& settings) {
  PrimitiveOptions options = entry.options;
  options.measure_steps = true;
  PrimitiveRun measured(entry.primitive, options, settings.target, settings.threads);
  return record_timeline([&] { measured.call(); }, [&] { return measured.summary(); });
}

record::Result to_result(const Entry& entry, const PrimitiveBenchSettings& settings,
                         const MachinePeak& peak) {
  record::Result result{.command = "bench", .workload = entry.primitive.name, .mode = mode_of(entry)};
  result.id = fmt::format("{}-{}-{}", result.workload, result.mode, entry.options.precision);
  result.parameters = parameters_of(entry.primitive);
  result.parameters["kind"] = name_of(entry.primitive.kind);
  result.flop_per_sample = flops_of(entry, corrected_flops) / static_cast<double>(batch_of(entry.primitive));
  result.machine = settings.target;
  result.config = {{"framework", "superstep"},
                   {"precision", entry.options.precision},
                   {"partials", entry.options.precision == "int8" ? "i32" : "f32"},
                   {"batch", batch_of(entry.primitive)},
                   {"threads", settings.threads},
                   {"seed", entry.options.seed},
                   {"data", "synthetic, in memory"}};
  if (settings.whole_batches) result.config["sweep"] = true;
  if (batch_of(entry.primitive) != entry.wanted_batch) result.config["batch_wanted"] = entry.wanted_batch;
  if (!entry.measurement) {
    result.config["not_run"] = entry.refusal;
    if (entry.wrong) result.config["wrong"] = true;
    return result;
  }
  const target::PlanSummary plan = entry.run->summary();
  result.config["micro_batch"] = plan.micro_batch;
  result.config["checked"] = {{"elements", entry.check.checked},
                              {"worst_error_over_tolerance", entry.check.worst}};
  add_rates(result, entry, peak);
  result.add("compile_time", entry.run->compile_seconds(), "s");
  result.add("first_step_time", entry.measurement->first_call, "s");
  result.add("memory_peak",
             tensor_bytes(entry.primitive, size_in_bytes(element_of(entry.options.precision)),
                          entry.options.passes) +
                 static_cast<double>(plan.bytes_in_all()),
             "B");
  if (settings.energy)
    add_energy(
        result, [&] { entry.run->call(); }, static_cast<double>(batch_of(entry.primitive)));
  if (settings.timeline) result.timeline = timeline_of(entry, settings);
  std::vector<std::string>& flags = result.quantities.front().flags;
  if (result.config.contains("batch_wanted"))
    flags.push_back(
        fmt::format("batch {} in place of {}: memory", batch_of(entry.primitive), entry.wanted_batch));
  if (const double share = entry.run->reference_share(); share > 0)
    flags.push_back(fmt::format("{:.2g} % of the operations by reference evaluation", 100 * share));
  return result;
}

}  // namespace

double peak_of(const MachinePeak& peak, const std::string& precision) {
  const auto found = peak.flops.find(precision);
  if (found != peak.flops.end() && found->second > 0) return found->second;
  const auto single = peak.flops.find("f32");
  return single == peak.flops.end() ? 0 : single->second;
}

MachinePeak measure_peak(int threads, const std::vector<std::string>& precisions) {
  MachinePeak peak{.threads = measuring_threads(threads)};
  peak.flops["f32"] = peak_flops(threads, "f32");
  for (const std::string& precision : precisions)
    if (precision == "bf16" || precision == "int8") peak.flops[precision] = peak_flops(threads, precision);
  const std::size_t bytes = memory_levels(threads).back().bytes;
  try {
    peak.copy_bandwidth = best(measure_rates(threads, [bytes] { return memory_work(bytes, Access::copy); }));
  } catch (const Error& error) {  // a limit on memory: results go without a share of this peak
    if (error.code() != ErrorCode::out_of_memory) throw;
  }
  return peak;
}

std::vector<record::Result> bench_primitives(const PrimitiveBenchSettings& settings,
                                             const MachinePeak& peak) {
  std::vector<record::Result> results;
  for (const Primitive& primitive : settings.primitives)
    for (const std::string& mode : settings.modes) {
      std::vector<Entry> entries;
      for (const std::string& precision : settings.precisions) {
        entries.push_back(make_entry(settings, primitive, precision, passes_named(mode)));
        prepare(entries.back(), settings);
      }
      for (int round = 0; round < settings.repeat; ++round) time_all(entries, settings.protocol);
      for (const Entry& entry : entries) {
        results.push_back(to_result(entry, settings, peak));
        if (settings.done) settings.done(results.back());
      }
    }
  return results;
}

}  // namespace superstep::lab
