#include "superstep/machine/ipu/tile_share.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/integers.h"
#include "superstep/base/text.h"
#include "superstep/machine/ipu/superstep_cost.h"
#include "superstep/machine/ipu/vertex_cycles.h"

namespace superstep::machine::ipu {

const char* name_of(Vertex vertex) {
  constexpr const char* names[] = {"AMP 1x1",      "AMP Nx1",       "horizontal MAC",
                                   "vertical MAC", "outer product", "SLIC"};
  static_assert(std::size(names) == static_cast<std::size_t>(last_vertex) + 1);
  return names[static_cast<std::size_t>(vertex)];
}

std::int64_t Partition::tiles() const {
  std::int64_t count = groups * outputs * inputs * kernel;
  for (std::int64_t split : rows) count *= split;
  return count;
}

std::string Partition::to_string() const {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, std::int64_t split) {
    if (split > 1) parts.push_back(fmt::format("{} {}", name, split));
  };
  add("groups", groups);
  std::vector<std::string> field;
  for (std::int64_t split : rows) field.push_back(fmt::format("{}", split));
  if (std::any_of(rows.begin(), rows.end(), [](std::int64_t split) { return split > 1; }))
    parts.push_back("rows " + join(field, "x"));
  add("outputs", outputs);
  add("inputs", inputs);
  add("kernel", kernel);
  add("outputs in turn", serial_outputs);
  add("inputs in turn", serial_inputs);
  return parts.empty() ? "one tile" : join(parts, ", ");
}

namespace {

// Parts are whole grains; the largest part of `extent` after a parallel and a serial split.
std::int64_t part(std::int64_t extent, std::int64_t grain, std::int64_t parallel, std::int64_t serial) {
  return ceil_div(ceil_div(extent, grain), parallel * serial) * grain;
}

// Inputs that `outputs` of an axis read through `kernel` positions.
std::int64_t reads(const Axis& axis, std::int64_t outputs, std::int64_t kernel) {
  return std::min(axis.input, (outputs - 1) * axis.stride / axis.dilation +
                                  ceil_div((kernel - 1) * axis.kernel_step + 1, axis.dilation));
}

}  // namespace

double TileShare::macs() const {
  return static_cast<double>(groups * positions * outputs * inputs) *
         static_cast<double>(kernel_rows * kernel_columns);
}

TileShare share_of(const Product& product, const Grain& grain, const Partition& partition) {
  TileShare share;
  find_share(product, grain, partition, share);
  return share;
}

void find_share(const Product& product, const Grain& grain, const Partition& partition, TileShare& share) {
  share.rows.clear();
  share.positions = share.kernel_rows = share.kernel_columns = 1;
  share.groups = ceil_div(product.groups, partition.groups);
  share.outputs = part(product.outputs, grain.outputs, partition.outputs, partition.serial_outputs);
  share.inputs = part(product.inputs, grain.inputs, partition.inputs, partition.serial_inputs);
  const std::size_t spatial = product.rows.size() - product.window.size();
  double gathered = product.gather_share;
  for (std::size_t i = 0; i < product.rows.size(); ++i) {
    const std::int64_t extent = ceil_div(product.rows[i], partition.rows[i]);
    share.rows.push_back(extent);
    share.positions *= extent;
    if (i < spatial) {
      gathered *= static_cast<double>(extent);
      continue;
    }
    const Axis& axis = product.window[i - spatial];
    const std::int64_t kernel = i == spatial ? ceil_div(axis.kernel, partition.kernel) : axis.kernel;
    (i == spatial ? share.kernel_rows : share.kernel_columns) *= kernel;
    gathered *= static_cast<double>(reads(axis, extent, kernel));
  }
  const double groups = static_cast<double>(share.groups);
  share.left = groups * gathered * static_cast<double>(share.inputs);
  share.right = groups * static_cast<double>(share.inputs * share.outputs) *
                static_cast<double>(share.kernel_rows * share.kernel_columns);
  share.partials = groups * static_cast<double>(share.positions * share.outputs);
}

namespace {

// Of an axis of a window, at least so many inputs are read an output.
double least_reads(const Axis& axis) {
  return std::min(1.0 / static_cast<double>(axis.dilation),
                  static_cast<double>(axis.input) / static_cast<double>(axis.output));
}

}  // namespace

void find_least_share(const Product& product, const Grain& grain, const Partition& partition,
                      std::size_t known, std::int64_t tiles, TileShare& share) {
  find_share(product, grain, partition, share);  // groups, channels, kernel
  const std::size_t count = product.rows.size(), spatial = count - product.window.size();
  std::int64_t rest = 1, before = 1, dilations = 1;
  double gathered = product.gather_share;
  for (std::size_t i = 0; i < count; ++i) {
    const Axis* axis = i < spatial ? nullptr : &product.window[i - spatial];
    if (i < known) {
      before *= share.rows[i];
      const std::int64_t kernel = i == spatial ? share.kernel_rows : axis ? axis->kernel : 1;
      gathered *= static_cast<double>(axis ? reads(*axis, share.rows[i], kernel) : share.rows[i]);
      continue;
    }
    rest *= product.rows[i];
    share.rows[i] = 1;
    if (!axis) continue;
    gathered *= least_reads(*axis);
    if (i + 1 < count) dilations *= axis->dilation;
  }
  rest = ceil_div(rest, tiles);
  share.rows[count - 1] = ceil_div(rest, dilations);
  share.positions = before * rest;
  const double groups = static_cast<double>(share.groups);
  share.left = groups * gathered * static_cast<double>(rest * share.inputs);
  share.partials = groups * static_cast<double>(share.positions * share.outputs);
}

namespace {

// Output positions that meet one kernel position: all of them, unless the inputs are dilated.
std::int64_t live_positions(const Product& product, const TileShare& share, std::size_t axis_index) {
  const std::size_t spatial = product.rows.size() - product.window.size();
  const std::int64_t dilation = axis_index < spatial ? 1 : product.window[axis_index - spatial].dilation;
  return ceil_div(share.rows[axis_index], dilation);
}

std::int64_t innermost(const Product& product, const TileShare& share) {
  return live_positions(product, share, product.rows.size() - 1);
}

std::int64_t outer_rows(const Product& product, const TileShare& share) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i + 1 < product.rows.size(); ++i) count *= live_positions(product, share, i);
  return count;
}

// As many groups as fill four channels are one.
SlicWork slic_work(const Product& product, const Grain& grain, const TileShare& share) {
  const std::int64_t channels = std::max(grain.inputs, grain.outputs);
  return {.channels = channels,
          .conv_groups = ceil_div(share.groups, 4 / channels),
          .kernel_rows = share.kernel_rows,
          .kernel_columns = share.kernel_columns,
          .rows = outer_rows(product, share),
          .row_positions = innermost(product, share),
          .stride = product.window.back().stride,
          .units = grain.units,
          .partials = product.partials};
}

double vertex_cycles(const Hardware& hardware, const Product& product, const Grain& grain,
                     const TileShare& share) {
  const AmpForm form{product.element, product.partials, grain.units};
  const AmpWork work{share.groups, share.inputs / grain.inputs, share.outputs / grain.outputs, grain.outputs,
                     grain.inputs};
  const std::int64_t rows = outer_rows(product, share), columns = innermost(product, share);
  switch (grain.vertex) {
    case Vertex::amp_1x1: return static_cast<double>(amp_1x1_cycles(hardware, form, work, share.positions));
    case Vertex::amp_nx1:
      return static_cast<double>(
          amp_nx1_cycles(hardware, form, work,
                         {share.kernel_rows, share.kernel_columns, grain.kernel_height, rows, columns}));
    case Vertex::horizontal_mac:
      return static_cast<double>(
          horizontal_mac_cycles(hardware, product.element, product.partials,
                                {share.groups, 1, 1, share.outputs, share.inputs,
                                 share.kernel_rows * share.kernel_columns, rows, columns}));
    case Vertex::vertical_mac:
      return static_cast<double>(vertical_mac_cycles(hardware, ceil_div(share.groups, 4), share.inputs,
                                                     rows * columns, share.kernel_rows,
                                                     share.kernel_columns));
    case Vertex::outer_product:
      return static_cast<double>(
          share.groups * outer_product_cycles(hardware, share.positions, share.outputs, product.element));
    case Vertex::slic: return static_cast<double>(slic_cycles(hardware, slic_work(product, grain, share)));
  }
  return 0;
}

// Bytes that a tile does not have already, when the operand is spread evenly over all tiles.
double received(const Hardware& hardware, double elements, double all_elements, std::int64_t bytes) {
  const double own = all_elements / static_cast<double>(hardware.tiles);
  return std::max(0.0, elements - own) * static_cast<double>(bytes);
}

double all_left(const Product& product) {
  double count = product.gather_share * static_cast<double>(product.groups * product.inputs);
  const std::size_t spatial = product.rows.size() - product.window.size();
  for (std::size_t i = 0; i < product.rows.size(); ++i)
    count *= static_cast<double>(i < spatial ? product.rows[i] : product.window[i - spatial].input);
  return count;
}

double all_right(const Product& product) {
  double count = static_cast<double>(product.groups) * static_cast<double>(product.inputs * product.outputs);
  for (const Axis& axis : product.window) count *= static_cast<double>(axis.kernel);
  return count;
}

// A copy that all tiles share before the exchange.
Cycles reorder_first(const Hardware& hardware, const Reorder& reorder, double all_bytes) {
  const double spread = all_bytes / static_cast<double>(hardware.tiles);
  return rearrange_cycles(hardware, spread, reorder.atom) + exchange_phase(hardware, spread);
}

bool reorders_first(const Hardware& hardware, const Reorder& reorder, double tile_bytes, double all_bytes) {
  return reorder.needed && !reorder.expands &&
         reorder_first(hardware, reorder, all_bytes).total() <
             rearrange_cycles(hardware, tile_bytes, reorder.atom).total();
}

// Either that, or each tile makes it of what it received.
Cycles reorder_cycles(const Hardware& hardware, const Reorder& reorder, double tile_bytes, double all_bytes) {
  if (!reorder.needed) return {};
  return reorders_first(hardware, reorder, tile_bytes, all_bytes)
             ? reorder_first(hardware, reorder, all_bytes)
             : rearrange_cycles(hardware, tile_bytes, reorder.atom);
}

// Elements of the left operand as a copy has them, a folded window's more than once.
double left_copied(const TileShare& share) {
  return static_cast<double>(share.groups * share.positions * share.inputs);
}

Cycles gather_cycles(const Hardware& hardware, const Product& product, const Partition& partition,
                     const TileShare& share) {
  const std::int64_t bytes = bytes_of(product.element);
  double left = received(hardware, share.left, all_left(product), bytes);
  // Two neighbouring tiles that need the same rows receive them together, at twice the rate.
  if (partition.outputs % 2 == 0) left /= 2;
  return exchange_phase(hardware, left + received(hardware, share.right, all_right(product), bytes));
}

Cycles reduce_partials(const Hardware& hardware, const Product& product, double partials,
                       std::int64_t depth) {
  if (depth == 1) return {};
  const double bytes = partials * static_cast<double>(bytes_of(product.partials)) *
                       static_cast<double>(depth - 1) / static_cast<double>(depth);
  const auto outputs = static_cast<std::int64_t>(partials / static_cast<double>(depth)) + 1;
  return superstep_cycles(
      hardware, static_cast<double>(reduce_strided_cycles(hardware, outputs, depth, product.partials)),
      bytes);
}

Cycles turn_cycles(const Hardware& hardware, const Product& product, const Partition& partition,
                   const TileShare& share, std::int64_t depth) {
  if (partition.serial_outputs * partition.serial_inputs == 1) return {};
  Cycles cycles{.control = hardware.step_cycles};
  const double own = share.partials / static_cast<double>(depth);
  const double copied = own * static_cast<double>(bytes_of(product.element)) +
                        share.right * static_cast<double>(bytes_of(product.element)) / 4;
  cycles.rearrange = copied / static_cast<double>(hardware.memcpy_rate);
  if (partition.serial_inputs > 1)
    cycles.compute = static_cast<double>(elementwise_cycles(
        hardware, static_cast<std::int64_t>(own), hardware.vector_width(product.partials), 2, 30, 1));
  return cycles;
}

}  // namespace

double compute_bound(const Hardware& hardware, const Product& product, const Grain& grain,
                     const Partition& partition, const TileShare& share) {
  double macs = share.macs();
  for (const Axis& axis : product.window) macs /= static_cast<double>(axis.dilation);
  if (grain.vertex != Vertex::amp_1x1 && grain.vertex != Vertex::amp_nx1) macs = 0;
  return macs / hardware.peak_macs(product.element, product.partials) *
         static_cast<double>(partition.serial_inputs * partition.serial_outputs);
}

double temporary_bytes(const Product& product, const TileShare& share) {
  const double copies = share.left + share.right;
  return copies * static_cast<double>(bytes_of(product.element)) +
         share.partials * static_cast<double>(bytes_of(product.partials));
}

OrderedFirst ordered_first(const Hardware& hardware, const Product& product, const TileShare& share) {
  const double bytes = static_cast<double>(bytes_of(product.element));
  OrderedFirst ordered;
  if (reorders_first(hardware, product.left, left_copied(share) * bytes, all_left(product) * bytes))
    ordered.left = product.left.atom;
  if (reorders_first(hardware, product.right, share.right * bytes, all_right(product) * bytes))
    ordered.right = product.right.atom;
  return ordered;
}

double tile_cycles(const Hardware& hardware, const Product& product, const Grain& grain,
                   const TileShare& share, const OrderedFirst& ordered) {
  const double bytes = static_cast<double>(bytes_of(product.element));
  double cycles = vertex_cycles(hardware, product, grain, share);
  if (product.left.needed && ordered.left == 0)
    cycles += rearrange_cycles(hardware, left_copied(share) * bytes, product.left.atom).rearrange;
  if (product.right.needed && ordered.right == 0)
    cycles += rearrange_cycles(hardware, share.right * bytes, product.right.atom).rearrange;
  return cycles;
}

double least_cycles(const Hardware& hardware, const Product& product, const Grain& grain,
                    const Partition& partition, const TileShare& share) {
  const double cycles = cycles_of(hardware, product, grain, partition, share).total();
  const double turns = static_cast<double>(partition.serial_outputs * partition.serial_inputs);
  if (grain.vertex == Vertex::slic) {
    const SlicWork work = slic_work(product, grain, share);
    return cycles -
           turns * static_cast<double>(slic_cycles(hardware, work) - least_slic_cycles(hardware, work));
  }
  // Two positions a worker take longer than three.
  const std::int64_t turning = 3 * hardware.workers;
  if (grain.vertex != Vertex::amp_1x1 || share.positions >= turning) return cycles;
  TileShare more = share;
  more.positions = turning;
  return std::min(cycles, cycles + turns * (vertex_cycles(hardware, product, grain, more) -
                                            vertex_cycles(hardware, product, grain, share)));
}

Cycles cycles_of(const Hardware& hardware, const Product& product, const Grain& grain,
                 const Partition& partition, const TileShare& share) {
  const double bytes = static_cast<double>(bytes_of(product.element));
  const std::int64_t depth = partition.inputs * partition.kernel;
  Cycles turn = gather_cycles(hardware, product, partition, share);
  turn += reorder_cycles(hardware, product.left, left_copied(share) * bytes, all_left(product) * bytes);
  turn += reorder_cycles(hardware, product.right, share.right * bytes, all_right(product) * bytes);
  turn.compute += vertex_cycles(hardware, product, grain, share);
  turn.sync += hardware.sync_cycles;
  turn += reduce_partials(hardware, product, share.partials, depth);
  turn += turn_cycles(hardware, product, partition, share, depth);
  const double turns = static_cast<double>(partition.serial_outputs * partition.serial_inputs);
  Cycles cycles = program_cycles(hardware) + turns * turn;
  if (depth > 1 || product.element == product.partials) return cycles;
  const auto elements =
      static_cast<std::int64_t>(share.partials * static_cast<double>(partition.serial_outputs));
  const std::int64_t cast = cast_cycles(hardware, elements, product.partials, product.element);
  cycles += superstep_cycles(hardware, static_cast<double>(cast), 0);
  return cycles;
}

namespace {

// Of an operand of `all` elements of which a tile needs `part`: one piece from each tile that holds some,
// where elements lie evenly and at least four together, and as many as their memory breaks it into, `run`
// elements lying together. What is a tile's own it sends once, in pieces as large.
struct Pieces {
  double all = 0, partners = 0;
  void add(const Hardware& hardware, double part, double all_elements, double run) {
    constexpr double least_together = 4;  // elements: 16 bytes of f32, as our programs lay values out
    const double tiles = static_cast<double>(hardware.tiles);
    if (part <= 0 || all_elements <= 0) return;
    const double holders = std::min(part / least_together, tiles * part / all_elements),
                 both_ways = 1 + std::min(1.0, all_elements / tiles / part);
    all += both_ways * std::max(holders, part / run);
    partners += both_ways * holders;
  }
};

// Channels lie in groups of eight, innermost, then positions (target/ipu/cut/channel_group.h); matrices row
// by row.
double left_run(const Product& product, const TileShare& share) {
  constexpr std::int64_t channel_group = 8;
  if (product.window.empty())
    return static_cast<double>(std::max(share.inputs, channel_group * share.positions));
  const std::int64_t columns = reads(product.window.back(), share.rows.back(), share.kernel_columns);
  return static_cast<double>(std::min(share.inputs, channel_group) * columns);
}

Pieces pieces_of(const Hardware& hardware, const Product& product, const Partition& partition,
                 const TileShare& share) {
  const double turns = static_cast<double>(partition.serial_outputs * partition.serial_inputs),
               depth = static_cast<double>(partition.inputs * partition.kernel);
  Pieces pieces;
  pieces.add(hardware, share.left, all_left(product), left_run(product, share));
  pieces.add(hardware, share.right, all_right(product), share.right);
  const double partial = depth > 1 ? 2 * depth : 0;  // in and out
  return {turns * (pieces.all + partial), turns * (pieces.partners + partial)};
}

}  // namespace

Plan cost_of(const Hardware& hardware, const Product& product, const Grain& grain, const Partition& partition,
             const TileShare& share) {
  const double bytes = static_cast<double>(bytes_of(product.element));
  Plan plan;
  plan.cycles = cycles_of(hardware, product, grain, partition, share);
  plan.vertex = name_of(grain.vertex);
  plan.tiles = partition.tiles();
  plan.bytes.temporary = (share.left + share.right) * bytes;
  if (product.left.expands)
    plan.bytes.temporary += static_cast<double>(share.positions * share.inputs) * bytes;
  plan.bytes.interleaved = share.partials * static_cast<double>(bytes_of(product.partials));
  plan.bytes.code = hardware.product_bytes;
  const Pieces pieces = pieces_of(hardware, product, partition, share);
  plan.bytes.pieces = pieces.all;
  plan.bytes.partners = pieces.partners;
  return plan;
}

}  // namespace superstep::machine::ipu
