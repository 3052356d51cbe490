#include "superstep/target/pjrt/executable.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/op/core/definition.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"

namespace superstep::target::pjrt {
namespace {

// Larger constants do not go through the program's text: 64 numbers of 8 bytes are a line of it.
constexpr std::size_t most_bytes_of_text = 512;

std::size_t bytes_of(const graph::ValueType& type) {
  return static_cast<std::size_t>(type.shape.element_count()) * size_in_bytes(type.element);
}

std::optional<std::size_t> named_device(const Place& place) {
  return place.device == 0 ? std::nullopt : std::optional(place.device);
}

}  // namespace

DeviceExecutable::DeviceExecutable(graph::Graph graph, BatchedPorts ports, const CompileOptions& options,
                                   Place place)
    : graph_(std::move(graph)), ports_(std::move(ports)), options_(options), place_(place) {
  const Stopwatch watch;
  const stablehlo::Program program =
      stablehlo::write_program(graph_, {.constants_as_arguments_above = most_bytes_of_text});
  refusals_ = program.refusals;
  const Client& client = *place_.client;
  loaded_ = client.compile(program.text, named_device(place_).has_value());
  if (client.library().has(abi::Function::executable_memory_stats))
    memory_ = memory_need(client.library(), client.compiled_of(loaded_));
  if (options_.memory_limit > 0 && memory_.bytes() > static_cast<std::int64_t>(options_.memory_limit))
    throw Error(ErrorCode::out_of_memory,
                fmt::format("the program takes {} on the device, the limit is {}",
                            format_bytes(static_cast<double>(memory_.bytes())),
                            format_bytes(static_cast<double>(options_.memory_limit))),
                graph_.name(), "use a smaller --batch");
  for (graph::ValueId id : graph_.states()) {
    const graph::Value& value = graph_.value(id);
    states_.push_back({value.name, value.type, copied(value.data)});
  }
  for (graph::ValueId id : program.changed) {
    const auto found = std::ranges::find(graph_.states(), id);
    changed_.push_back(static_cast<std::size_t>(found - graph_.states().begin()));
  }
  for (graph::ValueId id : program.constants) {
    constants_.push_back(copied(graph_.value(id).data));
    constant_bytes_ += bytes_of(graph_.type(id));
  }
  require_results(client);
  compile_seconds_ = watch.seconds();
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

Buffer DeviceExecutable::copied(const Tensor& tensor) const {
  Client::Upload upload = place_.client->upload(tensor, place_.device);
  place_.client->await(upload.done, "copying to the device");
  return std::move(upload.buffer);
}

void DeviceExecutable::require_states() const {
  if (lost_)
    throw Error(ErrorCode::io, "an earlier run failed, and what the device held is lost",
                place_.client->library().name(), "start again from the last checkpoint: --resume");
}

std::vector<Client::Upload> DeviceExecutable::uploads(std::span<const Tensor> inputs) const {
  std::vector<Client::Upload> result;
  for (const Tensor& input : inputs) result.push_back(place_.client->upload(input, place_.device));
  return result;
}

void DeviceExecutable::download(std::span<Buffer> results, std::span<Tensor> outputs) const {
  std::vector<Event> events;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].element_count() > 0) events.push_back(place_.client->download(results[i], outputs[i]));
  for (const Event& event : events) place_.client->await(event, "running the program");
}

std::size_t DeviceExecutable::result_count() const {
  return ports_.outputs.size() + changed_.size() + (refusals_.empty() ? 0 : 1);
}

// What the run made of wrong inputs is not kept: states that it has changed are lost.
void DeviceExecutable::raise_refusal(const Tensor& truths) const {
  for (std::size_t i = 0; i < refusals_.size(); ++i)
    if (truths.at(static_cast<std::int64_t>(i)) != 0) throw Error(ErrorCode::invalid_argument, refusals_[i]);
}

void DeviceExecutable::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  check_ports("input", ports_.inputs, inputs);
  check_ports("output", ports_.outputs, outputs);
  require_states();
  const std::vector<Client::Upload> given = uploads(inputs);
  std::vector<abi::PjrtBuffer*> arguments;
  for (const Client::Upload& upload : given) arguments.push_back(upload.buffer.get());
  for (const Slot& state : states_) arguments.push_back(state.buffer.get());
  for (const Buffer& constant : constants_) arguments.push_back(constant.get());
  lost_ = !changed_.empty();  // until the run is through
  Client::Ran ran = place_.client->execute(loaded_, arguments, result_count(), named_device(place_));
  const std::span<Buffer> results(ran.results);
  for (std::size_t i = 0; i < changed_.size(); ++i)
    states_[changed_[i]].buffer = std::move(results[outputs.size() + i]);
  Tensor truths(ElementType::boolean, {static_cast<std::int64_t>(refusals_.size())});
  if (!refusals_.empty()) download(results.last(1), std::span(&truths, 1));
  download(results.first(outputs.size()), outputs);
  place_.client->await(ran.complete, "running the program");
  for (const Client::Upload& upload : given) place_.client->await(upload.done, "copying to the device");
  raise_refusal(truths);
  lost_ = false;
}

std::vector<std::string> DeviceExecutable::state_names() const {
  std::vector<std::string> names;
  for (const Slot& state : states_) names.push_back(state.name);
  return names;
}

DeviceExecutable::Slot& DeviceExecutable::slot(std::string_view name) {
  const auto found = std::ranges::find(states_, name, &Slot::name);
  if (found != states_.end()) return *found;
  throw Error(ErrorCode::invalid_argument, "there is no such state", std::string(name),
              unknown_name_hint(name, state_names()));
}

Tensor DeviceExecutable::state(std::string_view name) const {
  require_states();
  const Slot& found = const_cast<DeviceExecutable*>(this)->slot(name);
  Tensor tensor(found.type.element, found.type.shape);
  if (tensor.element_count() > 0)
    place_.client->await(place_.client->download(found.buffer, tensor), "copying from the device");
  return tensor;
}

void DeviceExecutable::set_state(std::string_view name, const Tensor& value) {
  Slot& found = slot(name);
  const graph::ValueType given{value.type(), value.shape()};
  if (given != found.type)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("is {}, the model wants {}", to_string(given), to_string(found.type)),
                "state " + found.name);
  found.buffer = copied(value);
}

PlanSummary DeviceExecutable::summary() const {
  PlanSummary summary{.batch = options_.batch, .micro_batch = options_.batch, .threads = 1};
  summary.flops = op::cost(graph_).flops;
  summary.compile_seconds = compile_seconds_;
  summary.activation_bytes = static_cast<std::size_t>(std::max<std::int64_t>(memory_.temporaries, 0));
  summary.constant_bytes = constant_bytes_;
  for (const Slot& state : states_) summary.state_bytes += bytes_of(state.type);
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
