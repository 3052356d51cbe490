#include "superstep/target/ipu/cut/combining.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/integers.h"
#include "superstep/machine/ipu/superstep_cost.h"
#include "superstep/machine/ipu/vertex_cycles.h"
#include "superstep/target/ipu/cut/operand_grid.h"

namespace superstep::target::ipu {
namespace {

using machine::ipu::bytes_of;

// `tiles` tiles, which have `tiles` partial results of each of the elements, add up `partials` of each.
double step_cycles(const machine::ipu::Hardware& hardware, std::int64_t elements, std::int64_t tiles,
                   std::int64_t partials) {
  const std::int64_t own = std::min(elements, std::max(ceil_div(elements, tiles), least_combined(tiles)));
  const double bytes = static_cast<double>(own * partials * bytes_of(ElementType::f32));
  const auto added =
      static_cast<double>(machine::ipu::reduce_strided_cycles(hardware, own, partials, ElementType::f32));
  return machine::ipu::superstep_cycles(hardware, added, bytes).total();
}

}  // namespace

std::int64_t combined_groups(std::int64_t partials) {
  return static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(partials))));
}

std::int64_t least_combined(std::int64_t partials) {
  return std::max<std::int64_t>(4, least_elements / std::max<std::int64_t>(1, partials / 4));
}

double combining_cycles(const machine::ipu::Hardware& hardware, std::int64_t elements,
                        std::int64_t partials) {
  if (partials <= 1) return 0;
  if (partials <= most_partials) return step_cycles(hardware, elements, partials, partials);
  const std::int64_t groups = combined_groups(partials), neighbours = ceil_div(partials, groups);
  return step_cycles(hardware, elements, neighbours, neighbours) +
         step_cycles(hardware, elements, partials, groups);
}

}  // namespace superstep::target::ipu
