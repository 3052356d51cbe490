#include "superstep/run/serve/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/system/interrupt.h"

namespace superstep::run {
namespace {

std::vector<Tensor> tensors_of(std::span<const target::Executable::Port> ports) {
  std::vector<Tensor> tensors;
  for (const auto& port : ports) tensors.emplace_back(port.type.element, port.type.shape);
  return tensors;
}

Tensor with_rows(const graph::ValueType& type, std::int64_t rows) {
  std::vector<std::int64_t> extents = type.shape.extents();
  extents[0] = rows;
  return Tensor(type.element, Shape(extents));
}

}  // namespace

// What cannot be evaluated is refused at once, though nothing is compiled before it is used.
Evaluator::Evaluator(const target::Target& target, const target::GraphAtBatch& model,
                     target::CompileOptions options, bool whole_batches)
    : plans_(target, model, options), batch_(options.batch), whole_batches_(whole_batches) {
  const graph::Graph graph = model(batch_);
  for (const graph::Output& output : graph.outputs())
    if (const Shape& shape = graph.type(output.value).shape; shape.rank() == 0 || shape[0] != batch_)
      throw Error(ErrorCode::unsupported,
                  fmt::format("has shape {}: not a row for each of the {} samples of a batch",
                              to_string(shape), batch_),
                  fmt::format("output '{}'", output.name),
                  "what is served has a row for each sample; of a training step, export the model alone: "
                  "superstep onnx export without --with train-step");
  for (graph::ValueId id : graph.states()) parameters_.emplace(graph.value(id).name, graph.type(id));
}

void Evaluator::set_parameters(const std::map<std::string, Tensor>& states, const std::string& where) {
  std::map<std::string, Tensor> parameters;
  for (const auto& [name, type] : parameters_) {
    const auto found = states.find(name);
    if (found == states.end())
      throw Error(ErrorCode::bad_file, fmt::format("has no parameter {}: it belongs to another model", name),
                  where);
    const graph::ValueType given{found->second.type(), found->second.shape()};
    if (given != type)
      throw Error(ErrorCode::bad_file,
                  fmt::format("belongs to another model: state {} is {}, not {}", name, to_string(type),
                              to_string(given)),
                  where);
    parameters.emplace(name, found->second);
  }
  plans_.set_states(std::move(parameters));
}

std::vector<Tensor> Evaluator::predict(const Task& task, std::span<const std::int64_t> indices,
                                       ThreadPool& pool) {
  std::vector<Tensor> joined;
  for (const auto& port : executable().outputs())
    joined.push_back(with_rows(port.type, static_cast<std::int64_t>(indices.size())));
  const auto count = static_cast<std::int64_t>(indices.size());
  for (std::int64_t first = 0; first < count; first += batch_) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while predicting");
    const std::int64_t rows = std::min(batch_, count - first);
    const auto part = indices.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows));
    std::vector<std::int64_t> samples(part.begin(), part.end());
    if (whole_batches_) samples.resize(static_cast<std::size_t>(batch_), samples.back());
    target::Executable& plan = plans_.at(static_cast<std::int64_t>(samples.size()));
    std::vector<Tensor> inputs = tensors_of(plan.inputs()), outputs = tensors_of(plan.outputs());
    task.fill_inputs(samples, inputs, pool);
    plan.run(inputs, outputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::size_t row_bytes = outputs[i].byte_count() / samples.size();
      std::memcpy(joined[i].bytes() + static_cast<std::size_t>(first) * row_bytes, outputs[i].bytes(),
                  row_bytes * static_cast<std::size_t>(rows));
    }
  }
  return joined;
}

}  // namespace superstep::run
