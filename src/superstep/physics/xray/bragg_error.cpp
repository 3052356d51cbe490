#include "superstep/physics/xray/bragg_error.h"

#include "superstep/base/statistics.h"

namespace superstep::data {

std::vector<Metric> position_error_metrics(std::span<const double> errors) {
  return {{.name = "error_px_mean", .value = mean(errors), .unit = "px"},
          {.name = "error_px_p50", .value = quantile(errors, 0.5), .unit = "px"},
          {.name = "error_px_p75", .value = quantile(errors, 0.75), .unit = "px"},
          {.name = "error_px_p95", .value = quantile(errors, 0.95), .unit = "px"},
          {.name = "error_px_p995", .value = quantile(errors, 0.995), .unit = "px"}};
}

}  // namespace superstep::data
