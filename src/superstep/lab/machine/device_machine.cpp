#include "superstep/lab/machine/device_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/lab/bench/primitive_graph.h"
#include "superstep/lab/machine/host_times.h"
#include "superstep/lab/machine/product_sizes.h"
#include "superstep/lab/measure/protocol.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/record/environment.h"
#include "superstep/record/host_load.h"
#include "superstep/run/environment.h"
#include "superstep/target/target.h"

namespace superstep::lab {
namespace {

using op::Builder;
using op::Var;

// Seconds: half of one a program, at most, beside the compilation.
constexpr Protocol protocol{.warm_up_calls = 2,
                            .warm_up_seconds = 0.05,
                            .warm_up_limit = 0.3,
                            .interval = 0,
                            .budget_seconds = 0.2,
                            .least_sample_seconds = 0};

// Times of the calls of one program, whose inputs are zeros.
std::vector<double> times_of(const target::Target& target, const graph::Graph& graph) {
  const auto plan = target.compile([&](std::int64_t) { return graph; }, {.batch = 1, .micro_batch = 1});
  std::vector<Tensor> inputs, outputs;
  for (const auto& port : plan->inputs()) inputs.emplace_back(port.type.element, port.type.shape);
  for (const auto& port : plan->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  return measure({graph.name(), [&] { plan->run(inputs, outputs); }}, protocol).samples;
}

struct Slope {
  double best = 0, usual = 0;  // s an amount: of the shortest calls, and of the median ones
};

// What one more of something takes: what a call, and what it sends, takes beside is in both programs.
Slope slope_of(const std::vector<double>& few, const std::vector<double>& many, double more) {
  const auto between = [&](double few_seconds, double many_seconds) {
    return std::max(many_seconds - few_seconds, 1e-12) / more;
  };
  const Slope slope{between(std::ranges::min(few), std::ranges::min(many)),
                    between(quantile(few, 0.5), quantile(many, 0.5))};
  return {std::min(slope.best, slope.usual), std::max(slope.best, slope.usual)};
}

// So many products one after the other, each of the one before it; out comes one number.
graph::Graph products(ElementType type, std::int64_t n, int count) {
  graph::Graph graph("products");
  Builder b(graph);
  Tensor factor(ElementType::f32, {n, n});
  fill_random(factor, 1,
              std::sqrt(3.0 / static_cast<double>(n)));  // results are as large as what they are of
  const Var right = b.state("right", factor.converted(type));
  fill_random(factor, 2, 1);
  // From an input: a product of two states that nobody changes may be computed once and for all.
  const Var zero = op::cast(b.input("zero", ElementType::f32, {}), type);
  Var x = b.state("left", factor.converted(type)) + zero;
  for (int i = 0; i < count; ++i) x = op::matmul(x, right);
  b.output("largest", op::reduce_max(op::cast(x, ElementType::f32)));
  return graph;
}

// A state read and written, `elements` of f32.
graph::Graph stream(std::int64_t elements) {
  graph::Graph graph("stream");
  Builder b(graph);
  const Var state = b.state("state", Tensor(ElementType::f32, {elements}));
  b.update(state, state * 0.5 + 1.0);
  return graph;
}

graph::Graph taken(std::int64_t elements) {  // from the host
  graph::Graph graph("taken");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {elements});
  b.output("first", op::slice(x, {0}, {1}, {0}, {1}));
  return graph;
}

graph::Graph given(std::int64_t elements) {  // to the host
  graph::Graph graph("given");
  Builder b(graph);
  const Var zero = b.input("zero", ElementType::f32, {});  // as above
  b.output("all", b.state("state", Tensor::full(ElementType::f32, {elements}, 1)) + zero);
  return graph;
}

class DeviceMeasurement {
 public:
  explicit DeviceMeasurement(const DeviceMachineSettings& settings)
      : settings_(settings), target_(target::find_target(settings.target)) {}

  HostMachine run() {
    for (const ElementType type : {ElementType::f32, ElementType::bf16, ElementType::f16}) measure_type(type);
    measure_calls();
    measure_memory();
    describe();
    add_constants();
    machine_.busy = !load_.warning().empty();
    return std::move(machine_);
  }

 private:
  void say(const std::string& what) const {
    if (interrupted()) throw Error(ErrorCode::interrupted, "while measuring the device");
    if (settings_.progress) settings_.progress(what);
  }

  void add(HostQuantity quantity) { machine_.measured.push_back(std::move(quantity)); }
  void add_rate(const std::string& name, const char* unit, double amount, const Slope& slope,
                const std::string& note) {
    add({name, unit, amount / slope.best, amount / slope.usual, amount / slope.best, note});
  }
  const HostQuantity& find(const std::string& name) const {
    const auto found = std::ranges::find(machine_.measured, name, &HostQuantity::name);
    if (found == machine_.measured.end()) throw Error(ErrorCode::internal, "was not measured", name);
    return *found;
  }

  // Square products, from sizes that nothing is filled by to those that take long.
  void measure_type(ElementType type) {
    constexpr std::int64_t least = 64, most = 16384;
    constexpr int more = 8;
    ProductRates& rates = products_[type];
    const std::string name = name_of(type);
    for (std::int64_t n = least; n <= most; n *= 2) {
      say(fmt::format("products of {} x {}, {}", n, n, name));
      const Slope slope = slope_of(times_of(target_, products(type, n, 1)),
                                   times_of(target_, products(type, n, 1 + more)), more);
      const double flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
      add_rate(fmt::format("product_{}_{}", name, n), "FLOP/s", flops, slope,
               "a square product of a chain, its start included");
      rates.flops.push_back(flops);
      rates.rates.push_back(flops / slope.best);
      if (slope.best > settings_.longest_product / 8) return;  // the next takes eight times as long
    }
  }

  void measure_calls() {
    constexpr int more = 64;
    constexpr std::int64_t small = 8;  // its arithmetic is nothing beside its start
    say("the start of a kernel, and a call");
    const std::vector<double> one = times_of(target_, products(ElementType::f32, small, 1));
    const Slope start = slope_of(one, times_of(target_, products(ElementType::f32, small, 1 + more)), more);
    add({"kernel_start", "s", start.best, start.best, start.usual, "a product of 8 x 8 in a chain of them"});
    add(time_of("call", times_of(target_, taken(1)), "a program of one element, from and to the host"));
  }

  // Two sizes: the smaller one is beyond the caches, too.
  template <class Graph>
  Slope slope_of_bytes(const Graph& graph) const {
    const auto many = static_cast<std::int64_t>(settings_.stream_bytes / sizeof(float));
    const std::int64_t few = many / 4;
    return slope_of(times_of(target_, graph(few)), times_of(target_, graph(many)),
                    static_cast<double>(many - few) * sizeof(float));
  }

  void measure_memory() {
    say("memory");
    add_rate("memory_copy", "B/s", 2, slope_of_bytes(stream), "a state read and written; both count");
    say("the way to and from the host");
    add_rate("to_device", "B/s", 1, slope_of_bytes(taken), "inputs of a program");
    add_rate("from_device", "B/s", 1, slope_of_bytes(given), "outputs of a program");
  }

  // After the first compilation: before it there is no device.
  void describe() {
    const nlohmann::json host = record::environment_record(1)["host"];
    const nlohmann::json devices = run::devices_of(settings_.target);
    const nlohmann::json device = devices.empty() ? nlohmann::json::object() : devices[0];
    machine_.id = settings_.id;
    machine_.name = device.value("kind", settings_.target);
    machine_.host = host["hostname"].is_string() ? host["hostname"].get<std::string>() : "this host";
    machine_.through = fmt::format("{} ({})", device.value("plug_in", "its target"),
                                   device.value("interface", "no interface"));
    machine_.date = record::iso_time();
    const nlohmann::json memory = device.value("memory_bytes", nlohmann::json(nullptr));
    memory_said_ = memory.is_number();
    const nlohmann::json& bytes = memory_said_ ? memory : host["memory_bytes"];
    const double size = bytes.is_number() ? bytes.get<double>() : 1e9;
    add({"memory_size", "B", size, size, size,
         memory_said_ ? "as the plug-in says" : "the host's: the plug-in does not say"});
  }

  void constant(const char* name, const std::string& from, const char* unit, const std::string& note = {}) {
    const HostQuantity& q = find(from);
    machine_.constants.push_back({name, unit, q.value, q.low, q.high, note.empty() ? q.note : note});
  }
  void guess(const char* name, const char* unit, double value, double factor, std::string note) {
    machine_.constants.push_back({name, unit, value, value / factor, value * factor, std::move(note), "GU"});
  }

  // What products reach is the peak that is known here.
  void add_peak(const char* name, ElementType type) {
    const ProductRates& rates = products_[type];
    const auto best = std::ranges::max_element(rates.rates) - rates.rates.begin();
    const auto n = std::llround(std::cbrt(rates.flops[static_cast<std::size_t>(best)] / 2));
    constant(name, fmt::format("product_{}_{}", name_of(type), n), "FLOP/s", "the best product measured");
  }

  void add_constants() {
    guess("processors", "", 1, 1, "not known: rates are the whole device's");
    guess("clock", "Hz", 1e9, 10, "not known, and not used for rates that were measured");
    add_peak("peak_f32", ElementType::f32);
    const auto best = [&](ElementType type) { return std::ranges::max(products_[type].rates); };
    add_peak("peak_f16",
             best(ElementType::f16) > best(ElementType::bf16) ? ElementType::f16 : ElementType::bf16);
    machine_.constants.push_back({"matrix_efficiency", "", 1, 1, 1, "the peak is what products reached"});
    const double half = half_rate_flops(products_[ElementType::f32]);
    machine_.constants.push_back({"matrix_half_flops", "FLOP", half, half / 2, half * 2,
                                  "where products reach half of that, between sizes that double"});
    constant("memory", "memory_size", "B");
    if (!memory_said_) machine_.constants.back().kind = "GU";
    constant("memory_rate", "memory_copy", "B/s");
    machine_.constants.push_back({"memory_efficiency", "", 1, 1, 1, "the rate is what a stream reached"});
    constant("launch_overhead", "kernel_start", "s");
    constant("host_rate", find("to_device").value < find("from_device").value ? "to_device" : "from_device",
             "B/s", "the slower way");
    constant("host_latency", "call", "s");
    constexpr double uncertain = 10;  // links were not measured: they may be of any kind
    guess("link_rate", "B/s", find("to_device").value, uncertain, "not measured: as the way from the host");
    guess("link_latency", "s", find("call").value, uncertain, "not measured: as a call");
  }

  const DeviceMachineSettings& settings_;
  const target::Target& target_;
  std::map<ElementType, ProductRates> products_;
  bool memory_said_ = false;
  HostMachine machine_;
  record::HostLoad load_;
};

}  // namespace

HostMachine measure_device(const DeviceMachineSettings& settings) {
  return DeviceMeasurement(settings).run();
}

}  // namespace superstep::lab
