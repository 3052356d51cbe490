#include "superstep/lab/measure/quantities.h"

namespace superstep::lab {
namespace {

record::Quantity with_summary(record::Quantity quantity, const Measurement& measurement) {
  const record::Summary summary = record::summarize(quantity.samples);
  quantity.statistic = "median";
  quantity.value = summary.median;
  quantity.low = summary.low;
  quantity.high = summary.high;
  quantity.flags = measurement.flags;
  quantity.details = {{"warmup", measurement.warm_up_calls},
                      {"warmup_seconds", measurement.warm_up_seconds},
                      {"steady", measurement.steady},
                      {"calls_per_sample", measurement.calls_per_sample},
                      {"coverage", summary.coverage},
                      {"clustering", summary.clustering},
                      {"drift", summary.drift},
                      {"stopped", name_of(measurement.stop)}};
  return quantity;
}

}  // namespace

record::Quantity time_quantity(std::string name, const Measurement& measurement) {
  return with_summary({.name = std::move(name), .unit = "s", .samples = measurement.samples}, measurement);
}

record::Quantity rate_quantity(std::string name, double amount, std::string unit,
                               const Measurement& measurement, KeepSamples keep) {
  record::Quantity quantity{.name = std::move(name), .unit = std::move(unit)};
  for (double seconds : measurement.samples) quantity.samples.push_back(amount / seconds);
  quantity = with_summary(std::move(quantity), measurement);
  if (keep == KeepSamples::no) quantity.samples.clear();
  return quantity;
}

}  // namespace superstep::lab
