// Kernels by name: products, convolutions, recurrent layers, element-wise operators; collectives.
#include <fmt/format.h>

#include <map>
#include <optional>

#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/lab/validate/tables/call.h"

namespace superstep::lab {
namespace {

std::optional<std::vector<double>> extents_of(const std::string& text, char separator = 'x') {
  std::vector<double> extents;
  for (const std::string& part : split(text, separator)) {
    const auto value = whole_number(part);
    if (!value || *value < 1) return std::nullopt;
    extents.push_back(static_cast<double>(*value));
  }
  return extents;
}

// Seconds of a kernel from the row's metric.
bool set_kernel_metric(const RowAt& row, double flops, TableCall& call) {
  const std::string &metric = row.text("metric"), &unit = row.text("unit");
  if (metric.starts_with("time")) {
    call.amount = unit == "ms" ? 1e3 : unit == "us" ? 1e6 : unit == "s" ? 1 : 0;
  } else if (metric == "compute_rate" && unit == "TFLOPS") {
    call.is_rate = true;
    call.amount = flops / 1e12;
  } else {
    call.amount = 0;
  }
  if (call.amount == 0) call.reason = fmt::format("metric {} in {}", metric, unit);
  return call.amount != 0;
}

bool take_kernel(const RowAt& row, machine::LawCall law, TableCall& call) {
  const double flops = law.flops;
  call.take(std::move(law));
  return set_kernel_metric(row, flops, call);
}

// "w700" -> 700 by the letters before the number; "p1x2" gives p and its second number.
std::map<std::string, double> fields_of(const std::string& name) {
  std::map<std::string, double> values;
  for (const std::string& field : split(name, '_')) {
    const std::size_t digits = field.find_first_of("0123456789");
    if (digits == std::string::npos || digits == 0) continue;
    const std::string key = field.substr(0, digits);
    const std::vector<std::string> numbers = split(field.substr(digits), 'x');
    for (std::size_t i = 0; i < numbers.size(); ++i)
      values[i == 0 ? key : key + "2"] = static_cast<double>(whole_number(numbers[i]).value_or(-1));
  }
  return values;
}

}  // namespace

bool product_row(const RowAt& row, TableCall& call) {
  const std::string name = row.text("workload");
  const bool batched = name.starts_with("bgemm_");
  const std::vector<std::string> parts = split(name.substr(batched ? 6 : 5), '_');
  const auto extents = extents_of(parts[0]);
  if (!extents || extents->size() != (batched ? 4U : 3U)) {
    call.reason = "no shape of a product";
    return false;
  }
  const auto& e = *extents;
  machine::Product p =
      batched ? machine::Product{e[0], e[1], e[2], e[3]} : machine::Product{1, e[0], e[1], e[2]};
  p.transposed = parts.size() > 1 && parts[1].starts_with('t');
  return take_kernel(row, machine::product_call(row.machine, p, call.precision), call);
}

bool convolution_row(const RowAt& row, TableCall& call) {
  std::map<std::string, double> f = fields_of(row.text("workload").substr(5));
  const machine::Convolution c{f["w"],  f["h"], f["c"],  f["n"], f["k"], f["fw"],
                               f["fh"], f["p"], f["p2"], f["s"], f["s2"]};
  if (!c.valid()) {
    call.reason = "no shape of a convolution";
    return false;
  }
  const std::string& metric = row.text("metric");
  const machine::Pass pass = metric == "time_backward_inputs"    ? machine::Pass::inputs
                             : metric == "time_backward_weights" ? machine::Pass::weights
                                                                 : machine::Pass::forward;
  return take_kernel(row, machine::convolution_call(row.machine, c, pass, call.precision), call);
}

bool recurrent_row(const RowAt& row, TableCall& call) {
  const std::string& name = row.text("workload");
  std::map<std::string, double> f = fields_of(name.substr(name.find('_') + 1));
  if (!(f["h"] >= 1 && f["n"] >= 1 && f["t"] >= 1)) {
    call.reason = "no shape of a recurrent layer";
    return false;
  }
  return take_kernel(row,
                     machine::recurrent_call(row.machine,
                                             {.cell = name.substr(0, name.find('_')),
                                              .pass = row.text("metric"),
                                              .width = f["h"],
                                              .batch = f["n"],
                                              .steps = f["t"]},
                                             call.precision),
                     call);
}

bool vector_row(const RowAt& row, TableCall& call) {
  const std::string& name = row.text("workload");
  const std::size_t under = name.find('_');
  const auto extents = under == std::string::npos ? std::nullopt : extents_of(name.substr(under + 1));
  if (!extents || extents->size() != 2) {
    call.reason = "no workload " + name;
    return false;
  }
  return take_kernel(
      row, machine::vector_call(row.machine, name.substr(0, under), (*extents)[0], (*extents)[1]), call);
}

bool collective_row(const RowAt& row, TableCall& call) {
  const std::string& name = row.text("workload");
  const std::size_t dash = name.find('-');
  const auto elements = dash == std::string::npos ? std::nullopt : whole_number(name.substr(dash + 1));
  if (!elements || *elements < 1) {
    call.reason = "no message of a collective";
    return false;
  }
  constexpr double f32_bytes = 4;
  const double bytes = f32_bytes * static_cast<double>(*elements);
  call.take(machine::collective_call(row.machine, {.kind = name.substr(0, dash),
                                                   .bytes = bytes,
                                                   .units = row.count("units", 1),
                                                   .groups = row.count("replicas", 1)}));
  const std::string &metric = row.text("metric"), &unit = row.text("unit");
  if (metric == "network_throughput" && unit == "GB/s") {
    call.is_rate = true;
    call.amount = bytes / 1e9;
    return true;
  }
  return set_kernel_metric(row, 0, call);
}

}  // namespace superstep::lab
