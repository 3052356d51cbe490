#include "superstep/openmp/gather.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/openmp/cells.h"
#include "superstep/openmp/reduce.h"

namespace superstep::openmp {

void whole_strides(const Region& region, std::vector<std::int64_t>& origin,
                   std::vector<std::int64_t>& strides) {
  const std::size_t loops = region.loops.size();
  for (const Access& access : region.accesses) {
    const auto& extents = region.arrays[static_cast<std::size_t>(access.array)].extents;
    std::int64_t first = 0;
    std::vector<std::int64_t> steps(loops, 0);
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      first = first * extents[axis] + access.subscripts[axis].constant;
      for (std::size_t k = 0; k < loops; ++k)
        steps[k] = steps[k] * extents[axis] + access.subscripts[axis].coefficient(k);
    }
    origin.push_back(first);
    strides.insert(strides.end(), steps.begin(), steps.end());
  }
}

Inspector::Inspector(const Region& region, const SteeringContents& contents) : region_(&region) {
  whole_strides(region, origin_, strides_);
  gathers_.resize(region.arrays.size());
  seen_.resize(region.arrays.size());
  list_.resize(region.arrays.size());
  for (std::size_t array = 0; array < region.arrays.size(); ++array) {
    const RegionArray& description = region.arrays[array];
    const auto count = static_cast<std::size_t>(description.count());
    if (contents[array])
      memory_.push_back(*contents[array]);
    else
      memory_.emplace_back(std::max<std::size_t>(count, 1) * size_in_bytes(description.type));
    if (!region.gathers(array)) continue;
    seen_[array].resize(std::max<std::size_t>(count, 1));
    list_[array].resize(std::max<std::size_t>(count, 1));
    gathers_[array].elements = description.count();
    gathers_[array].seen = seen_[array].data();
    gathers_[array].list = list_[array].data();
  }
  for (const Access& access : region.accesses) {
    const auto array = static_cast<std::size_t>(access.array);
    data_.push_back(memory_[array].data());
    of_access_.push_back(access.gathered ? &gathers_[array] : nullptr);
  }
}

void Inspector::run(const Box& box, std::vector<std::int64_t>& turns) {
  std::vector<std::vector<std::byte>> partial;
  std::vector<void*> reductions;
  for (const Reduction& reduction : region_->reductions) {
    const RegionArray& array = region_->arrays[static_cast<std::size_t>(reduction.array)];
    partial.emplace_back(static_cast<std::size_t>(array.count()) * size_in_bytes(array.type));
    fill_neutral(reduction.op, array.type, partial.back().data(), array.count());
    reductions.push_back(partial.back().data());
  }
  turns.assign(region_->turns.size() + 1, 0);  // one more: there is always an address
  Part part{box.begin.data(),
            box.end.data(),
            data_.data(),
            origin_.data(),
            strides_.data(),
            static_cast<std::int64_t>(region_->loops.size()),
            reductions.data(),
            region_->scalars.data(),
            0,
            1,
            0,
            1,
            of_access_.data(),
            turns.data()};
  region_->body(part);
  turns.pop_back();
}

void Inspector::check_bounds() const {
  for (const Access& access : region_->accesses) {
    const auto array = static_cast<std::size_t>(access.array);
    if (access.gathered && gathers_[array].missed != 0)
      refuse("bounds",
             fmt::format("element {} of {}, which has {}", gathers_[array].outside,
                         region_->arrays[array].name, gathers_[array].elements),
             region_->where(access), "correct the numbers that it is found by");
  }
}

// What has been asked for since it was last taken.
ElementRuns Inspector::take(std::size_t array) {
  ElementRuns runs;
  Gather& gather = gathers_[array];
  const std::span list(list_[array].data(), static_cast<std::size_t>(gather.listed));
  gather.listed = 0;
  std::ranges::sort(list);
  for (const std::int64_t element : list) {
    seen_[array][static_cast<std::size_t>(element)] = 0;
    if (runs.first.empty() || element != runs.first.back() + runs.count - runs.local.back()) {
      runs.first.push_back(element);
      runs.local.push_back(runs.count);
    }
    ++runs.count;
  }
  return runs;
}

PartGathers Inspector::part(std::span<const Box> shares) {
  PartGathers result;
  for (const Box& share : shares) {
    result.turns.emplace_back(region_->turns.size());
    if (!share.empty()) run(share, result.turns.back());
  }
  check_bounds();
  for (std::size_t array = 0; array < region_->arrays.size(); ++array) result.elements.push_back(take(array));
  return result;
}

std::vector<double> Inspector::weights() {
  const ElementType type = widest_float(*region_);
  const double fixed = cycles_of(region_->work, type);
  std::vector<double> result;
  std::vector<std::int64_t> turns;
  for (std::int64_t i = region_->loops[0].begin; i < region_->loops[0].end; ++i) {
    run({{i}, {i + 1}}, turns);
    double cycles = fixed;
    for (std::size_t k = 0; k < turns.size(); ++k)
      cycles += static_cast<double>(turns[k]) * cycles_of(region_->turns[k], type);
    result.push_back(cycles);
  }
  check_bounds();
  for (std::size_t array = 0; array < region_->arrays.size(); ++array) take(array);
  return result;
}

std::vector<std::int64_t> cuts_of_parts(const Region& region, std::size_t array,
                                        std::span<const PartGathers> parts) {
  std::vector<std::int64_t> cuts;
  std::int64_t end = 0;
  for (const PartGathers& part : parts) {
    const ElementRuns& runs = part.elements[array];
    const std::int64_t first = runs.first.empty() ? end : runs.first.front();
    if (first < end) return {};
    cuts.push_back(cuts.empty() ? 0 : first);
    if (!runs.first.empty()) end = runs.first.back() + runs.length(runs.first.size() - 1);
  }
  // What nobody asks for goes with the last part, but not when it is more than the others have.
  const std::int64_t count = region.arrays[array].count();
  if ((count - end) * static_cast<std::int64_t>(parts.size()) > end) return {};
  cuts.push_back(count);
  return cuts;
}

}  // namespace superstep::openmp
