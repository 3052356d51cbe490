// Axes whose extent depends on the data, under a bound: the axis has the bound's extent, what the data give
// comes first along it, and a value of the graph counts that. What lies behind is anything.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "superstep/op/core/builder.h"

namespace superstep::onnx {

using op::Var;

class Emitter;

// rows * count of the axis' places are taken. `count` is i64, of no axes.
struct BoundedAxis {
  Var count;
  std::int64_t rows = 1;
};
using BoundedAxes = std::map<int, BoundedAxis>;

// What is known of the values of one graph.
class Bounds {
 public:
  bool any() const { return !axes_.empty(); }
  const BoundedAxes& of(Var value) const;  // empty: its extents are its own
  void set(Var value, int axis, const BoundedAxis& bounded) { axes_[value.id()][axis] = bounded; }

  // Lists and numbers whose elements are extents, of bounded axes and others.
  bool are_extents(Var value) const { return extents_.contains(value.id()); }
  void set_extents(Var value) { extents_.insert(value.id()); }

  // How many results had no place, of each selection that may have more than its bound.
  void add_beyond(Var beyond) { beyond_.push_back(beyond); }
  const std::vector<Var>& beyond() const { return beyond_; }

 private:
  std::map<graph::ValueId, BoundedAxes> axes_;
  std::set<graph::ValueId> extents_;
  std::vector<Var> beyond_;
};

// A count of at most `bound` of what was found, whatever `found` is; more than that is told by an output.
Var bounded_count(Emitter& emitter, Var found, std::int64_t bound, bool may_exceed);

// i64, of no axes: the places of the axis that are taken.
Var taken(Emitter& emitter, const BoundedAxis& axis);

// 0, 1, 2, ... along one of `rank` axes.
Var places(Emitter& emitter, std::int64_t extent, int axis, int rank);

// Where x's places along a bounded axis are taken: boolean, broadcast over the other axes.
Var taken_places(Emitter& emitter, Var x, int axis);

// x with `fill` in the places that are not taken; of one axis, or of all.
Var filled(Emitter& emitter, Var x, int axis, double fill);
Var filled(Emitter& emitter, Var x, double fill);

// `extent` rows along an axis from a row on that the graph computes (i64, of no axes); rows past the end
// repeat the last one.
Var rows_from(Emitter& emitter, Var x, int axis, Var start, std::int64_t extent);

// x along an axis at `indices` (i64), which are taken as they are.
Var picked(Emitter& emitter, Var x, int axis, Var indices);

// The smallest and the largest of an element type, as what loses every comparison.
double lowest_of(ElementType type);
double highest_of(ElementType type);

}  // namespace superstep::onnx
