// BraggNN beside the methods it replaces, on the same fresh patches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/base/thread_pool.h"
#include "superstep/page/page.h"
#include "superstep/run/serve/infer.h"

namespace superstep::lab {

struct BraggMethodResult {
  std::string name;
  std::vector<double> errors;   // px, by patch
  std::vector<double> x, y;     // px, by patch
  double seconds = 0;           // for all patches on all threads
  std::vector<Metric> metrics;  // error_px_*
};

struct BraggComparison {
  std::vector<BraggMethodResult> methods;  // conventional ones first, the model last
  std::vector<page::Picture> pictures;     // patches with the centres of three methods
  std::int64_t samples = 0;
};

// `samples` patches of the generator at `seed`, through every method and the model.
BraggComparison compare_bragg(const run::Weights& weights, std::int64_t samples, std::uint64_t seed,
                              ThreadPool& pool);

}  // namespace superstep::lab
