// Measures of quality that several workloads share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/workload/generated.h"

namespace superstep::workload {

Metric quality_metric(const char* name, double value, const char* unit = "");

// The first `count` sample numbers.
std::vector<std::int64_t> first_samples(std::int64_t count);

// `most` of them at most, evenly over all: what a slow reference is asked.
std::vector<std::int64_t> some_of(std::span<const std::int64_t> indices, std::size_t most);
// ", of 12 of the crystals" where these are fewer than all; empty where they are all.
std::string of_some(std::size_t some, std::size_t all, const char* things);

// 1 where the largest score is the label's, else 0; NaN where a score is NaN, so that a share of right
// answers shows that a model has diverged.
double is_highest(std::span<const float> scores, std::int64_t label);

// The share of samples whose largest score is that of field `label`.
std::vector<Metric> accuracy_of_labels(const Fields& fields, std::span<const std::int64_t> indices,
                                       std::span<const Tensor> outputs);

// Of errors and the standard deviations stated for them, what workload/spread.h finds: spread_factor,
// spread_inside_1 and _2, spread_rank_correlation, spread_times_for_90 and spread_inside_90. None where it
// finds nothing.
std::vector<Metric> spread_metrics(std::span<const double> errors, std::span<const double> spreads);

// The root mean square error of the only output against field `target`.
std::vector<Metric> rmse_of_target(const Fields& fields, std::span<const std::int64_t> indices,
                                   std::span<const Tensor> outputs);

// The root of the mean (output - field)^2 over all elements; the mean |output - field|.
double root_mean_square_error(const Tensor& field, std::span<const std::int64_t> indices,
                              const Tensor& output);
double mean_absolute_error(const Tensor& field, std::span<const std::int64_t> indices, const Tensor& output);

}  // namespace superstep::workload
