#include "superstep/target/ipu/ipu.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>

#include "superstep/base/progress.h"
#include "superstep/base/text.h"
#include "superstep/bsp/engine/engine.h"
#include "superstep/op/core/definition.h"
#include "superstep/target/ipu/chips/chip_options.h"
#include "superstep/target/ipu/chips/chip_program.h"
#include "superstep/target/ipu/lower/prepare.h"
#include "superstep/target/ipu/lower/transfers.h"
#include "superstep/target/ports.h"
#include "superstep/transform/pipeline.h"

namespace superstep::target::ipu {
namespace {

// A line on the terminal for a part of the work that takes long.
class Shown {
 public:
  Shown(const char* label, const char* unit) : label_(label), unit_(unit) {}
  void operator()(std::size_t done, std::size_t all) {
    if (done == 0 || !line_)
      line_.reset(new Progress(Progress::passing(label_, static_cast<double>(all), unit_)));
    line_->update(static_cast<double>(done), fmt::format("{}/{}", done, all));
    if (done == all) line_.reset();
  }

 private:
  const char *label_, *unit_;
  std::shared_ptr<Progress> line_;  // functions are copied
};

class IpuExecutable : public Executable {
 public:
  // `graph` is that of a micro-batch, `lowered` what it became.
  IpuExecutable(const graph::Graph& graph, LoweredGraph lowered, BatchedPorts ports,
                const CompileOptions& options, std::string choice)
      : ports_(std::move(ports)),
        options_(options),
        transfers_(std::move(lowered.inputs), std::move(lowered.outputs), ports_, options.chips),
        handles_(std::move(lowered.states)) {
    constexpr std::size_t trace_events = 5000;  // what a page of a profile can draw, three times over
    const bsp::Program programs[] = {lowered.program};
    engine_ =
        std::make_unique<bsp::Engine>(lowered.graph, programs,
                                      bsp::EngineOptions{.threads = options.threads,
                                                         .trace_events = trace_events,
                                                         .progress = Shown("executing", "steps")},
                                      bsp::CompileOptions{.allow_vertex_aliases = true,  // updates in place
                                                          .progress = Shown("compiling", "compute sets")});
    engine_->load();
    for (const graph::ValueId id : graph.states()) states_.emplace(graph.value(id).name, graph.type(id));
    transfers_.connect(*engine_);
    summary_.choice = std::move(choice);
    summarize(graph, std::move(lowered.steps));
  }

  std::span<const Port> inputs() const override { return ports_.inputs; }
  std::span<const Port> outputs() const override { return ports_.outputs; }

  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    check_ports("input", ports_.inputs, inputs);
    check_ports("output", ports_.outputs, outputs);
    transfers_.begin(inputs, outputs);
    engine_->run();
    transfers_.end();
  }

  std::vector<std::string> state_names() const override {
    std::vector<std::string> names;
    for (const auto& [name, type] : states_) names.push_back(name);
    return names;
  }
  Tensor state(std::string_view name) const override {
    const graph::ValueType& type = state_type(name);
    Tensor value(type.element, type.shape);
    std::vector<std::byte> replicas(value.byte_count() * static_cast<std::size_t>(options_.chips.replicas));
    if (replicas.empty()) return value;
    engine_->read_tensor(handles_.find(name)->second.front(), replicas.data(), replicas.size());
    std::memcpy(value.bytes(), replicas.data(), value.byte_count());  // all replicas hold the same
    return value;
  }
  void set_state(std::string_view name, const Tensor& value) override {
    const graph::ValueType& type = state_type(name);
    if (value.type() != type.element || value.shape() != type.shape)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("is {}, not {}{}", graph::to_string(type), name_of(value.type()),
                              to_string(value.shape())),
                  "state " + std::string(name));
    std::vector<std::byte> replicas;
    const auto* bytes = reinterpret_cast<const std::byte*>(value.bytes());
    for (int r = 0; r < options_.chips.replicas; ++r)
      replicas.insert(replicas.end(), bytes, bytes + value.byte_count());
    if (replicas.empty()) return;
    for (const std::string& handle : handles_.find(name)->second)
      engine_->write_tensor(handle, replicas.data(), replicas.size());
  }

  PlanSummary summary() const override { return summary_; }
  std::optional<ModelledTime> modelled_time() const override {
    const bsp::Profile& profile = engine_->profile();
    return ModelledTime{profile.run_count,
                        profile.compilation.device.seconds(static_cast<double>(profile.total_cycles()))};
  }
  const bsp::Profile& profile() const { return engine_->profile(); }

 private:
  const graph::ValueType& state_type(std::string_view name) const {
    const auto found = states_.find(name);
    if (found != states_.end()) return found->second;
    const std::vector<std::string> names = state_names();
    throw Error(ErrorCode::invalid_argument, "there is no such state", std::string(name),
                unknown_name_hint(name, names));
  }

  void summarize(const graph::Graph& graph, std::vector<LoweredStep> steps) {
    const bsp::CompilationProfile& compiled = engine_->profile().compilation;
    std::map<std::string, const bsp::StepProfile*> costs;
    for (const bsp::StepProfile& step : compiled.steps) costs[step.name] = &step;
    summary_.batch = options_.batch;
    summary_.micro_batch = options_.batch / options_.chips.accumulate / options_.chips.replicas;
    summary_.threads = options_.threads;
    summary_.flops = op::cost(graph).flops;
    summary_.compile_seconds = compiled.compile_seconds;
    for (const auto& [name, type] : states_)
      summary_.state_bytes +=
          static_cast<std::size_t>(type.shape.element_count()) * size_in_bytes(type.element);
    for (const bsp::TileMemory& tile : compiled.tiles) {
      summary_.activation_bytes += tile.not_always_live;
      summary_.constant_bytes += tile.constants;
    }
    for (LoweredStep& step : steps) {
      bsp::StepCost all;
      step.more_compute_sets.push_back(step.compute_set);
      for (const std::string& set : step.more_compute_sets)
        if (const auto found = costs.find(set); found != costs.end()) {
          const bsp::StepCost& cost = found->second->cost;
          all.compute += cost.compute;
          all.exchange += cost.exchange;
          all.sync += cost.sync;
        }
      if (all.total() > 0)
        step.plan.kernel += fmt::format(": {} cycles modeled ({} compute, {} exchange, {} sync)",
                                        format_count(static_cast<double>(all.total())),
                                        format_count(static_cast<double>(all.compute)),
                                        format_count(static_cast<double>(all.exchange)), all.sync);
      summary_.steps.push_back(std::move(step.plan));
    }
  }

  BatchedPorts ports_;
  CompileOptions options_;
  std::unique_ptr<bsp::Engine> engine_;
  std::map<std::string, graph::ValueType, std::less<>> states_;
  MicroBatchTransfers transfers_;
  std::map<std::string, std::vector<std::string>, std::less<>> handles_;  // of states
  PlanSummary summary_;
};

class IpuTarget : public Target {
 public:
  IpuTarget(const char* machine, const char* summary, std::vector<std::string> left_out = {})
      : machine_(machine), summary_(summary), left_out_(std::move(left_out)) {
    transform::check_left_out(graph_passes(), left_out_);
  }
  std::string_view name() const override { return machine_; }
  std::string_view summary() const override { return summary_; }
  PassTable passes() const override {
    return {.of_graphs = [](const PassUse&) { return graph_passes(); }};
  }
  std::unique_ptr<Executable> compile(const GraphAtBatch& model,
                                      const CompileOptions& options) const override {
    refuse_parts(options, name());
    BatchedPorts ports = ports_of(model, options);
    ChipProgram program =
        lower_for(model, machine_, ports, options, {.progress = Shown("lowering", "operators")}, left_out_);
    try {
      return std::make_unique<IpuExecutable>(program.graph, std::move(program.lowered), std::move(ports),
                                             options, std::move(program.layout));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
      throw Error(error.code(), error.message(), error.where(),
                  what_helps_to_fit(options.batch / (options.chips.accumulate * options.chips.replicas)));
    }
  }

 private:
  const char* machine_;
  const char* summary_;
  std::vector<std::string> left_out_;  // passes
};

}  // namespace

std::string what_helps_to_fit(std::int64_t micro_batch) {
  const bool several = micro_batch > 1;
  return fmt::format(
      "what may help: {}--precision bf16, more chips with --pipeline auto --units N; superstep predict with "
      "{}--recompute says what would fit",
      several ? "a smaller batch, --accumulate N for the same batch in smaller micro-batches, " : "",
      several ? "--largest or " : "");
}

std::unique_ptr<const Target> gc200_without(std::vector<std::string> passes) {
  return std::make_unique<IpuTarget>("gc200", "Graphcore GC200, without some passes", std::move(passes));
}

machine::ipu::Hardware hardware_of(std::string_view machine) {
  return machine::ipu::hardware_of(machine::find_machine(std::string(machine)));
}

bsp::Device device_of(std::string_view machine, std::uint32_t chips) {
  const machine::ipu::Hardware hardware = hardware_of(machine);
  bsp::Device device = bsp::find_device(machine, chips);
  device.constants.exchange_setup_cycles.value = hardware.exchange_setup;
  device.constants.sync_cycles.value = hardware.sync_cycles;
  return device;
}

const bsp::Profile* profile_of(const Executable& executable) {
  const auto* ipu = dynamic_cast<const IpuExecutable*>(&executable);
  return ipu ? &ipu->profile() : nullptr;
}

}  // namespace superstep::target::ipu

namespace superstep::target {

const Target& gc200_target() {
  static const ipu::IpuTarget target("gc200",
                                     "Graphcore GC200, run vertex by vertex on the host with modeled cycles");
  return target;
}

const Target& bow_target() {
  static const ipu::IpuTarget target("bow", "Graphcore Bow, the same");
  return target;
}

const Target& gc2_target() {
  static const ipu::IpuTarget target("gc2", "Graphcore GC2, the same");
  return target;
}

}  // namespace superstep::target
