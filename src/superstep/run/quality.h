// What a number of quality is worth: which way is better, what is asked for, and what simple and conventional
// methods reach on the same samples.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "superstep/base/metric.h"
#include "superstep/workload/task.h"

namespace superstep::run {

using workload::Reference;
using workload::References;

struct Quality {
  std::string metric, unit;  // "r2", ""
  bool higher_is_better = false;
  double reached = 0;
  std::int64_t samples = 0;  // that it was reached on
  std::optional<double> target;
  References references;
};

// Throws Error (invalid_argument) naming the nearest metric when the workload has no such metric.
bool higher_is_better(const workload::Workload& workload, std::string_view metric);

// Is `a` better than `b`, or as good? Not a number is never good.
bool as_good(double a, double b, bool higher_is_better);

// `reached` is the first of a task's metrics.
Quality judge(const workload::Workload& workload, const Metric& reached, std::int64_t samples,
              References references);

enum class Standing : std::uint8_t {
  unknown,          // there is nothing to hold it against
  below_floor,      // worse than a trivial predictor
  short_of_target,  // better than the floor, or no floor is known
  target_reached,
};
Standing standing(const Quality& quality);

// In words, for a table's last line: "target reached, better than ridge regression".
std::string verdict(const Quality& quality);

// {"metric", "unit", "better": "higher" or "lower", "reached", "samples", "target", "floor": {"method",
// "value"}, "conventional", "limit", "verdict"}; what there is not is null.
inline constexpr const char* quality_file = "quality.json";  // in the folder of a run
nlohmann::json to_json(const Quality& quality);
Quality quality_from_json(const nlohmann::json& object);  // throws Error (bad_file)

}  // namespace superstep::run
