#include "superstep/target/pjrt/rank_executable.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/op/rows/parts_mean.h"
#include "superstep/target/pjrt/stablehlo/program.h"
#include "superstep/target/pjrt/step_parts.h"
#include "superstep/transform/pipeline.h"

namespace superstep::target::pjrt {
namespace {

using graph::Graph;

// Where one tensor ends and the next begins in the exchange's memory, in values: a cache line of 64 bytes.
constexpr std::size_t alignment = 16;

Graph lowered(const GraphAtBatch& model, std::int64_t batch) {
  return transform::run_passes(model(batch), stablehlo::program_passes());
}

BatchedPorts ports_of(const Graph& graph) {
  BatchedPorts ports;
  for (graph::ValueId id : graph.inputs()) ports.inputs.push_back({graph.value(id).name, graph.type(id)});
  for (const graph::Output& output : graph.outputs())
    ports.outputs.push_back({output.name, graph.type(output.value)});
  ports.input_is_batched.assign(ports.inputs.size(), false);
  ports.output_is_batched.assign(ports.outputs.size(), false);
  return ports;
}

std::vector<Tensor> tensors_of(std::span<const Executable::Port> ports) {
  std::vector<Tensor> tensors;
  for (const auto& port : ports) tensors.emplace_back(port.type.element, port.type.shape);
  return tensors;
}

// Before the passes, which leave a mean over one part away.
void refuse_joint_statistics(const Graph& graph) {
  const auto joins_parts = [](const graph::Node& node) {
    return std::ranges::find(op::parts_mean_operators(), node.op, &op::Definition::name) !=
           op::parts_mean_operators().end();
  };
  for (const graph::Node& node : graph.nodes())
    if (joins_parts(node))
      throw Error(ErrorCode::unsupported, "ranks on devices do not normalize their batches together",
                  node.name, "leave --batch-norm-span away, or use --replicas on one host");
}

std::unique_ptr<DeviceExecutable> compiled(Graph graph, const CompileOptions& options, const Place& place,
                                           std::shared_ptr<DeviceStates> states = nullptr) {
  BatchedPorts ports = ports_of(graph);
  return std::make_unique<DeviceExecutable>(std::move(graph), std::move(ports), options, place,
                                            std::move(states));
}

bool is_averaged(const Tensor& tensor) { return is_floating(tensor.type()) && tensor.element_count() > 0; }

}  // namespace

// The update is that of the whole batch: counters of samples go on by all ranks' of them.
RankExecutable::RankExecutable(const GraphAtBatch& model, const CompileOptions& options, const Place& place)
    : exchange_(*options.parts.exchange) {
  refuse_joint_statistics(model(options.batch));
  const Graph own = lowered(model, options.batch),
              whole = lowered(model, options.batch * options.parts.count);
  require_alike(own, whole);
  before_ = compiled(before_update(own), options, place);
  update_ = compiled(update_alone(whole), options, place, before_->states());
  for (std::size_t i = 0; i < own.outputs().size(); ++i) {
    outputs_.push_back({own.outputs()[i].name, own.type(own.outputs()[i].value)});
    of_update_.push_back(is_of_update(own, i));
  }
  for (const Port& port : update_->inputs()) {
    const auto found = std::ranges::find(before_->inputs(), port.name, &Port::name);
    if (found == before_->inputs().end()) break;  // those of the step come first
    update_inputs_.push_back(static_cast<std::size_t>(found - before_->inputs().begin()));
  }
  made_ = tensors_of(before_->outputs());
  updated_ = tensors_of(update_->outputs());
  collect_averaged();
  open_exchange();
}

void RankExecutable::require_alike(const Graph& own, const Graph& whole) const {
  const std::vector<graph::ValueId> a = crossing_values(own), b = crossing_values(whole);
  const bool alike = a.size() == b.size() &&
                     std::ranges::equal(a, b, [&](auto x, auto y) { return own.type(x) == whole.type(y); });
  if (!alike)
    throw Error(ErrorCode::unsupported, "what the update takes depends on the size of the batch", own.name(),
                "train on one rank");
}

// What crosses to the update, and outputs of one value: losses.
void RankExecutable::collect_averaged() {
  const std::size_t crossing = update_->inputs().size() - update_inputs_.size();
  std::size_t begin = 0;
  for (std::size_t i = 0; i < made_.size(); ++i) {
    const bool crosses = i + crossing >= made_.size();
    if (!is_averaged(made_[i]) || (!crosses && made_[i].element_count() > 1)) continue;
    if (made_[i].type() == ElementType::f64)
      throw Error(ErrorCode::unsupported, "ranks exchange gradients in f32, and this one is f64",
                  before_->outputs()[i].name, "train on one rank");
    averaged_.push_back({&made_[i], begin});
    const auto count = static_cast<std::size_t>(made_[i].element_count());
    begin += (count + alignment - 1) / alignment * alignment;
  }
}

void RankExecutable::open_exchange() {
  std::size_t end = 0;
  if (!averaged_.empty())
    end = averaged_.back().begin + static_cast<std::size_t>(averaged_.back().tensor->element_count());
  std::vector<ValueRange> ranges;
  const std::size_t most = std::max(alignment, exchange_.range_values());
  for (std::size_t begin = 0; begin < end; begin += most)
    ranges.push_back({begin, std::min(most, end - begin)});
  ranges_ = ranges.size();
  values_ = exchange_.open(end, std::move(ranges));
}

void RankExecutable::average() {
  for (const Averaged& each : averaged_) {
    const Tensor values = each.tensor->converted(ElementType::f32);
    std::ranges::copy(values.as<float>(), values_.begin() + static_cast<std::ptrdiff_t>(each.begin));
  }
  exchange_.begin();
  for (std::size_t range = 0; range < ranges_; ++range) exchange_.ready(range);
  exchange_.finish();
  for (const Averaged& each : averaged_) {
    Tensor values(ElementType::f32, each.tensor->shape());
    const auto mean = values_.subspan(each.begin, static_cast<std::size_t>(values.element_count()));
    std::ranges::copy(mean, values.as<float>().begin());
    *each.tensor = values.converted(each.tensor->type());
  }
}

void RankExecutable::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  run(inputs, outputs, [] { return std::vector<Tensor>(); });
}

void RankExecutable::run(std::span<const Tensor> inputs, std::span<Tensor> outputs, NextInputs next) {
  check_ports("output", outputs_, outputs);
  before_->run(inputs, made_, next);
  average();
  std::vector<Tensor> of_update;
  for (std::size_t place : update_inputs_) of_update.push_back(inputs[place]);
  const std::size_t crossing = update_->inputs().size() - update_inputs_.size();
  of_update.insert(of_update.end(), made_.end() - static_cast<std::ptrdiff_t>(crossing), made_.end());
  update_->run(of_update, updated_);
  std::size_t before = 0, after = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    (of_update_[i] ? updated_[after++] : made_[before++]).copy_to(outputs[i].bytes());
}

PlanSummary RankExecutable::summary() const {
  PlanSummary summary = before_->summary();
  const PlanSummary update = update_->summary();
  summary.flops += update.flops;
  summary.compile_seconds += update.compile_seconds;
  summary.activation_bytes = std::max(summary.activation_bytes, update.activation_bytes);
  summary.constant_bytes += update.constant_bytes;
  summary.update = update.steps;
  return summary;
}

}  // namespace superstep::target::pjrt
