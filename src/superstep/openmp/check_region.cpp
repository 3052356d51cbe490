// Whether the iterations that are dealt to tiles and workers may run in any order.
#include <fmt/format.h>

#include <cstdlib>
#include <numeric>
#include <optional>

#include "superstep/base/integers.h"
#include "superstep/openmp/region.h"

namespace superstep::openmp {
namespace {

void require(bool right, const Region& region, const std::string& message) {
  if (!right)
    throw Error(ErrorCode::invalid_argument, message, to_string(region.place), "correct the region's table");
}

void check_numbers(const Region& region) {
  require(region.distributed >= 0 && static_cast<std::size_t>(region.distributed) <= region.loops.size(),
          region, fmt::format("{} of {} loops are distributed", region.distributed, region.loops.size()));
  require(region.body != nullptr, region, "the region has no body");
  const auto known = [&](int array) {
    return array >= 0 && static_cast<std::size_t>(array) < region.arrays.size();
  };
  for (const RegionArray& array : region.arrays) {
    require(!array.extents.empty(), region,
            fmt::format("array {} has no dimension; a scalar has one of 1 element", array.name));
    for (const std::int64_t extent : array.extents)
      require(extent >= 0 && extent < (std::int64_t{1} << 31), region,
              fmt::format("array {} has an extent of {}; a tile's numbers have 31 bits", array.name, extent));
  }
  for (const Access& access : region.accesses) {
    require(known(access.array), region, fmt::format("there is no array {}", access.array));
    const RegionArray& array = region.arrays[static_cast<std::size_t>(access.array)];
    require(access.subscripts.size() == array.extents.size(), region,
            fmt::format("{} subscripts of array {}, which has {} dimensions", access.subscripts.size(),
                        array.name, array.extents.size()));
  }
  for (const Access& access : region.accesses) {
    const auto array = static_cast<std::size_t>(access.array);
    require(access.gathered == region.gathers(array) && !(access.gathered && access.writes), region,
            fmt::format("array {} is gathered: all of its accesses are, and none writes",
                        region.arrays[array].name));
    require(!(access.writes && region.arrays[array].steers), region,
            fmt::format("array {} decides what is gathered and is written", region.arrays[array].name));
  }
  for (const Reduction& reduction : region.reductions) {
    require(known(reduction.array), region, fmt::format("there is no array {}", reduction.array));
    for (const Access& access : region.accesses)
      require(access.array != reduction.array, region,
              fmt::format("array {} is reduced into and accessed as well",
                          region.arrays[static_cast<std::size_t>(access.array)].name));
  }
}

void check_bounds(const Region& region, const Access& access) {
  const RegionArray& array = region.arrays[static_cast<std::size_t>(access.array)];
  const Box box = footprint(region, access, region.iterations());
  if (box.empty()) return;
  for (std::size_t axis = 0; axis < box.rank(); ++axis)
    if (box.begin[axis] < 0 || box.end[axis] > array.extents[axis])
      refuse("bounds",
             fmt::format("subscript {} runs from {} to {}, the dimension has {} elements", axis + 1,
                         box.begin[axis], box.end[axis] - 1, array.extents[axis]),
             region.where(access), "map the whole array, or correct the loop's bounds");
}

// Values that a sum over some loops can take.
struct Span {
  std::int64_t low = 0, high = 0;
  void add(std::int64_t coefficient, const Range& range) {
    low += coefficient * (coefficient > 0 ? range.begin : range.end - 1);
    high += coefficient * (coefficient > 0 ? range.end - 1 : range.begin);
  }
};

// Distances i - i' of one distributed loop for which subscript a at i can equal subscript b at i'; nothing
// known: the loop's whole extent.
struct Distance {
  std::int64_t low, high;
  bool none() const { return low > high; }
  void limit(std::int64_t from, std::int64_t to) {
    low = std::max(low, from);
    high = std::min(high, to);
  }
};

// One dimension's equation, when it has at most one distributed loop with the same coefficient in both.
// False: the two can never be equal.
bool limit_by(const Region& region, const Affine& a, const Affine& b, std::vector<Distance>& distances) {
  const auto dealt = static_cast<std::size_t>(region.distributed);
  std::optional<std::size_t> loop;
  Span difference{b.constant - a.constant, b.constant - a.constant};  // of b less a, without the loop
  for (std::size_t k = 0; k < region.loops.size(); ++k) {
    const std::int64_t ca = a.coefficient(k), cb = b.coefficient(k);
    if (ca == 0 && cb == 0) continue;
    if (k < dealt && region.loops[k].size() > 1) {
      if (ca == cb && !loop) {
        loop = k;
        continue;
      }
      difference.add(cb, region.loops[k]);  // counters of two iterations: free of each other
      difference.add(-ca, region.loops[k]);
      continue;
    }
    if (k < dealt) {
      difference.add(cb - ca, region.loops[k]);
      continue;
    }
    difference.add(cb, region.loops[k]);
    difference.add(-ca, region.loops[k]);
  }
  if (!loop) return difference.low <= 0 && difference.high >= 0;
  // a.c * i + ... = b.c * i' + ...: c (i - i') = difference
  const std::int64_t c = a.coefficient(*loop);
  std::int64_t low = difference.low, high = difference.high;
  if (c < 0) {
    std::swap(low, high);
    low = -low;
    high = -high;
  }
  const std::int64_t size = std::abs(c);
  distances[*loop].limit(ceil_div(low, size), floor_div(high, size));
  return !distances[*loop].none();
}

// Whether two accesses, one of them a write, may touch one element in different iterations.
bool may_meet(const Region& region, const Access& a, const Access& b) {
  const auto dealt = static_cast<std::size_t>(region.distributed);
  std::vector<Distance> distances;
  for (std::size_t k = 0; k < dealt; ++k) {
    const std::int64_t most = region.loops[k].size() - 1;
    distances.push_back({-most, most});
  }
  for (std::size_t axis = 0; axis < a.subscripts.size(); ++axis)
    if (!limit_by(region, a.subscripts[axis], b.subscripts[axis], distances)) return false;
  for (const Distance& distance : distances)
    if (distance.low != 0 || distance.high != 0) return true;
  return false;
}

// A subscript in which several distributed loops meet still tells iterations apart when each coefficient is
// larger than what the smaller ones can make up: a[i * n + j] with j < n.
bool tells_apart(const Region& region, const Affine& subscript) {
  struct Digit {
    std::int64_t weight, size;
  };
  std::vector<Digit> digits;
  for (std::size_t k = 0; k < region.loops.size(); ++k) {
    const std::int64_t size = region.loops[k].size(), c = subscript.coefficient(k);
    if (size > 1 && c == 0 && k < static_cast<std::size_t>(region.distributed)) return false;
    if (size > 1 && c != 0) digits.push_back({std::abs(c), size});
  }
  std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.weight < b.weight; });
  std::int64_t reach = 0;
  for (const Digit& digit : digits) {
    if (digit.weight <= reach) return false;
    reach += digit.weight * (digit.size - 1);
  }
  return true;
}

bool same(const Affine& a, const Affine& b, std::size_t loops) {
  if (a.constant != b.constant) return false;
  for (std::size_t k = 0; k < loops; ++k)
    if (a.coefficient(k) != b.coefficient(k)) return false;
  return true;
}

bool same_element_same_iteration(const Region& region, const Access& a, const Access& b) {
  for (std::size_t axis = 0; axis < a.subscripts.size(); ++axis)
    if (!same(a.subscripts[axis], b.subscripts[axis], region.loops.size())) return false;
  for (const Affine& subscript : a.subscripts)
    if (tells_apart(region, subscript)) return true;
  return false;
}

void check_pair(const Region& region, const Access& a, const Access& b) {
  if (a.array != b.array || (!a.writes && !b.writes)) return;
  if (!may_meet(region, a, b) || same_element_same_iteration(region, a, b)) return;
  const char* verb = a.writes && b.writes ? "writes" : "reads or writes";
  refuse("race",
         fmt::format("one iteration writes an element of {} that another {}",
                     region.arrays[static_cast<std::size_t>(a.array)].name, verb),
         fmt::format("{} and {}", region.where(a), region.where(b)),
         "write to another array, or reduce; iterations of a distributed loop run in any order");
}

}  // namespace

void check_region(const Region& region) {
  check_numbers(region);
  for (std::size_t k = 0; k < region.loops.size(); ++k)
    if (region.loops[k].size() == 0) return;  // nothing runs
  for (const Access& access : region.accesses) check_bounds(region, access);
  for (std::size_t i = 0; i < region.accesses.size(); ++i)
    for (std::size_t j = i; j < region.accesses.size(); ++j)
      check_pair(region, region.accesses[i], region.accesses[j]);
}

}  // namespace superstep::openmp
