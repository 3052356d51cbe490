// Kernels by name: products, convolutions, recurrent layers, element-wise operators; collectives.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

struct Product {
  double batch = 1, rows = 1, columns = 1, inner = 1;
  double flops() const { return 2 * batch * rows * columns * inner; }
};

// Tiles of a result that GPUs' libraries take, and what a small one reaches of a large one's rate: chosen;
// what is left is in the constants and the neighbours.
struct Tile {
  double rows, columns, rate;
};
constexpr Tile tiles[] = {{256, 128, 1}, {128, 128, 0.95}, {128, 64, 0.85}, {64, 64, 0.7}, {32, 32, 0.4}};

// How many times longer than at its peak a machine of so many processors works: the last wave of tiles is
// not full, and tiles hang over the edges.
double wave_factor(const Product& p, double processors) {
  if (processors <= 1) return 1;
  double best = 0;
  for (const Tile& tile : tiles) {
    const double count = p.batch * std::ceil(p.rows / tile.rows) * std::ceil(p.columns / tile.columns);
    // Few tiles share out the inner extent, 256 of it at least (chosen).
    const double parts =
        std::clamp(std::floor(processors / count), 1.0, std::max(1.0, std::floor(p.inner / 256)));
    const double waves = std::ceil(count * parts / processors);
    const double work = waves * processors / parts * tile.rows * tile.columns;
    const double factor = work / (p.batch * p.rows * p.columns) / tile.rate;
    if (best == 0 || factor < best) best = factor;
  }
  return best;
}

// Arithmetic and bytes of a product, as seconds at the peaks.
void set_product(const RowAt& row, const Product& p, double bytes, TableCall& call) {
  const std::string& type = call.precision;
  call.peak_seconds = p.flops() / row.machine.peak(type);
  call.call.terms.compute = call.peak_seconds * wave_factor(p, row.machine.processors);
  call.call.terms.memory = row.machine.memory_rate > 0 ? bytes / row.machine.memory_rate : 0;
  call.roofline_seconds = std::max(call.peak_seconds, call.call.terms.memory);
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

}  // namespace

bool product_call(const RowAt& row, TableCall& call) {
  std::string name = row.text("workload");
  const bool batched = name.starts_with("bgemm_");
  const std::vector<std::string> parts = split(name.substr(batched ? 6 : 5), '_');
  const auto extents = extents_of(parts[0]);
  if (!extents || extents->size() != (batched ? 4U : 3U)) {
    call.reason = "no shape of a product";
    return false;
  }
  const auto& e = *extents;
  const Product p = batched ? Product{e[0], e[1], e[2], e[3]} : Product{1, e[0], e[1], e[2]};
  call.family = "products";
  const double element = machine::bytes_of_type(call.precision), out = std::max(2.0, element);
  set_product(row, p, p.batch * (element * p.inner * (p.rows + p.columns) + out * p.rows * p.columns), call);
  call.call.place = {std::log(p.batch), std::log(p.rows), std::log(p.columns), std::log(p.inner)};
  const std::string layout = parts.size() > 1 ? parts[1] : "nn";
  call.call.place.push_back(layout.starts_with('t') ? 1 : 0);
  set_keys(row.machine, "product " + call.precision, "product " + call.precision, call);
  return set_kernel_metric(row, p.flops(), call);
}

namespace {

// "w700" -> 700 by the letters before the number; "p1x2" gives p and its second number.
std::map<std::string, double> convolution_fields(const std::string& name) {
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

bool convolution_call(const RowAt& row, TableCall& call) {
  std::map<std::string, double> f = convolution_fields(row.text("workload").substr(5));
  for (const char* needed : {"w", "h", "c", "n", "k", "fw", "fh", "s", "s2"})
    if (!(f[needed] >= 1)) call.reason = "no shape of a convolution";
  if (!call.reason.empty()) return false;
  const double out_w = std::floor((f["w"] + 2 * f["p"] - f["fw"]) / f["s"]) + 1,
               out_h = std::floor((f["h"] + 2 * f["p2"] - f["fh"]) / f["s2"]) + 1;
  const double positions = f["n"] * out_w * out_h, window = f["c"] * f["fw"] * f["fh"];
  if (!(positions >= 1)) {
    call.reason = "no shape of a convolution";
    return false;
  }
  const std::string& metric = row.text("metric");
  const std::string pass = metric == "time_backward_inputs"    ? "inputs"
                           : metric == "time_backward_weights" ? "weights"
                                                               : "forward";
  const Product p = pass == "weights"  ? Product{1, f["k"], window, positions}
                    : pass == "inputs" ? Product{1, f["n"] * f["w"] * f["h"], f["c"],
                                                 f["k"] * f["fw"] * f["fh"] / (f["s"] * f["s2"])}
                                       : Product{1, positions, f["k"], window};
  call.family = "convolutions";
  const double elements = f["n"] * f["w"] * f["h"] * f["c"] + positions * f["k"] + window * f["k"];
  set_product(row, p, machine::bytes_of_type(call.precision) * elements, call);
  call.call.place = {std::log(positions), std::log(f["k"]), std::log(f["c"]), std::log(f["fw"] * f["fh"]),
                     std::log(f["s"] * f["s2"])};
  const std::string law = fmt::format("convolution {} {}", pass, call.precision);
  set_keys(row.machine, law, law, call);
  return set_kernel_metric(row, p.flops(), call);
}

bool recurrent_call(const RowAt& row, TableCall& call) {
  const std::string& name = row.text("workload");
  std::map<std::string, double> f = convolution_fields(name.substr(name.find('_') + 1));
  if (!(f["h"] >= 1 && f["n"] >= 1 && f["t"] >= 1)) {
    call.reason = "no shape of a recurrent layer";
    return false;
  }
  const std::string kind = name.substr(0, name.find('_'));
  const double gates = kind == "lstm" ? 4 : kind == "gru" ? 3 : 1;
  const double weights = gates * 2 * f["h"] * f["h"], flops = 2 * weights * f["n"] * f["t"];
  const bool whole = row.text("metric") == "time_backward_weights";  // one product over all steps
  call.family = "recurrent layers";
  call.peak_seconds = flops / row.machine.peak(call.precision);
  call.call.terms = {.launches = whole ? 1 : f["t"], .compute = call.peak_seconds};
  const double element = machine::bytes_of_type(call.precision);
  // Weights that stay in the cache are not read anew.
  const bool cached = element * weights < row.machine.cache;
  if (row.machine.memory_rate > 0)
    call.call.terms.memory = element * weights * (whole || cached ? 1 : f["t"]) / row.machine.memory_rate;
  call.roofline_seconds = std::max(call.peak_seconds, call.call.terms.memory);
  call.call.place = {std::log(f["h"]), std::log(f["n"]), std::log(f["t"]), gates};
  const std::string law = fmt::format("recurrent {} {}", row.text("metric"), call.precision);
  set_keys(row.machine, law, law, call);
  return set_kernel_metric(row, flops, call);
}

bool vector_call(const RowAt& row, TableCall& call) {
  const std::string& name = row.text("workload");
  const std::size_t under = name.find('_');
  const auto extents = under == std::string::npos ? std::nullopt : extents_of(name.substr(under + 1));
  if (!extents || extents->size() != 2) {
    call.reason = "no workload " + name;
    return false;
  }
  const std::string op = name.substr(0, under);
  const double elements = (*extents)[0] * (*extents)[1];
  const bool two_inputs = op == "add" || op == "mul" || op == "div" || op == "pow";
  constexpr double f32_bytes = 4;
  call.family = "vector operators";
  call.peak_seconds =
      row.machine.memory_rate > 0 ? (two_inputs ? 3 : 2) * f32_bytes * elements / row.machine.memory_rate : 0;
  call.roofline_seconds = call.peak_seconds;
  call.call.terms.memory = call.peak_seconds;
  call.call.place = {std::log((*extents)[0]), std::log((*extents)[1])};
  // Of element-wise operators only bytes count; a norm and a soft-max go over rows.
  const std::string kind = op == "softmax" || op == "layernorm" ? op : "element-wise";
  set_keys(row.machine, "vector " + kind, "vector " + kind, call);
  return set_kernel_metric(row, 0, call);
}

bool collective_call(const RowAt& row, TableCall& call) {
  const std::string& name = row.text("workload");
  const std::size_t dash = name.find('-');
  const auto elements = dash == std::string::npos ? std::nullopt : whole_number(name.substr(dash + 1));
  if (!elements || *elements < 1) {
    call.reason = "no message of a collective";
    return false;
  }
  const std::string kind = name.substr(0, dash);
  const double units = row.count("units", 1), groups = row.count("replicas", 1);
  constexpr double f32_bytes = 4;
  const double bytes = f32_bytes * static_cast<double>(*elements);
  const double share =
      kind == "permute" ? 1 : (kind == "allreduce" ? 2.0 : 1.0) * (units - 1) / std::max(1.0, units);
  call.family = "collectives";
  call.peak_seconds = row.machine.link_rate > 0 ? share * bytes / row.machine.link_rate : share * bytes / 1e9;
  call.roofline_seconds = call.peak_seconds;
  call.call.terms = {.launches = 1, .memory = call.peak_seconds};
  call.call.place = {std::log(bytes)};
  set_keys(row.machine, fmt::format("{} of {} x {}", kind, units, groups), kind, call);
  const std::string &metric = row.text("metric"), &unit = row.text("unit");
  if (metric == "network_throughput" && unit == "GB/s") {
    call.is_rate = true;
    call.amount = bytes / 1e9;
    return true;
  }
  return set_kernel_metric(row, 0, call);
}

}  // namespace superstep::lab
