#include "superstep/record/result.h"

#include <fmt/format.h>

#include <algorithm>

namespace superstep::record {

Metric to_metric(const Quantity& quantity) {
  return {.name = quantity.name,
          .value = quantity.value,
          .unit = quantity.unit,
          .how = quantity.how,
          .samples = quantity.samples,
          .low = quantity.low,
          .high = quantity.high};
}

Quantity to_quantity(const Metric& metric) {
  return {.name = metric.name,
          .unit = metric.unit,
          .value = metric.value,
          .how = metric.how,
          .statistic = {},
          .samples = metric.samples,
          .low = metric.low,
          .high = metric.high,
          .flags = {}};
}

std::vector<Quantity> to_quantities(const std::vector<Metric>& metrics) {
  std::vector<Quantity> quantities;
  for (const Metric& metric : metrics) quantities.push_back(to_quantity(metric));
  return quantities;
}

const char* name_of(How how) { return how == How::predicted ? "predicted" : "measured"; }

How how_from_name(std::string_view name) { return name == "predicted" ? How::predicted : How::measured; }

const Quantity* Result::find(std::string_view name) const {
  const auto found = std::ranges::find(quantities, name, &Quantity::name);
  return found == quantities.end() ? nullptr : &*found;
}

void Result::add(std::string name, double value, std::string unit) {
  quantities.push_back({.name = std::move(name), .unit = std::move(unit), .value = value});
}

std::string usual_id(const Result& result) {
  std::string id = result.workload;
  if (!id.empty()) id += '-';
  id += result.command;
  if (result.number > 0) id += fmt::format("-{}", result.number);
  return id;
}

}  // namespace superstep::record
