// Choosing among boxes that overlap: all pictures and classes side by side, one rank a round.
#include <limits>

#include "superstep/target/pjrt/stablehlo/lowering.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;
constexpr ElementType f64 = ElementType::f64, i64 = ElementType::i64;

// The edges of boxes [..., 4], smaller ones first, each of shape [...].
struct Edges {
  Value y1, x1, y2, x2;
};

Edges edges_of(const Site& s, const Value& boxes) {
  Emitter& emit = s.emit;
  Shape shape(Extents(boxes.shape().begin(), boxes.shape().end() - 1));
  const auto number = [&](std::int64_t i) {
    return emit.reshape(emit.cut(boxes, boxes.rank() - 1, i, i + 1), shape);
  };
  const Value a = number(0), b = number(1), c = number(2), d = number(3);
  if (s.attributes().integer("center_point_box", 0) == 0)
    return {emit.minimum(a, c), emit.minimum(b, d), emit.maximum(a, c), emit.maximum(b, d)};
  const Value half_width = emit.multiply(c, 0.5), half_height = emit.multiply(d, 0.5);
  return {emit.subtract(b, half_height), emit.subtract(a, half_width), emit.add(b, half_height),
          emit.add(a, half_width)};
}

struct Selection {
  const Site& s;
  Shape shape;  // [pictures, classes, boxes], boxes by their scores
  Edges edges;  // of each
  Value threshold, most;

  Value area(const Edges& e) const {
    return s.emit.multiply(s.emit.subtract(e.y2, e.y1), s.emit.subtract(e.x2, e.x1));
  }

  // What stands at `rank`, for every box of its line.
  Value at(const Value& x, const Value& rank) const {
    const Value zero = s.emit.splat(i64, {}, 0);
    const Value starts[] = {zero, zero, rank};
    const Value one = s.emit.dynamic_slice(x, starts, {shape[0], shape[1], 1});
    return s.emit.expand(one, shape);
  }

  // Which boxes overlap with that at `rank` by more than the threshold, rounded to f32 as the definition has
  // it.
  Value overlaps(const Value& rank) const {
    Emitter& emit = s.emit;
    const Edges e{at(edges.y1, rank), at(edges.x1, rank), at(edges.y2, rank), at(edges.x2, rank)};
    const Value height = emit.subtract(emit.minimum(e.y2, edges.y2), emit.maximum(e.y1, edges.y1));
    const Value width = emit.subtract(emit.minimum(e.x2, edges.x2), emit.maximum(e.x1, edges.x1));
    const Value common = emit.multiply(height, width), own = area(edges), other = area(e);
    const Value share = emit.divide(common, emit.subtract(emit.add(own, other), common));
    Value result = emit.compare("GT", emit.convert(share, ElementType::f32), threshold);
    for (const Value& positive : {height, width, own, other})
      result = emit.binary("and", result, emit.compare("GT", positive, 0));
    return result;
  }

  // State: rank, which boxes may still be kept, how many are.
  Values round(const Values& state) const {
    Emitter& emit = s.emit;
    const Value &rank = state[0], &open = state[1], &kept = state[2];
    const Value room = emit.compare("LT", kept, emit.broadcast(most, kept.shape(), {}));
    const Value takes = emit.binary("and", at(open, rank), emit.broadcast(room, shape, {0, 1}));
    const Value places = emit.iota(i64, shape, 2), here = emit.broadcast(rank, shape, {});
    const Value behind = emit.compare("GT", places, here);
    const Value falls = emit.binary("and", emit.binary("and", takes, behind), overlaps(rank));
    const Value left = emit.binary("and", open, emit.unary("not", falls));
    const Value first = emit.reshape(emit.cut(takes, 2, 0, 1), kept.shape());
    return {emit.add(rank, 1), emit.select(emit.compare("EQ", places, here), takes, left),
            emit.add(kept, emit.convert(first, i64))};
  }
};

// Rows (picture, class, box) of the boxes that are kept, in the order of the lines and of the ranks in them;
// what has no room in `bound` rows is counted alone.
Values in_rows(const Site& s, const Value& kept, const Value& order) {
  Emitter& emit = s.emit;
  const Shape& shape = kept.shape();
  const std::int64_t all = shape.element_count(), bound = s.out_shape(0)[0];
  const Value flags = emit.reshape(emit.convert(kept, i64), {all});
  Value before = flags;
  for (std::int64_t back = 1; back < all; back *= 2)
    before = emit.add(before, emit.pad(before, emit.splat(i64, {}, 0), {back}, {-back}));
  const Value place = emit.select(emit.compare("GT", flags, 0), emit.add(before, -1),
                                  emit.splat(i64, {all}, static_cast<double>(bound)));
  const Value columns[] = {emit.reshape(emit.iota(i64, shape, 0), {all, 1}),
                           emit.reshape(emit.iota(i64, shape, 1), {all, 1}), emit.reshape(order, {all, 1})};
  const Value rows = emit.scatter(emit.splat(i64, {bound, 3}, 0), emit.reshape(place, {all, 1}),
                                  emit.concatenate(columns, 1), {{1}, {0}, {0}, 1},
                                  [](const Values& pair) { return Values{pair[1]}; });
  return {rows, emit.reduce(flags, {0}, Fold::sum)};
}

Value scalar(const Site& s, std::size_t input, ElementType element, double otherwise) {
  if (!s.has(input)) return s.emit.splat(element, {}, otherwise);
  return s.emit.convert(s.emit.reshape(s.in(input), Shape{}), element);
}

Values kept_boxes(const Site& s) {
  Emitter& emit = s.emit;
  const Value scores = emit.convert(s.in(1), f64);
  const Shape& shape = scores.shape();
  const Value given[] = {scores, emit.iota(i64, shape, 2)};
  const Values sorted = emit.sort(
      given, 2, [&](const Values& pairs) { return Values{emit.compare("GT", pairs[0], pairs[1])}; });
  const Shape all(Extents{shape[0], shape[1], shape[2], 4});
  const Value picture = emit.iota(i64, {shape[0], shape[1], shape[2], 1}, 0);
  const Value places[] = {picture, emit.reshape(sorted[1], picture.shape())};
  const Value boxes = emit.gather(emit.convert(s.in(0), f64), emit.concatenate(places, 3),
                                  {{3}, {0, 1}, {0, 1}, 3, {1, 1, 4}}, all);
  const double none = -std::numeric_limits<double>::infinity();
  const Value limit = emit.broadcast(scalar(s, 4, f64, none), shape, {});
  const Value threshold = emit.broadcast(scalar(s, 3, ElementType::f32, 0), shape, {});
  const Selection selection{s, shape, edges_of(s, boxes), threshold, scalar(s, 2, i64, 0)};
  const Value starts[] = {emit.splat(i64, {}, 0), emit.compare("GT", sorted[0], limit),
                          emit.splat(i64, {shape[0], shape[1]}, 0)};
  const Values end = emit.loop(
      starts,
      [&](const Values& state) {
        return Values{emit.compare("LT", state[0], static_cast<double>(shape[2]))};
      },
      [&](const Values& state) { return selection.round(state); });
  return in_rows(s, end[1], sorted[1]);
}

}  // namespace

std::span<const Lowering> detection_lowerings() {
  static const Lowering table[] = {{"superstep.KeptBoxes", kept_boxes}};
  return table;
}

}  // namespace superstep::target::stablehlo
