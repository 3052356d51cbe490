#include "superstep/design/minimise.h"

#include <lbfgs.h>

#include <cmath>
#include <limits>
#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"

namespace superstep::design {
namespace {

// Stands for "not finite" where the library compares values: large, but differences of it still are numbers.
constexpr double out_of_reach = 1e100;

// What the library's callbacks are given.
struct Search {
  SmoothFunction function;
  std::span<const Bounds> bounds;
  Minimum best;
  std::vector<double> inside, slope;
};

double evaluate(void* instance, const double* free, double* free_slope, int count, double) {
  Search& search = *static_cast<Search*>(instance);
  const auto n = static_cast<std::size_t>(count);
  for (std::size_t k = 0; k < n; ++k) search.inside[k] = search.bounds[k].value(free[k]);
  double value = search.function(search.inside, search.slope);
  ++search.best.evaluations;
  for (std::size_t k = 0; k < n; ++k) {
    free_slope[k] = search.slope[k] * search.bounds[k].slope(free[k]);
    if (!std::isfinite(free_slope[k])) value = std::numeric_limits<double>::quiet_NaN();
  }
  if (!std::isfinite(value)) {
    for (std::size_t k = 0; k < n; ++k) free_slope[k] = 0;
    return out_of_reach;
  }
  if (value < search.best.value) {
    search.best.value = value;
    search.best.at = search.inside;
  }
  return value;
}

// Anything but 0 ends the search; nothing may be thrown through a library in C.
int progress(void*, const double*, const double*, double, double, double, double, int, int, int) {
  return interrupted() ? 1 : 0;
}

struct FreeMemory {
  void operator()(double* memory) const { lbfgs_free(memory); }
};

}  // namespace

Minimum minimise(SmoothFunction function, std::span<const Bounds> bounds, std::span<const double> start,
                 int most_iterations) {
  const std::size_t n = start.size();
  Search search{function, bounds, {}, std::vector<double>(n), std::vector<double>(n)};
  search.best.value = std::numeric_limits<double>::infinity();
  const std::unique_ptr<double, FreeMemory> free(lbfgs_malloc(static_cast<int>(n)));  // aligned as it wants
  if (!free) throw Error(ErrorCode::out_of_memory, "no memory to search a minimum in");
  for (std::size_t k = 0; k < n; ++k) free.get()[k] = bounds[k].parameter(start[k]);
  lbfgs_parameter_t settings;
  lbfgs_parameter_init(&settings);
  settings.max_iterations = most_iterations;
  // A tenth of a millionth of the value, over 5 steps: far below what noise leaves of a likelihood.
  settings.past = 5, settings.delta = 1e-7;
  lbfgs(static_cast<int>(n), free.get(), nullptr, evaluate, progress, &search, &settings);
  if (interrupted()) throw Error(ErrorCode::interrupted, "in the middle of a search");
  if (search.best.at.empty())
    throw Error(ErrorCode::diverged, "a function to be minimized is finite nowhere");
  return search.best;
}

}  // namespace superstep::design
