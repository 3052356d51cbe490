// A region dealt to tiles: which iterations each has, and the boxes of every array that they reach.
#pragma once

#include <memory>
#include <vector>

#include "superstep/bsp/compile/device.h"
#include "superstep/bsp/graph/vertex_class.h"
#include "superstep/openmp/cells.h"
#include "superstep/openmp/gather.h"

namespace superstep::openmp {

struct PlanPart {
  std::uint32_t tile = 0;
  Box iterations;  // of the distributed loops, not empty
};

// What the parts do with one array of the region, a box a part; empty boxes where nothing is touched.
struct ArrayUse {
  bool reads = false, writes = false;
  std::vector<Box> read, written, reached;
};

struct Plan {
  Region region;
  Cells iterations;
  std::vector<PlanPart> parts;
  std::vector<ArrayUse> uses;        // an array of the region
  std::vector<PartGathers> gathers;  // a part, when the region gathers
};

// `contents`: of arrays that steer, for a region that gathers. Throws Error ("footprint") when the boxes that
// two tiles write overlap, and what Inspector does.
Plan make_plan(Region region, Cells iterations, std::uint32_t workers, const SteeringContents& contents = {});

// The share of a worker of the part's iterations: along the first loop that is long enough, else the longest.
Box worker_share(const Box& iterations, std::int64_t worker, std::int64_t workers);

// Cycles of the tile, and operations, for one part.
bsp::PerfEstimate cost_of_part(const Plan& plan, const PlanPart& part, const bsp::Device& device);

// Runs the body once on the host over all iterations, on arrays as the host has them. Reductions are combined
// onto the arrays' values, in the order of iterations.
void run_on_host(const Region& region, const std::vector<void*>& arrays);

}  // namespace superstep::openmp
