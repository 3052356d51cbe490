// How an operator is cut: into which parts, on which tiles.
#pragma once

#include <optional>
#include <vector>

#include "superstep/machine/ipu/part_plan.h"
#include "superstep/target/ipu/place/spread.h"

namespace superstep::target::ipu {

// The plan of a product, from the same search that predictions take theirs from.
struct ProductChoice {
  machine::ipu::PartPlan plan;
  machine::ipu::Pass pass = machine::ipu::Pass::forward;
  machine::ipu::Arrangement arrangement;
  machine::ipu::OrderedFirst ordered = {};  // the first operand (left) and the second
};

struct Choice {
  Flattening flattening = Flattening::none;
  Partition partition;  // of the operator so flattened
  std::optional<ProductChoice> product;
};

// Where the operands lie, in the order of the operator's inputs; null where that is not known.
using Spreads = std::vector<const Spread*>;

// Products by the machine's planner; operators that can work on an operand where it lies do; others are cut
// evenly. An operator without cuts is one part.
Choice choose(const machine::ipu::Hardware& hardware, const Operation& operation, const Spreads& spreads);

// None when the operator is not a product.
std::optional<Choice> choose_product(const machine::ipu::Hardware& hardware, const Operation& operation);

// Modelled cycles of a part, all workers together.
std::uint64_t cycles_of(const machine::ipu::Hardware& hardware, const Choice& choice,
                        const Operation& operation, const PartShape& shape);

// The same for a part of a product.
std::uint64_t product_cycles(const machine::ipu::Hardware& hardware, const ProductChoice& choice,
                             const Operation& operation, const PartShape& shape);

}  // namespace superstep::target::ipu
