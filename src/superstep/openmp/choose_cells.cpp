// The grid of tiles for a region's iterations: the one whose fullest tile takes least.
#include <algorithm>
#include <cmath>

#include "superstep/base/integers.h"
#include "superstep/openmp/cells.h"

namespace superstep::openmp {
namespace {

// Worker cycles of functions for which a tile has no single instruction. Nobody has published them: guesses
// (GU) by the number of multiply-adds of usual f32 implementations.
constexpr double divide_cycles = 12, square_root_cycles = 12, exponential_cycles = 16, logarithm_cycles = 18,
                 sine_cycles = 20, power_cycles = 36;
// A loop start: two bounds and a branch (GU).
constexpr double loop_start_cycles = 3;
// An f64 operation in software, in worker cycles (GU; 30 to 300): a tile has no unit for it.
constexpr double emulated_double_cycles = 100;

// Bytes that the fullest tile receives for one array's accesses, and the pieces they come in.
struct Inflow {
  double bytes = 0, fragments = 0;
};

Inflow inflow(const Region& region, std::size_t array, const Box& part, double parts) {
  const RegionArray& description = region.arrays[array];
  Box reached;
  bool any = false;
  for (const Access& access : region.accesses) {
    if (access.array != static_cast<int>(array) || !access.reads) continue;
    if (access.gathered) return {};  // known when it has been inspected, after the cells
    const Box box = footprint(region, access, part);
    reached = any ? hull(reached, box) : box;
    any = true;
  }
  if (!any) return {};
  const auto size = static_cast<double>(size_in_bytes(description.type));
  const double own = static_cast<double>(description.count()) / parts;
  const double remote = std::max(0.0, static_cast<double>(reached.volume()) - own);
  if (remote == 0 || reached.rank() == 0) return {remote * size, remote > 0 ? 1.0 : 0.0};
  // Rows whose ends come from neighbours are a piece each; whole rows come together.
  const std::size_t last = reached.rank() - 1;
  const bool cut_rows = reached.extent(last) < description.extents[last];
  const auto rows = static_cast<double>(reached.volume() / std::max<std::int64_t>(1, reached.extent(last)));
  return {remote * size, cut_rows ? 2 * rows : 2};
}

}  // namespace

double cycles_of(const Work& work, ElementType type) {
  const double lanes = work.vectorised ? (type == ElementType::f32   ? 2
                                          : type == ElementType::f16 ? 4
                                                                     : 1)
                                       : 1;
  const double arithmetic = type == ElementType::f64 ? work.float_operations * emulated_double_cycles
                                                     : work.float_operations / lanes;
  const double functions = work.divisions * divide_cycles + work.square_roots * square_root_cycles +
                           work.exponentials * exponential_cycles + work.logarithms * logarithm_cycles +
                           work.sines * sine_cycles + work.powers * power_cycles;
  return (work.loads + work.stores) / lanes + arithmetic + work.integer_operations + functions +
         work.inner_loops * loop_start_cycles;
}

double flops_of(const Work& work) {
  return work.float_operations + work.divisions + work.square_roots + work.exponentials + work.logarithms +
         work.sines + work.powers;
}

ElementType widest_float(const Region& region) {
  ElementType widest = ElementType::f16;
  bool any = false;
  for (const RegionArray& array : region.arrays)
    if (is_floating(array.type)) {
      any = true;
      if (size_in_bytes(array.type) > size_in_bytes(widest)) widest = array.type;
    }
  return any ? widest : ElementType::f32;
}

Cells choose_cells(const Region& region, const bsp::Device& device) {
  const auto axes = static_cast<std::size_t>(region.distributed);
  const Box box = region.iterations();
  const double cycles = cycles_of(region.work, widest_float(region));
  std::vector<std::int64_t> counts(axes, 1), best(axes, 1);
  double least = -1;
  const auto cost = [&] {
    Box part = box;
    double points = 1, parts = 1;
    for (std::size_t k = 0; k < axes; ++k) {
      part.end[k] = part.begin[k] + ceil_div(box.extent(k), counts[k]);
      points *= static_cast<double>(part.extent(k));
      parts *= static_cast<double>(counts[k]);
    }
    double sum = std::ceil(points / device.workers) * device.workers * cycles;
    for (std::size_t array = 0; array < region.arrays.size(); ++array) {
      const Inflow in = inflow(region, array, part, parts);
      sum += in.bytes / device.exchange_bytes_per_cycle +
             in.fragments * device.constants.exchange_fragment_cycles.value;
    }
    return sum;
  };
  // Counts of cells that make no part smaller than a lower count does are passed over.
  const auto search = [&](auto& self, std::size_t axis, std::int64_t tiles) -> void {
    if (axis == axes) {
      const double sum = cost();
      if (least < 0 || sum < least) {
        least = sum;
        best = counts;
      }
      return;
    }
    const std::int64_t extent = box.extent(axis);
    std::int64_t before = -1;
    for (std::int64_t n = 1; n <= std::min(tiles, std::max<std::int64_t>(1, extent)); ++n) {
      const std::int64_t part = ceil_div(extent, n);
      if (part == before) continue;
      before = part;
      counts[axis] = n;
      self(self, axis + 1, tiles / n);
    }
    counts[axis] = 1;
  };
  search(search, 0, device.num_tiles());
  Cells cells = one_cell(box, 0);
  std::int64_t step = 1;
  for (std::size_t k = axes; k-- > 0;) {
    cells.cuts[k].clear();
    for (std::int64_t i = 0; i <= best[k]; ++i)
      cells.cuts[k].push_back(box.begin[k] + box.extent(k) * i / best[k]);
    cells.tile_steps[k] = step;
    step *= best[k];
  }
  return cells;
}

}  // namespace superstep::openmp
