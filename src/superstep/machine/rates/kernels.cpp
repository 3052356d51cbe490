// Kernels: products, convolutions, recurrent layers, operators on vectors; collectives.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/machine/rates/levels.h"

namespace superstep::machine {
namespace {

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

double seconds_of(double bytes, const MachineFacts& machine) {
  return machine.memory_rate > 0 ? bytes / machine.memory_rate : 0;
}

// Arithmetic and bytes of a product, as seconds at the peaks.
void set_product(const MachineFacts& machine, const Product& p, double bytes, const std::string& type,
                 LawCall& call) {
  call.flops = p.flops();
  call.bytes = bytes;
  call.peak_seconds = p.flops() / machine.peak(type);
  call.call.terms.compute = call.peak_seconds * wave_factor(p, machine.processors);
  call.call.terms.memory = seconds_of(bytes, machine);
  call.roofline_seconds = std::max(call.peak_seconds, call.call.terms.memory);
}

}  // namespace

LawCall product_call(const MachineFacts& machine, const Product& p, const std::string& type) {
  LawCall call{.family = "products", .call = {}};
  const double element = bytes_of_type(type), out = std::max(2.0, element);
  set_product(machine, p, p.batch * (element * p.inner * (p.rows + p.columns) + out * p.rows * p.columns),
              type, call);
  call.call.place = {std::log(p.batch), std::log(p.rows), std::log(p.columns), std::log(p.inner),
                     p.transposed ? 1.0 : 0.0};
  file_call(call, machine, {"product " + type, "product " + width_of(type), "product"}, "product " + type);
  return call;
}

bool Convolution::valid() const {
  return width >= 1 && height >= 1 && channels >= 1 && batch >= 1 && kernels >= 1 && window_width >= 1 &&
         window_height >= 1 && stride_width >= 1 && stride_height >= 1 &&
         width + 2 * pad_width >= window_width && height + 2 * pad_height >= window_height;
}

LawCall convolution_call(const MachineFacts& machine, const Convolution& c, Pass pass,
                         const std::string& type) {
  const double out_width = std::floor((c.width + 2 * c.pad_width - c.window_width) / c.stride_width) + 1,
               out_height = std::floor((c.height + 2 * c.pad_height - c.window_height) / c.stride_height) + 1;
  const double positions = c.batch * out_width * out_height,
               window = c.channels * c.window_width * c.window_height;
  const double inputs = c.batch * c.width * c.height;
  const Product p =
      pass == Pass::weights ? Product{1, c.kernels, window, positions}
      : pass == Pass::inputs
          ? Product{1, inputs, c.channels,
                    c.kernels * c.window_width * c.window_height / (c.stride_width * c.stride_height)}
          : Product{1, positions, c.kernels, window};
  LawCall call{.family = "convolutions", .call = {}};
  const double elements = inputs * c.channels + positions * c.kernels + window * c.kernels;
  set_product(machine, p, bytes_of_type(type) * elements, type, call);
  call.call.place = {std::log(positions), std::log(c.kernels), std::log(c.channels),
                     std::log(c.window_width * c.window_height), std::log(c.stride_width * c.stride_height)};
  constexpr const char* names[] = {"forward", "inputs", "weights"};
  const std::string kind = fmt::format("convolution {}", names[static_cast<std::size_t>(pass)]);
  file_call(call, machine, {kind + " " + width_of(type), kind, "convolution"});
  return call;
}

LawCall recurrent_call(const MachineFacts& machine, const Recurrent& layer, const std::string& type) {
  const double gates = layer.cell == "lstm" ? 4 : layer.cell == "gru" ? 3 : 1;
  const double weights = gates * 2 * layer.width * layer.width;
  LawCall call{.family = "recurrent layers", .call = {}};
  call.flops = 2 * weights * layer.batch * layer.steps;
  const bool whole = layer.pass == "time_backward_weights";  // one product over all steps
  call.peak_seconds = call.flops / machine.peak(type);
  const double element = bytes_of_type(type);
  // Weights that stay in the cache are not read anew.
  const bool cached = element * weights < machine.cache;
  call.bytes = element * weights * (whole || cached ? 1 : layer.steps);
  call.call.terms = {.launches = whole ? 1 : layer.steps,
                     .compute = call.peak_seconds,
                     .memory = seconds_of(call.bytes, machine)};
  call.roofline_seconds = std::max(call.peak_seconds, call.call.terms.memory);
  call.call.place = {std::log(layer.width), std::log(layer.batch), std::log(layer.steps), gates};
  const std::string kind = "recurrent " + layer.pass;
  file_call(call, machine, {kind + " " + width_of(type), kind, "recurrent"});
  return call;
}

LawCall vector_call(const MachineFacts& machine, const std::string& op, double rows, double columns) {
  const bool two_inputs = op == "add" || op == "mul" || op == "div" || op == "pow";
  constexpr double f32_bytes = 4;
  LawCall call{.family = "vector operators", .call = {}};
  call.bytes = (two_inputs ? 3 : 2) * f32_bytes * rows * columns;
  call.peak_seconds = call.roofline_seconds = call.call.terms.memory = seconds_of(call.bytes, machine);
  call.call.place = {std::log(rows), std::log(columns)};
  // Of element-wise operators only bytes count; a norm and a soft-max go over rows.
  const std::string kind = op == "softmax" || op == "layernorm" ? op : "element-wise";
  file_call(call, machine, {"vector " + kind, "vector"});
  return call;
}

LawCall collective_call(const MachineFacts& machine, const Collective& c) {
  LawCall call{.family = "collectives", .call = {}};
  const double others = (c.units - 1) / std::max(1.0, c.units);
  call.bytes = c.kind == "permute" ? c.bytes : (c.kind == "allreduce" ? 2 : 1) * others * c.bytes;
  constexpr double unknown_rate = 1e9;  // a network of 10 Gbit/s, where no link is known
  call.peak_seconds = call.bytes / (machine.link_rate > 0 ? machine.link_rate : unknown_rate);
  call.roofline_seconds = call.peak_seconds;
  call.call.terms = {
      .launches = 1, .link = call.peak_seconds, .collectives = std::log2(std::max(1.0, c.units))};
  call.call.place = {std::log(c.bytes), std::log(std::max(1.0, c.units)), std::log(std::max(1.0, c.groups))};
  file_call(call, machine, {"collective " + c.kind, "collective"});
  return call;
}

}  // namespace superstep::machine
