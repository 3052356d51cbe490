// What came of something that was measured or predicted, with what it was done and where. The one type that
// every command makes, the records keep, and every format is written from.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/metric.h"

namespace superstep::record {

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

Metric to_metric(const Quantity& quantity);
Quantity to_quantity(const Metric& metric);
std::vector<Quantity> to_quantities(const std::vector<Metric>& metrics);

const char* name_of(How how);              // "measured", "predicted"
How how_from_name(std::string_view name);  // what is no prediction was measured

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
  std::string machine = "cpu";  // where it was done, or for what it was predicted
  std::int64_t units = 1;
  nlohmann::json config = nlohmann::json::object();
  std::vector<Quantity> quantities;
  std::vector<TimelineEvent> timeline;  // of one step, where it was recorded; in files as Chrome traces alone
  nlohmann::json program, environment;
  nlohmann::json details = nlohmann::json::object();  // further members in files: "data_sets" of a file shown
  std::string folder;                                 // of a run or a profile, on this machine; may be empty
  std::int64_t number = 0;                            // of the record it came from; 0 where it came from none

  const Quantity* find(std::string_view name) const;
  void add(std::string name, double value, std::string unit);  // a single measured value
};

// What names a result that was given no id: "braggnn-train", and with the number of its record
// "braggnn-train-12".
std::string usual_id(const Result& result);

}  // namespace superstep::record
