// The quality of a model that is being trained: on its validation samples, and against the target of the run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/base/thread_pool.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/evaluate.h"
#include "superstep/run/serve/self_test.h"
#include "superstep/run/task.h"

namespace superstep::run {

class Validation {
 public:
  // Samples looked at after an epoch; all of them at the end.
  static constexpr std::int64_t quick = 4096;

  // Task and pool outlive it.
  Validation(const target::Target& target, const Model& model, const Task& task, ThreadPool& pool,
             int threads);

  // Of the first `most` samples after those of training; empty where there are none. Takes the working memory
  // of `trained`, which gets it back with its next run. Throws Error (interrupted) on Ctrl-C.
  std::vector<Metric> quality(target::Executable& trained, std::int64_t most);

  // What a model of these parameters says of a few samples, for its self-test. Nothing of a model whose
  // samples are no rows, or that drops out at random.
  std::optional<SelfTest> self_test(const Model& model, const std::map<std::string, Tensor>& states);

  // Of a task that keeps a curve (workload/training_curve.h), what its line says of up to 64 validation
  // samples and up to 64 of training, as far as there are any: validation_errors and training_errors. Empty
  // for other tasks.
  nlohmann::json curve_points(target::Executable& trained, std::int64_t epoch);

 private:
  std::vector<Tensor> predict(target::Executable& trained, std::span<const std::int64_t> indices);

  const Task& task_;
  ThreadPool& pool_;
  Evaluator evaluator_;
};

}  // namespace superstep::run
