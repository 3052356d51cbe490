#include "superstep/lab/validate/operator_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/machine/ipu/operators.h"
#include "superstep/machine/ipu/superstep_cost.h"

namespace superstep::lab {
namespace {

using machine::ipu::Axis;
using machine::ipu::Convolution;
using machine::ipu::Hardware;
using machine::ipu::matrix_product;
using machine::ipu::Pass;
using machine::ipu::Plan;

struct Row {
  const Hardware& hardware;
  const PublishedTable& table;
  std::size_t index;

  // At least one, of what may be absent or 0 (`otherwise`) at least that.
  std::int64_t count(std::string_view column, std::int64_t otherwise = 1) const {
    return table.integer(index, column, otherwise, std::min<std::int64_t>(otherwise, 1));
  }
  const std::string& text(std::string_view column) const { return table.text(index, column); }
  bool does(std::string_view pass) const {
    for (const std::string& done : split(text("passes"), '+'))
      if (done == pass) return true;
    return false;
  }
  ElementType element() const { return text("dtype") == "half" ? ElementType::f16 : ElementType::f32; }
  ElementType partials() const { return text("partials") == "half" ? ElementType::f16 : ElementType::f32; }
};

Axis axis_of(const Row& row, const std::string& dimension) {
  Axis axis;
  axis.kernel = row.count("kernel_" + dimension);
  axis.stride = row.count("stride_" + dimension);
  axis.input = row.count("field_" + dimension);
  const std::int64_t padded =
      axis.input + row.count("pad_lower_" + dimension, 0) + row.count("pad_upper_" + dimension, 0);
  axis.output = std::max<std::int64_t>(1, (padded - axis.kernel) / axis.stride + 1);
  return axis;
}

Convolution convolution_of(const Row& row) {
  return {.groups = row.count("groups"),
          .batch = row.count("batch"),
          .in_channels = row.count("in_channels"),
          .out_channels = row.count("out_channels"),
          .axes = {axis_of(row, "h"), axis_of(row, "w")},
          .element = row.element(),
          .partials = row.partials()};
}

Plan passes_of(const Row& row, const Convolution& convolution) {
  Plan plan = plan_convolution(row.hardware, convolution, Pass::forward);
  if (row.does("bwd"))
    plan = in_sequence(plan,
                       plan_convolution(row.hardware, convolution, Pass::data_gradient, {.weights = true}));
  if (row.does("wu"))
    plan = in_sequence(plan, plan_convolution(row.hardware, convolution, Pass::weight_gradient));
  return plan;
}

// What lies on a tile over all passes: data, weights, results and their gradients.
Plan with_gradients(const Row& row, const Convolution& convolution, Plan plan) {
  const double elements =
      convolution.input_elements() + convolution.weight_elements() + convolution.output_elements();
  plan.bytes.operands = 2 * elements * static_cast<double>(machine::ipu::bytes_of(convolution.element)) /
                        static_cast<double>(row.hardware.tiles);
  return plan;
}

Plan convolution_row(const Row& row) {
  const Convolution convolution = convolution_of(row);
  return with_gradients(row, convolution, passes_of(row, convolution));
}

Plan connected_row(const Row& row) {
  const Convolution product = matrix_product(row.count("groups"), row.count("m"), row.count("k"),
                                             row.count("n"), row.element(), row.partials());
  return with_gradients(row, product, passes_of(row, product));
}

Plan product_row(const Row& row) {
  const Convolution product = matrix_product(row.count("groups"), row.count("m"), row.count("k"),
                                             row.count("n"), row.element(), row.partials());
  Plan plan = plan_convolution(row.hardware, product, Pass::forward);
  if (row.text("accumulate") == "yes")
    plan.cycles += plan_elementwise(row.hardware, {.elements = product.output_elements(),
                                                   .inputs = 2,
                                                   .element = row.element(),
                                                   .cycles_per_vector = 1,
                                                   .loop = 1})
                       .cycles;
  return plan;
}

// Octave convolutions: four between two resolutions, planned together as one of all multiply-accumulates at
// the high resolution's shape, with the changes of resolution beside it.
Plan octave_row(const Row& row) {
  const double in_share = row.table.number(row.index, "alpha_in", 0);
  const double out_share = row.table.number(row.index, "alpha_out", 0);
  const Convolution full = convolution_of(row);
  Convolution high = full;
  high.in_channels = std::llround((1 - in_share) * static_cast<double>(full.in_channels));
  high.out_channels = std::llround((1 - out_share) * static_cast<double>(full.out_channels));
  // Of the products of a plain convolution: low channels have a quarter of the positions, so that a product
  // with one of them on either side is a quarter (Y. Chen et al., "Drop an octave", ICCV 2019).
  const double share =
      1 - in_share * out_share * 0.75 - 0.75 * (in_share * (1 - out_share) + out_share * (1 - in_share));
  Hardware part = row.hardware;
  const double high_share = (1 - in_share) * (1 - out_share) / share;
  part.tiles = static_cast<std::int64_t>(high_share * static_cast<double>(part.tiles));
  const Row inner{part, row.table, row.index};
  Plan plan = passes_of(inner, high);
  // Each pass pools what goes down, spreads what comes up, and adds the two results of each resolution.
  const double resized = in_share * full.input_elements() + out_share * full.output_elements();
  const double bytes = static_cast<double>(machine::ipu::bytes_of(row.element()));
  for (int pass = 0; pass < 3; ++pass) {
    plan.cycles += plan_rearrangement(row.hardware, resized * bytes, 8).cycles;
    plan.cycles += plan_elementwise(row.hardware, {full.input_elements() / 4, 4, row.element(), 4}).cycles;
    plan.cycles += plan_elementwise(row.hardware, {full.output_elements(), 2, row.element(), 2}).cycles;
  }
  return with_gradients(row, full, plan);
}

Plan pooling_row(const Row& row) {
  const Axis h = axis_of(row, "h"), w = axis_of(row, "w");
  const double maps = static_cast<double>(row.count("batch") * row.count("in_channels"));
  const machine::ipu::Pooling pooling{.outputs = maps * static_cast<double>(h.output * w.output),
                                      .inputs = maps * static_cast<double>(h.input * w.input),
                                      .window = static_cast<double>(h.kernel * w.kernel),
                                      .element = row.element(),
                                      .maximum = row.text("op") == "MAX"};
  Plan plan = plan_pooling(row.hardware, pooling, false);
  return row.does("bwd") ? in_sequence(plan, plan_pooling(row.hardware, pooling, true)) : plan;
}

Plan reduction_row(const Row& row) {
  const std::vector<std::string> extents = split(row.text("shape"), 'x'), axes = split(row.text("dims"), '+');
  machine::ipu::Reduction reduction{.element = row.element()};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const auto extent = whole_number(extents[i]);
    if (!extent || *extent < 1)
      throw Error(ErrorCode::bad_file, fmt::format("column shape: '{}' is no extent", extents[i]),
                  row.table.where(row.index));
    const bool reduced = std::find(axes.begin(), axes.end(), std::to_string(i)) != axes.end();
    (reduced ? reduction.depth : reduction.outputs) *= static_cast<double>(*extent);
  }
  return plan_reduction(row.hardware, reduction);
}

Plan embedding_row(const Row& row) {
  const machine::ipu::Gather gather{row.count("table_rows"), row.count("row_size"), row.count("num_indices"),
                                    row.element()};
  Plan plan = plan_gather(row.hardware, gather);
  return row.does("wu") ? in_sequence(plan, plan_scatter_add(row.hardware, gather)) : plan;
}

Plan recurrent_row(const Row& row) {
  return plan_recurrent(row.hardware, {.steps = row.count("seq_len"),
                                       .batch = row.count("batch"),
                                       .inputs = row.count("input_size"),
                                       .hidden = row.count("hidden_size"),
                                       .gates = row.text("kind") == "lstm" ? 4 : 3,
                                       .element = row.element(),
                                       .training = row.does("bwd")});
}

machine::ipu::Blocked blocked_of(const Row& row) {
  const std::string& block = row.text("block");
  machine::ipu::Blocked work{
      .batch = row.count("batch"), .size = row.count("rank"), .element = row.element()};
  if (!block.empty() && block != "default") work.block = row.count("block");
  work.columns = row.count("rhs");
  work.upper = row.text("lower") == "false";
  return work;
}

Plan cholesky_row(const Row& row) { return plan_cholesky(row.hardware, blocked_of(row)); }
Plan triangular_row(const Row& row) { return plan_triangular_solve(row.hardware, blocked_of(row)); }

struct Family {
  std::string_view kind;
  Plan (*plan)(const Row&);
};

constexpr Family families[] = {
    {"conv", convolution_row},
    {"fc", connected_row},
    {"gemm", product_row},
    {"oct_conv", octave_row},
    {"pooling", pooling_row},
    {"reduce", reduction_row},
    {"lstm", recurrent_row},
    {"gru", recurrent_row},
    {"embedding", embedding_row},
    {"cholesky", cholesky_row},
    {"triangular_solve", triangular_row},
};

}  // namespace

bool has_operator_rows(const PublishedTable& table) {
  return table.has("kind") && table.has("cycles") && table.has("tiles");
}

std::optional<Plan> plan_operator_row(const Hardware& hardware, const PublishedTable& table,
                                      std::size_t row) {
  const std::string& kind = table.text(row, "kind");
  for (const Family& family : families)
    if (family.kind == kind) return family.plan({hardware, table, row});
  return std::nullopt;
}

double largest_tile(const Hardware& hardware, const Plan& plan) {
  const double ordinary = plan.bytes.operands + plan.bytes.temporary + plan.bytes.code;
  if (plan.bytes.interleaved == 0)
    return ordinary + static_cast<double>(plan.bytes.elements) * static_cast<double>(hardware.memory_element);
  return std::max(ordinary, static_cast<double>(hardware.interleaved_start)) + plan.bytes.interleaved + 24;
}

}  // namespace superstep::lab
