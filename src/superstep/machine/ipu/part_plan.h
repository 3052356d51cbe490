// Plans of products that a program can run part by part: which part every tile gets, and what it computes.
#pragma once

#include "superstep/machine/ipu/product_forms.h"
#include "superstep/machine/ipu/tile_share.h"

namespace superstep::machine::ipu {

struct PartPlan {
  Plan plan;
  ProductForm form = ProductForm::collapsed;
  std::int64_t combined = 1;
  Grain grain;
  Partition partition;   // of the form's product
  bool swapped = false;  // the product's rows and outputs changed places first
};

// Whether parts may have some of a kernel's positions.
enum class Kernels : std::uint8_t { cut, whole };

// The fastest plan as plan_convolution finds it, of those whose parts are the pass itself on slices of the
// operands: no inputs are taken in turn.
PartPlan plan_parts(const Hardware& hardware, const Convolution& forward, Pass pass,
                    const Arrangement& arrangement = {}, Kernels kernels = Kernels::cut);

// Which operands of the pass (left: the first, right: the second) are better put in order by all tiles before
// parts receive them, when `part` is one that most tiles have.
OrderedFirst ordered_first(const Hardware& hardware, const PartPlan& plan, const Convolution& forward,
                           const Convolution& part, Pass pass, const Arrangement& arrangement = {});

// Cycles of a tile that does the pass on a part, by the plan's vertex: its compute, and the copies that put
// operands in order for it.
double part_cycles(const Hardware& hardware, const PartPlan& plan, const Convolution& part, Pass pass,
                   const Arrangement& arrangement = {}, const OrderedFirst& ordered = {});

// Cycles of a copy of so many bytes in which `atom` bytes stay together.
double ordering_cycles(const Hardware& hardware, double bytes, std::int64_t atom);

}  // namespace superstep::machine::ipu
