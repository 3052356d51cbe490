#include "superstep/cli/shared/bench_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/lab/bench/baseline.h"
#include "superstep/lab/bench/primitive_bench.h"
#include "superstep/lab/bench/primitive_graph.h"
#include "superstep/lab/bench/processes.h"
#include "superstep/lab/bench/workload_bench.h"
#include "superstep/lab/formats/table.h"
#include "superstep/lab/formats/writers.h"
#include "superstep/run/user/user_model.h"
#include "superstep/target/pjrt/pjrt.h"
#include "superstep/target/target.h"
#include "superstep/transform/training/gradient_mode.h"
#include "superstep/workload/workload.h"

namespace superstep::cli {
namespace {

using record::Result;

constexpr double memory_share = 0.6;  // of what is free, for the tensors of a configuration

// The option that only workloads and model files take, where one is given; "" where none is.
std::string option_of_workloads(const BenchArguments& arguments) {
  if (arguments.gradients != std::vector<std::string>{"reverse"}) return "--gradient";
  if (!arguments.model_options.empty()) return "--set";
  if (!arguments.loads.empty()) return "--load";
  return arguments.micro_batch > 0 ? "--micro-batch" : "";
}

bool is_workload(const std::string& name) {
  return std::ranges::any_of(workload::workloads(), [&](const auto& each) { return each.name == name; });
}

// A name that is a workload's, too, is one where the call says what primitives do not take.
std::optional<lab::PrimitiveKind> kind_of(const BenchArguments& arguments, const std::string& name) {
  for (const auto kind : lab::primitive_kinds())
    if (name == lab::name_of(kind) && (option_of_workloads(arguments).empty() || !is_workload(name)))
      return kind;
  return std::nullopt;
}

// The sizes up to the first that no precision and mode asked for has room for.
std::vector<lab::Primitive> sweep_of(const BenchArguments& arguments, lab::PrimitiveKind kind) {
  std::size_t element = sizeof(double);
  for (const std::string& precision : arguments.precisions)
    element = std::min(element, size_in_bytes(lab::element_of(precision)));
  lab::Passes least = lab::Passes::both;  // the smallest tensors: until none of the modes has room
  for (const std::string& mode : arguments.modes) least = std::min(least, lab::passes_named(mode));
  const double share = memory_share / static_cast<double>(arguments.precisions.size());
  return lab::sweep(kind, share * std::max(1e9, available_memory()), element, least);
}

std::vector<lab::Primitive> primitives_of(const BenchArguments& arguments, lab::PrimitiveKind kind) {
  std::vector<lab::Primitive> primitives;
  const auto published = lab::published_primitives(kind);
  if (arguments.sweep)
    primitives = sweep_of(arguments, kind);
  else if (arguments.configs == std::vector<std::string>{"all"})
    primitives.assign(published.begin(), published.end());
  else
    for (const std::string& name : arguments.configs) primitives.push_back(lab::find_primitive(kind, name));
  if (!arguments.only.empty())
    std::erase_if(primitives, [&](const lab::Primitive& p) { return p.name != arguments.only; });
  return primitives;
}

lab::Protocol protocol_of(const BenchArguments& arguments) {
  return {.warm_up_seconds = std::min(1.0, arguments.seconds / 3),
          .warm_up_limit = std::max(1.0, arguments.seconds),
          .budget_seconds = arguments.seconds,
          .least_seconds = std::min(0.5, arguments.seconds / 3)};
}

std::vector<lab::LoadSettings> loads_of(const BenchArguments& arguments) {
  std::vector<lab::LoadSettings> loads;
  for (const std::string& name : arguments.loads)
    loads.push_back({.pattern = lab::load_pattern_from_name(name),
                     .rate = arguments.rate,
                     .requests = arguments.requests});
  return loads;
}

lab::PrimitiveBenchSettings primitive_settings(const BenchArguments& arguments, lab::PrimitiveKind kind) {
  return {.primitives = primitives_of(arguments, kind),
          .precisions = arguments.precisions,
          .modes = arguments.modes,
          .batch = arguments.batches.empty() ? 0 : arguments.batches.front(),
          .target = arguments.target,
          .threads = thread_count(),
          .repeat = arguments.repeat,
          .protocol = protocol_of(arguments),
          .memory_share = memory_share,
          .whole_batches = arguments.sweep,
          .energy = arguments.energy,
          .timeline = arguments.format == "trace"};
}

lab::WorkloadBenchSettings workload_settings(const BenchArguments& arguments, const std::string& what) {
  const bool serve_alone = run::is_model_file(what) && !arguments.modes_given;
  return {.workload = what,
          .shapes = arguments.shapes,
          .bounds = arguments.bounds,
          .loss = arguments.loss,
          .modes = serve_alone ? std::vector<std::string>{"infer"} : arguments.modes,
          .batches = arguments.batches,
          .precisions = arguments.precisions,
          .gradients = arguments.gradients,
          .model_options = arguments.model_options,
          .target = arguments.target,
          .micro_batch = arguments.micro_batch,
          .threads = thread_count(),
          .repeat = arguments.repeat,
          .protocol = protocol_of(arguments),
          .loads = loads_of(arguments),
          .python = arguments.peers ? arguments.python : "",
          .load_factor = 0.5,
          .energy = arguments.energy,
          .timeline = arguments.format == "trace"};
}

std::size_t count_of(const BenchArguments& arguments, const std::string& what) {
  if (const auto kind = kind_of(arguments, what))
    return primitives_of(arguments, *kind).size() * arguments.modes.size() * arguments.precisions.size();
  return lab::count_results(workload_settings(arguments, what));
}

// A line a result, with how many there are and how long the rest takes if it goes on like this.
class Teller {
 public:
  explicit Teller(std::size_t total) : total_(total), begun_(lab::steady_clock().seconds()) {}

  void operator()(const Result& result) { line(lab::one_line(result)); }
  void process(std::size_t results) { line(fmt::format("a fresh process measured {} rows", results)); }

 private:
  void line(const std::string& text) {
    ++done_;
    if (common().quiet) return;
    const double elapsed = lab::steady_clock().seconds() - begun_;
    const auto left = static_cast<double>(total_ > done_ ? total_ - done_ : 0);
    tell(fmt::format("[{}/{}, {} left] {}\n", done_, std::max(total_, done_),
                     format_seconds(std::round(elapsed / static_cast<double>(done_) * left)), text));
  }

  std::size_t total_, done_ = 0;
  double begun_;
};

void run_one(const BenchArguments& arguments, const std::string& what, const lab::MachinePeak& peak,
             const std::function<void(const Result&)>& done) {
  if (const auto kind = kind_of(arguments, what)) {
    lab::PrimitiveBenchSettings settings = primitive_settings(arguments, *kind);
    settings.done = done;
    lab::bench_primitives(settings, peak);
    return;
  }
  lab::WorkloadBenchSettings settings = workload_settings(arguments, what);
  settings.done = done;
  lab::bench_workload(settings, peak);
}

// The arguments that measure the configuration of one result alone, in all precisions: they are interleaved.
BenchArguments narrowed_to(BenchArguments arguments, const Result& result) {
  arguments.modes = {result.mode};
  arguments.loads.clear();
  arguments.energy = false;
  if (result.parameters.contains("kind")) {
    arguments.only = result.workload;
  } else {
    arguments.batches = {result.config["batch"].get<std::int64_t>()};
    arguments.gradients = {result.config["gradient"].get<std::string>()};
  }
  return arguments;
}

void measure_first_again(const BenchArguments& arguments, const lab::MachinePeak& peak,
                         std::vector<Result>& results, std::size_t begin, Teller& teller) {
  const auto first = std::find_if(results.begin() + static_cast<std::ptrdiff_t>(begin), results.end(),
                                  [](const Result& result) { return result.find("step_time") != nullptr; });
  if (first == results.end()) return;
  const std::string what = first->parameters.value("kind", first->workload);
  const std::vector<Result> before(results.begin() + static_cast<std::ptrdiff_t>(begin), results.end());
  run_one(narrowed_to(arguments, *first), what, peak, [&](const Result& result) {
    const auto partner = std::ranges::find(before, result.id, &Result::id);
    if (partner == before.end()) return;
    results.push_back(result);
    lab::mark_as_baseline(results.back(), *partner);
    teller(results.back());
  });
}

void print_peak(const lab::MachinePeak& peak) {
  std::vector<std::string> rates;
  for (const auto& [precision, rate] : peak.flops)
    rates.push_back(rate > 0 ? fmt::format("{} {}", precision, format_si(rate, "FLOP/s"))
                             : precision + " no instruction");
  tell(fmt::format(
      "peak measured now on {} threads: {}; copies in memory {}\n", peak.threads, join(rates, ", "),
      peak.copy_bandwidth > 0 ? format_si(peak.copy_bandwidth, "B/s") : "not measured: too little memory"));
}

// Something was measured.
void hold_end(std::optional<HoldEnd>& until_kept) {
  if (!until_kept)
    until_kept.emplace("the call that is being measured ends first, what was measured before it is kept");
}

void run_here(const BenchArguments& arguments, std::vector<Result>& results,
              std::optional<HoldEnd>& until_kept) {
  lab::MachinePeak peak{.threads = thread_count()};
  // What this processor could do says nothing of a device.
  const bool here = !target::pjrt::find_device_target(arguments.target);
  if (!arguments.no_peak && here) {
    peak = lab::measure_peak(thread_count(), arguments.precisions);
    if (!common().quiet) print_peak(peak);
  }
  std::size_t total = 0;
  for (const std::string& what : arguments.what) total += count_of(arguments, what);
  const bool series = total > arguments.precisions.size();
  Teller teller(total + (series ? arguments.precisions.size() : 0));
  const std::size_t begin = results.size();
  for (const std::string& what : arguments.what)
    run_one(arguments, what, peak, [&](const Result& result) {
      results.push_back(result);
      hold_end(until_kept);
      teller(result);
    });
  if (series) measure_first_again(arguments, peak, results, begin, teller);
}

void run_fresh(const BenchArguments& arguments, std::vector<Result>& results,
               std::optional<HoldEnd>& until_kept) {
  std::vector<std::string> words = lab::own_arguments_without(
      {"--processes", "--json", "--out", "--format", "--pause"}, {"--self-check", "--quiet", "--no-record"});
  words.insert(words.end(), {"--quiet", "--no-record"});
  std::vector<std::vector<Result>> runs;
  const auto join = [&] {
    for (Result& result : lab::join_processes(runs)) results.push_back(std::move(result));
  };
  Teller teller(static_cast<std::size_t>(arguments.processes));
  try {
    for (int i = 0; i < arguments.processes; ++i) {
      runs.push_back(lab::run_in_process(words));
      hold_end(until_kept);
      teller.process(runs.back().size());
    }
  } catch (const Error&) {
    join();
    throw;
  }
  join();
}

}  // namespace

namespace {

// Before minutes of measuring: a file that cannot be read, and what only files take.
void check_files(const BenchArguments& arguments) {
  const auto file = std::ranges::find_if(arguments.what, run::is_model_file);
  for (const std::string& what : arguments.what)
    if (run::is_model_file(what)) {
      const run::UserModel model(
          {.file = what, .shapes = arguments.shapes, .bounds = arguments.bounds, .loss = arguments.loss});
      if (!model.why_not_served().empty()) throw Error(ErrorCode::unsupported, model.why_not_served(), what);
      for (const std::int64_t batch : arguments.batches) model.require_batch(batch);
      if (arguments.modes_given && std::ranges::find(arguments.modes, "train") != arguments.modes.end())
        model.require_trainable();
    }
  if (file != arguments.what.end()) return;
  const char* option = arguments.peers             ? "--peers"
                       : !arguments.shapes.empty() ? "--shape"
                       : !arguments.bounds.empty() ? "--bound"
                                                   : "--loss";
  if (arguments.peers || !arguments.shapes.empty() || !arguments.bounds.empty() || !arguments.loss.empty())
    throw Error(ErrorCode::invalid_argument, "is for model files (.onnx)", option,
                "write a workload as one: superstep onnx export");
}

// What a primitive would not heed is refused.
void check_primitive(const BenchArguments& arguments, const std::string& what, lab::PrimitiveKind kind) {
  if (const std::string option = option_of_workloads(arguments); !option.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("is for workloads, and {} is a primitive", what),
                option, "superstep list workloads");
  if (!arguments.sweep) primitives_of(arguments, kind);
}

}  // namespace

void check_bench(const BenchArguments& arguments) {
  if (arguments.format != "text") lab::find_writer(arguments.format);
  for (const std::string& mode : arguments.modes)
    if (lab::passes_named(mode) == lab::Passes::gradients)
      for (const std::string& what : arguments.what)
        if (const auto kind = kind_of(arguments, what); !kind || !lab::has_gradients_alone(*kind))
          throw Error(ErrorCode::invalid_argument,
                      fmt::format("is of gemm and conv: the gradients of {} need its forward pass", what),
                      "--mode backward", "--mode train makes both");
  for (const std::string& precision : arguments.precisions) lab::element_of(precision);
  for (const std::string& gradient : arguments.gradients) transform::gradient_mode_from_text(gradient);
  for (const std::string& load : arguments.loads) lab::load_pattern_from_name(load);
  target::find_target(arguments.target);
  for (const std::string& what : arguments.what)
    if (const auto kind = kind_of(arguments, what))
      check_primitive(arguments, what, *kind);
    else if (!run::is_model_file(what))
      workload::find_workload(what);
  check_files(arguments);
}

void run_bench(const BenchArguments& arguments, std::vector<Result>& results,
               std::optional<HoldEnd>& until_kept) {
  arguments.processes > 1 ? run_fresh(arguments, results, until_kept)
                          : run_here(arguments, results, until_kept);
}

}  // namespace superstep::cli
