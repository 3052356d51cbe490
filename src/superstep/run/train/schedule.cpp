#include "superstep/run/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

namespace superstep::run {

double learning_rate(const Schedule& schedule, std::int64_t step, std::int64_t steps) {
  const double total = static_cast<double>(std::max<std::int64_t>(1, steps));
  const double warm_up = std::ceil(schedule.warm_up_share * total);
  const double at = static_cast<double>(step);
  if (at < warm_up) return schedule.peak * (at + 1) / warm_up;
  if (schedule.kind == Schedule::Kind::constant) return schedule.peak;
  const double progress = std::min(1.0, (at - warm_up) / std::max(1.0, total - warm_up));
  const double low = schedule.final_share * schedule.peak;
  return low + (schedule.peak - low) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

nlohmann::json to_json(const Schedule& schedule) {
  return {{"kind", schedule.kind == Schedule::Kind::cosine ? "cosine" : "constant"},
          {"peak", schedule.peak},
          {"final_share", schedule.final_share},
          {"warm_up_share", schedule.warm_up_share}};
}

}  // namespace superstep::run
