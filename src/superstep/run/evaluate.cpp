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

Tensor with_rows(const Tensor& prototype, std::int64_t rows) {
  std::vector<std::int64_t> extents = prototype.shape().extents();
  extents[0] = rows;
  return Tensor(prototype.type(), Shape(extents));
}

// Batch number `batch` of the samples; what is missing at the end repeats the last one.
std::vector<std::int64_t> batch_indices(std::span<const std::int64_t> indices, std::int64_t batch,
                                        std::int64_t size) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t at = std::min(batch * size + i, static_cast<std::int64_t>(indices.size()) - 1);
    chosen.push_back(indices[static_cast<std::size_t>(at)]);
  }
  return chosen;
}

}  // namespace

Evaluator::Evaluator(const target::Target& target, const target::GraphAtBatch& model,
                     target::CompileOptions options)
    : executable_(target.compile(model, options)), batch_(options.batch) {}

void Evaluator::set_parameters(const std::map<std::string, Tensor>& states, const std::string& where) {
  for (const std::string& name : executable_->state_names()) {
    const auto found = states.find(name);
    if (found == states.end())
      throw Error(ErrorCode::bad_file, fmt::format("has no parameter {}: it belongs to another model", name),
                  where);
    try {
      executable_->set_state(name, found->second);
    } catch (const Error& error) {
      throw Error(ErrorCode::bad_file, fmt::format("belongs to another model: {}", error.what()), where);
    }
  }
}

std::vector<Tensor> Evaluator::predict(const Task& task, std::span<const std::int64_t> indices,
                                       ThreadPool& pool) {
  std::vector<Tensor> inputs = tensors_of(executable_->inputs()),
                      outputs = tensors_of(executable_->outputs());
  std::vector<Tensor> joined;
  for (const Tensor& output : outputs)
    joined.push_back(with_rows(output, static_cast<std::int64_t>(indices.size())));
  const auto count = static_cast<std::int64_t>(indices.size());
  for (std::int64_t batch = 0; batch * batch_ < count; ++batch) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while predicting");
    task.fill_inputs(batch_indices(indices, batch, batch_), inputs, pool);
    executable_->run(inputs, outputs);
    const std::int64_t rows = std::min(batch_, count - batch * batch_);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::size_t row_bytes = outputs[i].byte_count() / static_cast<std::size_t>(batch_);
      std::memcpy(joined[i].bytes() + static_cast<std::size_t>(batch * batch_) * row_bytes,
                  outputs[i].bytes(), static_cast<std::size_t>(rows) * row_bytes);
    }
  }
  return joined;
}

}  // namespace superstep::run
