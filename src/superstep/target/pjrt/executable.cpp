#include "superstep/target/pjrt/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/op/core/definition.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"

namespace superstep::target::pjrt {
namespace {

// Larger constants do not go through the program's text: 64 numbers of 8 bytes are a line of it.
constexpr std::size_t most_bytes_of_text = 512;

stablehlo::Sharding sharding_of(const graph::Graph& graph, const CompileOptions& options, int devices) {
  stablehlo::Sharding sharding{.devices = devices};
  if (devices == 1) return sharding;
  const auto rows = [&](graph::ValueId id) {
    return stablehlo::axis_of_rows(graph.type(id).shape, options.batch, devices);
  };
  for (graph::ValueId id : graph.inputs()) sharding.inputs.push_back(rows(id));
  for (const graph::Output& output : graph.outputs()) sharding.outputs.push_back(rows(output.value));
  for (graph::ValueId id : graph.states())
    sharding.states.push_back(options.chips.divide_states
                                  ? stablehlo::axis_of_parameter(graph.type(id).shape, devices)
                                  : stablehlo::whole);
  return sharding;
}

int axis_in(const std::vector<int>& axes, std::size_t index) {
  return axes.empty() ? stablehlo::whole : axes[index];
}

// The result with that number, of every device.
std::vector<const Buffer*> result_of(const Client::Ran& ran, std::size_t index) {
  std::vector<const Buffer*> by_device;
  for (const std::vector<Buffer>& results : ran.results) by_device.push_back(&results[index]);
  return by_device;
}

}  // namespace

DeviceExecutable::DeviceExecutable(graph::Graph graph, BatchedPorts ports, const CompileOptions& options,
                                   const Place& place, std::shared_ptr<DeviceStates> states)
    : graph_(std::move(graph)),
      ports_(std::move(ports)),
      options_(options),
      place_(place),
      sharding_(sharding_of(graph_, options, static_cast<int>(place.count))),
      states_(std::move(states)),
      phases_(options.measure_steps) {
  const Stopwatch watch;
  compile(place_);
  if (!states_) states_ = std::make_shared<DeviceStates>(graph_, sharding_.states, place_);
  compile_seconds_ = watch.seconds();
}

void DeviceExecutable::compile(const Place& place) {
  const stablehlo::Program program =
      stablehlo::write_program(graph_, {.constants_as_arguments_above = most_bytes_of_text,
                                        .first_row = options_.parts.index * options_.batch,
                                        .sharding = &sharding_,
                                        .prepared = is_prepared_at(place) && !others_change_states()});
  refusals_ = program.refusals;
  const Client& client = *place.client;
  loaded_ = client.compile(program.text, {.devices = place.count, .any = named_device(place).has_value()});
  if (client.library().has(abi::Function::executable_memory_stats))
    memory_ = memory_need(client.library(), client.compiled_of(loaded_));
  prepared_ = PreparedArguments(program.prepared, place);
  if (options_.memory_limit > 0 && memory_.bytes() > static_cast<std::int64_t>(options_.memory_limit))
    throw Error(ErrorCode::out_of_memory,
                fmt::format("the program takes {} on the device, the limit is {}",
                            format_bytes(static_cast<double>(memory_.bytes())),
                            format_bytes(static_cast<double>(options_.memory_limit))),
                graph_.name(), "use a smaller --batch");
  for (graph::ValueId id : program.changed) {
    const auto found = std::ranges::find(graph_.states(), id);
    changed_.push_back(static_cast<std::size_t>(found - graph_.states().begin()));
  }
  for (graph::ValueId id : program.constants) {
    const Tensor& data = graph_.value(id).data;
    constants_.push_back(Sent(place, data, stablehlo::whole).buffers());
    constant_bytes_ += data.byte_count();
  }
  constant_bytes_ += static_cast<std::size_t>(prepared_.bytes());
  require_results(client);
}

// Results are written where there is room for so many.
void DeviceExecutable::require_results(const Client& client) const {
  if (!client.library().has(abi::Function::executable_output_count)) return;
  const std::size_t count = output_count(client.library(), client.compiled_of(loaded_));
  if (count != result_count())
    throw Error(ErrorCode::internal,
                fmt::format("the compiled program gives {} results, {} are wanted", count, result_count()),
                client.library().name());
}

std::size_t DeviceExecutable::result_count() const {
  return ports_.outputs.size() + changed_.size() + (refusals_.empty() ? 0 : 1);
}

void DeviceExecutable::make_ready() {
  states_->require();
  prepared_.refresh(*states_, constants_);
}

std::vector<std::vector<abi::PjrtBuffer*>> DeviceExecutable::arguments(std::span<const Sent> inputs) const {
  std::vector<std::vector<abi::PjrtBuffer*>> arguments(place_.count);
  for (std::size_t device = 0; device < place_.count; ++device) {
    for (const Sent& input : inputs) arguments[device].push_back(input.on(device));
    for (std::size_t i = 0; i < states_->size(); ++i)
      arguments[device].push_back(states_->at(i).buffers[device].get());
    for (const std::vector<Buffer>& constant : constants_)
      arguments[device].push_back(constant[device].get());
    for (const Buffer& made : prepared_.buffers()) arguments[device].push_back(made.get());
  }
  return arguments;
}

void DeviceExecutable::take_states(Client::Ran& ran) {
  for (std::size_t i = 0; i < changed_.size(); ++i)
    for (std::size_t device = 0; device < place_.count; ++device)
      states_->at(changed_[i]).buffers[device] = std::move(ran.results[device][ports_.outputs.size() + i]);
}

void DeviceExecutable::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  run(inputs, outputs, [] { return std::vector<Tensor>(); });
}

// An error of the next inputs is not one of this run, which is under way.
void DeviceExecutable::run(std::span<const Tensor> inputs, std::span<Tensor> outputs, NextInputs next) {
  check_ports("input", ports_.inputs, inputs);
  check_ports("output", ports_.outputs, outputs);
  make_ready();
  const Client& client = *place_.client;
  phases_.begin();
  const std::vector<Sent> given = sent(inputs);
  if (!changed_.empty()) states_->lose();  // until the run is through
  phases_.next(CallPhase::start);
  Client::Ran ran = client.execute(loaded_, arguments(given), result_count(), named_device(place_));
  take_states(ran);
  phases_.next(CallPhase::compute);
  std::exception_ptr trouble;
  try {
    send_ahead(next());
  } catch (...) {
    trouble = std::current_exception();
  }
  receive(ran, outputs);
  for (const Sent& input : given) input.await();
  states_->keep();
  phases_.end();
  if (trouble) std::rethrow_exception(trouble);
}

// Those that went ahead are on their way already.
std::vector<Sent> DeviceExecutable::sent(std::span<const Tensor> inputs) {
  std::vector<Sent> given;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (i < ahead_.size() && ahead_[i].is_of(inputs[i]))
      given.push_back(std::move(ahead_[i]));
    else
      given.emplace_back(place_, inputs[i], axis_in(sharding_.inputs, i));
  ahead_.clear();
  if (phases_.are_measured())
    for (const Sent& input : given) input.await();
  return given;
}

void DeviceExecutable::send_ahead(std::span<const Tensor> inputs) {
  if (inputs.empty()) return;
  check_ports("input", std::span(ports_.inputs).first(std::min(inputs.size(), ports_.inputs.size())), inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    ahead_.emplace_back(place_, inputs[i], axis_in(sharding_.inputs, i));
}

void DeviceExecutable::receive(const Client::Ran& ran, std::span<Tensor> outputs) {
  if (phases_.are_measured())
    for (const Event& event : ran.complete) place_.client->await(event, "running the program");
  phases_.next(CallPhase::from_device);
  Received received(place_);
  Tensor truths(ElementType::boolean, {static_cast<std::int64_t>(refusals_.size())});
  if (!refusals_.empty()) received.add(result_of(ran, result_count() - 1), truths, stablehlo::whole);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    received.add(result_of(ran, i), outputs[i], axis_in(sharding_.outputs, i));
  received.await("running the program");
  for (const Event& event : ran.complete) place_.client->await(event, "running the program");
  raise_refusal(refusals_, truths);  // states that the run has changed are lost
}

std::vector<Property> DeviceExecutable::costs() const {
  const Client& client = *place_.client;
  if (!client.library().has(abi::Function::loaded_executable)) return {};
  return cost_analysis(client.library(), client.compiled_of(loaded_));
}

PlanSummary DeviceExecutable::summary() const {
  PlanSummary summary{.batch = options_.batch, .micro_batch = options_.batch, .threads = 1};
  summary.flops = op::cost(graph_).flops;
  summary.compile_seconds = compile_seconds_;
  summary.activation_bytes = static_cast<std::size_t>(std::max<std::int64_t>(memory_.temporaries, 0));
  summary.constant_bytes = constant_bytes_;
  summary.state_bytes = states_->bytes();
  summary.devices = static_cast<int>(place_.count);
  for (const graph::Node& node : graph_.nodes()) {
    const op::Cost cost = op::cost(graph_, node);
    const bool lowered = stablehlo::find_lowering(node.op) != nullptr;
    summary.steps.push_back({.node = node.name,
                             .op = node.op,
                             .kernel = lowered ? "the plug-in's" : "made before the run",
                             .refusals = {},
                             .flops = cost.flops,
                             .bytes = cost.bytes});
  }
  return summary;
}

}  // namespace superstep::target::pjrt
