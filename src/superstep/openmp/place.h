// Where the regions of a queue and their arrays go.
#pragma once

#include <span>

#include "superstep/openmp/plan.h"
#include "superstep/openmp/storage.h"

namespace superstep::openmp {

// The iterations' cells for a region on these arrays: along an array that has a place, so that the elements
// are at hand, unless that leaves the fullest tile more than twice the work. Arrays without a place get one
// where the region's parts touch them.
// Arrays that are gathered are left to place_gathered. `weights`: cycles of each iteration of a region with
// one distributed loop, when they differ.
Cells place_region(const Region& region, std::span<DeviceArray* const> arrays, const bsp::Device& device,
                   std::span<const double> weights = {});

// Gathered arrays without a place, of which each part asks for a stretch of its own, lie where that part is.
void place_gathered(const Plan& plan, std::span<DeviceArray* const> arrays);

// An array that no region has placed, in equal shares.
void place_evenly(DeviceArray& array, const bsp::Device& device);

}  // namespace superstep::openmp
