// The quality of a model that is being trained: on its validation samples, and against the target of the run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/base/thread_pool.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/evaluate.h"
#include "superstep/run/serve/self_test.h"
#include "superstep/run/task.h"

namespace superstep::run {

// How many of `available` samples are looked at when a training ends. `asked`: "all", a number from 1 on, or
// a share
// ("0.1" or "10%"); empty: 10,000 at most, and no more than were trained on (but a batch of them), so that
// looking at them takes no longer than training did. Throws Error (invalid_argument) on anything else.
std::int64_t samples_to_validate(const std::string& asked, std::int64_t available, std::int64_t trained);

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
