// What a sampling run is: written to its folder's config.json, and held against it when it goes on.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "superstep/run/sample/prior.h"
#include "superstep/run/train/train_settings.h"
#include "superstep/sampling/chain.h"

namespace superstep::run {

// A normal distribution around the mode in place of a chain: sampling/laplace.h.
inline constexpr const char* laplace_method = "laplace";

struct Windows {
  std::int64_t count = 0;      // 0: one sampling of the whole
  std::int64_t stride = 1;     // rows from one window to the next, which are forecast
  std::int64_t warm_up = 200;  // of all windows but the first, which starts from nothing
};

struct SampleSettings {
  TrainSettings model;  // workload or file, data, seed and their like; what belongs to training is not used
  std::vector<std::string> methods = {"nuts"};  // the first is the one that is asked for; others beside it
  int chains = 4;
  std::int64_t warm_up = 1000, draws = 1000;
  double target_acceptance = 0;  // 0: the method's usual one
  int most_doublings = 10, leapfrog_steps = 1000;
  double jitter = 0.2;
  Prior prior;
  std::optional<double> noise;  // given, not sampled
  std::int64_t held_out = 200;  // samples that are forecast, at most
  Windows windows;
  double checkpoint_seconds = 30;
  int threads = 1;  // no draw depends on it, nor on checkpoint_seconds
};

// Throws Error (invalid_argument) naming the option.
void check(const SampleSettings& settings);
sampling::ChainSettings chain_settings(const SampleSettings& settings, const std::string& method);

// Without what no draw depends on.
nlohmann::json to_json(const SampleSettings& settings);
// Throws Error (invalid_argument) naming the first difference that would give other draws: a run may go on
// with more draws, on other threads, and with other methods behind those that it had.
void refuse_other_draws(const nlohmann::json& kept, const nlohmann::json& asked, const std::string& folder);

}  // namespace superstep::run
