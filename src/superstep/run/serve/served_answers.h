// What a model answers on all samples, with its quality and speed, and where that is written.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/run/serve/evaluate.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/serve/length_plans.h"
#include "superstep/run/task.h"

namespace superstep::run {

// Everything of one model on the samples: outputs, quality, speed.
struct Served {
  std::vector<Tensor> outputs;
  std::vector<Metric> metrics;
  double seconds = 0;  // that the outputs took, data included
  std::vector<target::Executable::Port> ports;
};

// `plans`: sequences go through them; null: through the evaluator.
Served serve(Evaluator& evaluator, LengthPlans* plans, const Task& task, bool trained, int passes,
             ThreadPool& pool);

// What the only call gave of a whole is written as it is.
void of_one_call(Served& served, std::span<const std::string> whole_outputs);

// HDF5 remembers where its contents come from; other formats hold the arrays alone, a table what the task
// makes of them.
void write_outputs(const std::filesystem::path& path, std::span<const target::Executable::Port> ports,
                   const std::vector<Tensor>& outputs, const InferSettings& settings, const Task& task,
                   double seconds_of_sample);

// What a user should know of the answers.
void say_of_answers(const Served& served, InferReport& report);

}  // namespace superstep::run
