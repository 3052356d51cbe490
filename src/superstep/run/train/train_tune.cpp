#include "superstep/run/train/train_tune.h"

#include <numeric>

#include "superstep/base/error.h"

namespace superstep::run {

Tuning tune_training(const target::Target& target, const Model& model, const Task& task,
                     const target::CompileOptions& plan) {
  if (plan.parts.count > 1)
    throw Error(ErrorCode::invalid_argument, "a search times one rank alone", "--tune",
                "tune without ranks, then give what it found as --micro-batch");
  const auto fill = [&](std::span<Tensor> inputs) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(plan.batch));
    std::iota(indices.begin(), indices.end(), std::int64_t{0});
    task.fill(indices, 0, false, inputs.first(inputs.size() - 1));
    inputs.back() = Tensor::scalar(static_cast<float>(model.schedule().peak));
  };
  TuningCache cache;
  return tune(target, model.training_step(&target), plan, fill, cache);
}

}  // namespace superstep::run
