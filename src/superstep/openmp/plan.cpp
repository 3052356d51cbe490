#include "superstep/openmp/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/openmp/reduce.h"

namespace superstep::openmp {
namespace {

void check_written(const Plan& plan, std::size_t array) {
  const std::vector<Box>& boxes = plan.uses[array].written;
  std::vector<std::size_t> order(boxes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return boxes[a] < boxes[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Box& a = boxes[order[i]];
    if (a.empty()) continue;
    for (std::size_t j = i + 1; j < order.size() && boxes[order[j]].begin[0] < a.end[0]; ++j)
      if (!intersection(a, boxes[order[j]]).empty())
        refuse("footprint",
               fmt::format("the elements of {} that two tiles write lie among each other",
                           plan.region.arrays[array].name),
               to_string(plan.region.place), "let the outer loop run over blocks of the array");
  }
}

void inspect(Plan& plan, std::uint32_t workers, const SteeringContents& contents) {
  Inspector inspector(plan.region, contents);
  for (const PlanPart& part : plan.parts) {
    std::vector<Box> shares;
    for (std::int64_t worker = 0; worker < workers; ++worker)
      shares.push_back(worker_share(part.iterations, worker, workers));
    plan.gathers.push_back(inspector.part(shares));
  }
}

}  // namespace

Plan make_plan(Region region, Cells iterations, std::uint32_t workers, const SteeringContents& contents) {
  Plan plan{std::move(region), std::move(iterations), {}, {}, {}};
  plan.iterations.for_each([&](std::uint32_t tile, const Box& cell) {
    if (!cell.empty()) plan.parts.push_back({tile, cell});
  });
  plan.uses.resize(plan.region.arrays.size());
  for (std::size_t array = 0; array < plan.uses.size(); ++array) {
    ArrayUse& use = plan.uses[array];
    const Box none = whole(std::vector<std::int64_t>(plan.region.arrays[array].extents.size(), 0));
    use.read.assign(plan.parts.size(), none);
    use.written = use.reached = use.read;
  }
  for (const Access& access : plan.region.accesses) {
    ArrayUse& use = plan.uses[static_cast<std::size_t>(access.array)];
    use.reads = use.reads || access.reads;
    use.writes = use.writes || access.writes;
    for (std::size_t i = 0; i < plan.parts.size(); ++i) {
      const Box box = footprint(plan.region, access, plan.parts[i].iterations);
      if (access.reads) use.read[i] = hull(use.read[i], box);
      if (access.writes) use.written[i] = hull(use.written[i], box);
      use.reached[i] = hull(use.reached[i], box);
    }
  }
  for (std::size_t array = 0; array < plan.uses.size(); ++array) check_written(plan, array);
  if (plan.region.gathers()) inspect(plan, workers, contents);
  return plan;
}

Box worker_share(const Box& iterations, std::int64_t worker, std::int64_t workers) {
  Box share = iterations;
  if (iterations.rank() == 0) {
    return share;
  }
  std::size_t axis = 0;
  for (std::size_t k = 0; k < iterations.rank(); ++k) {
    if (iterations.extent(k) >= workers) {
      axis = k;
      break;
    }
    if (iterations.extent(k) > iterations.extent(axis)) axis = k;
  }
  const std::int64_t extent = iterations.extent(axis);
  share.begin[axis] = iterations.begin[axis] + extent * worker / workers;
  share.end[axis] = iterations.begin[axis] + extent * (worker + 1) / workers;
  return share;
}

bsp::PerfEstimate cost_of_part(const Plan& plan, const PlanPart& part, const bsp::Device& device) {
  // Starting a worker, and a loop (GU, as where cells are chosen).
  constexpr double start_cycles = 20, row_cycles = 3;
  const ElementType type = widest_float(plan.region);
  const double cycles = cycles_of(plan.region.work, type);
  double flops = static_cast<double>(part.iterations.volume()) * flops_of(plan.region.work);
  const auto number = static_cast<std::size_t>(&part - plan.parts.data());
  const auto* counted = plan.gathers.empty() ? nullptr : &plan.gathers[number].turns;
  double fullest = 0;
  for (std::int64_t worker = 0; worker < device.workers; ++worker) {
    const Box share = worker_share(part.iterations, worker, device.workers);
    const auto points = static_cast<double>(share.volume());
    const double rows = share.rank() > 0 && points > 0
                            ? points / static_cast<double>(share.extent(share.rank() - 1))
                            : points;
    double sum = start_cycles + rows * row_cycles + points * cycles;
    for (std::size_t loop = 0; counted && loop < plan.region.turns.size(); ++loop) {
      const auto turns = static_cast<double>((*counted)[static_cast<std::size_t>(worker)][loop]);
      sum += turns * cycles_of(plan.region.turns[loop], type);
      flops += turns * flops_of(plan.region.turns[loop]);
    }
    fullest = std::max(fullest, sum);
  }
  return {static_cast<std::uint64_t>(std::ceil(fullest * device.workers)), static_cast<std::uint64_t>(flops)};
}

void run_on_host(const Region& region, const std::vector<void*>& arrays) {
  const std::size_t loops = region.loops.size();
  const Box iterations = region.iterations();
  std::vector<void*> data;
  std::vector<std::int64_t> origin, strides;
  for (const Access& access : region.accesses) data.push_back(arrays[static_cast<std::size_t>(access.array)]);
  whole_strides(region, origin, strides);
  std::vector<std::vector<std::byte>> partial;
  std::vector<void*> reductions;
  for (const Reduction& reduction : region.reductions) {
    const RegionArray& array = region.arrays[static_cast<std::size_t>(reduction.array)];
    partial.emplace_back(static_cast<std::size_t>(array.count()) * size_in_bytes(array.type));
    fill_neutral(reduction.op, array.type, partial.back().data(), array.count());
    reductions.push_back(partial.back().data());
  }
  if (!iterations.empty())
    region.body({iterations.begin.data(), iterations.end.data(), data.data(), origin.data(), strides.data(),
                 static_cast<std::int64_t>(loops), reductions.data(), region.scalars.data(), 0, 1, 0, 1});
  for (std::size_t r = 0; r < reductions.size(); ++r) {
    const Reduction& reduction = region.reductions[r];
    const RegionArray& array = region.arrays[static_cast<std::size_t>(reduction.array)];
    if (reduction.op == Operator::last_value && !iterations.empty())
      fill_neutral(reduction.op, array.type, arrays[static_cast<std::size_t>(reduction.array)],
                   array.count());
    combine(reduction.op, array.type, arrays[static_cast<std::size_t>(reduction.array)], reductions[r],
            array.count());
  }
}

}  // namespace superstep::openmp
