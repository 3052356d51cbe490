#include "superstep/run/serve/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "superstep/base/system/interrupt.h"
#include "superstep/transform/training/training_form.h"

namespace superstep::run {
namespace {

std::vector<Tensor> tensors_of(std::span<const target::Executable::Port> ports) {
  std::vector<Tensor> tensors;
  for (const auto& port : ports) tensors.emplace_back(port.type.element, port.type.shape);
  return tensors;
}

Tensor with_rows(const graph::ValueType& type, std::int64_t rows, bool whole) {
  std::vector<std::int64_t> extents = type.shape.extents();
  if (whole) extents.insert(extents.begin(), 1);
  extents[0] = rows;
  return Tensor(type.element, Shape(extents));
}

void require_rows(const graph::Output& output, const Shape& shape, std::int64_t batch) {
  if (shape.rank() == 0 || shape[0] != batch)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("has shape {}: not a row for each of the {} samples of a batch", to_string(shape), batch),
        fmt::format("output '{}'", output.name),
        "what is served has a row for each sample; of a training step, export the model alone: "
        "superstep onnx export without --with train-step");
}

// What was made to be looked at is compiled first; after that the model is asked.
target::GraphAtBatch beginning_with(graph::Graph made, std::int64_t batch,
                                    const target::GraphAtBatch& model) {
  return [batch, model,
          first = std::make_shared<std::optional<graph::Graph>>(std::move(made))](std::int64_t asked) {
    if (asked != batch || !*first) return model(asked);
    graph::Graph graph = std::move(**first);
    first->reset();
    return graph;
  };
}

}  // namespace

// What cannot be evaluated is refused at once, though nothing is compiled before it is used.
Evaluator::Evaluator(const target::Target& target, const target::GraphAtBatch& model,
                     target::CompileOptions options, bool whole_batches,
                     std::span<const std::string> whole_outputs)
    : Evaluator(target, model, options, model(options.batch), whole_batches, whole_outputs) {}

Evaluator::Evaluator(const target::Target& target, const target::GraphAtBatch& model,
                     target::CompileOptions options, const graph::Graph& graph, bool whole_batches,
                     std::span<const std::string> whole_outputs)
    : plans_(target, beginning_with(graph, options.batch, model), options),
      batch_(options.batch),
      whole_batches_(whole_batches) {
  for (const graph::Output& output : graph.outputs()) {
    whole_.push_back(std::ranges::find(whole_outputs, output.name) != whole_outputs.end());
    if (!whole_.back()) require_rows(output, graph.type(output.value).shape, batch_);
  }
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

std::vector<Tensor> Evaluator::joined_outputs(std::int64_t samples) {
  std::vector<Tensor> joined;
  const auto ports = executable().outputs();
  const std::int64_t calls = (samples + batch_ - 1) / batch_;
  for (std::size_t i = 0; i < ports.size(); ++i)
    joined.push_back(with_rows(ports[i].type, whole_[i] ? calls : samples, whole_[i]));
  return joined;
}

target::Executable& Evaluator::plan_of(std::int64_t samples, std::int64_t first) {
  return plans_.at(whole_batches_ ? batch_ : std::min(batch_, samples - first));
}

void Evaluator::predict_batch(const Task& task, std::span<const std::int64_t> indices, std::int64_t first,
                              ThreadPool& pool, std::span<Tensor> joined) {
  if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while predicting");
  const auto count = static_cast<std::int64_t>(indices.size());
  const std::int64_t rows = std::min(batch_, count - first);
  const auto part = indices.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows));
  std::vector<std::int64_t> samples(part.begin(), part.end());
  if (whole_batches_) samples.resize(static_cast<std::size_t>(batch_), samples.back());
  target::Executable& plan = plan_of(count, first);
  std::vector<Tensor> inputs = tensors_of(plan.inputs()), outputs = tensors_of(plan.outputs());
  task.fill_inputs(samples, inputs, pool);
  plan.run(inputs, outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (whole_[i]) {
      std::memcpy(joined[i].bytes() + static_cast<std::size_t>(first / batch_) * outputs[i].byte_count(),
                  outputs[i].bytes(), outputs[i].byte_count());
      continue;
    }
    const std::size_t row_bytes = outputs[i].byte_count() / samples.size();
    std::memcpy(joined[i].bytes() + static_cast<std::size_t>(first) * row_bytes, outputs[i].bytes(),
                row_bytes * static_cast<std::size_t>(rows));
  }
}

std::vector<Tensor> Evaluator::predict(const Task& task, std::span<const std::int64_t> indices,
                                       ThreadPool& pool) {
  const auto count = static_cast<std::int64_t>(indices.size());
  std::vector<Tensor> joined = joined_outputs(count);
  for (std::int64_t first = 0; first < count; first += batch_)
    predict_batch(task, indices, first, pool, joined);
  return joined;
}

// Pass by pass, so that the counter of the masks runs on by itself within one: setting a state may cost a
// plan the preparation of all its weights. Moments by Welford's recurrence.
Evaluator::Sampled Evaluator::sample(const Task& task, std::span<const std::int64_t> indices,
                                     ThreadPool& pool, int passes) {
  const auto count = static_cast<std::int64_t>(indices.size());
  std::vector<Tensor> found = joined_outputs(count);
  std::vector<std::vector<double>> mean, squares;
  for (const Tensor& output : found)
    mean.emplace_back(static_cast<std::size_t>(output.element_count())), squares.push_back(mean.back());
  for (int pass = 0; pass < passes; ++pass) {
    const target::Executable* last = nullptr;
    for (std::int64_t first = 0; first < count; first += batch_) {
      target::Executable& plan = plan_of(count, first);
      if (&plan != last && parameters_.contains(transform::dropout_counter))
        plan.set_state(transform::dropout_counter, Tensor::scalar<std::int64_t>(pass * count + first));
      last = &plan;
      predict_batch(task, indices, first, pool, found);
    }
    for (std::size_t i = 0; i < found.size(); ++i)
      for (std::size_t k = 0; k < mean[i].size(); ++k) {
        const double away = found[i].at(static_cast<std::int64_t>(k)) - mean[i][k];
        mean[i][k] += away / (pass + 1);
        squares[i][k] += away * (found[i].at(static_cast<std::int64_t>(k)) - mean[i][k]);
      }
  }
  Sampled sampled{.mean = joined_outputs(count), .spread = joined_outputs(count)};
  for (std::size_t i = 0; i < found.size(); ++i)
    for (std::size_t k = 0; k < mean[i].size(); ++k) {
      sampled.mean[i].set(static_cast<std::int64_t>(k), mean[i][k]);
      sampled.spread[i].set(static_cast<std::int64_t>(k), std::sqrt(squares[i][k] / std::max(1, passes - 1)));
    }
  return sampled;
}

}  // namespace superstep::run
