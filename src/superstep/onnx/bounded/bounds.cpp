#include "superstep/onnx/bounded/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "superstep/onnx/emitter.h"

namespace superstep::onnx {
namespace {

int bits_of(ElementType type) { return 8 * static_cast<int>(size_in_bytes(type)); }

bool is_signed_integer(ElementType type) {
  return type == ElementType::i8 || type == ElementType::i16 || type == ElementType::i32 ||
         type == ElementType::i64;
}

}  // namespace

const BoundedAxes& Bounds::of(Var value) const {
  static const BoundedAxes none;
  if (!value.valid()) return none;
  const auto found = axes_.find(value.id());
  return found == axes_.end() ? none : found->second;
}

Var bounded_count(Emitter& emitter, Var found, std::int64_t bound, bool may_exceed) {
  const Var most = emitter.constant(Tensor::scalar(bound));
  const Var none = emitter.constant(Tensor::scalar<std::int64_t>(0));
  if (may_exceed)
    emitter.bounds().add_beyond(emitter.plain1("Max", {emitter.plain1("Sub", {found, most}), none}));
  const Var count = emitter.plain1("Min", {found, most});
  emitter.set_bounded(count.id(), Tensor::scalar(bound), Tensor::scalar<std::int64_t>(0));
  return count;
}

Var taken(Emitter& emitter, const BoundedAxis& axis) {
  if (axis.rows == 1) return axis.count;
  return emitter.plain1("Mul", {axis.count, emitter.constant(Tensor::scalar(axis.rows))});
}

Var places(Emitter& emitter, std::int64_t extent, int axis, int rank) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(extent)),
      shape(static_cast<std::size_t>(rank), 1);
  std::iota(numbers.begin(), numbers.end(), 0);
  shape[static_cast<std::size_t>(axis)] = extent;
  return emitter.constant(Tensor::from(Shape(shape), numbers));
}

Var taken_places(Emitter& emitter, Var x, int axis) {
  const Var numbers = places(emitter, x.shape()[axis], axis, x.shape().rank());
  return emitter.plain1("Less", {numbers, taken(emitter, emitter.bounds().of(x).at(axis))});
}

namespace {

// Of booleans by logic: ONNX Runtime has no Where of them.
Var choice(Emitter& emitter, Var where, Var x, double fill) {
  if (x.element() != ElementType::boolean)
    return emitter.plain1("Where", {where, x, emitter.scalar(x.element(), fill)});
  if (fill == 0) return emitter.plain1("And", {where, x});
  return emitter.plain1("Or", {emitter.plain1("Not", {where}), x});
}

}  // namespace

Var filled(Emitter& emitter, Var x, int axis, double fill) {
  return choice(emitter, taken_places(emitter, x, axis), x, fill);
}

Var filled(Emitter& emitter, Var x, double fill) {
  Var where;
  for (const auto& [axis, bounded] : emitter.bounds().of(x)) {
    const Var here = taken_places(emitter, x, axis);
    where = where.valid() ? emitter.plain1("And", {where, here}) : here;
  }
  return where.valid() ? choice(emitter, where, x, fill) : x;
}

Var picked(Emitter& emitter, Var x, int axis, Var indices) {
  return emitter.plain1("Gather", {x, indices}, {{"axis", std::int64_t{axis}}});
}

Var rows_from(Emitter& emitter, Var x, int axis, Var start, std::int64_t extent) {
  const Var last = emitter.constant(Tensor::scalar(std::max<std::int64_t>(x.shape()[axis] - 1, 0)));
  const Var rows = emitter.plain1("Add", {places(emitter, extent, 0, 1), start});
  return picked(emitter, x, axis, emitter.plain1("Min", {rows, last}));
}

double lowest_of(ElementType type) {
  if (is_floating(type)) return -std::numeric_limits<double>::infinity();
  return is_signed_integer(type) ? -std::exp2(bits_of(type) - 1) : 0;
}

double highest_of(ElementType type) {
  if (is_floating(type)) return std::numeric_limits<double>::infinity();
  if (type == ElementType::boolean) return 1;
  if (bits_of(type) == 64) return 0x1p62;  // what comes next to 2^63 has no double
  return std::exp2(is_signed_integer(type) ? bits_of(type) - 1 : bits_of(type)) - 1;
}

}  // namespace superstep::onnx
