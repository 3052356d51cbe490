// What draws say: of every number its mean, spread and convergence, and of a method how well and how fast it
// drew, and how its forecasts of held-out samples do.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/run/sample/chain_record.h"
#include "superstep/sampling/diagnostics/convergence.h"

namespace superstep::run {

// Of one number over all chains.
struct NumberSummary {
  std::string name = {};
  double mean = 0, deviation = 0;
  double low = 0, middle = 0, high = 0;  // 5 %, 50 % and 95 %
  sampling::Convergence convergence = {};
};
NumberSummary summarise(std::string name, const sampling::Chains& chains);

// Of many numbers of a kind: parameters, predictions.
struct Agreement {
  std::size_t numbers = 0, agreed = 0;  // r-hat below 1.01 (Vehtari et al. 2021)
  double worst_r_hat = 0, least_bulk = 0, least_tail = 0;
  std::string worst = {};  // the name of the number with the largest r-hat
};
Agreement agreement(std::span<const NumberSummary> numbers);

struct MethodSummary {
  std::string method;
  int chains = 0;
  std::int64_t draws = 0;  // of each chain
  std::vector<NumberSummary> parameters = {}, scales = {}, predictions = {};
  NumberSummary log_density = {};
  Agreement of_parameters = {}, of_predictions = {};
  double acceptance = 0, step = 0;  // means behind the warm-up
  double evaluations = 0;           // gradients a draw behind the warm-up
  double energy_information = 0;    // the least of the chains'; NaN for methods without momenta
  std::int64_t divergent = 0, at_most_doublings = 0;  // behind the warm-up
  double warm_up_seconds = 0, draw_seconds = 0;       // the longest chain's
  double effective_a_second = 0;  // the least bulk of predictions (else of the log density) a second of draws
  double log_likelihood = 0;      // nats a held-out sample: log of the mean over draws; NaN without any
  std::vector<double> log_likelihoods = {};  // of each held-out sample
  std::string told = {};                     // by the method

  // What a reader should know before believing: divergences, chains that disagree. A line each.
  std::vector<std::string> warnings() const;
};
MethodSummary summarise(const std::string& method, const sampling::ChainSettings& settings,
                        const Posterior& posterior, const PosteriorData& data,
                        std::span<const ChainRecord> records, ThreadPool& pool);

// The log of the mean over all draws of the density of each held-out sample.
std::vector<double> predictive_log_densities(std::span<const ChainRecord> records, std::size_t samples);

nlohmann::json to_json(const MethodSummary& summary);
// One row a number: name, mean, deviation, Monte-Carlo error, quantiles, r-hat, effective draws.
void write_table(const std::filesystem::path& path, const MethodSummary& summary);

}  // namespace superstep::run
