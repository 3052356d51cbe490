#include "superstep/openmp/plan_key.h"

namespace superstep::openmp {

void put(std::string& key, const void* data, std::size_t bytes) {
  key.append(static_cast<const char*>(data), bytes);
}
void put(std::string& key, std::int64_t number) { put(key, &number, sizeof(number)); }

namespace {

// Takes the record apart, so that a member more than these does not compile.
void put_work(std::string& key, const Work& work) {
  const auto& [loads, stores, integers, floats, divisions, roots, exponentials, logarithms, sines, powers,
               inner_loops, vectorised] = work;
  for (const double each : {loads, stores, integers, floats, divisions, roots, exponentials, logarithms,
                            sines, powers, inner_loops})
    put(key, &each, sizeof(each));
  put(key, std::int64_t{vectorised});
}

}  // namespace

std::string plan_key(const Region& region) {
  std::string key = to_string(region.place);
  put(key, static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(region.body)));
  put(key, region.distributed);
  for (const std::size_t count :
       {region.loops.size(), region.arrays.size(), region.accesses.size(), region.reductions.size()})
    put(key, static_cast<std::int64_t>(count));
  for (const Range& loop : region.loops) {
    put(key, loop.begin);
    put(key, loop.end);
  }
  for (const RegionArray& array : region.arrays) {
    put(key, static_cast<std::int64_t>(array.extents.size()));
    for (const std::int64_t extent : array.extents) put(key, extent);
  }
  for (const Access& access : region.accesses) {
    put(key, access.array * 8 + access.gathered * 4 + access.reads * 2 + access.writes);
    for (const Affine& subscript : access.subscripts) {
      put(key, subscript.constant);
      for (std::size_t k = 0; k < region.loops.size(); ++k) put(key, subscript.coefficient(k));
    }
  }
  for (const Reduction& reduction : region.reductions) {
    put(key, reduction.array);
    put(key, static_cast<std::int64_t>(reduction.op));
  }
  put_work(key, region.work);
  for (const Work& work : region.turns) put_work(key, work);
  put(key, static_cast<std::int64_t>(region.scalars.size()));
  return key;
}

}  // namespace superstep::openmp
