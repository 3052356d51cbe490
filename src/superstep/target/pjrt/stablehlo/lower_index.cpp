// Gathering and scattering by indices, and sorting.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/target/pjrt/stablehlo/lowering.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;

// Devices clamp what lies outside, or leave it out: a run that meets such an index fails instead.
void refuse_outside(const Site& s, const Value& indices, std::int64_t low, std::int64_t extent) {
  const Value wrong = s.emit.binary("or", s.emit.compare("LT", indices, static_cast<double>(low)),
                                    s.emit.compare("GE", indices, static_cast<double>(extent)));
  s.emit.refuse_where(
      wrong, fmt::format("{}: an index lies outside [{}, {}]", transform::describe(s.node), low, extent - 1));
}

// Indices as i64, counted from the front.
Value from_front(const Site& s, const Value& given, std::int64_t extent) {
  const Value indices = s.emit.convert(given, ElementType::i64);
  refuse_outside(s, indices, -extent, extent);
  const Value shifted = s.emit.add(indices, static_cast<double>(extent));
  return s.emit.select(s.emit.compare("LT", indices, 0), shifted, indices);
}

Extents range(std::int64_t from, std::int64_t to) {
  Extents numbers;
  for (std::int64_t i = from; i < to; ++i) numbers.push_back(i);
  return numbers;
}

Values gather(const Site& s) {
  const Value data = s.in(0);
  const int axis = s.axis(0, data.rank());
  const Value indices = from_front(s, s.in(1), data.shape()[axis]);
  Extents offsets = range(0, axis), sizes = data.shape().extents();
  for (std::int64_t at : range(axis + indices.rank(), s.out_shape().rank())) offsets.push_back(at);
  sizes[static_cast<std::size_t>(axis)] = 1;
  return {s.emit.gather(data, indices, {offsets, {axis}, {axis}, indices.rank(), sizes}, s.out_shape())};
}

// Where each element of `indices` stands in data: vectors of one number an axis, along a last axis. Along
// `axis` it is the index, along the others its own place.
Value element_places(const Site& s, const Value& indices, int axis, std::int64_t extent) {
  Extents one = indices.shape().extents();
  one.push_back(1);
  Values parts;
  for (int i = 0; i < indices.rank(); ++i)
    parts.push_back(i == axis ? s.emit.reshape(from_front(s, indices, extent), Shape(one))
                              : s.emit.iota(ElementType::i64, Shape(one), i));
  return s.emit.concatenate(parts, indices.rank());
}

Values gather_elements(const Site& s) {
  const Value data = s.in(0);
  const int axis = s.axis(0, data.rank());
  const Value places = element_places(s, s.in(1), axis, data.shape()[axis]);
  const Extents all = range(0, data.rank());
  return {s.emit.gather(data, places, {{}, all, all, data.rank(), Extents(all.size(), 1)}, s.out_shape())};
}

// Vectors of indices behind `batch` axes of their own places, each counted from the front.
Value vectors_of(const Site& s, const Value& given, const Shape& data, int batch) {
  const int last = given.rank() - 1;
  Extents one = given.shape().extents();
  one.back() = 1;
  Values parts;
  for (int axis = 0; axis < batch; ++axis) parts.push_back(s.emit.iota(ElementType::i64, Shape(one), axis));
  for (std::int64_t k = 0; k < given.shape()[last]; ++k)
    parts.push_back(from_front(s, s.emit.cut(given, last, k, k + 1), data[batch + static_cast<int>(k)]));
  if (parts.empty()) return s.emit.convert(given, ElementType::i64);
  return s.emit.concatenate(parts, last);
}

Values gather_nd(const Site& s) {
  const Value data = s.in(0);
  const auto batch = static_cast<int>(s.attributes().integer("batch_dims", 0));
  const Value vectors = vectors_of(s, s.in(1), data.shape(), batch);
  const int last = vectors.rank() - 1;
  const std::int64_t depth = vectors.shape()[last];
  Extents sizes = data.shape().extents();
  std::fill(sizes.begin(), sizes.begin() + depth, 1);
  return {s.emit.gather(data, vectors,
                        {range(last, s.out_shape().rank()), range(0, depth), range(0, depth), last, sizes},
                        s.out_shape())};
}

Emitter::Body combination(const Site& s) {
  const std::string how = s.attributes().text("reduction", "none");
  return [&s, how](const Values& pair) -> Values {
    if (how == "add") return {s.emit.add(pair[0], pair[1])};
    if (how == "mul") return {s.emit.multiply(pair[0], pair[1])};
    if (how == "max") return {s.emit.maximum(pair[0], pair[1])};
    if (how == "min") return {s.emit.minimum(pair[0], pair[1])};
    return {pair[1]};
  };
}

Values scatter_elements(const Site& s) {
  const Value data = s.in(0);
  const int axis = s.axis(0, data.rank());
  const Value places = element_places(s, s.in(1), axis, data.shape()[axis]);
  const Extents all = range(0, data.rank());
  return {s.emit.scatter(data, places, s.in(2), {{}, all, all, data.rank()}, combination(s))};
}

Values scatter_nd(const Site& s) {
  const Value data = s.in(0), vectors = vectors_of(s, s.in(1), data.shape(), 0);
  const int last = vectors.rank() - 1;
  const std::int64_t depth = vectors.shape()[last];
  return {s.emit.scatter(data, vectors, s.in(2),
                         {range(last, s.in(2).rank()), range(0, depth), range(0, depth), last},
                         combination(s))};
}

// A flat position in zeros of another shape gets each element added.
Values max_pool_gradient(const Site& s) {
  const Value dy = s.in(0);
  const std::int64_t count = dy.shape().element_count(), whole = s.out_shape().element_count();
  const Value zeros = s.emit.splat(dy.element(), {whole}, 0);
  const Value places = s.emit.reshape(s.emit.convert(s.in(1), ElementType::i64), {count, 1});
  refuse_outside(s, places, 0, whole);
  const Value sums = s.emit.scatter(zeros, places, s.emit.reshape(dy, {count}), {{}, {0}, {0}, 1},
                                    [&](const Values& pair) { return Values{s.emit.add(pair[0], pair[1])}; });
  return {s.emit.reshape(sums, s.out_shape())};
}

// --- rows of packs: data [packs..., rows, width], indices [packs..., entries], -1 for none

struct Packs {
  std::int64_t packs = 1, entries = 1, width = 1;

  Packs(const Shape& data, const Shape& index)
      : entries(index[index.rank() - 1]), width(data[data.rank() - 1]) {
    for (int axis = 0; axis + 1 < index.rank(); ++axis) packs *= index[axis];
  }
};

// The number of a row among those of all packs, [packs * entries, 1]; none is the number after the last.
Value row_numbers(const Site& s, const Value& index, const Packs& p, std::int64_t rows) {
  const Value own = s.emit.reshape(s.emit.convert(index, ElementType::i64), {p.packs, p.entries});
  refuse_outside(s, own, -1, rows);
  const Value pack = s.emit.iota(ElementType::i64, own.shape(), 0);
  const Value number = s.emit.add(own, s.emit.multiply(pack, static_cast<double>(rows)));
  const Value none = s.emit.like(own, static_cast<double>(p.packs * rows));
  return s.emit.reshape(s.emit.select(s.emit.compare("LT", own, 0), none, number), {p.packs * p.entries, 1});
}

Value gathered_rows(const Site& s, const Value& data, const Value& index) {
  const Packs p(data.shape(), index.shape());
  const std::int64_t rows = data.shape()[data.rank() - 2];
  const Value flat = s.emit.reshape(data, {p.packs * rows, p.width});
  const Value numbers = row_numbers(s, index, p, rows);
  const Shape shape{p.packs * p.entries, p.width};
  if (rows == 0) return s.emit.splat(data.element(), shape, 0);
  const Value found = s.emit.gather(flat, numbers, {{1}, {0}, {0}, 1, {1, p.width}}, shape);
  const Value none = s.emit.compare("GE", numbers, static_cast<double>(p.packs * rows));
  return s.emit.select(s.emit.broadcast(none, shape, {0, 1}), s.emit.like(found, 0), found);
}

// Entries [packs * entries, width] added to the rows of zeros that they name.
Value summed_rows(const Site& s, const Value& entries, const Value& index, const Packs& p) {
  const std::int64_t rows = s.out_shape()[s.out_shape().rank() - 2];
  const Value zeros = s.emit.splat(entries.element(), {p.packs * rows, p.width}, 0);
  const Value sums = s.emit.scatter(zeros, row_numbers(s, index, p, rows), entries, {{1}, {0}, {0}, 1},
                                    [&](const Values& pair) { return Values{s.emit.add(pair[0], pair[1])}; });
  return s.emit.reshape(sums, s.out_shape());
}

Values gather_rows(const Site& s) {
  return {s.emit.reshape(gathered_rows(s, s.in(0), s.in(1)), s.out_shape())};
}

Values segment_sum(const Site& s) {
  const Packs p(s.in(0).shape(), s.in(1).shape());
  return {summed_rows(s, s.emit.reshape(s.in(0), {p.packs * p.entries, p.width}), s.in(1), p)};
}

Values sparse_product(const Site& s) {
  const Packs p(s.in(0).shape(), s.in(1).shape());
  const Value rows = gathered_rows(s, s.in(0), s.in(1));
  const Value weight = s.emit.reshape(s.in(3), {p.packs * p.entries, 1});
  return {summed_rows(s, s.emit.multiply(rows, s.emit.broadcast(weight, rows.shape(), {0, 1})), s.in(2), p)};
}

// --- order

Values top_k(const Site& s) {
  const Value x = s.in(0);
  const int axis = s.axis(-1, x.rank());
  const bool largest = s.attributes().integer("largest", 1) != 0;
  const std::int64_t k = s.integers(1, "K").at(0);
  const Value xs[] = {x, s.emit.iota(ElementType::i64, x.shape(), axis)};
  const Values sorted = s.emit.sort(xs, axis, [&](const Values& pairs) {
    return Values{s.emit.compare(largest ? "GT" : "LT", pairs[0], pairs[1])};
  });
  return {s.emit.cut(sorted[0], axis, 0, k), s.emit.cut(sorted[1], axis, 0, k)};
}

// The place of the largest or smallest along an axis; the first, or the last, of equals.
Values arg(const Site& s, std::string_view better) {
  const Value x = s.in(0);
  const int axis = s.axis(0, x.rank());
  const bool last = s.attributes().integer("select_last_index", 0) != 0;
  const Fold fold = better == "GT" ? Fold::largest : Fold::smallest;
  const Value xs[] = {x, s.emit.iota(ElementType::i64, x.shape(), axis)};
  const Value far = s.emit.constant(neutral(last ? Fold::largest : Fold::smallest, ElementType::i64));
  const Value starts[] = {s.emit.constant(neutral(fold, x.element())), far};
  const Values found = s.emit.reduce(xs, starts, {axis}, [&](const Values& in) {
    const Value wins = s.emit.compare(better, in[2], in[0]), same = s.emit.compare("EQ", in[2], in[0]);
    const Value place = s.emit.compare(last ? "GT" : "LT", in[3], in[1]);
    const Value takes = s.emit.binary("or", wins, s.emit.binary("and", same, place));
    return Values{s.emit.select(takes, in[2], in[0]), s.emit.select(takes, in[3], in[1])};
  });
  return {s.emit.reshape(found[1], s.out_shape())};
}
Values arg_max(const Site& s) { return arg(s, "GT"); }
Values arg_min(const Site& s) { return arg(s, "LT"); }

}  // namespace

std::span<const Lowering> index_lowerings() {
  static const Lowering table[] = {
      {"Gather", gather, Inputs::as_they_are},
      {"GatherElements", gather_elements, Inputs::as_they_are},
      {"GatherND", gather_nd, Inputs::as_they_are},
      {"ScatterElements", scatter_elements},
      {"ScatterND", scatter_nd},
      {"superstep.MaxPoolGradient", max_pool_gradient},
      {"superstep.GatherRows", gather_rows, Inputs::as_they_are},
      {"superstep.SegmentSum", segment_sum},
      {"superstep.SparseProduct", sparse_product},
      {"TopK", top_k, Inputs::as_they_are},
      {"ArgMax", arg_max},
      {"ArgMin", arg_min},
  };
  return table;
}

}  // namespace superstep::target::stablehlo
