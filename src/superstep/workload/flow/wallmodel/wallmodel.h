// What the wall model's data, model and pictures share. Internal to the workload.
#pragma once

#include <cstdint>
#include <string>

#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/table.h"

namespace superstep::workload {

// A table of points of a user's: features [n, width], snapshot [n], tau [n] and position [n, 3] where they
// are there. CSV by the names of columns, else HDF5. Throws Error (bad_file) naming what is missing or not
// finite.
Fields read_wall_points(const TaskSettings& settings, std::int64_t width);

// Stresses at points [n, 3] on the wall, seen from above: true, found and the difference, means of cells.
void present_wall_maps(page::Page& page, const Tensor& position, const Regression& stress,
                       std::span<const std::int64_t> indices);

}  // namespace superstep::workload
