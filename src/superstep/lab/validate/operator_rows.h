// Rows of single operators measured on a vendor's simulator, and the plans that predict them.
#pragma once

#include <optional>
#include <string>

#include "superstep/lab/validate/table.h"
#include "superstep/machine/ipu/hardware.h"
#include "superstep/machine/ipu/plan.h"

namespace superstep::lab {

// Whether the table has the columns of such rows.
bool has_operator_rows(const PublishedTable& table);

// The plan of a row; nothing when no planner covers its kind.
std::optional<machine::ipu::Plan> plan_operator_row(const machine::ipu::Hardware& hardware,
                                                    const PublishedTable& table, std::size_t row);

// Bytes of the fullest tile, gaps included, as the rows count them: what must lie in interleaved memory
// begins where that begins.
double largest_tile(const machine::ipu::Hardware& hardware, const machine::ipu::Plan& plan);

}  // namespace superstep::lab
