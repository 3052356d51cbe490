// What a tensor expression refers to: which element of which variable stands at each place of the tensor.
//
// A view of N places is a list of affine regions. A region is a nest of loops: at loop counters i1, i2, ...
// it puts element `element_offset + sum(i_k x element_stride_k)` of its variable at place `view_offset +
// sum(i_k x view_stride_k)`, places counted row-major. Together the regions fill every place once. So a
// tensor of 10^8 elements that is sliced, shuffled and broadcast still takes a few numbers, and reshaping
// changes nothing at all. Compare the hierarchical layouts of array languages.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/base/id.h"
#include "superstep/base/shape.h"
#include "superstep/bsp/graph/interval.h"

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep::bsp {

using VariableId = Id<struct VariableTag>;

struct Loop {
  std::int64_t extent = 1, view_stride = 0, element_stride = 0;  // view strides are positive
  friend bool operator==(const Loop&, const Loop&) = default;
};

struct Region {
  VariableId variable;
  std::int64_t view_offset = 0, element_offset = 0;
  std::vector<Loop> loops;  // outermost first, extents above 1
};

// Places [place, place + length) hold elements element, element + stride, ... of the variable.
struct Run {
  std::int64_t place = 0, length = 0;
  VariableId variable;
  std::int64_t element = 0, stride = 1;
};

class View {
 public:
  View() = default;
  static View whole(VariableId variable, std::int64_t count);

  std::int64_t count() const { return count_; }
  std::span<const Region> regions() const { return regions_; }

  View slice(const Shape& shape, int axis, std::int64_t begin, std::int64_t end) const;
  View shuffle(const Shape& shape, std::span<const int> permutation) const;
  View broadcast(const Shape& shape, int axis, std::int64_t times) const;  // whole blocks one after the other
  View repeat(const Shape& shape, int axis, std::int64_t times) const;     // every index `times` times
  View sub_sample(const Shape& shape, int axis, std::int64_t step) const;
  View reverse(const Shape& shape, int axis) const;
  static View concat(std::span<const View* const> parts, std::span<const Shape> shapes, int axis);

  // Every place once, in order of places.
  std::vector<Run> runs() const;
  // The elements in intervals as long as they come, in no particular order, repeated ones repeated.
  void for_each_interval(FunctionRef<void(VariableId, std::int64_t begin, std::int64_t end)> f) const;

  // The same expression over other variables; every variable of the view must be in the table.
  void rename(const std::map<VariableId, VariableId>& table);

  bool contains_aliases() const;
  bool is_contiguous() const;  // one run of one variable, in order
  // Its regions are runs of places, one after the other.
  bool is_lines() const { return lines_; }

 private:
  // One region, whose outermost loop has a turn for each of so many blocks of places.
  bool is_loop_over(std::int64_t block, std::int64_t extent) const;
  void cut(std::span<const Region> regions, std::int64_t begin, std::int64_t end);
  void finish();  // puts regions in order of places and joins what continues

  std::int64_t count_ = 0;
  std::vector<Region> regions_;
  bool in_order_ = true;  // the places of a region all come before those of the next
  bool lines_ = true;
};

}  // namespace superstep::bsp

#pragma GCC visibility pop
