// What a model says of a sample, made better on that sample alone: steps of Adam through the workload's own
// loss, where it asks for no label (workload.h: BuildAnswer). The network is left as it is.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/run/model.h"
#include "superstep/target/target.h"

namespace superstep::run {

struct RefineSettings {
  std::int64_t steps = 100;
  double learning_rate = 0.1;  // of the first step; a cosine leads it to zero
  int threads = 1;
};

class Refiner {
 public:
  // Compiles the step. Throws Error (unsupported) where the workload's loss needs labels.
  Refiner(const Model& model, const target::Target& target, const RefineSettings& settings);

  // `inputs` and `outputs` of the model for one sample; the outputs are replaced. Returns the loss before
  // each step and after the last. Throws Error: interrupted; diverged where a loss is not finite.
  std::vector<double> refine(std::span<const Tensor> inputs, std::span<Tensor> outputs);

  // The model's inputs for one sample, to be filled.
  std::vector<Tensor> inputs() const;

 private:
  void forget();  // the sample before

  RefineSettings settings_;
  std::size_t model_inputs_ = 0;
  std::unique_ptr<target::Executable> step_;
  std::vector<std::pair<std::string, Tensor>> first_states_;
};

// Refines the outputs [samples, ...] of all of the task's samples in place. Returns the seconds it took.
double refine_all(Refiner& refiner, const Task& task, std::span<Tensor> outputs, ThreadPool& pool);

}  // namespace superstep::run
