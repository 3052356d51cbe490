#include "superstep/run/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/interrupt.h"

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

Evaluator::Evaluator(const target::Target& target, const target::GraphAtBatch& model,
                     target::CompileOptions options)
    : plans_(target, model, options), batch_(options.batch) {}

void Evaluator::set_parameters(const std::map<std::string, Tensor>& states, const std::string& where) {
  std::map<std::string, Tensor> parameters;
  for (const std::string& name : executable().state_names()) {
    const auto found = states.find(name);
    if (found == states.end())
      throw Error(ErrorCode::bad_file, fmt::format("has no parameter {}: it belongs to another model", name),
                  where);
    parameters.emplace(name, found->second);
  }
  try {
    plans_.set_states(std::move(parameters));
  } catch (const Error& error) {
    throw Error(ErrorCode::bad_file, fmt::format("belongs to another model: {}", error.what()), where);
  }
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
    target::Executable& plan = plans_.at(rows);
    std::vector<Tensor> inputs = tensors_of(plan.inputs()), outputs = tensors_of(plan.outputs());
    task.fill_inputs(indices.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows)), inputs,
                     pool);
    plan.run(inputs, outputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::size_t row_bytes = outputs[i].byte_count() / static_cast<std::size_t>(rows);
      std::memcpy(joined[i].bytes() + static_cast<std::size_t>(first) * row_bytes, outputs[i].bytes(),
                  outputs[i].byte_count());
    }
  }
  return joined;
}

}  // namespace superstep::run
