// Elements that a body reads by numbers which it finds in other arrays, x[column[k]]: an inspector runs the
// body once over each part's iterations and notes what it asks for; the part then receives those elements.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "superstep/openmp/region.h"

namespace superstep::openmp {

// The values of arrays that steer, a slot of the region; null for the others. Nobody changes them.
using SteeringContents = std::vector<std::shared_ptr<const std::vector<std::byte>>>;

// Elements of one array: run r has first[r] and those after it, `local` their places when packed.
struct ElementRuns {
  std::vector<std::int64_t> first, local;
  std::int64_t count = 0;
  std::int64_t length(std::size_t run) const {
    return (run + 1 < local.size() ? local[run + 1] : count) - local[run];
  }
};

// What one part asks for.
struct PartGathers {
  std::vector<ElementRuns> elements;             // an array of the region
  std::vector<std::vector<std::int64_t>> turns;  // a worker, a loop of Region::turns
};

class Inspector {
 public:
  // Arrays that do not steer are zeros for it, and what it writes is thrown away.
  Inspector(const Region& region, const SteeringContents& contents);

  // The shares of the part's workers. Throws Error ("bounds") when an element is not in its array.
  PartGathers part(std::span<const Box> shares);
  // Cycles of every iteration of a region with one distributed loop.
  std::vector<double> weights();

 private:
  void run(const Box& box, std::vector<std::int64_t>& turns);
  void check_bounds() const;
  ElementRuns take(std::size_t array);

  const Region* region_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::vector<unsigned char>> seen_;
  std::vector<std::vector<std::int64_t>> list_;
  std::vector<Gather> gathers_;
  std::vector<Gather*> of_access_;
  std::vector<void*> data_;
  std::vector<std::int64_t> origin_, strides_;
};

// Numbers of each access on arrays that are there whole: its first element, and its step a loop.
void whole_strides(const Region& region, std::vector<std::int64_t>& origin,
                   std::vector<std::int64_t>& strides);

// Whether the parts' elements of an array follow one another and none is in two parts; then the array may lie
// where they are asked for. Gives the first element of each part and the array's end.
std::vector<std::int64_t> cuts_of_parts(const Region& region, std::size_t array,
                                        std::span<const PartGathers> parts);

}  // namespace superstep::openmp
