// What the rules of cuts share. A family of operators has its rules in a file of its own and lists them in
// one function; cut.cpp puts the families together.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "superstep/target/ipu/cut/cut.h"
#include "superstep/target/ipu/cut/cycles.h"
#include "superstep/target/ipu/cut/part.h"

namespace superstep::target::ipu {

// What an IPU knows of operators: how they are cut, and how long a part of theirs takes. Every operator
// stands in one rule; element-wise ones (a trait of theirs) need none.
struct CutRule {
  Cuts (*cuts)(const Operation&);
  std::vector<std::string_view> operators;
  PartCycles* cycles = nullptr;  // none: an operation on every element, as hard as op::Traits::effort says
};

const CutRule* rule_of(std::string_view op);  // null when there is none

// Tile cycles of a part of the operator, all workers together; at least one.
std::uint64_t part_cycles(const machine::ipu::Hardware& hardware, std::string_view op,
                          const PartTypes& types);

std::span<const CutRule> product_cut_rules();
std::span<const CutRule> reduction_cut_rules();
std::span<const CutRule> pooling_cut_rules();
std::span<const CutRule> line_cut_rules();
std::span<const CutRule> index_cut_rules();
std::span<const CutRule> sequence_cut_rules();
std::span<const CutRule> resample_cut_rules();
std::span<const CutRule> random_cut_rules();
std::span<const CutRule> quantized_cut_rules();

// A cut that no operand follows.
Cut empty_cut(const Operation& op, std::int64_t units);

// A cut in which input i follows axis inputs[i] and output i axis outputs[i] (-1: whole). An operand whose
// extent there is one (it is broadcast) stays whole. Appended when every extent agrees and every result
// follows; null when not.
Cut* add_cut(Cuts& cuts, const Operation& op, std::int64_t units, const std::vector<std::int64_t>& inputs,
             const std::vector<std::int64_t>& outputs);

// The same for a dimension that results do not have. Those of `outputs` that do have it (-1: not) are each
// part's own; of the others it makes partial results.
Cut* add_summed_cut(Cuts& cuts, const Operation& op, std::int64_t units,
                    const std::vector<std::int64_t>& inputs, const std::vector<std::int64_t>& outputs = {});

// An operand whose units read overlapping elements of an axis.
CutOperand reading(int axis, std::vector<bsp::Interval> reads);

// Cuts along spatial axes: the operand `follower` (an input or an output) has the positions at axis 2 + i.
void add_window_cuts(Cuts& cuts, const Operation& op, std::size_t follower, bool is_input, bool summed);

}  // namespace superstep::target::ipu
