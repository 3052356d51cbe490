// A posterior as a sampler asks it: one thread's own compiled graphs.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/run/sample/posterior.h"
#include "superstep/sampling/log_density.h"

namespace superstep::run {

class PosteriorDensity : public sampling::LogDensity {
 public:
  PosteriorDensity(const Posterior& posterior, std::shared_ptr<const PosteriorData> data, const Task& task,
                   ThreadPool& pool);
  std::size_t size() const override { return posterior_.size(); }
  double evaluate(std::span<const double> position, std::span<double> gradient) override;
  double value(std::span<const double> position) override;

  // What the model says of the held-out samples: an output a term, valid until the next call. Empty where
  // there are none.
  std::span<const Tensor> predict(std::span<const double> position);
  // The log density of each held-out sample under the last prediction.
  std::vector<double> log_likelihoods(std::span<const double> position) const;

 private:
  // A compiled graph with what goes in and comes out.
  struct Plan {
    std::unique_ptr<target::Executable> executable;
    std::vector<Tensor> inputs, outputs;
  };
  Plan plan_of_loss(bool gradients);
  void place(std::span<const double> position, target::Executable& executable);
  // Asks the plan; gives the log density, and the gradient where there is room for one.
  double ask(Plan& plan, std::span<const double> position, std::span<double> gradient);

  const Posterior& posterior_;
  std::shared_ptr<const PosteriorData> data_;
  std::map<std::string, Tensor> counted_;  // states that are counted on the data
  std::vector<Tensor> parameters_;         // as they go into a plan
  Plan gradient_, value_, prediction_;
  std::vector<Tensor> predicted_;
};

}  // namespace superstep::run
