// A prediction for a processor, in words and as a result. What predict.cpp asks.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/lab/processor/prediction.h"

namespace superstep::cli {

// `what` it is: "braggnn (train), f32".
std::string processor_text(const std::string& what, const machine::Machine& machine,
                           const lab::ProcessorPrediction& prediction, bool explain);
std::vector<Metric> processor_metrics(const lab::ProcessorPrediction& prediction);
// With its steps where they are to be explained.
nlohmann::json processor_config(const machine::Machine& machine, const lab::ProcessorPrediction& prediction,
                                bool explain);

}  // namespace superstep::cli
