// A cell's figure out of the results of the commands that measured it, in the unit of the cell's row.
#pragma once

#include <span>
#include <vector>

#include "superstep/study/jobs.h"
#include "superstep/study/kept.h"
#include "superstep/study/predicted.h"

namespace superstep::study {

// `kept`: of the recipe's jobs, in their order.
Figure measured_figure(const Cells& cells, const Cell& cell, const Recipe& recipe,
                       std::span<const Kept* const> kept);
Figure executed_figure(const Cells& cells, const Cell& cell, const Recipe& recipe,
                       std::span<const Kept* const> kept);

}  // namespace superstep::study
