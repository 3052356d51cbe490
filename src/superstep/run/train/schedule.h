// Learning rates over a training run.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace superstep::run {

struct Schedule {
  enum class Kind { constant, cosine } kind = Kind::cosine;
  double peak = 1e-3;           // learning rate after the warm-up
  double final_share = 0.0;     // of the peak, at the last step of a cosine
  double warm_up_share = 0.02;  // of all steps: the rate rises linearly from 0
};

// The rate of step `step` (from 0) of `steps`. Warm-up, then constant, or half a cosine down to
// final_share * peak (Loshchilov and Hutter, "SGDR", ICLR 2017, without restarts).
double learning_rate(const Schedule& schedule, std::int64_t step, std::int64_t steps);

nlohmann::json to_json(const Schedule& schedule);

}  // namespace superstep::run
