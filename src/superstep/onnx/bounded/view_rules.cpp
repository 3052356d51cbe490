// Bounded axes that are reshaped, repeated, cut and joined.
#include <algorithm>
#include <numeric>
#include <optional>

#include "superstep/onnx/bounded/rules.h"
#include "superstep/op/core/batch_axis.h"
#include "superstep/op/core/checks.h"

namespace superstep::onnx {
namespace {

using Extents = std::vector<std::int64_t>;

Var number(Emitter& emitter, std::int64_t value) { return emitter.constant(Tensor::scalar(value)); }

// The extents that a shape has when all places are taken, as a constant in its place.
Extents fix_shape(BoundedSite& site, std::size_t input) {
  const Extents full = site.when_full(input);
  site.inputs[input] = site.emitter.integers(full);
  return full;
}

// Which elements of a list, known when all places are taken, follow how many are.
std::vector<bool> following(Emitter& emitter, Var list) {
  const Extents full = op::integers_of(*emitter.when_full(list)),
                none = op::integers_of(*emitter.when_empty(list));
  std::vector<bool> follows;
  for (std::size_t i = 0; i < full.size(); ++i) follows.push_back(full[i] != none[i]);
  return follows;
}

// Element i of a list that the graph computes, of no axes.
Var element(Emitter& emitter, Var list, std::size_t i) {
  const Var wide =
      list.element() == ElementType::i64 ? list : emitter.plain1("Cast", {list}, {{"to", std::int64_t{7}}});
  return emitter.plain1("Gather", {wide, number(emitter, static_cast<std::int64_t>(i))});
}

// Places along an axis that is joined with others in front of it are not the first ones of the result: those
// that are taken are moved there.
Var packed(BoundedSite& site, Var result, int axis, const BoundedAxis& bounded) {
  Emitter& e = site.emitter;
  const std::int64_t extent = site.shape(0)[axis], total = result.shape()[0];
  const Var numbers = places(e, total, 0, 1);
  const Var valid = e.plain1("Max", {taken(e, bounded), number(e, 1)});
  const Var from = e.plain1("Add", {e.plain1("Mul", {e.plain1("Div", {numbers, valid}), number(e, extent)}),
                                    e.plain1("Mod", {numbers, valid})});
  const Var moved = picked(e, result, 0, e.plain1("Min", {from, number(e, total - 1)}));
  e.bounds().set(moved, 0, {.count = e.plain1("Mul", {taken(e, bounded), number(e, total / extent)})});
  return moved;
}

// The axis of the result that is bounded by what one of x is, where the shape says so itself: by an element
// that follows it, or by a -1. Extents of one look all the same.
std::optional<int> named_axis(const Extents& given, const std::vector<bool>& follows, const Shape& after) {
  if (static_cast<int>(given.size()) != after.rank()) return {};
  if (std::ranges::count(follows, true) == 1)
    return static_cast<int>(std::ranges::find(follows, true) - follows.begin());
  const auto open = std::ranges::find(given, -1);
  if (open != given.end()) return static_cast<int>(open - given.begin());
  return {};
}

std::int64_t product_before(const Shape& shape, int axis) {
  std::int64_t product = 1;
  for (int i = 0; i < axis; ++i) product *= shape[i];
  return product;
}

std::vector<Var> reshape(BoundedSite& site) {
  const Var list = site.input(1);
  const Extents given = fix_shape(site, 1);
  const BoundedAxes axes = site.axes(0);
  if (axes.empty()) refuse_bounded(site, "its own shape follows that length where what it reads does not");
  const Shape before = site.shape(0);
  const Var result = site.plain()[0];
  const Shape after = result.shape();
  if (axes.size() == 1 && after.rank() == 1 && before.rank() == 2 && axes.begin()->first == 1 &&
      before[0] > 1)
    return {packed(site, result, 1, axes.begin()->second)};
  if (axes.size() == 1) {
    const auto& [axis, bounded] = *axes.begin();
    const std::int64_t places = before[axis] / bounded.rows;
    const std::optional<int> named = named_axis(given, following(site.emitter, list), after);
    if (named && places > 0 && after[*named] % places == 0 &&
        product_before(before, axis) == product_before(after, *named)) {
      mark(site.emitter, result, *named, {.count = bounded.count, .rows = after[*named] / places});
      return {result};
    }
  }
  return keep_apart(site);
}

std::vector<Var> unsqueeze(BoundedSite& site) {
  const Var result = site.plain()[0];
  const std::vector<int> added = op::checked_axes(site.list("axes", 1), result.shape().rank());
  int from = 0;
  const BoundedAxes axes = site.axes(0);
  for (int to = 0; to < result.shape().rank(); ++to) {
    if (std::ranges::binary_search(added, to)) continue;
    if (const auto bounded = axes.find(from++); bounded != axes.end())
      mark(site.emitter, result, to, bounded->second);
  }
  return {result};
}

std::vector<Var> squeeze(BoundedSite& site) {
  const Shape before = site.shape(0);
  std::vector<int> removed = op::checked_axes(site.list("axes", 1), before.rank());
  if (removed.empty())
    for (int axis = 0; axis < before.rank(); ++axis)
      if (before[axis] == 1 && !site.bounded(0, axis)) removed.push_back(axis);
  for (int axis : removed)
    if (site.bounded(0, axis)) refuse_bounded(site, "takes its axis away");
  site.inputs.resize(2);
  site.inputs[1] = site.emitter.integers({removed.begin(), removed.end()});
  site.attributes.erase("axes");
  const Var result = site.plain()[0];
  int to = 0;
  for (int from = 0; from < before.rank(); ++from) {
    if (std::ranges::binary_search(removed, from)) continue;
    if (site.bounded(0, from)) mark(site.emitter, result, to, site.axes(0).at(from));
    ++to;
  }
  return {result};
}

std::vector<Var> expand(BoundedSite& site) {
  Emitter& e = site.emitter;
  const Var shape = site.input(1);
  fix_shape(site, 1);
  const std::vector<bool> follows = following(e, shape);
  const std::vector<Var> result = keep_apart(site);
  const int shift = result[0].shape().rank() - static_cast<int>(follows.size());
  for (std::size_t i = 0; i < follows.size(); ++i)
    if (const int axis = shift + static_cast<int>(i); follows[i] && !e.bounds().of(result[0]).contains(axis))
      mark(e, result[0], axis, {.count = element(e, shape, i)});
  return result;
}

std::vector<Var> constant_of_shape(BoundedSite& site) {
  const Var shape = site.input(0);
  fix_shape(site, 0);
  const std::vector<bool> follows = following(site.emitter, shape);
  const std::vector<Var> result = site.plain();
  // A value of its own, from which nothing is computed at import: the constant may be another's too.
  const Var own = site.emitter.builder().node1("Identity", {result[0]});
  for (std::size_t i = 0; i < follows.size(); ++i)
    if (follows[i]) mark(site.emitter, own, static_cast<int>(i), {.count = element(site.emitter, shape, i)});
  return {own};
}

std::vector<Var> range(BoundedSite& site) {
  Emitter& e = site.emitter;
  const Tensor *start = e.known(site.input(0)), *step = e.known(site.input(2));
  if (!start || !step || site.input(1).element() != ElementType::i64 || step->at(0) <= 0)
    refuse_bounded(site, "begins or counts by it");
  const auto begin = static_cast<std::int64_t>(start->at(0)), by = static_cast<std::int64_t>(step->at(0));
  const Var limit = e.plain1("Reshape", {site.input(1), e.integers({})});
  const std::int64_t end = site.when_full(1).at(0);
  site.inputs = {number(e, begin), number(e, end), number(e, by)};
  const Var own = e.builder().node1("Identity", {site.plain()[0]});
  const Var steps = e.plain1("Div", {e.plain1("Add", {limit, number(e, by - 1 - begin)}), number(e, by)});
  mark(e, own, 0, {.count = e.plain1("Max", {steps, number(e, 0)})});
  return {own};
}

std::vector<Var> tile(BoundedSite& site) {
  Emitter& e = site.emitter;
  const Var repeats = site.input(1);
  const Extents full = fix_shape(site, 1);
  const std::vector<bool> follows = following(e, repeats);
  for (const auto& [axis, bounded] : site.axes(0))
    if (full[static_cast<std::size_t>(axis)] != 1) refuse_bounded(site, "repeats what is taken of it");
  const Var result = site.plain()[0];
  for (const auto& [axis, bounded] : BoundedAxes(site.axes(0))) mark(e, result, axis, bounded);
  for (std::size_t i = 0; i < follows.size(); ++i)
    if (follows[i])
      mark(e, result, static_cast<int>(i),
           {.count = element(e, repeats, i), .rows = site.shape(0)[static_cast<int>(i)]});
  return {result};
}

// Elements are copied at once: nodes that are added move them.
std::optional<std::int64_t> number_in(const Tensor* data) {
  if (!data) return {};
  return op::integers_of(*data)[0];
}

// One axis of a Slice by steps of one, between places that the graph may compute.
class Cut {
 public:
  Cut(Emitter& emitter, Var x, int axis) : e_(emitter), x_(x), axis_(axis) {
    const BoundedAxes& axes = e_.bounds().of(x);
    const auto bounded = axes.find(axis);
    length_ = bounded == axes.end() ? number(e_, extent()) : taken(e_, bounded->second);
  }

  Var run(Var starts, Var ends, std::size_t i) {
    const Var start = from_front(starts, i), end = from_front(ends, i);
    const Var count = e_.plain1("Max", {e_.plain1("Sub", {end, start}), number(e_, 0)});
    const auto known_start = number_in(e_.known(element_of(starts, i))),
               full_end = number_in(e_.when_full(element_of(ends, i)));
    const std::int64_t last = full_end.value_or(INT64_MAX), first = known_start.value_or(0);
    const std::int64_t longest = last < 0 ? extent() : std::min(last, extent());
    Var result;
    if (known_start && first >= 0) {
      const std::int64_t begin = std::min(first, longest);
      result = e_.plain1("Slice", {x_, e_.integers({begin}), e_.integers({longest}), e_.integers({axis_})});
    } else {
      // -n to the end: n rows at most.
      const bool tail = known_start && full_end && last >= extent();
      result = rows_from(e_, x_, axis_, start, tail ? std::min(-first, extent()) : extent());
    }
    for (const auto& [axis, bounded] : BoundedAxes(e_.bounds().of(x_)))
      if (axis != axis_) mark(e_, result, axis, bounded);
    e_.bounds().set(result, axis_, {.count = count});
    return result;
  }

 private:
  std::int64_t extent() const { return x_.shape()[axis_]; }
  Var element_of(Var list, std::size_t i) { return element(e_, list, i); }

  // Within what is taken; negative places count from its end.
  Var from_front(Var list, std::size_t i) {
    const Var given = element_of(list, i), zero = number(e_, 0);
    const Var counted =
        e_.plain1("Where", {e_.plain1("Less", {given, zero}), e_.plain1("Add", {given, length_}), given});
    return e_.plain1("Min", {e_.plain1("Max", {counted, zero}), length_});
  }

  Emitter& e_;
  Var x_;
  int axis_;
  Var length_;
};

std::vector<Var> slice(BoundedSite& site) {
  Emitter& e = site.emitter;
  const int rank = site.shape(0).rank();
  const Var starts = site.input(1), ends = site.input(2);
  const auto count = static_cast<std::size_t>(starts.shape().element_count());
  Extents axes(count), steps(count, 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (site.has(3)) axes = site.when_full(3);
  if (site.has(4)) steps = site.when_full(4);
  const auto follows = [&](Var list, std::size_t i) -> bool { return following(e, list)[i]; };
  Var x = site.input(0);
  const bool known = e.when_full(starts) && e.when_full(ends);
  for (std::size_t i = 0; i < count; ++i) {
    const int axis = op::checked_axis(axes[i], rank);
    const bool bounded = e.bounds().of(x).contains(axis);
    if (known && !bounded && !follows(starts, i) && !follows(ends, i)) {
      const auto at = [&](Var list) { return e.integers({op::integers_of(*e.when_full(list))[i]}); };
      BoundedSite part{
          e, "Slice", {x, at(starts), at(ends), e.integers({axis}), e.integers({steps[i]})}, {}, 1};
      x = keep_apart(part)[0];
      continue;
    }
    if (steps[i] != 1) refuse_bounded(site, "takes every other place of it, or goes backwards");
    x = Cut(e, x, axis).run(starts, ends, i);
  }
  return {x};
}

std::vector<Var> split(BoundedSite& site) {
  Emitter& e = site.emitter;
  const int axis = site.axis(0);
  if (!site.bounded(0, axis) && !(site.has(1) && e.follows_bounds(site.input(1)))) return keep_apart(site);
  if (!site.has(1)) refuse_bounded(site, "cuts it into equal parts");
  const Extents full = site.when_full(1);
  std::vector<Var> parts;
  Var start = number(e, 0);
  for (std::size_t i = 0; i < full.size(); ++i) {
    const Var length = element(e, site.input(1), i);
    const Var part = rows_from(e, site.input(0), axis, start, std::min(full[i], site.shape(0)[axis]));
    for (const auto& [other, bounded] : BoundedAxes(site.axes(0)))
      if (other != axis) mark(e, part, other, bounded);
    e.bounds().set(part, axis, {.count = length});
    parts.push_back(part);
    start = e.plain1("Add", {start, length});
  }
  return parts;
}

// What is taken of one part comes right behind what is taken of those before it.
std::vector<Var> concat(BoundedSite& site) {
  Emitter& e = site.emitter;
  const int axis = op::checked_axis(site.attributes.integer("axis"), site.shape(0).rank());
  bool joins = false;
  std::set<InputAxis> done;
  for (std::size_t i = 0; i < site.inputs.size(); ++i)
    if (site.bounded(i, axis)) joins = true, done.insert({i, axis});
  const Var all = keep_apart(site, done)[0];
  if (!joins) return {all};
  const std::int64_t total = all.shape()[axis];
  const Var numbers = places(e, total, 0, 1);
  Var from = numbers, end = number(e, 0);  // of what is taken so far
  std::int64_t begin = 0;                  // of the part in `all`
  for (std::size_t i = 0; i < site.inputs.size(); ++i) {
    const std::int64_t extent = site.shape(i)[axis];
    const Var length = site.bounded(i, axis) ? taken(e, site.axes(i).at(axis)) : number(e, extent);
    const Var here = e.plain1("Add", {e.plain1("Sub", {numbers, end}), number(e, begin)});
    from = i == 0 ? here : e.plain1("Where", {e.plain1("Less", {numbers, end}), from, here});
    end = e.plain1("Add", {end, length});
    begin += extent;
  }
  const Var rows = e.plain1("Max", {e.plain1("Min", {from, number(e, total - 1)}), number(e, 0)});
  const Var result = picked(e, all, axis, rows);
  for (const auto& [other, bounded] : BoundedAxes(e.bounds().of(all))) mark(e, result, other, bounded);
  e.bounds().set(result, axis, {.count = end});
  return {result};
}

constexpr NamedRule rules[] = {
    {"Unsqueeze", unsqueeze},
    {"Squeeze", squeeze},
    {"Reshape", reshape},
    {"Expand", expand},
    {"ConstantOfShape", constant_of_shape},
    {"Range", range},
    {"Tile", tile},
    {"Slice", slice},
    {"Split", split},
    {"Concat", concat},
};

}  // namespace

std::span<const NamedRule> bounded_view_rules() { return rules; }

}  // namespace superstep::onnx
