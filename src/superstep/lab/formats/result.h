// The one result object that every writer of the laboratory is fed with, and its own form in JSON: the schema
// "superstep-result/1".
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/lab/measure/protocol.h"

namespace superstep::lab {

// A metric with all that is known of how it came about.
struct Quantity {
  std::string name, unit;  // SI; fractions have none
  double value = 0;
  How how = How::measured;
  std::string statistic;            // "median", "best", "p99"; empty where there is one value
  std::vector<double> samples;      // all of them, in the order they were taken
  std::optional<double> low, high;  // interval of the value
  std::vector<std::string> flags;
  nlohmann::json details = nlohmann::json::object();  // further members: "warmup", "source"
};

// A piece of a measured or predicted timeline, in s from its beginning.
struct TimelineEvent {
  std::string name, category;  // compute, exchange, sync, host, collective, idle
  std::int64_t unit = 0;       // thread, tile group, stage
  double start = 0, duration = 0, flop = 0, bytes = 0;
};

struct Result {
  std::string command;                                   // "bench"
  std::string id;                                        // unique within a file: "gemm_k4-train-f32"
  std::string created;                                   // ISO 8601
  std::string workload, mode;                            // "gemm_k4"; "train", "infer", "collective"
  nlohmann::json parameters = nlohmann::json::object();  // of the workload: m, n, k
  std::optional<double> flop_per_sample;
  std::string machine = "cpu";
  std::int64_t units = 1;
  nlohmann::json config = nlohmann::json::object();
  std::vector<Quantity> quantities;
  std::vector<TimelineEvent> timeline;  // of one step, where it was recorded; in files as Chrome traces alone
  nlohmann::json program, environment;

  const Quantity* find(std::string_view name) const;
  void add(std::string name, double value, std::string unit);  // a single measured value
};

// The time of a call, with every sample. Named `name`, in s.
Quantity time_quantity(std::string name, const Measurement& measurement);
// `amount` over the time of a call: a rate, with its samples where they are not to be had from another
// quantity of the result.
enum class KeepSamples { yes, no };
Quantity rate_quantity(std::string name, double amount, std::string unit, const Measurement& measurement,
                       KeepSamples keep = KeepSamples::no);

Metric to_metric(const Quantity& quantity);
Quantity to_quantity(const Metric& metric);

nlohmann::json to_json(const Result& result);
// Throws Error (bad_file) naming the member: another schema, a metric without a number, no metrics at all.
Result result_from_json(const nlohmann::json& json);

// One object where there is one result, an array otherwise.
std::string write_results(const std::vector<Result>& results);
// Takes either. Input is hostile: at most 64 MB, 64 levels deep. Throws Error (bad_file) with `where`.
std::vector<Result> read_results(std::string_view text, const std::string& where);

}  // namespace superstep::lab
