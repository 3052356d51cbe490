// Bounded axes that are indexed, or that index: places that are not taken read something, and write nothing.
#include <algorithm>

#include "superstep/onnx/bounded/rules.h"
#include "superstep/op/core/checks.h"

namespace superstep::onnx {
namespace {

using Extents = std::vector<std::int64_t>;

// Of an axis, what is taken of it.
Var length_of(Emitter& e, Var x, int axis) {
  return e.plain1("Gather", {e.emit1("Shape", {x}), e.constant(Tensor::scalar<std::int64_t>(axis))});
}

Var as_i64(Emitter& e, Var indices) {
  return indices.element() == ElementType::i64 ? indices
                                               : e.plain1("Cast", {indices}, {{"to", std::int64_t{7}}});
}

// Negative indices count from the end of what is taken.
Var from_front(Emitter& e, Var indices, Var length) {
  if (const Tensor* known = e.known(indices)) {
    const Extents values = op::integers_of(*known);
    if (std::ranges::none_of(values, [](std::int64_t value) { return value < 0; })) return indices;
  }
  const Var zero = e.constant(Tensor::scalar<std::int64_t>(0));
  return e.plain1("Where", {e.plain1("Less", {indices, zero}), e.plain1("Add", {indices, length}), indices});
}

// Indices that are not taken read place 0.
Var readable(BoundedSite& site, int axis) {
  Emitter& e = site.emitter;
  const Var given = site.input(1);
  const BoundedAxes axes = site.axes(1);
  Var indices = as_i64(e, axes.empty() ? given : filled(e, given, 0));
  if (site.bounded(0, axis)) indices = from_front(e, indices, length_of(e, site.input(0), axis));
  return indices;
}

std::vector<Var> gather(BoundedSite& site) {
  Emitter& e = site.emitter;
  const int axis = site.axis(0), gained = site.shape(1).rank() - 1;
  const BoundedAxes data = site.axes(0), chosen = site.axes(1);
  const Var result = picked(e, site.input(0), axis, readable(site, axis));
  for (const auto& [at, bounded] : data)
    if (at != axis) mark(e, result, at < axis ? at : at + gained, bounded);
  for (const auto& [at, bounded] : chosen) mark(e, result, at + axis, bounded);
  return {result};
}

std::vector<Var> gather_elements(BoundedSite& site) {
  Emitter& e = site.emitter;
  const int axis = site.axis(0);
  const BoundedAxes data = site.axes(0), chosen = site.axes(1);
  site.inputs[1] = readable(site, axis);
  const Var result = site.plain()[0];
  for (const auto& [at, bounded] : data)
    if (at != axis) mark(e, result, at, bounded);
  for (const auto& [at, bounded] : chosen) mark(e, result, at, bounded);
  return {result};
}

// The extents of the first axes that an index of several numbers is of, as the graph computes them.
Var extents_indexed(Emitter& e, Var data, std::int64_t first, std::int64_t count) {
  return e.plain1("Slice", {e.emit1("Shape", {data}), e.integers({first}), e.integers({first + count})});
}

std::vector<Var> gather_nd(BoundedSite& site) {
  Emitter& e = site.emitter;
  const auto batch = static_cast<int>(site.attributes.integer("batch_dims", 0));
  const int last = site.shape(1).rank() - 1;
  const auto width = static_cast<int>(site.shape(1)[last]);
  const BoundedAxes data = site.axes(0), chosen = site.axes(1);
  if (chosen.contains(last)) refuse_bounded(site, "takes it for one index of several numbers");
  Var indices = filled(e, site.input(1), 0);
  if (!data.empty()) indices = from_front(e, indices, extents_indexed(e, site.input(0), batch, width));
  site.inputs[1] = indices;
  const Var result = site.plain()[0];
  for (const auto& [axis, bounded] : chosen) mark(e, result, axis, bounded);
  for (const auto& [axis, bounded] : data) {
    if (axis < batch) mark(e, result, axis, bounded);
    if (axis >= batch + width) mark(e, result, last + axis - batch - width, bounded);
  }
  return {result};
}

// One place more along an axis, for what is to be written nowhere.
Var with_spare(Emitter& e, Var data, int axis) {
  Extents extents = data.shape().extents();
  extents[static_cast<std::size_t>(axis)] = 1;
  const Var spare = e.constant(Tensor(data.element(), Shape(extents)));
  return e.plain1("Concat", {data, spare}, {{"axis", std::int64_t{axis}}});
}

Var without_spare(Emitter& e, Var data, int axis) {
  return e.plain1("Slice", {data, e.integers({0}), e.integers({data.shape()[axis] - 1}), e.integers({axis})});
}

std::vector<Var> as_before(Emitter& e, Var result, const BoundedAxes& data) {
  for (const auto& [axis, bounded] : data) mark(e, result, axis, bounded);
  return {result};
}

// Where indices are taken; no value where all are.
Var taken_indices(BoundedSite& site) {
  Emitter& e = site.emitter;
  Var where;
  for (const auto& [axis, bounded] : BoundedAxes(site.axes(1))) {
    const Var here = taken_places(e, site.input(1), axis);
    where = where.valid() ? e.plain1("And", {where, here}) : here;
  }
  return where;
}

std::vector<Var> scatter_nd(BoundedSite& site) {
  Emitter& e = site.emitter;
  const Var data = site.input(0), given = site.input(1);
  const BoundedAxes axes = site.axes(0);
  const int last = site.shape(1).rank() - 1;
  const std::int64_t width = site.shape(1)[last];
  if (site.axes(1).contains(last)) refuse_bounded(site, "takes it for one index of several numbers");
  const Var where = taken_indices(site);
  const Var indices = from_front(e, given, extents_indexed(e, data, 0, width));
  if (!where.valid()) {
    site.inputs[1] = indices;
    return as_before(e, site.plain()[0], axes);
  }
  Extents nowhere(static_cast<std::size_t>(width), 0);
  nowhere[0] = data.shape()[0];
  site.inputs[0] = with_spare(e, data, 0);
  site.inputs[1] = e.plain1("Where", {where, indices, e.integers(nowhere)});
  return as_before(e, without_spare(e, site.plain()[0], 0), axes);
}

std::vector<Var> scatter_elements(BoundedSite& site) {
  Emitter& e = site.emitter;
  const Var data = site.input(0), given = site.input(1);
  const int axis = site.axis(0);
  const BoundedAxes axes = site.axes(0);
  const Var where = taken_indices(site);
  const Var indices = from_front(e, as_i64(e, given), length_of(e, data, axis));
  if (!where.valid()) {
    site.inputs[1] = indices;
    return as_before(e, site.plain()[0], axes);
  }
  site.inputs[0] = with_spare(e, data, axis);
  site.inputs[1] = e.plain1("Where", {where, indices, e.constant(Tensor::scalar(data.shape()[axis]))});
  return as_before(e, without_spare(e, site.plain()[0], axis), axes);
}

// Places that are not taken lose every comparison, and come last.
std::vector<Var> top_k(BoundedSite& site) {
  Emitter& e = site.emitter;
  const int axis = site.axis(-1);
  const BoundedAxes axes = site.axes(0);
  const Var k = e.plain1("Reshape", {as_i64(e, site.input(1)), e.integers({})});
  const std::int64_t most = std::min(site.when_full(1).at(0), site.shape(0)[axis]);
  const bool largest = site.attributes.integer("largest", 1) != 0;
  Var count = k;
  if (axes.contains(axis)) {
    const ElementType type = site.input(0).element();
    site.inputs[0] = filled(e, site.input(0), axis, largest ? lowest_of(type) : highest_of(type));
    count = e.plain1("Min", {k, taken(e, axes.at(axis))});
  }
  site.inputs[1] = e.integers({most});
  const std::vector<Var> results = site.plain();
  for (const Var& result : results)
    for (const auto& [at, bounded] : axes)
      if (at != axis) mark(e, result, at, bounded);
  const bool all = !axes.contains(axis) && !e.follows_bounds(k);
  if (!all)
    for (const Var& result : results) e.bounds().set(result, axis, {.count = count});
  return results;
}

// Regions, of which a result has one each.
std::vector<Var> regions(BoundedSite& site) {
  Emitter& e = site.emitter;
  if (!site.axes(0).empty()) refuse_bounded(site, "takes it for pictures");
  BoundedAxes axes = site.axes(1);
  if (site.has(2))
    for (const auto& [axis, bounded] : BoundedAxes(site.axes(2))) axes.try_emplace(axis, bounded);
  if (axes.size() != 1 || !axes.contains(0)) refuse_bounded(site, "takes it for the corners of a region");
  for (std::size_t i = 1; i < site.inputs.size(); ++i)
    if (!site.axes(i).empty()) site.inputs[i] = filled(e, site.input(i), 0);
  const Var result = site.plain()[0];
  mark(e, result, 0, axes.at(0));
  return {result};
}

constexpr NamedRule rules[] = {
    {"Gather", gather},        {"GatherElements", gather_elements},   {"GatherND", gather_nd},
    {"ScatterND", scatter_nd}, {"ScatterElements", scatter_elements}, {"TopK", top_k},
    {"RoiAlign", regions},
};

}  // namespace

std::span<const NamedRule> bounded_choice_rules() { return rules; }

}  // namespace superstep::onnx
