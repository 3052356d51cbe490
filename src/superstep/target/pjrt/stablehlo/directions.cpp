#include "superstep/target/pjrt/stablehlo/directions.h"

namespace superstep::target::stablehlo {

using Values = std::vector<Value>;

RecurrentSizes recurrent_sizes(const graph::Attributes& attributes, const Shape& x, const Shape& r) {
  const bool batch_first = attributes.integer("layout", 0) != 0;
  return {x[batch_first ? 1 : 0], x[batch_first ? 0 : 1], x[2], r[2], r[0], batch_first};
}

Value step_at(Emitter& emit, const Value& all, const Value& t) {
  Extents size = all.shape().extents();
  size[0] = 1;
  Values starts(size.size(), emit.like(t, 0));
  starts[0] = t;
  const Value one = emit.dynamic_slice(all, starts, size);
  size.erase(size.begin());
  return emit.reshape(one, Shape(size));
}

Value with_step(Emitter& emit, const Value& all, const Value& value, const Value& t) {
  Values starts(static_cast<std::size_t>(all.rank()), emit.like(t, 0));
  starts[0] = t;
  Extents size = value.shape().extents();
  size.insert(size.begin(), 1);
  return emit.dynamic_update(all, emit.reshape(value, Shape(size)), starts);
}

Value states_before(Emitter& emit, const Value& after, const Value& start, bool backwards) {
  const std::int64_t steps = after.shape()[0];
  Extents size = start.shape().extents();
  size.insert(size.begin(), 1);
  const Value first = emit.reshape(start, Shape(size));
  const Values parts = backwards ? Values{emit.cut(after, 0, 1, steps), first}
                                 : Values{first, emit.cut(after, 0, 0, steps - 1)};
  return emit.concatenate(parts, 0);
}

Values count_steps(Emitter& emit, std::int64_t steps, Values state, const Emitter::Body& step) {
  state.insert(state.begin(), emit.splat(ElementType::i32, {}, 0));
  Values end = emit.loop(
      state, [&](Values now) { return Values{emit.compare("LT", now[0], static_cast<double>(steps))}; },
      [&](Values now) {
        Values next = step(now);
        next.insert(next.begin(), emit.add(now[0], 1));
        return next;
      });
  end.erase(end.begin());
  return end;
}

Value place_of_step(Emitter& emit, const Value& number, std::int64_t steps, bool backwards) {
  return backwards ? emit.subtract(emit.like(number, static_cast<double>(steps - 1)), number) : number;
}

Directions::Directions(const Site& site, std::size_t x, std::size_t r)
    : s_(site), sizes_(recurrent_sizes(site.attributes(), site.in(x).shape(), site.in(r).shape())) {}

bool Directions::is_reversed(std::int64_t direction) const {
  return direction == 1 || s_.attributes().text("direction", "forward") == "reverse";
}

Value Directions::sequence(std::size_t input) const {
  return sizes_.batch_first ? s_.emit.transpose(s_.in(input), {1, 0, 2}) : s_.in(input);
}

Value Directions::matrix(std::size_t input, std::int64_t direction) const {
  return without(s_.in(input), 0, direction);
}

Value Directions::state(std::size_t input, std::int64_t direction) const {
  if (!s_.has(input)) return s_.emit.splat(s_.in(0).element(), {sizes_.batch, sizes_.hidden}, 0);
  return without(s_.in(input), sizes_.batch_first ? 1 : 0, direction);
}

Value Directions::outputs(std::size_t input, std::int64_t direction) const {
  if (!s_.has(input))
    return s_.emit.splat(s_.in(0).element(), {sizes_.steps, sizes_.batch, sizes_.hidden}, 0);
  if (!sizes_.batch_first) return without(s_.in(input), 1, direction);
  return s_.emit.transpose(without(s_.in(input), 2, direction), {1, 0, 2});
}

Value Directions::stacked(const Values& of_each, int axis) const {
  Values parts;
  for (const Value& value : of_each) {
    Extents extents = value.shape().extents();
    extents.insert(extents.begin() + axis, 1);
    parts.push_back(s_.emit.reshape(value, Shape(extents)));
  }
  return s_.emit.concatenate(parts, axis);
}

Value Directions::stacked_states(const Values& of_each) const {
  return stacked(of_each, sizes_.batch_first ? 1 : 0);
}

Value Directions::stacked_outputs(const Values& of_each) const {
  const Value all = stacked(of_each, 1);  // [T, D, B, H]
  return sizes_.batch_first ? s_.emit.transpose(all, {2, 0, 1, 3}) : all;
}

Value Directions::without(const Value& x, int axis, std::int64_t place) const {
  Extents extents = x.shape().extents();
  extents.erase(extents.begin() + axis);
  return s_.emit.reshape(s_.emit.cut(x, axis, place, place + 1), Shape(extents));
}

}  // namespace superstep::target::stablehlo
