// The posterior of a model's parameters given its training data: what samplers ask, made of a workload or a
// model file by the same steps as a training.
//
// A position is the parameters one after another, in the order of the graph's states, then log s of every
// noise that is sampled (likelihood.h). Gradients are computed in f32 by the compiled graph, over all
// training samples as one batch (in micro-batches, where the target likes); positions, the prior and the
// energies are f64.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/run/model.h"
#include "superstep/run/sample/likelihood.h"
#include "superstep/run/sample/prior.h"
#include "superstep/run/task.h"

namespace superstep::run {

struct SampledParameter {
  std::string name;
  graph::ValueType type;
  std::size_t offset = 0, count = 0;  // of the position
  double deviation = 1;               // of its prior
};

// Samples to learn from and samples to be judged on, as the compiled graphs take them.
struct PosteriorData {
  std::vector<Tensor> training;                    // inputs, then targets
  std::vector<Tensor> held_out, held_out_targets;  // inputs; targets, one a term
  std::vector<double> counts;                      // by term: numbers that are compared
  std::vector<double> log_scales;                  // by term: the mean of the prior of log s
  std::vector<std::int64_t> training_indices, held_out_indices;
};

class PosteriorDensity;

class Posterior {
 public:
  // Throws Error: what Model does, unsupported for a loss that is no density (likelihood.h), invalid_argument
  // for a model without floating parameters. The model outlives this.
  Posterior(const Model& model, const Prior& prior, std::optional<double> scale);

  const Model& model() const { return model_; }
  std::size_t size() const { return size_; }
  std::span<const SampledParameter> parameters() const { return parameters_; }
  std::span<const Likelihood> likelihoods() const { return likelihoods_; }
  // Where log s of a term is in a position; nothing where it is given or there is none.
  std::optional<std::size_t> place_of_scale(std::size_t term) const;
  double log_scale(std::size_t term, std::span<const double> position) const;
  std::vector<std::string> names_of_scales() const;  // "noise", or "noise/TARGET" of several

  // The task's training samples, and of the others at most `held_out`. Throws Error (bad_file) naming the
  // first input or target that is not a finite number, with its sample.
  std::shared_ptr<const PosteriorData> data(const Task& task, std::int64_t held_out) const;

  // Where chain `chain` begins: the model's first weights under the seed + chain, those of a model file moved
  // by a tenth of the prior's deviation; noise as its prior says.
  std::vector<double> start(const PosteriorData& data, int chain) const;

  // A density of its own for a thread. `task`: for what the workload counts on its training samples.
  std::unique_ptr<PosteriorDensity> density(std::shared_ptr<const PosteriorData> data, const Task& task,
                                            ThreadPool& pool) const;

 private:
  friend class PosteriorDensity;
  target::GraphAtBatch loss_graph(bool gradients) const;
  std::unique_ptr<target::Executable> compile(const target::GraphAtBatch& graph, std::int64_t batch) const;

  const Model& model_;
  const target::Target& target_;
  std::vector<Likelihood> likelihoods_;
  std::vector<SampledParameter> parameters_;
  std::size_t size_ = 0;
};

}  // namespace superstep::run
