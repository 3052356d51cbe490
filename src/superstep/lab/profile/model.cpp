#include "superstep/lab/profile/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/calibrate.h"
#include "superstep/run/task.h"

namespace superstep::lab {
namespace {

// Samples are generated for one batch alone; tasks keep a part of them for validation, and some pack several
// into one.
constexpr std::int64_t samples_a_batch = 2, most_samples_a_batch = 1024;
constexpr std::int64_t calibration_samples = 64;  // at most: one batch of run::calibrate

std::vector<std::int64_t> first_indices(std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return indices;
}

// At least a batch of generated samples; of the user's data what there is.
std::unique_ptr<run::Task> task_with(const run::Model& model, std::int64_t batch, bool training,
                                     ThreadPool& pool) {
  const run::TrainSettings& settings = model.settings();
  for (std::int64_t a_batch = samples_a_batch;; a_batch *= 4) {
    run::TaskSettings samples = task_settings_of(settings, pool);
    samples.samples = settings.data.empty() ? a_batch * batch : 0;
    samples.labels_required = training;
    auto task = model.open_task(samples);
    if (task->size() >= batch || !settings.data.empty() || a_batch >= most_samples_a_batch) return task;
  }
}

// A batch of the workload's own data: with targets and a learning rate for training.
void fill_from_task(const run::Model& model, std::int64_t batch, bool training, std::vector<Tensor>& inputs) {
  ThreadPool pool(1);
  const auto task = task_with(model, batch, training, pool);
  if (batch > task->size())
    throw Error(ErrorCode::invalid_argument, fmt::format("the data have {} samples", task->size()),
                "--batch");
  const auto indices = first_indices(batch);
  if (!training) return task->fill_inputs(indices, inputs, pool);
  task->fill(indices, 0, false, std::span(inputs).first(inputs.size() - 1));
  inputs.back() = Tensor::scalar(static_cast<float>(model.schedule().peak));
}

// The model on bytes: what a step costs does not depend on the weights, so the initial ones will do.
target::GraphAtBatch on_bytes(const run::Model& model, std::int64_t batch) {
  const std::int64_t samples =
      model.fixed_batch() > 0 ? batch : std::min<std::int64_t>(batch, calibration_samples);
  const auto fill = [&](std::int64_t, std::span<Tensor> inputs) {
    std::vector<Tensor> batch_inputs(inputs.begin(), inputs.end());
    fill_from_task(model, samples, false, batch_inputs);
    std::ranges::copy(batch_inputs, inputs.begin());
  };
  return run::quantize_model(target::find_target("cpu"), model.inference(), {},
                             {.samples = samples, .batch = samples, .products = {.beside_bf16 = true}}, fill)
      .graph;
}

}  // namespace

ProfiledModel open_profiled_model(ProfileRequest& request, const target::Target* on) {
  const std::vector<std::string> modes{"train", "infer"};
  if (std::ranges::find(modes, request.mode) == modes.end())
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a mode", request.mode), "--mode",
                unknown_name_hint(request.mode, modes));
  const bool training = request.mode == "train", bytes = request.precision == "int8";
  if (bytes && training)
    throw Error(ErrorCode::invalid_argument, "int8 is for serving", "--precision", "add --mode infer");
  const run::Model model({.workload = request.model,
                          .precision = bytes ? "f32" : request.precision,
                          .model_options = request.model_options,
                          .shapes = request.shapes,
                          .bounds = request.bounds,
                          .data = request.data,
                          .batch = request.batch,
                          .seed = request.seed});
  request.batch = model.fixed_batch() > 0 ? model.fixed_batch() : model.settings().batch;
  return {.name = request.model,
          .mode = request.mode,
          .precision = request.precision,
          .fixed_batch = model.fixed_batch() > 0,
          .graph = training ? model.training_step(on)
                   : bytes  ? on_bytes(model, request.batch)
                            : model.inference(on),
          .fill = [model, batch = request.batch, training](std::vector<Tensor>& inputs) {
            fill_from_task(model, batch, training, inputs);
          }};
}

}  // namespace superstep::lab
