// What the model and the pictures of the drag of gravity waves share. Internal to the workload.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "superstep/baseline/flow/gravity_wave.h"
#include "superstep/workload/table.h"

namespace superstep::workload {

// What the model says of columns of air: outputs drag_u and drag_v, [n, levels] each.
baseline::DragRows found_drag(std::span<const Tensor> outputs);
baseline::DragRows true_drag(const Fields& fields, std::span<const std::int64_t> indices);

// Size and skill by height, then the columns that went best and worst.
std::string present_wave_drag(const Fields& fields, const Predictions& found, page::Page& page);

}  // namespace superstep::workload
