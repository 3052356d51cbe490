#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/graph/graph.h"
#include "superstep/lab/onnx_suite/case.h"

namespace superstep::lab {
namespace {

// The error in units of the tolerance; equal infinities and NaN against NaN are no error.
double scaled_error(double y, double expected, const CaseOptions& options) {
  if (std::isnan(y) || std::isnan(expected)) return std::isnan(y) && std::isnan(expected) ? 0 : INFINITY;
  if (y == expected) return 0;
  return std::abs(y - expected) / (options.absolute + options.relative * std::abs(expected));
}

std::string type_of(const Tensor& tensor) { return graph::to_string({tensor.type(), tensor.shape()}); }

}  // namespace

std::string compare(const Tensor& result, const Tensor& expected, const CaseOptions& options, double& worst) {
  if (result.type() != expected.type() || result.shape() != expected.shape())
    return fmt::format("is {}, expected {}", type_of(result), type_of(expected));
  std::int64_t wrong = 0, first = -1;
  for (std::int64_t i = 0; i < result.element_count(); ++i) {
    const double error = scaled_error(result.at(i), expected.at(i), options);
    worst = std::max(worst, error);
    if (error <= 1) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return {};
  return fmt::format("{} of {} elements are wrong; the first, element {}, is {:.7g}, expected {:.7g}", wrong,
                     result.element_count(), first, result.at(first), expected.at(first));
}

}  // namespace superstep::lab
