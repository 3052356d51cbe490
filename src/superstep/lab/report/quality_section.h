// The part of a run's report that says what the model is worth: metric, target, what others reach on the same
// samples, a verdict in words, and pictures of the task's own field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/base/thread_pool.h"
#include "superstep/page/page.h"
#include "superstep/run/infer.h"
#include "superstep/run/model.h"
#include "superstep/run/quality.h"

namespace superstep::lab {

struct QualitySection {
  std::optional<run::Quality> quality;  // none where the task measures none
  std::vector<Metric> metrics;          // of the model
  std::string samples;                  // in words: "4,000 validation samples, which no step trained on"
  std::string text;                     // for the terminal
};

// At most `samples` of the run's validation samples, or as many fresh ones of `seed` where its task makes
// them. Adds to `page`. A run whose data are gone has a page that says so.
QualitySection add_quality(page::Page& page, const run::Weights& weights, const run::Model& model,
                           std::int64_t samples, std::uint64_t seed, ThreadPool& pool);

// A number of the metric as people read it: "0.0377 px", "91.2 %" is left to those who know it is a share.
std::string metric_text(double value, const std::string& unit);

}  // namespace superstep::lab
