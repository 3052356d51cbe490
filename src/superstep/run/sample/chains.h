// Chains of one posterior, sampled side by side, a thread each: kept in a folder from time to time, and gone
// on with from there.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/run/sample/chain_record.h"
#include "superstep/run/sample/posterior_density.h"

namespace superstep::run {

struct ChainJob {
  const Posterior& posterior;
  std::shared_ptr<const PosteriorData> data;
  const Task& task;
  sampling::ChainSettings settings;
  int chains = 4;
  std::int64_t draws = 1000;
  std::filesystem::path folder;  // empty: nothing is kept
  double checkpoint_seconds = 30;
  std::vector<sampling::ChainState> starts;      // by chain; empty: Posterior::start()
  std::string label;                             // of the progress; empty: none is shown
  std::function<void(const std::string&)> tell;  // how long it will take; may be empty
};

// Which chain a thread samples follows from who is free; what a chain draws does not. Of several ranks each
// samples its share of the chains; all records are given to every rank, by way of the folder. On Ctrl-C
// writes every chain as far as it is whole and throws Error (interrupted).
std::vector<ChainRecord> sample_chains(const ChainJob& job, ThreadPool& pool);

// Draws of a Laplace approximation, as if they were those of chains, each of draws that are independent.
// `told` gets a line about the mode and the curvature.
std::vector<ChainRecord> sample_by_laplace(const ChainJob& job, std::string& told);

// Seconds of one evaluation of value and gradient at the position: the median of some.
double seconds_an_evaluation(PosteriorDensity& density, std::span<const double> position);

}  // namespace superstep::run
