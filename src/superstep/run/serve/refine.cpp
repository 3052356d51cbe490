#include "superstep/run/serve/refine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/transform/training/training_step.h"

namespace superstep::run {
namespace {

// Outputs: the loss, then the answer as it was before the step. A loss that asks for a target would add an
// input.
graph::Graph refining_step(const Model& model) {
  const graph::Graph answer = workload::build_answer(model.workload(), model.settings().model_options);
  graph::Graph step = transform::make_training_step(
      answer, model.recipe().loss, {.kind = transform::OptimizerKind::adam}, {.model_outputs = true});
  if (step.inputs().size() != answer.inputs().size() + 1)
    throw Error(ErrorCode::unsupported, "its loss needs labels, so that no answer can be refined by it",
                model.workload().name);
  return step;
}

// One row of a tensor [rows, ...].
Tensor row_of(const Tensor& rows, std::int64_t row) {
  std::vector<std::int64_t> extents(rows.shape().begin(), rows.shape().end());
  extents[0] = 1;
  Tensor one(rows.type(), Shape(extents));
  std::memcpy(one.bytes(), rows.bytes() + static_cast<std::size_t>(row) * one.byte_count(), one.byte_count());
  return one;
}

}  // namespace

Refiner::Refiner(const Model& model, const target::Target& target, const RefineSettings& settings)
    : settings_(settings) {
  const graph::Graph step = refining_step(model);
  step_ = target.compile([&](std::int64_t) { return step; },
                         {.batch = 1, .micro_batch = 1, .threads = settings.threads});
  // Beside them the outputs that it starts from, as many as the step gives without its loss, and the rate.
  model_inputs_ = step_->inputs().size() - step_->outputs().size();
  for (const std::string& name : step_->state_names())
    first_states_.emplace_back(name, step_->state(name).clone());
}

std::vector<Tensor> Refiner::inputs() const {
  std::vector<Tensor> inputs;
  for (const auto& port : step_->inputs().first(model_inputs_))
    inputs.emplace_back(port.type.element, port.type.shape);
  return inputs;
}

void Refiner::forget() {
  for (const auto& [name, value] : first_states_) step_->set_state(name, value);
}

std::vector<double> Refiner::refine(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  forget();
  std::vector<Tensor> fed(inputs.begin(), inputs.end());
  for (const Tensor& output : outputs) fed.push_back(output.clone());
  fed.push_back(Tensor::scalar(0.0f));
  std::vector<Tensor> found;
  for (const auto& port : step_->outputs()) found.emplace_back(port.type.element, port.type.shape);
  std::vector<double> losses;
  for (std::int64_t step = 0; step <= settings_.steps; ++step) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while refining");
    const double turn = std::numbers::pi * static_cast<double>(step) / static_cast<double>(settings_.steps);
    fed.back() = Tensor::scalar(static_cast<float>(settings_.learning_rate * 0.5 * (1 + std::cos(turn))));
    step_->run(fed, found);
    losses.push_back(found[0].at(0));
    if (!std::isfinite(losses.back()))
      throw Error(ErrorCode::diverged, fmt::format("the loss of step {} is {}", step, losses.back()),
                  "refine");
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = found[i + 1].clone();
  return losses;
}

double refine_all(Refiner& refiner, const Task& task, std::span<Tensor> outputs, ThreadPool& pool) {
  const std::int64_t samples = outputs[0].shape()[0];
  Progress progress("refining", static_cast<double>(samples), "samples");
  const Stopwatch watch;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    std::vector<Tensor> inputs = refiner.inputs(), rows;
    task.fill_inputs({&sample, 1}, inputs, pool);
    for (const Tensor& output : outputs) rows.push_back(row_of(output, sample));
    refiner.refine(inputs, rows);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      std::memcpy(outputs[i].bytes() + static_cast<std::size_t>(sample) * rows[i].byte_count(),
                  rows[i].bytes(), rows[i].byte_count());
    progress.update(static_cast<double>(sample + 1));
  }
  return watch.seconds();
}

}  // namespace superstep::run
